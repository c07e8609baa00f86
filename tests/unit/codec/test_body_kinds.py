"""Bodies by the kinds that people name, as .NET's formatters read them."""

import datetime
import re
from decimal import Decimal
from uuid import UUID

import pytest

from rpcqm.cli.send import KINDS
from rpcqm.codec.bodies.formatters import DOTNET_BINARY, decode_body
from rpcqm.codec.bodies.kinds import WRITERS, body_of, kind_and_value
from rpcqm.codec.bodies.xml_documents import parse_xml
from rpcqm.codec.bodies.xml_values import value_of_xml
from rpcqm.codec.packet.enums import BodyType

GUID = UUID("1a9134dd-7b39-45ba-ad88-44d01ca47f28")
VECTOR, ARRAY = 0x1011, 0x2011


def test_the_command_line_offers_every_kind() -> None:
    assert list(KINDS.values()) == list(WRITERS)
    assert list(KINDS) == [kind.lower() for kind in WRITERS]


@pytest.mark.parametrize(
    ("kind", "written", "body", "body_type"),
    [
        ("text", "Hä", b"H\0\xe4\0", BodyType.VT_BSTR),
        ("text", "", b"", BodyType.VT_BSTR),
        ("xml", "<a/>", b"<a/>", 0),
        ("json", ' {"a": 1}\n', b' {"a": 1}\n', 0),
        ("bytes", "H", b"H", VECTOR),
        ("int", " 42\n", b"\x2a\0\0\0", BodyType.VT_I4),
        ("int", "5000000000", (5_000_000_000).to_bytes(8, "little"), BodyType.VT_I8),
        ("long", "7", b"\7" + bytes(7), BodyType.VT_I8),
        ("long", "18446744073709551615", b"\xff" * 8, BodyType.VT_UI8),
        ("bool", "TRUE", b"\xff\xff", BodyType.VT_BOOL),
        ("bool", "0", b"\0\0", BodyType.VT_BOOL),
        ("guid", f"{{{GUID}}}", GUID.bytes_le, BodyType.VT_CLSID),
        ("null", "", b"", BodyType.VT_NULL),
    ],
)
def test_a_kind_is_written_with_its_type(
    kind: str, written: str, body: bytes, body_type: int
) -> None:
    assert body_of(kind, written.encode()) == (body, body_type)


@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        ("double", "1.5", 1.5),
        ("currency", "12.34", Decimal("12.34")),
        ("date", "2026-11-22T12:30:00", datetime.datetime(2026, 11, 22, 12, 30)),
        ("date", "2026-11-22", datetime.datetime(2026, 11, 22)),
    ],
)
def test_a_value_comes_back(kind: str, written: str, value: object) -> None:
    body, body_type = body_of(kind, written.encode())
    assert decode_body(body, body_type) == value
    assert kind_and_value(body, body_type) == (kind, value)


def test_text_that_is_no_document_becomes_a_string_of_the_xml_formatter() -> None:
    body, body_type = body_of("xml", b"two <apples> & more")
    assert body_type == 0
    assert value_of_xml(parse_xml(body)) == "two <apples> & more"


@pytest.mark.parametrize(
    ("kind", "written", "words"),
    [
        ("text", b"\xff", "the body is no text in UTF-8"),
        ("xml", b"<a>", "the body is no XML: no element found"),
        ("xml", b" <!DOCTYPE a><a/>", "the body is XML with a document type"),
        ("json", b"{", "the body is no JSON: Expecting property name"),
        ("json", b"[NaN]", "the body is no JSON: NaN is no number there"),
        ("json", b"[" * 100_000, "the body is no JSON that can be read: it is nested too deeply"),
        ("json", b"\xff", "the body is no text in UTF-8"),
        ("int", b"1.5", "`1.5` is no whole number"),
        ("int", b"18446744073709551616", "18446744073709551616 has more than 64 bits"),
        ("long", b"-9223372036854775809", "-9223372036854775809 has more than 64 bits"),
        ("double", b"much", "`much` is no number"),
        ("bool", b"perhaps", "`perhaps` is no true or false"),
        ("date", b"today", "`today` is no date like 2026-11-22T12:30:00"),
        ("date", b"2026-11-22T12:30:00Z", "the body is a datetime with a time zone"),
        ("currency", b"1.23456", "1.23456 has more than four decimal places"),
        ("currency", b"x" * 50, f"`{'x' * 40}` is no number"),
        ("guid", b"1", "`1` is no GUID"),
        ("null", b"x", "a message of type null has no body"),
    ],
)
def test_what_is_not_of_a_kind_is_refused(kind: str, written: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(words)}"):
        body_of(kind, written)


@pytest.mark.parametrize(
    ("body", "body_type", "kind", "value"),
    [
        (b"words", 0, "bytes", b"words"),
        (b"", 0, "bytes", b""),
        (b"42", 0, "bytes", b"42"),
        (b'{"a": [1, null]}', 0, "json", {"a": [1, None]}),
        (b"[draft] hello", 0, "bytes", b"[draft] hello"),
        (b"[" * 100_000, 0, "bytes", b"[" * 100_000),
        (b'<?xml version="1.0"?><int>42</int>', 0, "xml", 42),
        (b'<order id="1"/>', 0, "xml", '<order id="1"/>'),
        (b"\xef\xbb\xbf<order/>", 0, "xml", "<order/>"),
        ("<order/>".encode("utf-16"), 0, "xml", "<order/>"),
        (b"<no document", 0, "bytes", b"<no document"),
        (b"<!DOCTYPE a><a/>", 0, "bytes", b"<!DOCTYPE a><a/>"),
        (b"ab", ARRAY, "bytes", b"ab"),
        (b"\7", 17, "int", 7),
        (b"abc", BodyType.VT_I4, "bytes", b"abc"),
        (b"abc", DOTNET_BINARY, "bytes", b"abc"),
        (b"abc", 9, "bytes", b"abc"),
        (b"", BodyType.VT_NULL, "null", None),
    ],
)
def test_what_came_has_a_kind_and_a_value(
    body: bytes, body_type: int, kind: str, value: object
) -> None:
    assert kind_and_value(body, body_type) == (kind, value)
