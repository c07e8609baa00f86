"""The XML of envelopes: reads it within bounds, finds elements as they were written, escapes.

An envelope is UTF-8, has no document type, and so no entities but the five of XML itself (G203).
"""

import re
from xml.parsers import expat

from lxml import etree

from rpcqm.base.errors import DecodeError
from rpcqm.codec.bodies import xml_bounds

SOAP = "http://schemas.xmlsoap.org/soap/envelope/"
WS_ROUTING = "http://schemas.xmlsoap.org/rp/"
SRMP = "http://schemas.xmlsoap.org/srmp/"
MSMQ = "msmq.namespace.xml"
SIGNATURE = "http://www.w3.org/2000/02/xmldsig#"

MAXIMUM_ENVELOPE = 262_144
"""Size of the envelope of a message over HTTP.

Bound `srmp.envelope` [octets]: the request is answered by 400.
"""
MAXIMUM_NODES = 4_096
"""Elements and attributes of an envelope.

Bound `srmp.envelope_nodes` [nodes]: the request is answered by 400.
"""
_PLAIN_TAGS = 2 * xml_bounds.MAXIMUM_DEPTH
_PLAIN_ATTRIBUTES = 256
"""Numbers of `<` and `=` that no bound can be exceeded with; honest senders stay below."""
_PLAIN_SIZE = 4 * MAXIMUM_NODES
"""Octets that cannot hold more nodes than the bound: the smallest one is `<a/>`."""
_DECLARED_ENCODING = re.compile(rb"<\?xml[^>]*?\sencoding\s*=\s*[\"']([^\"']*)")
_MARK = b"\xef\xbb\xbf"

_PARSER = etree.XMLParser(
    encoding="utf-8",
    resolve_entities=False,
    load_dtd=False,
    no_network=True,
    huge_tree=False,
    remove_comments=True,
    remove_pis=True,
    collect_ids=False,
)


def parse_xml(octets: bytes) -> tuple[str, etree._Element]:
    """The text of an envelope, and its outermost element; raises DecodeError."""
    if len(octets) > MAXIMUM_ENVELOPE:
        raise DecodeError(f"an envelope of {len(octets)} bytes")
    octets = octets.removeprefix(_MARK)
    try:
        text = octets.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DecodeError("an envelope that is not UTF-8", error.start) from error
    _check_head(octets)
    _check_bounds(octets)
    try:
        return text, etree.fromstring(octets, _PARSER)
    except etree.XMLSyntaxError as error:
        raise DecodeError(f"no XML: {error.msg}") from error


def _check_head(octets: bytes) -> None:
    """Refuse a document type, anywhere, and another encoding."""
    if 0x21 in octets and b"<!DOCTYPE" in octets:  # the search for the octet `!` is fast
        raise DecodeError("an envelope with a document type")
    if octets.startswith(b"<?xml"):
        declared = _DECLARED_ENCODING.match(octets)
        if declared is not None and declared[1].lower() not in (b"utf-8", b"us-ascii"):
            raise DecodeError("an envelope in another encoding than UTF-8")


def _check_bounds(octets: bytes) -> None:
    """Check depth and numbers of elements and attributes before a tree is built."""
    has_few_tags = octets.count(b"<") <= _PLAIN_TAGS
    if has_few_tags and (len(octets) <= _PLAIN_SIZE or octets.count(b"=") <= _PLAIN_ATTRIBUTES):
        return
    try:
        xml_bounds.check_bounds(octets, MAXIMUM_NODES)
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise DecodeError(f"no XML: {error}") from error


def written(text: str, *path: str) -> str:
    """An element as it was written: the first child of each name, from the outermost one's on.

    Names are `namespace}name`. The text has been parsed; a missing element is "". Raises
    DecodeError for prefixes without a declaration, which only this parser refuses.
    """
    octets = text.encode("utf-8")
    begins, ends = _place_of(octets, path)
    return octets[begins:ends].decode("utf-8")


def with_content(text: str, content: str, *path: str) -> bytes:
    """A text in which the element that `written` finds has another text as its only content.

    Raises DecodeError, also where there is no such element.
    """
    octets = text.encode("utf-8")
    begins, ends = _place_of(octets, path)
    tags = _TAGS.fullmatch(octets, begins, ends)
    if tags is None:
        raise DecodeError(f"no element {path[-1]} that has a content")
    return b"".join(
        (octets[:begins], tags[1], escaped(content).encode("utf-8"), tags[2], octets[ends:])
    )


_TAGS = re.compile(rb"""(<(?:[^"'>]|"[^"]*"|'[^']*')*(?<!/)>).*(</[^<>]*>)""", re.DOTALL)


def _place_of(octets: bytes, path: tuple[str, ...]) -> tuple[int, int]:
    """The beginning and the end of an element; both are 0 if it is missing."""
    finder = _Finder(path)
    parser = expat.ParserCreate(encoding="utf-8", namespace_separator="}")
    parser.StartElementHandler = lambda name, _: finder.start(name, parser.CurrentByteIndex)
    parser.EndElementHandler = lambda _: finder.end(parser.CurrentByteIndex)
    parser.DefaultHandlerExpand = lambda _: finder.other(parser.CurrentByteIndex)
    try:
        parser.Parse(octets, True)
    except expat.ExpatError as error:
        raise DecodeError(f"no XML: {error}") from error
    if not finder.is_found:
        return 0, 0
    return finder.begins, finder.ends or len(octets)


class _Finder:
    """Follows the events of a parser; an element ends where the next event begins."""

    def __init__(self, path: tuple[str, ...]) -> None:
        self._path = path
        self._depth = 0
        self._matched = 0
        self._is_behind = False
        self.begins = self.ends = 0

    @property
    def is_found(self) -> bool:
        return self._matched == len(self._path)

    def start(self, name: str, index: int) -> None:
        self.other(index)
        if self._depth == self._matched < len(self._path) and name == self._path[self._depth]:
            self._matched += 1
            if self._matched == len(self._path):
                self.begins = index
        self._depth += 1

    def end(self, index: int) -> None:
        self.other(index)
        self._depth -= 1
        if not self.is_found:
            self._matched = min(self._matched, self._depth)
        elif not self.ends and self._depth == len(self._path) - 1:
            self._is_behind = True

    def other(self, index: int) -> None:
        if self._is_behind:
            self.ends, self._is_behind = index, False


_PREFIX = re.compile("<([^\\s:/>]+:)SignedInfo")


def enclosing_signature(signed_info: str) -> tuple[str, str, str]:
    """Start and end of a <Signature> around a <SignedInfo> as it was written, and its prefix."""
    found = _PREFIX.match(signed_info)
    prefix = "" if found is None else found[1]
    declaration = f"xmlns:{prefix[:-1]}" if prefix else "xmlns"
    return f'<{prefix}Signature {declaration}="{SIGNATURE}">', f"</{prefix}Signature>", prefix


def check_alone(signed_info: str) -> None:
    """Refuse a <SignedInfo> that depends on declarations around it; raises DecodeError.

    It could not be passed on in another envelope.
    """
    start, end, _ = enclosing_signature(signed_info)
    try:
        etree.fromstring(f"{start}{signed_info}{end}".encode(), _PARSER)
    except etree.XMLSyntaxError as error:
        raise DecodeError(f"<SignedInfo> cannot stand alone: {error.msg}") from error


_SPECIAL = re.compile('[<>&"\r\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]')
_ESCAPES = {"<": "&lt;", ">": "&gt;", "&": "&amp;", '"': "&quot;", "\r": "&#13;"}


def escaped(text: str) -> str:
    """A text for an element or an attribute; invalid characters become U+FFFD (G203)."""
    if _SPECIAL.search(text) is None:
        return text
    return _SPECIAL.sub(lambda found: _ESCAPES.get(found[0], "\ufffd"), text)
