"""Bodies as values: ActiveX types, XML, and what BinaryFormatter writes ([MS-NRBF])."""

import datetime
import struct
import uuid
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpcqm.base.errors import DecodeError
from rpcqm.codec.bodies.budget import (
    FREE_OCTETS,
    FREE_VALUES,
    OCTETS_PER_VALUE,
    TOLD_PER_OCTET,
    BudgetError,
)
from rpcqm.codec.bodies.dotnet_binary import CLASS, MAXIMUM_DEPTH, decode_binary
from rpcqm.codec.bodies.formatters import DOTNET_BINARY, decode_body, encode_body
from rpcqm.codec.bodies.xml_bounds import MAXIMUM_DEPTH as XML_DEPTH
from rpcqm.codec.bodies.xml_bounds import MAXIMUM_NAME, MAXIMUM_NAMES, MAXIMUM_NODES
from rpcqm.codec.bodies.xml_documents import parse_xml
from rpcqm.codec.bodies.xml_values import value_of_xml
from rpcqm.codec.bodies.xml_writing import encode_xml
from rpcqm.codec.packet.enums import BodyType
from tests.support.codec import dotnet
from tests.support.codec.dotnet import END, HEADER, number, text

GUID = uuid.UUID("1a9134dd-7b39-45ba-ad88-44d01ca47f28")
MOMENT = datetime.datetime(2024, 2, 29, 12)


@pytest.mark.parametrize(
    ("value", "body", "body_type"),
    [
        (b"\x01\x02", b"\x01\x02", 0),
        ("Hä", b"H\0\xe4\0", BodyType.VT_BSTR),
        (True, b"\xff\xff", BodyType.VT_BOOL),
        (False, b"\0\0", BodyType.VT_BOOL),
        (-2, b"\xfe\xff\xff\xff", BodyType.VT_I4),
        (1 << 40, b"\0\0\0\0\0\1\0\0", BodyType.VT_I8),
        ((1 << 64) - 1, b"\xff" * 8, BodyType.VT_UI8),
        (1.5, struct.pack("<d", 1.5), 5),
        (Decimal("12.34"), struct.pack("<q", 123400), 6),
        (MOMENT, struct.pack("<d", 45351.5), 7),
        (GUID, GUID.bytes_le, BodyType.VT_CLSID),
        (None, b"", BodyType.VT_NULL),
    ],
)
def test_values_have_the_types_of_the_activex_formatter(
    value: object, body: bytes, body_type: int
) -> None:
    assert encode_body(value) == (body, body_type)
    assert decode_body(body, body_type) == value


@pytest.mark.parametrize(
    ("body", "body_type", "value"),
    [
        (b"abc\0", BodyType.VT_LPSTR, "abc"),
        (b"a\0b\0\0\0", BodyType.VT_LPWSTR, "ab"),
        (b"\x80", BodyType.VT_UI1, 128),
        (b"\x80", BodyType.VT_I1, -128),
        (b"\x00\x00\xc0\x3f", 4, 1.5),
        (b"abc", BodyType.VT_VECTOR_UI1, b"abc"),
        (b"abc", 0x2011, b"abc"),
    ],
)
def test_other_types_are_read(body: bytes, body_type: int, value: object) -> None:
    assert decode_body(body, body_type) == value


@pytest.mark.parametrize(
    ("body", "body_type"),
    [(b"abc", BodyType.VT_I4), (b"\0", BodyType.VT_BSTR), (b"", 9), (b"x", BodyType.VT_CLSID)],
)
def test_what_is_not_of_its_type_is_refused(body: bytes, body_type: int) -> None:
    with pytest.raises(DecodeError):
        decode_body(body, body_type)


def test_what_has_no_type_is_not_sent() -> None:
    with pytest.raises(TypeError, match="dict"):
        encode_body({})
    with pytest.raises(OverflowError, match="64 bits"):
        encode_body(1 << 64)
    with pytest.raises(ValueError, match="the body is a datetime with a time zone"):
        encode_body(MOMENT.replace(tzinfo=datetime.UTC))


@pytest.mark.parametrize("text", ["1.23456", "0.00001", "NaN", "Infinity"])
def test_a_decimal_that_is_no_currency_is_not_sent(text: str) -> None:
    with pytest.raises(ValueError, match="four decimal places"):
        encode_body(Decimal(text))


@pytest.mark.parametrize("text", ["-922337203685477.5808", "922337203685477.5807", "0.0001"])
def test_every_currency_is_sent_exactly(text: str) -> None:
    assert decode_body(*encode_body(Decimal(text))) == Decimal(text)
    with pytest.raises(OverflowError, match="64 bits"):
        encode_body(Decimal("922337203685477.5808"))


# XML


@pytest.mark.parametrize("value", ["text", True, 17, 1.5, b"\0\1", Decimal("1.20"), MOMENT, GUID])
def test_simple_values_go_through_xml(value: object) -> None:
    assert value_of_xml(parse_xml(encode_xml(value))) == value


def test_lists_and_the_other_tags_of_dotnet_are_read() -> None:
    body = b"<ArrayOfInt xmlns:xsd='x'><int>1</int><int>2</int></ArrayOfInt>"
    assert value_of_xml(parse_xml(body)) == [1, 2]
    assert value_of_xml(parse_xml(b"<char>65</char>")) == "A"
    assert value_of_xml(parse_xml(b"<boolean>0</boolean>")) is False


@pytest.mark.parametrize(
    "body",
    [
        b"no xml",
        b'<!DOCTYPE x [<!ENTITY a "aaa"><!ENTITY b "&a;&a;">]><string>&b;</string>',
        b'<!DOCTYPE x SYSTEM "http://example.org/x.dtd"><string>x</string>',
        b"<string>cut",
    ],
)
def test_xml_that_is_none_or_has_a_document_type_is_refused(body: bytes) -> None:
    with pytest.raises(DecodeError):
        parse_xml(body)


@pytest.mark.parametrize("body", [b"<Order/>", b"<int>x</int>", b"<boolean>maybe</boolean>"])
def test_elements_that_are_no_simple_value_are_refused(body: bytes) -> None:
    with pytest.raises(DecodeError):
        value_of_xml(parse_xml(body))


def nodes(count: int) -> bytes:
    return b"<a>" + b"<b/>" * (count - 1) + b"</a>"


def attributes(count: int) -> bytes:
    """The same number in elements with one attribute each."""
    return b"<a>" + b"<b c=''/>" * ((count - 1) // 2) + b"<b/>" * ((count - 1) % 2) + b"</a>"


def names(characters: int) -> bytes:
    """Names that differ, with so many characters together."""
    whole, rest = divmod(characters - 1, MAXIMUM_NAME)
    found = [f"{index:x<{MAXIMUM_NAME - 1}}" for index in range(whole)] + ["y" * (rest - 1)] * (
        rest > 0
    )
    return b"<a>" + b"".join(f"<b{name}/>".encode() for name in found) + b"</a>"


@pytest.mark.bound("body.xml_depth", "body.xml_nodes", "body.xml_name", "body.xml_names")
@pytest.mark.parametrize(
    ("make", "most"),
    [
        (lambda depth: b"<a>" * depth + b"</a>" * depth, XML_DEPTH),
        (nodes, MAXIMUM_NODES),
        (attributes, MAXIMUM_NODES),
        (lambda size: b"<" + b"a" * size + b"/>", MAXIMUM_NAME),
        (lambda size: b"<a xmlns='" + b"x" * (size - 2) + b"'/>", MAXIMUM_NAME),
        (lambda size: b"<a " + b"a" * size + b"='1'/>", MAXIMUM_NAME),
        (names, MAXIMUM_NAMES),
    ],
)
def test_xml_has_bounds(make: Callable[[int], bytes], most: int) -> None:
    parse_xml(make(most))
    with pytest.raises(DecodeError):
        parse_xml(make(most + 1))


@pytest.mark.parametrize(
    "encoding", ["rot13", "zlib", "idna", "undefined", "utf-7", "nobody-knows"]
)
def test_xml_in_strange_encodings_is_refused(encoding: str) -> None:
    with pytest.raises(DecodeError):
        parse_xml(f'<?xml version="1.0" encoding="{encoding}"?><string>x</string>'.encode())


@pytest.mark.parametrize(
    "body",
    [
        b"<char>55296</char>",
        b"<char>-1</char>",
        b"<char>99999999999</char>",
        b"<decimal>1e999999999</decimal>",
        b"<decimal>NaN</decimal>",
        b"<int>" + b"9" * 5000 + b"</int>",
        b"<dateTime>99999-01-01</dateTime>",
        b"<guid>x</guid>",
    ],
)
def test_values_beyond_their_type_are_refused(body: bytes) -> None:
    with pytest.raises(DecodeError):
        value_of_xml(parse_xml(body))


def test_lists_in_lists_have_a_greatest_depth_wherever_they_come_from() -> None:
    root = element = ElementTree.Element("ArrayOfInt")
    for _ in range(2000):
        element = ElementTree.SubElement(element, "ArrayOfInt")
    with pytest.raises(DecodeError, match="too deeply"):
        value_of_xml(root)


# BinaryFormatter


def test_a_string_is_read() -> None:
    stream = HEADER + b"\x06" + number(1) + text("hello") + END
    assert decode_body(stream, DOTNET_BINARY) == "hello"


def test_a_boxed_number_is_a_number() -> None:
    described = number(1) + text("System.Int32") + number(1) + text("m_value")
    stream = HEADER + b"\x04" + described + b"\0\x08" + number(42) + END
    assert decode_binary(stream) == 42


def test_an_object_is_a_dictionary_of_its_members() -> None:
    described = number(1) + text("Shop.Order") + number(3)
    described += text("Number") + text("Buyer") + text("Lines")
    library = b"\x0c" + number(2) + text("Shop, Version=1.0.0.0")
    kinds = b"\0\1\7" + b"\x08" + b"\x08"
    members = number(17) + b"\x06" + number(3) + text("Ann") + b"\x09" + number(4)
    lines = b"\x0f" + number(4) + number(2) + b"\x08" + number(5) + number(6)
    stream = HEADER + library + b"\x05" + described + kinds + number(2) + members + lines + END
    order = {CLASS: "Shop.Order", "Number": 17, "Buyer": "Ann", "Lines": [5, 6]}
    assert decode_binary(stream) == order


def test_arrays_of_strings_may_have_nulls() -> None:
    elements = b"\x06" + number(2) + text("a") + b"\x0d\x02" + b"\x09" + number(2)
    stream = HEADER + b"\x11" + number(1) + number(4) + elements + END
    assert decode_binary(stream) == ["a", None, None, "a"]


def test_objects_that_share_others_are_the_same_objects() -> None:
    found = decode_binary(dotnet.body(dotnet.doubled(12)))
    for _ in range(12):
        assert found[0] is found[1] or found[0] == found[1] == "end"
        found = found[0]
    assert found == "end"


def test_objects_count_as_often_as_they_are_written_out() -> None:
    """Each list holds the next one twice: there would be 2 to the power of 30 texts."""
    with pytest.raises(BudgetError, match="written out"):
        decode_binary(dotnet.body(dotnet.doubled(30)))


def test_a_long_text_counts_as_often_as_it_is_written_out() -> None:
    long = b"\x06" + number(2) + b"\xa0\x9c\x01" + b"x" * 20_000
    stream = dotnet.body(dotnet.array(1, 10_000, dotnet.reference(2) * 10_000), long)
    with pytest.raises(BudgetError, match="too long"):
        decode_binary(stream)


@pytest.mark.bound("body.dotnet_depth")
@pytest.mark.parametrize("make", [dotnet.nested, dotnet.chained])
def test_objects_have_a_greatest_depth(make: Callable[[int], bytes]) -> None:
    found = decode_binary(dotnet.body(make(MAXIMUM_DEPTH)))
    for _ in range(MAXIMUM_DEPTH):
        (found,) = found
    assert found in (None, "end")
    with pytest.raises(DecodeError, match="too deeply"):
        decode_binary(dotnet.body(make(MAXIMUM_DEPTH + 1)))


def test_what_was_resolved_already_counts_with_its_whole_depth() -> None:
    """The deep object is seen first by a short way, then at the end of a long one."""
    half = MAXIMUM_DEPTH // 2
    deep = dotnet.chained(half + 1)[9:]
    way = b"".join(
        dotnet.array(level, 1, dotnet.reference(level + 1)) for level in range(100, 100 + half)
    )
    root = dotnet.array(1, 2, dotnet.reference(2), dotnet.reference(100))
    last = dotnet.array(100 + half, 1, dotnet.reference(2))
    with pytest.raises(DecodeError, match="too deeply"):
        decode_binary(dotnet.body(root, deep[5:], way, last))


def octets(count: int) -> bytes:
    """Numbers of one octet each."""
    return dotnet.body(
        b"\x0f" + number(1) + number(count) + b"\x0a" + b"\x81" * count, dotnet.NULL * 3
    )


@pytest.mark.bound("body.free_values", "body.octets_per_value")
def test_values_of_dotnet_have_a_greatest_number() -> None:
    """The records beside the array count as well: four at the outermost level."""
    most = 200_000
    while most + 4 > FREE_VALUES + len(octets(most)) // OCTETS_PER_VALUE:
        most -= 1
    assert decode_binary(octets(most)) == [-127] * most
    with pytest.raises(BudgetError):
        decode_binary(octets(most + 1))


@pytest.mark.bound("body.free_octets", "body.told_per_octet")
def test_nulls_that_take_no_octets_are_counted() -> None:
    def of(count: int) -> bytes:
        return dotnet.body(dotnet.array(1, count, dotnet.nulls(count)))

    most = (FREE_OCTETS + TOLD_PER_OCTET * len(of(0))) // len("null,")
    assert decode_binary(of(most)) == [None] * most
    with pytest.raises(BudgetError):
        decode_binary(of(most + 1))


@pytest.mark.parametrize(
    "records",
    [
        dotnet.rectangle(1, *[10_000] * 4) + dotnet.nulls(1),
        dotnet.rectangle(1, *[255] * 8, of=b"\0\x11"),
        dotnet.rectangle(1, *[0x7FFFFFFF] * 32),
        dotnet.array(1, 0x7FFFFFFF, dotnet.nulls(0x7FFFFFFF)),
        dotnet.classes(1000, 2000),
        dotnet.array(1, 1, dotnet.reference(1)),
        dotnet.array(1, 1, dotnet.reference(2)) + dotnet.array(2, 1, dotnet.reference(1)),
        b"\x08\x05" + text("1e999999"),
        b"\x04" + number(1) + text("C") + number(-1),
    ],
)
def test_what_takes_more_than_it_says_is_refused(records: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_binary(dotnet.body(records))


def test_names_of_members_count_with_each_object() -> None:
    """Nine octets for an object, and a name of 20,000 in each of them when it is written out."""
    name = b"\xa0\x9c\x01" + b"x" * 20_000
    first = b"\x04" + number(1) + text("C") + number(1) + name + b"\0" + bytes([17])
    again = b"".join(b"\x01" + number(index) + number(1) for index in range(2, 1002))
    objects = dotnet.array(5000, 1000, *(dotnet.reference(index) for index in range(2, 1002)))
    stream = HEADER.replace(number(1), number(5000), 1) + first + again + objects + END
    with pytest.raises(BudgetError, match="too long"):
        decode_binary(stream)


def test_runs_of_nulls_are_not_longer_than_their_array() -> None:
    stream = HEADER + b"\x10" + number(1) + number(3) + b"\x0e" + number(1 << 30) + END
    with pytest.raises(DecodeError):
        decode_binary(stream)


@given(st.binary(max_size=200))
def test_any_octets_are_decoded_or_refused(octets: bytes) -> None:
    for stream in (octets, HEADER + octets, HEADER + b"\x05" + octets, HEADER + b"\x07" + octets):
        try:
            decode_binary(stream)
        except DecodeError:
            continue
