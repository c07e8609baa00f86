"""XML bodies as .NET's own formatter writes and reads them, at the doors of the client library."""

import datetime
import json
import math
import uuid
from decimal import Decimal

import pytest

from rpcqm.base.errors import DecodeError
from rpcqm.client import bodies
from rpcqm.codec.bodies.described import described_body
from rpcqm.codec.bodies.xml_documents import parse_strictly

XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
XSD = 'xmlns:xsd="http://www.w3.org/2001/XMLSchema"'
NIL = 'xsi:nil="true"'
GUID = uuid.UUID("1a9134dd-7b39-45ba-ad88-44d01ca47f28")
UTC = datetime.UTC


def read(document: str | bytes) -> object:
    body = document.encode() if isinstance(document, str) else document
    return bodies.value_of_xml(bodies.parse_xml(body))


def told(body: str | bytes) -> dict[str, object]:
    """What programs are told of a body without a type, as it is in JSON."""
    octets = body.encode() if isinstance(body, str) else body
    found = json.loads(json.dumps(described_body(octets, 0)))
    assert isinstance(found, dict)
    return found


# What .NET writes


@pytest.mark.parametrize(
    ("document", "value"),
    [
        (f"<ArrayOfString {XSI}><string>a</string><string {NIL}/></ArrayOfString>", ["a", None]),
        (f"<string {XSI} {NIL}/>", None),
        (f'<int {XSI} xsi:nil="1">7</int>', None),
        (f"<ArrayOfInt {XSI}><int>1</int><int {NIL} /></ArrayOfInt>", [1, None]),
        (
            f"<ArrayOfArrayOfInt {XSI}><ArrayOfInt><int>1</int></ArrayOfInt><ArrayOfInt {NIL}/>"
            "</ArrayOfArrayOfInt>",
            [[1], None],
        ),
        (f'<ArrayOfInt {XSI}><int xsi:nil="false">1</int></ArrayOfInt>', [1]),
        ("<ArrayOfInt />", []),
    ],
)
def test_null_is_null_wherever_it_is(document: str, value: object) -> None:
    assert read(document) == value
    assert told(document)["value"] == value


def test_values_of_a_list_of_anything_have_the_types_that_they_say() -> None:
    types = 'xmlns:q1="http://microsoft.com/wsdl/types/" xsi:type="q1'
    document = (
        f"<ArrayOfAnyType {XSD} {XSI}>"
        '<anyType xsi:type="xsd:int">1</anyType><anyType xsi:type="xsd:boolean">true</anyType>'
        '<anyType xsi:type="xsd:decimal">1.5</anyType>'
        '<anyType xsi:type="xsd:dateTime">2026-11-27T00:00:00Z</anyType>'
        f'<anyType {types}:guid">{GUID}</anyType><anyType {types}:char">65</anyType>'
        f'<anyType xsi:type="xsd:string">1</anyType><anyType {NIL}/><anyType>1</anyType>'
        '<anyType xsi:type="ArrayOfInt"><int>1</int></anyType></ArrayOfAnyType>'
    )
    moment = datetime.datetime(2026, 11, 27, tzinfo=UTC)
    assert read(document) == [
        *(1, True, Decimal("1.5"), moment, GUID, "A", "1", None, "1", [1]),
    ]
    texts = [1, True, "1.5", "2026-11-27T00:00:00+00:00", str(GUID), "A", "1", None, "1", [1]]
    assert told(document)["value"] == texts


@pytest.mark.parametrize(
    "document",
    [
        f'<ArrayOfAnyType {XSI}><anyType xsi:type="Order">1</anyType></ArrayOfAnyType>',
        f'<ArrayOfAnyType {XSI}><anyType xsi:type="int">1</anyType></ArrayOfAnyType>',
        f'<string {XSI} {XSD} xsi:type="xsd:int">1</string>',
        f"<Order {XSI} {NIL}/>",
    ],
)
def test_types_of_programs_of_their_own_stay_documents(document: str) -> None:
    with pytest.raises(DecodeError):
        read(document)
    assert told(document)["value"] == document


@pytest.mark.parametrize(
    ("document", "value"),
    [
        ("<string>a&#x1D;b</string>", "a\x1db"),
        ("<string>&#0;&#31;&#xFFFE;&#xffff;</string>", "\0\x1f\ufffe\uffff"),
        ("<string>&#xD;&#xA;&#x9;&amp;</string>", "\r\n\t&"),
        ("<string>a\r\nb</string>", "a\r\nb"),
        ("<string>\U000f0000&#xF0040;&#x1;\r\r</string>", "\U000f0000\U000f0040\x01\r\r"),
        ("<string><![CDATA[&#x1D;]]>&#x1D;<!-- &#x1; --><?a &#x1;?></string>", "&#x1D;\x1d"),
        ("<ArrayOfString>\r\n  <string>a\rb</string>\r\n</ArrayOfString>", ["a\rb"]),
        ("<string a='>\r\n'>a\r\nb</string>", "a\r\nb"),
        ("<string a='>'\r\nb=''>a\r\nb</string>", "a\nb"),
    ],
)
def test_every_character_of_a_text_is_kept(document: str, value: object) -> None:
    assert read(document) == value
    assert read(document.encode("utf-16")) == value
    assert told(document)["value"] == value


def test_a_document_that_uses_every_private_character_is_read_without_strange_ones() -> None:
    private = "".join(map(chr, [*range(0xF0000, 0xFFFFE, 64), *range(0x100000, 0x10FFFE, 64)]))
    assert read(f"<string>{private}\r</string>") == private + "\n"
    with pytest.raises(DecodeError, match="every character for private use"):
        read(f"<string>{private}&#x1D;</string>")


def test_attributes_may_have_strange_characters_too() -> None:
    assert bodies.parse_xml(b"<Order a='&#x1D;'/>").get("a") == "\x1d"
    document = "<Order a='&#x1D;'/>"
    assert (told(document)["value_type"], told(document)["value"]) == ("xml", document)


@pytest.mark.parametrize(
    "document",
    [
        "<string>&#xD800;</string>",
        "<string>&#x110000;</string>",
        "<string>&#99999999999;</string>",
        "<string>\x1d</string>",
        "<string>&#x1D;",
        "<string>&#x1D;<![CDATA[</string>",
        "<string>&#x1D;<!-- </string>",
        "<!DOCTYPE a><string>&#x1D;</string>",
        " <?xml version='1.0'?><a/>",
    ],
)
def test_what_xml_cannot_be_is_none(document: str) -> None:
    with pytest.raises(DecodeError):
        bodies.parse_xml(document.encode())
    assert told(document)["value_type"] == "bytes"


def test_envelopes_take_nothing_but_what_xml_is() -> None:
    assert parse_strictly(b"<a/>").tag == "a"
    for strange in (b"<a>&#x1D;</a>", b"<a/>\0", b"<?xml encoding='utf-16'?><a/>"):
        with pytest.raises(DecodeError):
            parse_strictly(strange)


@pytest.mark.parametrize(
    ("document", "value"),
    [
        ("<base64Binary>AAH/\r\nAAH/</base64Binary>", b"\0\1\xff" * 2),
        ("<base64Binary>\t AAH/ </base64Binary>", b"\0\1\xff"),
        ("<base64Binary />", b""),
        ("<decimal>0.0000001</decimal>", Decimal("0.0000001")),
        ("<decimal> +1.50 </decimal>", Decimal("1.50")),
        ("<int> 42 </int>", 42),
        ("<long>-0009223372036854775808</long>", -(1 << 63)),
        ("<unsignedLong>18446744073709551615</unsignedLong>", (1 << 64) - 1),
        ("<double>INF</double>", math.inf),
        ("<float>-INF</float>", -math.inf),
        ("<double>1E+5</double>", 1e5),
        ("<dateTime>2026-11-27</dateTime>", datetime.datetime(2026, 11, 27)),
        (
            "<dateTime>2026-11-27T01:02:03.1234567z</dateTime>",
            datetime.datetime(2026, 11, 27, 1, 2, 3, 123456, UTC),
        ),
        ("<guid>{1a9134dd-7b39-45ba-ad88-44d01ca47f28}</guid>", GUID),
        ("<guid> 1A9134DD7b3945baad8844d01ca47f28 </guid>", GUID),
        ("<TimeSpan>-P1DT2H3M4.5S</TimeSpan>", -datetime.timedelta(1, 7384, 500_000)),
        ("<TimeSpan>PT0.0000019S</TimeSpan>", datetime.timedelta(microseconds=1)),
    ],
)
def test_values_are_read_as_dotnet_reads_them(document: str, value: object) -> None:
    assert read(document) == value


REFUSED = [
    "<string>a<b/>c</string>",
    "<int>1<b/></int>",
    *("<int>4_2</int>", "<int>2147483648</int>", "<int>\u0664</int>", "<int></int>"),
    *("<unsignedByte>-1</unsignedByte>", "<unsignedByte>+1</unsignedByte>", "<byte>128</byte>"),
    *("<double>1_0.5</double>", "<double>inf</double>", "<double>nan</double>"),
    *("<double>1e400</double>", "<float>1e39</float>", "<double>0x1</double>"),
    *("<decimal>1E+3</decimal>", "<decimal>79228162514264337593543950336</decimal>"),
    *("<dateTime>2026-W48-5</dateTime>", "<dateTime>20261127</dateTime>"),
    *("<dateTime>2026-11-27 01:02:03</dateTime>", "<dateTime>2026-11-27T01:02</dateTime>"),
    *("<dateTime>2026-11-27T01:02:03+01:00:30</dateTime>", "<dateTime>0000-01-01</dateTime>"),
    *("<boolean>TRUE</boolean>", "<char>65536</char>", "<char>A</char>", "<char>-1</char>"),
    *("<guid>urn:uuid:1a9134dd-7b39-45ba-ad88-44d01ca47f28</guid>",),
    *("<base64Binary>AA-_</base64Binary>", "<base64Binary>AA=A</base64Binary>"),
    *("<TimeSpan />", "<TimeSpan>P1Y</TimeSpan>", "<TimeSpan>PT</TimeSpan>"),
    *("<TimeSpan>1.02:03:04</TimeSpan>", "<TimeSpan>P9999999999D</TimeSpan>"),
]


@pytest.mark.parametrize("document", REFUSED)
def test_what_the_readers_of_dotnet_refuse_is_the_document_itself(document: str) -> None:
    with pytest.raises(DecodeError):
        read(document)
    assert (told(document)["value_type"], told(document)["value"]) == ("xml", document)


# Encodings


@pytest.mark.parametrize(
    ("body", "note"),
    [
        (b'<?xml version="1.0" encoding="utf-16"?><string>hi</string>', "says utf-16 and is UTF-8"),
        ('<?xml version="1.0" encoding="utf-8"?><string>hi</string>'.encode("utf-16"), "is UTF-16"),
        ('<?xml version="1.0" encoding="utf-8"?><string>hi</string>'.encode("utf-16-be"), "UTF-16"),
        ('<?xml version="1.0" encoding="ucs-2"?><string>hi</string>'.encode("utf-16-le"), ""),
        ('<?xml version="1.0" encoding="utf-32"?><string>hi</string>'.encode("utf-32"), ""),
        ('<?xml version="1.0"?><string>hi</string>'.encode("utf-32-be"), ""),
        ('<?xml version="1.0"?><string>hi</string>'.encode("utf-16-le"), ""),
        (b"<string>hi</string>\0", "a null character is behind the document"),
        ("<string>hi</string>\0".encode("utf-16-le"), "a null character is behind the document"),
        (b"\xef\xbb\xbf<string>hi</string>", ""),
        (b"<?xml version='1.0' encoding='iso-8859-1'?><string>hi</string>\0\0", "a null character"),
    ],
)
def test_a_document_of_another_encoding_than_it_says_is_read(body: bytes, note: str) -> None:
    found = told(body)
    assert (found["value_type"], found["value"]) == ("xml", "hi")
    assert str(found["body"]).endswith("<string>hi</string>")
    assert ("value_note" in found) == bool(note)
    assert note in str(found.get("value_note", ""))
    assert read(body) == "hi"


@pytest.mark.parametrize(
    ("body", "text", "note"),
    [
        ("<a>é</a>".encode("cp1252"), "<a>é</a>", "the document is not UTF-8; it is shown as"),
        (
            "<?xml version='1.0' encoding='ISO-8859-1'?><a>é</a>".encode("latin-1"),
            "<?xml version='1.0' encoding='ISO-8859-1'?><a>é</a>",
            "",
        ),
        (
            "<?xml version='1.0' encoding='us-ascii'?><a>é</a>".encode(),
            "<?xml version='1.0' encoding='us-ascii'?><a>é</a>",
            "the document says us-ascii and is UTF-8",
        ),
        ("<a>é</a>".encode("utf-16"), "<a>é</a>", ""),
    ],
)
def test_the_text_of_a_document_is_told_whatever_its_encoding(
    body: bytes, text: str, note: str
) -> None:
    found = told(body)
    assert (found["value_type"], found["value"], found["body"]) == ("xml", text, text)
    assert str(found.get("value_note", "")).startswith(note)
    assert ("value_note" in found) == bool(note)


@pytest.mark.parametrize(
    "body",
    [
        b"<?xml version='1.0' encoding='utf-7'?><a/>\0",
        b"<a>\x81</a>",
        b"\xff\xfe<\0a\0/\0>\0\0\xd8",
    ],
)
def test_octets_of_no_encoding_are_no_document(body: bytes) -> None:
    assert told(body)["value_type"] == "bytes"


# What is written


@pytest.mark.parametrize(
    ("value", "of", "element"),
    [
        (math.inf, None, "<double>INF</double>"),
        (-math.inf, "float", "<float>-INF</float>"),
        (math.nan, None, "<double>NaN</double>"),
        (1e22, None, "<double>1e+22</double>"),
        (Decimal("1E+3"), None, "<decimal>1000</decimal>"),
        (Decimal("1E-7"), None, "<decimal>0.0000001</decimal>"),
        (Decimal("1.20"), None, "<decimal>1.20</decimal>"),
        (Decimal("0E+9"), None, "<decimal>0</decimal>"),
        (Decimal((1 << 96) - 1), None, "<decimal>79228162514264337593543950335</decimal>"),
        ((1 << 63) - 1, None, "<long>9223372036854775807</long>"),
        (1 << 63, None, "<unsignedLong>9223372036854775808</unsignedLong>"),
        ("a\x1db", None, "<string>a&#x1D;b</string>"),
        ("a\rb\0\ufffe", None, "<string>a&#xD;b&#x0;&#xFFFE;</string>"),
        ("ä<&>\n\t", None, "<string>&#228;&lt;&amp;&gt;\n\t</string>"),
        ("  ", None, '<string xml:space="preserve">  </string>'),
        (datetime.datetime(2026, 1, 2, tzinfo=UTC), None, "<dateTime>2026-01-02T00:00:00Z"),
        (42, "int", "<int>42</int>"),
        (255, "unsignedByte", "<unsignedByte>255</unsignedByte>"),
        (42, "decimal", "<decimal>42</decimal>"),
        (1, "float", "<float>1.0</float>"),
        ("A", "char", "<char>65</char>"),
        (b"\0", None, "<base64Binary>AA==</base64Binary>"),
        ([1, None], "ArrayOfInt", f'<ArrayOfInt {XSD} {XSI}><int>1</int><int xsi:nil="true" />'),
        (["a"], None, f"<ArrayOfString {XSD} {XSI}><string>a</string></ArrayOfString>"),
        ([b"a"], "ArrayOfBase64Binary", f"<ArrayOfBase64Binary {XSD} {XSI}><base64Binary>YQ=="),
        ([[1], None], None, f"<ArrayOfArrayOfLong {XSD} {XSI}><ArrayOfLong><long>1</long>"),
        ([1, 1 << 63], None, f"<ArrayOfUnsignedLong {XSD} {XSI}><unsignedLong>1</unsignedLong>"),
        ([], None, f"<ArrayOfAnyType {XSD} {XSI}></ArrayOfAnyType>"),
        (None, "string", f'<string {XSD} {XSI} xsi:nil="true" />'),
        (7, "anyType", f'<anyType {XSD} {XSI} xsi:type="xsd:long">7</anyType>'),
    ],
)
def test_a_value_is_written_as_the_readers_of_dotnet_take_it(
    value: object, of: str | None, element: str
) -> None:
    body = bodies.encode_xml(value, of)
    assert body.decode().startswith('<?xml version="1.0"?>' + element)
    if value == value:
        assert read(body) == value


def test_a_list_of_anything_says_the_type_of_each_value() -> None:
    values = [1, "a", None, True, 1.5, Decimal("1.5"), GUID, b"\0", datetime.datetime(2026, 1, 1)]
    body = bodies.encode_xml(values)
    assert b'<anyType xsi:type="xsd:long">1</anyType>' in body
    assert b'<anyType xmlns:q1="http://microsoft.com/wsdl/types/" xsi:type="q1:guid">' in body
    assert read(body) == values


@pytest.mark.parametrize(
    ("value", "of", "error"),
    [
        (Decimal("NaN"), None, ValueError),
        (Decimal("Infinity"), None, ValueError),
        (Decimal("1E+29"), None, OverflowError),
        (Decimal("1E-65"), None, ValueError),
        (Decimal("1E+999999"), None, OverflowError),
        (1 << 64, None, OverflowError),
        (-1 << 63, "int", OverflowError),
        ((-1 << 63) - 1, None, OverflowError),
        (-1, "unsignedLong", OverflowError),
        ([-1, 1 << 63], None, OverflowError),
        (1e39, "float", OverflowError),
        (10**400, "double", OverflowError),
        ("\ud800", None, ValueError),
        ("\ud800", "char", ValueError),
        ("ab", "char", ValueError),
        ("\U0001f600", "char", ValueError),
        (
            datetime.datetime.max.replace(tzinfo=datetime.timezone(datetime.timedelta(0, 90))),
            None,
            ValueError,
        ),
        ("42", "int", TypeError),
        (True, "int", TypeError),
        (1, "boolean", TypeError),
        (1, "ArrayOfInt", TypeError),
        ([1], "int", TypeError),
        ([1, [2]], None, TypeError),
        ({}, None, TypeError),
        (datetime.timedelta(1), None, TypeError),
        (1, "integer", ValueError),
        ([1], "ArrayOfInteger", ValueError),
        (None, "Order", ValueError),
    ],
)
def test_what_dotnet_could_not_read_is_not_written(
    value: object, of: str | None, error: type[Exception]
) -> None:
    with pytest.raises(error):
        bodies.encode_xml(value, of)


def test_lists_in_lists_have_a_greatest_depth_when_they_are_written() -> None:
    nested: list[object] = []
    for _ in range(100):
        nested = [nested]
    with pytest.raises(ValueError, match="nested too deeply"):
        bodies.encode_xml(nested)


# Durations


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (datetime.timedelta(seconds=-1), "-PT1S"),
        (datetime.timedelta(2), "P2D"),
        (datetime.timedelta(0), "PT0S"),
        (datetime.timedelta(1, 7384, 500_000), "P1DT2H3M4.5S"),
        (datetime.timedelta(microseconds=1), "PT0.000001S"),
        (datetime.timedelta(hours=1), "PT1H"),
        (datetime.timedelta.max, "P999999999DT23H59M59.999999S"),
        (-datetime.timedelta(hours=36), "-P1DT12H"),
    ],
)
def test_a_duration_has_one_form(value: datetime.timedelta, text: str) -> None:
    document = f"<TimeSpan>{text}</TimeSpan>"
    assert read(document) == value
    assert told(document)["value"] == text
