"""Envelopes that were made to do harm: each is malformed, quickly, and nothing is fetched."""

from pathlib import Path

import pytest

from rpcqm.base.errors import DecodeError
from rpcqm.codec.bodies.xml_bounds import MAXIMUM_DEPTH
from rpcqm.srmp.reading import read_envelope, read_request
from rpcqm.srmp.xml import MAXIMUM_ENVELOPE, MAXIMUM_NODES, SOAP, written
from tests.support.srmp.srmp_samples import minimal, msmq, posted
from tests.support.srmp.srmp_signatures import rsa_key, signature

MANY = " ".join(f"a{number}=''" for number in range(20_000))
PLAIN = minimal(msmq()).decode()


def label(text: str) -> bytes:
    return PLAIN.replace("MSMQ:label", f"MSMQ:{text}").encode()


def laughs() -> bytes:
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    document = f'<!DOCTYPE se:Envelope [<!ENTITY l0 "ha">{entities}]>'
    return document.encode() + label("&l9;")


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.2")
@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(laughs(), id="billion-laughs"),
        pytest.param(b'<!DOCTYPE x SYSTEM "http://127.0.0.1:9/x.dtd">' + label("a"), id="dtd"),
        pytest.param(b"<!DOCTYPE x>" + label("a"), id="empty-doctype"),
        pytest.param(b'<?xml version="1.0"?>\n<!-- --> <!DOCTYPE x>' + label("a"), id="late"),
        pytest.param(label("&undefined;"), id="undefined-entity"),
        pytest.param(label("&#0;"), id="null-character"),
        pytest.param(label("&#xD800;"), id="half-a-pair"),
        pytest.param(label("\0"), id="null-octet"),
        pytest.param(label("a").replace(b"MSMQ:a", b"MSMQ:\xff"), id="no-utf-8"),
        pytest.param(label("a").decode().encode("utf-16"), id="utf-16"),
        pytest.param(b'<?xml version="1.0" encoding="utf-7"?>' + label("+ADw-x/+AD4-"), id="utf-7"),
        pytest.param(b"<?xml version='1.0'  encoding = 'iso-8859-1'?>" + label("a"), id="latin-1"),
        pytest.param(b"", id="nothing"),
        pytest.param(b"   ", id="space"),
        pytest.param(label("a")[:-1], id="cut-off"),
        pytest.param(label("a") + b"<more/>", id="two-roots"),
        pytest.param(label("a") + label("a"), id="two-envelopes"),
        pytest.param(label("<b>"), id="not-closed"),
        pytest.param(b"<x/>", id="no-envelope"),
        pytest.param(b'{"to": "q"}', id="json"),
        pytest.param(label("<x>" * 100_000 + "</x>" * 100_000), id="too-large-and-deep"),
        pytest.param(label("<x>" * 30_000 + "</x>" * 30_000), id="deep"),
        pytest.param(label("<x>" * 60_000), id="deep-and-open"),
        pytest.param(minimal("<x/>" * 60_000), id="wide"),
        pytest.param(minimal(f"<x {MANY}/>"), id="attributes"),
        pytest.param(minimal('<x a="" a=""/>'), id="doubled-attribute"),
    ],
)
def test_what_is_made_to_do_harm_is_malformed(octets: bytes) -> None:
    with pytest.raises(DecodeError):
        read_envelope(octets)


def test_no_file_is_read_for_an_entity(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    document = f'<!DOCTYPE x [<!ENTITY e SYSTEM "{secret.as_uri()}">]>'
    with pytest.raises(DecodeError, match="document type"):
        read_envelope(document.encode() + label("&e;"))


def test_a_document_type_in_the_middle_of_a_text_is_refused_too() -> None:
    with pytest.raises(DecodeError, match="document type"):
        read_envelope(label("<![CDATA[<!DOCTYPE x>]]>"))


@pytest.mark.conformance("MQSRM-rule-2.2.2")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<se:Body></se:Body>", ""),
        ("<se:Body></se:Body>", "<x/><se:Body></se:Body>"),
        ("<se:Body></se:Body>", "<se:Body></se:Body><se:Body/>"),
        ("<se:Body></se:Body>", "<se:Body></se:Body><se:Header/>"),
        ("<se:Header>", "<x/><se:Header>"),
        ("<se:Header>", "<se:Body/><se:Header>"),
        ("<se:Header>", "<se:Header/><se:Header>"),
        ("se:Header>", "se:header>"),
        ("<se:Header>", "<se:Header><se:Header>"),
        ("<to>http", "<to><x/>http"),
        ("<to>http", "<to>http://elsewhere/</to><to>http"),
        ("private$/q</to>", "private$/q<x/></to>"),
        ("<se:Header>", '<se:Header><x se:mustUnderstand="1"/>'),
        ("<se:Header>", '<se:Header><x se:mustUnderstand=" 1 "/>'),
        ("<se:Header>", '<se:Header><x se:mustUnderstand="true"/>'),
        ("<se:Header>", '<se:Header><Msmq se:mustUnderstand="1"/>'),
        ('<path xmlns="http://schemas.xmlsoap.org/rp/"', "<path"),
    ],
)
def test_an_envelope_of_another_structure_is_malformed(old: str, new: str) -> None:
    assert old in PLAIN
    changed = PLAIN.replace(old, new)
    if old == "<se:Header>" and new == "<se:Header><se:Header>":
        changed = changed.replace("</se:Header>", "</se:Header></se:Header>")
    with pytest.raises(DecodeError):
        read_envelope(changed.encode())


def test_a_signed_envelope_with_a_prefix_that_nothing_is_bound_to_is_malformed() -> None:
    signed = PLAIN.replace("</se:Header>", f"{signature(rsa_key(''), {'body': b'x'})}</se:Header>")
    assert read_envelope(signed.encode()).signature is not None
    with pytest.raises(DecodeError, match="unbound prefix"):
        read_envelope(signed.replace("<se:Header>", "<se:Header><x:y/>").encode())


def test_what_stands_in_the_body_or_behind_it_is_not_looked_at() -> None:
    inner = f"<se:Body><x>{msmq()}</x></se:Body><x/>"
    changed = PLAIN.replace("<se:Body></se:Body>", inner)
    assert read_envelope(changed.encode()) == read_envelope(PLAIN.encode())


def test_comments_and_instructions_cut_no_text_in_two() -> None:
    changed = PLAIN.replace("http://machine", "http://mach<!-- x --><?x y?><![CDATA[ine]]>")
    changed = f"\ufeff<?xml version='1.0' encoding='UTF-8'?><!-- x -->\n{changed}\n<!-- x -->"
    read = read_request(posted(changed.encode()))
    assert read.envelope == read_envelope(PLAIN.encode())
    assert read.body_text == "<se:Body></se:Body>"
    assert read.header_text.startswith("<se:Header><path")


def test_an_element_is_found_as_it_was_written_whatever_stands_around_it() -> None:
    text = (
        f"<!-- <e:Header>no</e:Header> --><e:Envelope xmlns:e='{SOAP}'>"
        "<e:Header a='>'  >\u00e4<x><e:Header/></x><![CDATA[</e:Header>]]></e:Header >"
        "<e:Body b='/>' />\n</e:Envelope>"
    )
    path = (f"{SOAP}}}Envelope", f"{SOAP}}}Header")
    start, end = text.index("<e:Header a"), text.index("<e:Body")
    assert written(text, *path) == text[start:end]
    assert written(text, path[0], f"{SOAP}}}Body") == "<e:Body b='/>' />"
    assert written(text, path[0]) == text[text.index("<e:Envelope") :]
    assert written(text, path[0], "nothing") == ""
    assert written(text, *path, f"{SOAP}}}Header") == ""


@pytest.mark.bound("srmp.envelope")
@pytest.mark.parametrize(("more", "is_read"), [(0, True), (1, False)])
def test_the_size_of_an_envelope_is_bounded(more: int, is_read: bool) -> None:
    octets = label("x" * (MAXIMUM_ENVELOPE + more - len(label(""))))
    if is_read:
        assert len(read_envelope(octets).action) > MAXIMUM_ENVELOPE // 2
    else:
        with pytest.raises(DecodeError, match="bytes"):
            read_envelope(octets)


@pytest.mark.bound("srmp.envelope_nodes")
@pytest.mark.parametrize(("more", "is_read"), [(0, True), (1, False)])
def test_the_elements_and_attributes_of_an_envelope_are_bounded(more: int, is_read: bool) -> None:
    own = minimal().count(b"<") - minimal().count(b"</") + minimal().count(b"mustUnderstand")
    octets = minimal(
        '<x a=""/>' * ((MAXIMUM_NODES + more - own) // 2) + "<x/>" * ((more - own) % 2)
    )
    if is_read:
        assert read_envelope(octets)
    else:
        with pytest.raises(DecodeError, match="too many"):
            read_envelope(octets)


def test_few_elements_with_many_attributes_are_bounded() -> None:
    many = " ".join(f"a{number}=''" for number in range(MAXIMUM_NODES))
    with pytest.raises(DecodeError, match="too many"):
        read_envelope(minimal(f"<x {many}/>"))


@pytest.mark.parametrize(("more", "is_read"), [(0, True), (1, False)])
def test_the_depth_of_an_envelope_is_bounded(more: int, is_read: bool) -> None:
    depth = MAXIMUM_DEPTH - 2 + more
    octets = minimal("<x>" * depth + "</x>" * depth)
    if is_read:
        assert read_envelope(octets)
    else:
        with pytest.raises(DecodeError, match="deep"):
            read_envelope(octets)
