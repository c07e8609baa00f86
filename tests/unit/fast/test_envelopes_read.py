"""Envelopes that are like one before: templates tell what the careful reading tells."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpcqm.base.errors import DecodeError
from rpcqm.fast.formats import envelope_read as templates
from rpcqm.fast.formats.envelope_read import LONGEST, EnvelopeTemplates
from rpcqm.srmp.elements import Envelope, MessageId, Msmq, Stream, StreamId
from rpcqm.srmp.reading import ReadEnvelope, parse_envelope
from rpcqm.srmp.writing import write_envelope
from tests.support.srmp.srmp_door import ORDERS, RECEIPTS, SENDER, STREAM, Door, msmq
from tests.support.srmp.srmp_samples import NAMES, full_envelope, sample
from tests.support.srmp.srmp_text import Elements, Post, durable, envelope, in_stream, message

FULL = write_envelope(full_envelope())
_SECONDS = st.integers(0, 0xFFFF_FFFF)
_NUMBERS = st.integers(0, 0xFFFF_FFFF)
_ORDINALS = st.integers(0, (1 << 64) - 1)
_PLACES = [found.span() for found in re.finditer(rb"(?<=>)[^<]+(?=<)", FULL)]


class Counted:
    """The careful reading, and how often it was asked for."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, octets: bytes) -> ReadEnvelope:
        self.times += 1
        return parse_envelope(octets)


@pytest.fixture
def careful(monkeypatch: pytest.MonkeyPatch) -> Counted:
    counted = Counted()
    monkeypatch.setattr(templates, "parse_envelope", counted)
    return counted


def outcome(parse: Callable[[bytes], ReadEnvelope], octets: bytes) -> tuple[str, Envelope] | str:
    """What came of an envelope, or why nothing did."""
    try:
        return parse(octets)[:2]
    except DecodeError as error:
        return str(error)


def taught(octets: bytes = FULL, size: int = 4) -> EnvelopeTemplates:
    """What knows an envelope by heart."""
    made = EnvelopeTemplates(size)
    for _ in range(2):
        made.read(octets)
    return made


def others() -> st.SearchStrategy[Envelope]:
    """The full envelope with other values in everything that changes from message to message."""
    full = full_envelope()
    assert full.msmq is not None
    assert full.stream is not None
    msmq = st.builds(
        replace, st.just(full.msmq), correlation=st.binary(min_size=20, max_size=20), ttrq=_SECONDS
    )
    stream = st.builds(
        replace, st.just(full.stream), current=st.integers(1, 0xFFFF_FFFF), previous=_NUMBERS
    )
    return st.builds(
        replace,
        st.just(full),
        action=st.text(st.characters(codec="utf-8")),
        id=st.builds(MessageId, st.uuids(), _ORDINALS),
        sent_at=_SECONDS,
        expires_at=_SECONDS,
        stream=stream,
        msmq=msmq,
    )


@given(st.lists(others(), min_size=1, max_size=4))
def test_values_are_read_as_the_careful_reading_reads_them(envelopes: list[Envelope]) -> None:
    known = taught()
    for each in envelopes:
        octets = write_envelope(each)
        assert known.read(octets)[:2] == parse_envelope(octets)[:2]


_Parts = st.fixed_dictionaries(
    {},
    optional={
        "sent_at": _SECONDS,
        "via": st.just("http://machine/answers"),
        "stream": st.builds(
            Stream, st.builds(StreamId, st.uuids(), _ORDINALS), st.integers(1, 99), _NUMBERS
        ),
        "msmq": st.builds(
            Msmq,
            priority=st.integers(0, 7),
            correlation=st.none() | st.binary(min_size=20, max_size=20),
            connector_type=st.none() | st.uuids(),
            body_type=_NUMBERS,
            source_qm_guid=st.uuids(),
            admin_mqf=st.sampled_from([(), ("MSMQ:DIRECT=OS:a\\b",)]),
            ttrq=st.none() | _SECONDS,
        ),
    },
)


@settings(max_examples=50)
@given(_Parts, st.lists(st.tuples(_ORDINALS, _SECONDS), min_size=3, max_size=5))
def test_envelopes_with_other_elements_have_templates_of_their_own(
    parts: dict[str, object], series: list[tuple[int, int]]
) -> None:
    known = taught()
    for ordinal, expires in series:
        made = Envelope("MSMQ:", ORDERS, MessageId(UUID(int=5), ordinal), expires)
        octets = write_envelope(replace(made, **parts))  # type: ignore[arg-type]
        assert outcome(known.read, octets) == outcome(parse_envelope, octets)


_HOSTILE = (
    *(b"", b" ", b"\t5\r\n", b"0", b"00000000000000000091", b"-1", b"+1", b"1e3", b"0x5", b"5_0"),
    *(b"4294967295", b"4294967296", b"18446744073709551616", b"&#53;", b"&amp;", b"&x;", b"]]>"),
    *(b"<!-- -->", b"5<!-- -->5", b"<![CDATA[5]]>", b"<x/>", b"5</current><current>6", b"\0"),
    *(b"\xff", b"\xc2\xa0", "\u0665".encode(), "\u00e4".encode(), b"20260230T000000", b"\x0c"),
    *(b"19691231T235959", b"2026-01-01T00:00:00Z", b"20260101t000000", b'"', b"uuid:5@", b">"),
    *(b"uuid:5@{00000000-0000-0000-0000-000000000008}", b"MSMQ:&lt;", b"\r", b"\n", b"\x1c"),
    *(b"AAECAwQFBgcICQoLDA0ODxAREhM", b"AAECAwQFBgcICQoLDA0ODxAREhN=", b"AAEC\x1c" * 7),
    *(b"AAECAwQFBgcI\x0cCQoLDA0ODxAREhM=", b"AAECAwQFBgcI CQoLDA0ODxAREhM=", b"5" * 8_192),
)
"""Texts that are no values, or values that are written otherwise."""


@pytest.mark.parametrize("text", _HOSTILE)
def test_what_is_written_otherwise_is_read_carefully(text: bytes) -> None:
    """In each element of an envelope in turn, and twice, so that it may be learned itself."""
    known = taught(size=1_000)
    for start, end in _PLACES:
        changed = FULL[:start] + text + FULL[end:]
        for _ in range(3):
            assert outcome(known.read, changed) == outcome(parse_envelope, changed)
    assert known.read(FULL)[:2] == parse_envelope(FULL)[:2]


@given(
    st.integers(0, len(FULL)),
    st.integers(0, 12),
    st.sampled_from([b"", b"<", b">", b"<!--", b"-->", b'"', b"id>", b"<id>"])
    | st.binary(max_size=8),
)
def test_shapes_that_nearly_match_are_other_shapes(at: int, length: int, new: bytes) -> None:
    known = taught()
    changed = FULL[:at] + new + FULL[at + length :]
    for _ in range(3):
        assert outcome(known.read, changed) == outcome(parse_envelope, changed)


_HIDDEN = {
    "comment": (b"<!--", b"-->"),
    "data": (b"<x><![CDATA[", b"]]></x>"),
    "another-namespace": (b'<x:y xmlns:x="urn:x">', b"</x:y>"),
    "instruction": (b"<?x ", b"?>"),
}


@pytest.mark.parametrize(("start", "end"), list(_HIDDEN.values()), ids=list(_HIDDEN))
@pytest.mark.parametrize("element", [b"action", b"id", b"expiresAt", b"current", b"TTrq"])
def test_an_element_that_says_nothing_is_no_place_for_a_value(
    start: bytes, end: bytes, element: bytes
) -> None:
    """Such an element before the true one, and one that takes the place of the true one."""
    found = re.search(rb"<%b>([^<]*)</%b>" % (element, element), FULL)
    assert found is not None
    hidden = start + found[0] + end
    doubled = FULL.replace(b"<se:Header>", b"<se:Header>" + hidden, 1)
    alone = FULL.replace(found[0], hidden, 1)
    inside = FULL.replace(found[0], found[0].replace(found[1], start + found[1] + end), 1)
    for octets in (doubled, alone, inside):
        known = EnvelopeTemplates(4)
        for value in (found[1], found[1], b"20260101T000000", b"91", found[1]):
            changed = octets.replace(found[1], value)
            assert outcome(known.read, changed) == outcome(parse_envelope, changed)


@pytest.mark.parametrize("name", NAMES)
def test_every_sample_is_read_alike_however_often_it_comes(name: str) -> None:
    text = re.search(rb"<se:Envelope.*</se:Envelope>", sample(name).body, re.DOTALL)
    assert text is not None
    known = EnvelopeTemplates(4)
    for _ in range(4):
        assert outcome(known.read, text[0]) == outcome(parse_envelope, text[0])


def test_the_third_of_a_form_is_not_parsed(careful: Counted) -> None:
    known = taught()
    before = careful.times
    for ordinal in range(20):
        each = replace(full_envelope(), id=MessageId(UUID(int=8), ordinal), sent_at=ordinal)
        assert known.read(write_envelope(each))[1] == each
    assert careful.times == before


def test_streams_whose_previous_number_is_left_out_have_templates(careful: Counted) -> None:
    """As Windows writes them; one that is written before the current one has none."""
    plain = FULL.replace(b"<previous>40</previous>", b"")
    known = taught(plain)
    before = careful.times
    for number in (1, 7, 42, 0xFFFF_FFFF):
        octets = plain.replace(b"<current>42<", b"<current>%d<" % number)
        stream = known.read(octets).envelope.stream
        assert stream is not None
        assert (stream.current, stream.previous) == (number, number - 1)
    assert careful.times == before
    turned = plain.replace(b"<current>", b"<previous>40</previous><current>")
    known = taught(turned)
    for number in (41, 42, 43):
        octets = turned.replace(b"<current>42<", b"<current>%d<" % number)
        assert known.read(octets)[:2] == parse_envelope(octets)[:2]


def test_envelopes_of_one_template_have_values_of_their_own(careful: Counted) -> None:
    known = taught()
    before = careful.times
    full = full_envelope()
    assert full.msmq is not None
    other = replace(full, msmq=replace(full.msmq, ttrq=0, correlation=bytes(20)))
    first, second, third = (known.read(write_envelope(each))[1] for each in (full, other, full))
    assert (first, second, third) == (full, other, full)
    assert careful.times == before


def labelled(size: int) -> bytes:
    plain = envelope(ORDERS, Elements(msmq=msmq()))
    return envelope(ORDERS, Elements("x" * (size - len(plain)), msmq=msmq())).encode()


@pytest.mark.bound("srmp.template_envelope")
def test_a_long_envelope_is_parsed_each_time(careful: Counted) -> None:
    for size, kept in ((LONGEST, 1), (LONGEST + 1, 0)):
        octets = labelled(size)
        assert len(octets) == size
        assert len(taught(octets)) == kept


@pytest.mark.bound("srmp.envelope_templates")
def test_the_template_that_was_used_longest_ago_is_forgotten(careful: Counted) -> None:
    forms = [write_envelope(replace(full_envelope(), via=f"http://{n}/")) for n in range(4)]
    known = EnvelopeTemplates(3)
    for each in forms[:3]:
        known.read(each)
        known.read(each)
    known.read(forms[0])
    known.read(forms[3])
    assert len(known) == 3
    known.read(forms[3])
    assert len(known) == 3
    before = careful.times
    for each in (forms[0], forms[2], forms[3]):
        known.read(each)
    assert careful.times == before
    known.read(forms[1])
    assert careful.times == before + 1


def test_what_comes_once_pushes_no_template_out(careful: Counted) -> None:
    known = taught(size=2)
    for number in range(20):
        known.read(write_envelope(replace(full_envelope(), via=f"http://{number}/")))
    before = careful.times
    known.read(FULL)
    assert careful.times == before


def test_messages_are_stored_alike_with_templates_and_without(tmp_path: Path) -> None:
    """Messages of several kinds that come again and again, and the answers to them."""
    found = []
    for on in (False, True):
        door = Door(tmp_path / str(on))
        door.speed.switch(on)
        statuses = [door.post(each) for each in _series()]
        packets = [bytes(each.buffer) for each in door.messages() + door.messages("stream")]
        found.append((statuses, packets))
        door.stop()
    assert found[0] == found[1]
    assert set(found[0][0]) == {200, 400}
    assert len(found[0][1]) == 2 * SERIES


SERIES = 6


def _series() -> list[Post]:
    posts = []
    for number in range(1, SERIES + 1):
        elements = Elements(
            f"label {number}",
            number,
            SENDER,
            services=durable(),
            msmq=msmq(f"<Correlation>AAECAwQFBgcICQoLDA0ODxAREh{number}=</Correlation>"),
            expires=f"2037010{number}T000000",
        )
        in_order = replace(elements, stream=in_stream(SENDER, number, RECEIPTS))
        wrong = replace(elements, msmq=msmq("<App>x</App>"))
        for body in (b"once", b"again"):
            posts.append(message(ORDERS, body, elements))
            posts.append(message(STREAM, body, in_order))
        posts.append(message(ORDERS, b"wrong", wrong))
    return posts
