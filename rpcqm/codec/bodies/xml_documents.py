"""XML bodies as documents: valid XML, and the usual mistakes of programs that write it (G440).

First a body is read unchanged. If that fails, its encoding is guessed from its octets rather than
from its declaration, null characters at its end are left out, and references to characters that XML
1.0 does not have are read, as .NET writes and reads them.
"""

import contextlib
import re
import xml.etree.ElementTree as ElementTree
from typing import NamedTuple
from xml.parsers import expat

from rpcqm.base.errors import DecodeError
from rpcqm.codec.bodies.budget import DecodeBudget
from rpcqm.codec.bodies.xml_bounds import check_bounds

_MARKS = (
    (b"\xff\xfe\0\0", "utf-32-le"),
    (b"\0\0\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
    (b"\xef\xbb\xbf", "utf-8"),
)
_WITHOUT_MARK = (
    (re.compile(rb"[<\s]\0\0\0"), "utf-32-le"),
    (re.compile(rb"\0\0\0[<\s]"), "utf-32-be"),
    (re.compile(rb"[<\s]\0"), "utf-16-le"),
    (re.compile(rb"\0[<\s]"), "utf-16-be"),
)
_DECLARED = re.compile(r"""<\?xml\s[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']""")
_FAMILIES = (
    ("UTF-8", re.compile(r"utf8")),
    ("UTF-16", re.compile(r"utf16(le|be)?|(iso10646)?ucs2|unicode")),
    ("UTF-32", re.compile(r"utf32(le|be)?|(iso10646)?ucs4")),
)
_ONE_OCTET = re.compile(
    r"iso8859\d{1,2}|latin\d{1,2}|(windows|cp)125\d|(us)?ascii|ibm\d{3}|koi8[ru]"
)
"""Encodings with an octet for each character, without `-` and `_`."""
_GUESS = "cp1252"
"""The assumed encoding of octets that are not UTF-8: that of most Windows programs."""

_STRANGE = re.compile(r"<!\[CDATA\[|<!--|<\?|&#(?:x([0-9A-Fa-f]{1,8})|([0-9]{1,10}));")
_ENDS = {"<![CDATA[": "]]>", "<!--": "-->", "<?": "?>"}
_CONTROLS = 0x20
_NONCHARACTERS = (0xFFFE, 0xFFFF)
_BLOCK = 64
"""A power of two above the number of characters that can be written by reference alone."""
_PRIVATE = 0xF0000
_LAST_BLOCK = 0x10FFC0
_RETURNS = re.compile(r"string|anyType|ArrayOf\w*")


class Document(NamedTuple):
    """A document; `note` names its mistakes, "" if it has none."""

    root: ElementTree.Element
    text: str
    note: str


def parse_strictly(body: bytes) -> ElementTree.Element:
    """The root element of valid XML; raises DecodeError."""
    return _parsed(body)


def parse_xml(body: bytes, budget: DecodeBudget | None = None) -> ElementTree.Element:
    """The root element of an XML body.

    Raises DecodeError if the body is not XML, has a document type, or goes beyond a bound of
    `rpcqm.codec.bodies.xml_bounds`. Elements and attributes are spent as values.
    """
    return _root_and_repair(body, budget)[0]


def read_document(body: bytes, budget: DecodeBudget | None = None) -> Document:
    """The same with the text of the body; raises DecodeError."""
    root, repaired = _root_and_repair(body, budget)
    if repaired is not None:
        return Document(root, repaired.text, repaired.note)
    with contextlib.suppress(UnicodeDecodeError):
        if b"\0" not in body:  # as in UTF-16
            return Document(root, body.decode("utf-8-sig"), "")
    return Document(root, _repaired(body).text, "")


def text_of_document(body: bytes) -> str:
    """The text of a body that begins like a document, without parsing it.

    Raises DecodeError if its encoding is not supported.
    """
    return _repaired(body).text


def _parsed(
    octets: bytes, encoding: str | None = None, budget: DecodeBudget | None = None
) -> ElementTree.Element:
    """The root element; `encoding` overrides the document's."""
    try:
        nodes = check_bounds(octets, encoding=encoding)
        if budget is not None:
            budget.spend(nodes)
        return ElementTree.fromstring(octets, ElementTree.XMLParser(encoding=encoding))
    except (expat.ExpatError, ElementTree.ParseError, ValueError, LookupError) as error:
        raise DecodeError(f"no XML: {error}") from error


class _Repaired(NamedTuple):
    text: str
    note: str


def _root_and_repair(
    body: bytes, budget: DecodeBudget | None
) -> tuple[ElementTree.Element, _Repaired | None]:
    try:
        root = _parsed(body, budget=budget)
    except DecodeError as error:
        if not error.reason.startswith("no XML"):
            raise
        repaired = _repaired(body)
        root = _parsed_again(repaired.text, error, budget)
        return _with_returns(root, repaired.text), repaired
    return (_with_returns(root, _repaired(body).text) if b"\r" in body else root), None


# Encodings


def _repaired(body: bytes) -> _Repaired:
    """The text of a body with a wrong or missing declaration; raises DecodeError."""
    text, note = _decoded(body)
    text = text.removeprefix("\ufeff")
    whole = text.rstrip("\0")
    if len(whole) < len(text):
        note = "; ".join(filter(None, (note, "a null character is behind the document")))
    return _Repaired(whole, note)


def _decoded(body: bytes) -> tuple[str, str]:
    certain = _certain_encoding(body)
    says = _DECLARED.match(body[:1024].replace(b"\0", b"").decode("latin-1").lstrip("ÿþï»¿"))
    declared = says[1] if says else ""
    for encoding in [certain] if certain else _candidates(declared):
        try:
            return body.decode(encoding), _note(declared, encoding)
        except (UnicodeDecodeError, LookupError):
            continue
    raise DecodeError("no XML: its octets are of no encoding that XML has")


def _certain_encoding(body: bytes) -> str | None:
    """What a byte order mark or null octets tell."""
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            return encoding
    for pattern, encoding in _WITHOUT_MARK:
        if pattern.match(body):
            return encoding
    return None


def _candidates(declared: str) -> list[str]:
    if _family(declared) is None and _ONE_OCTET.fullmatch(_plain(declared)):
        return [declared, "utf-8"]
    if declared and _family(declared) is None:
        raise DecodeError(f"no XML: the encoding {declared} is not read")
    return ["utf-8", _GUESS]


def _note(declared: str, encoding: str) -> str:
    if encoding == _GUESS and (not declared or _family(declared)):
        return f"the document is not {declared or 'UTF-8'}; it is shown as Windows-1252"
    actual = _family(encoding)
    if declared and actual is not None and _family(declared) != actual:
        return f"the document says {declared} and is {actual}"
    return ""


def _plain(name: str) -> str:
    return re.sub("[-_]", "", name.lower())


def _family(name: str) -> str | None:
    """The encoding of Unicode with that name; None for any other."""
    return next((family for family, names in _FAMILIES if names.fullmatch(_plain(name))), None)


# Characters that XML does not have


def _parsed_again(
    text: str, first: DecodeError, budget: DecodeBudget | None
) -> ElementTree.Element:
    """Parse a text whose octets failed to parse; raises the first error for other mistakes."""
    try:
        return _with_strange(text, budget)
    except DecodeError as error:
        if error.reason.startswith("no XML"):
            raise first from None
        raise


def _with_returns(root: ElementTree.Element, text: str) -> ElementTree.Element:
    """The root with the carriage returns of its texts, which .NET writes and reads unchanged."""
    if "\r" not in text or not _RETURNS.fullmatch(root.tag.rpartition("}")[2]):
        return root
    try:
        return _with_strange(text, None, returns=True)
    except DecodeError:
        return root


def _with_strange(
    text: str, budget: DecodeBudget | None, returns: bool = False
) -> ElementTree.Element:
    """Parse references to any character: characters of private use stand in during parsing.

    With `returns` carriage returns are kept, too.
    """
    base = _free_block(text)
    text = _stand_ins(text, base)
    if returns:
        text = _kept_returns(text, chr(base + 13))
    root = _parsed(text.encode(), "utf-8", budget)
    meant = {base + index: chr(index) for index in range(_CONTROLS)}
    meant |= {base + _CONTROLS + index: chr(code) for index, code in enumerate(_NONCHARACTERS)}
    for element in root.iter():
        element.text, element.tail = _meant(element.text, meant), _meant(element.tail, meant)
        for name, value in element.attrib.items():
            element.attrib[name] = value.translate(meant)
    return root


def _meant(text: str | None, meant: dict[int, str]) -> str | None:
    return text and text.translate(meant)


def _free_block(text: str) -> int:
    """The first of _BLOCK characters for private use that the text does not contain."""
    used = {ord(each) // _BLOCK for each in set(text) if ord(each) >= _PRIVATE}
    used |= {_code(found) // _BLOCK for found in _STRANGE.finditer(text) if found[1] or found[2]}
    for base in range(_PRIVATE, _LAST_BLOCK, _BLOCK):
        if base // _BLOCK not in used:
            return base
    raise DecodeError("XML with every character for private use")


def _code(reference: re.Match[str]) -> int:
    return int(reference[1], 16) if reference[1] else int(reference[2])


def _stand_ins(text: str, base: int) -> str:
    """The text with a stand-in for each reference to a character that XML does not have.

    Comments, instructions and sections of characters have no references.
    """
    parts, copied, position = [], 0, 0
    while found := _STRANGE.search(text, position):
        position = found.end()
        if found[0] in _ENDS:
            position = text.find(_ENDS[found[0]], position)
            if position < 0:
                raise DecodeError("no XML: it is cut off")
            continue
        index = _index(_code(found))
        if index is not None:
            parts += [text[copied : found.start()], chr(base + index)]
            copied = position
    return "".join([*parts, text[copied:]])


def _index(code: int) -> int | None:
    """The index of a character that XML does not have; None for characters that it has."""
    if code in _NONCHARACTERS:
        return _CONTROLS + _NONCHARACTERS.index(code)
    return code if code < _CONTROLS and chr(code) not in "\t\n\r" else None


def _kept_returns(text: str, stand_in: str) -> str:
    """Carriage returns in text that is not blank, behind elements."""
    pieces = text.split("<")
    for place, piece in enumerate(pieces):
        if "\r" in piece:
            tag, end, characters = piece.partition(">")
            if not characters.isspace():
                pieces[place] = tag + end + characters.replace("\r", stand_in)
    return "<".join(pieces)
