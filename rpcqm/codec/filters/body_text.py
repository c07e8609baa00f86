"""Finds texts in bodies of any encoding.

A text is sought in the octets first, in UTF-8 and UTF-16. That decides for most bodies. The value
of a body may contain texts that its octets do not: XML and JSON write characters by reference,
numbers and dates have types, and BinaryFormatter of .NET has values. Such values are read of bodies
up to LONGEST_DECODED only.
"""

import enum
import json
import re
from collections.abc import Callable, Iterator

from rpcqm.base.errors import DecodeError
from rpcqm.base.text import whole
from rpcqm.codec.bodies.budget import BudgetError, DecodeBudget
from rpcqm.codec.bodies.described import LONGEST_DECODED, UTF_16, json_value
from rpcqm.codec.bodies.formatters import (
    DOTNET_BINARY,
    VT_ARRAY_UI1,
    VT_VECTOR_UI1,
    decode_body,
)
from rpcqm.codec.bodies.kinds import may_be_document
from rpcqm.codec.bodies.xml_documents import text_of_document
from rpcqm.codec.types.mqvalues import VT_EMPTY, VT_LPSTR

_OCTETS = frozenset({VT_EMPTY, VT_ARRAY_UI1, VT_VECTOR_UI1})
"""Types of bodies that are plain octets."""
_REFERENCE = re.compile("&(?:#([0-9]{1,7})|#[xX]([0-9A-Fa-f]{1,6})|(amp|lt|gt|quot|apos));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_ESCAPE = re.compile(r'\\(?:u([0-9A-Fa-f]{4})|(["\\/bfnrt]))')
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
_CODES = 0x110000


class Said(enum.Enum):
    """Whether a body contains a text."""

    NO = enum.auto()
    YES = enum.auto()
    MORE = enum.auto()
    """The octets do not contain it, but the value may."""
    UNREAD = enum.auto()
    """The parts that were read do not contain it; the rest is too long to be read."""


class WantedText:
    """A text that is sought in bodies."""

    def __init__(self, text: str, ignore_case: bool) -> None:
        self._ignore_case = ignore_case
        self._text = text.casefold() if ignore_case else text
        self._is_ascii = text.isascii()
        self._narrow = text.encode("utf-8", "surrogatepass")
        self._wide = text.encode("utf-16-le", "surrogatepass")
        self._wide_marked = text.encode("utf-16-be", "surrogatepass")

    def in_octets(self, body: bytes, body_type: int) -> Said:
        """Whether the octets of a body contain the text; MORE if only its value can decide."""
        if self._ignore_case:
            return Said.MORE
        if body_type in UTF_16:
            return Said.YES if self._wide in body else Said.NO
        if body_type in _OCTETS:
            return self._in_plain_octets(body)
        return Said.YES if body_type == DOTNET_BINARY and self._narrow in body else Said.MORE

    def _in_plain_octets(self, body: bytes) -> Said:
        if self._narrow in body:
            return Said.YES
        if b"\0" in body and (self._wide in body or self._wide_marked in body):
            return Said.YES
        return Said.MORE if not self._is_ascii or _writes_otherwise(body) else Said.NO

    def in_text(self, text: str) -> bool:
        """Whether a text contains the wanted one."""
        return self._text in (text.casefold() if self._ignore_case else text)


def _writes_otherwise(body: bytes) -> bool:
    """Whether a body may write characters of ASCII by reference, or in four octets each."""
    return (b"&" in body or b"\\" in body or b"\0\0\0" in body[:8]) and may_be_document(body)


def says(body: bytes, body_type: int, test: Callable[[str], bool]) -> Said:
    """Whether `test` is true of a text in the body: YES, NO or UNREAD."""
    try:
        for text in _readings(body, body_type):
            if text is None:
                return Said.UNREAD
            if test(text):
                return Said.YES
    except BudgetError:
        return Said.UNREAD
    except DecodeError:
        pass  # the body does not fit its type, so only its octets count
    return Said.NO


def beginning(body: bytes, body_type: int, characters: int) -> str:
    """The beginning of a body's text on one line; "" for octets without text."""
    if body_type == DOTNET_BINARY:
        return ""
    piece = body[: 4 * characters]
    try:
        text = next(_readings(piece, body_type)) or ""
    except DecodeError:
        return ""
    text = " ".join(text.lstrip("\ufeff").split())[:characters]
    strange = sum(not each.isprintable() or each == "\ufffd" for each in text)
    return text if strange * _STRANGE_AT_MOST <= len(text) else ""


_STRANGE_AT_MOST = 10
"""The share of strange characters that a beginning may have: the last one may be cut."""


def _readings(body: bytes, body_type: int) -> Iterator[str | None]:
    """The texts of a body, the cheapest first; None at the end if there are more."""
    if body_type in UTF_16:
        yield body.decode("utf-16-le", "replace").rstrip("\0")
    elif body_type == VT_LPSTR:
        yield body.decode("latin-1")
    elif body_type in _OCTETS:
        yield from _readings_of_octets(body)
    else:
        if body_type == DOTNET_BINARY:
            yield body.decode("utf-8", "replace")
        yield _value(body, body_type) if len(body) <= LONGEST_DECODED else None


def _value(body: bytes, body_type: int) -> str:
    value = json_value(decode_body(body, body_type, DecodeBudget(len(body))))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _readings_of_octets(body: bytes) -> Iterator[str | None]:
    text = _document(body) if may_be_document(body) else None
    if text is None:
        yield _plain(body)
        return
    yield text
    is_xml = text.lstrip()[:1] == "<"
    if ("&" if is_xml else "\\") in text:
        yield _resolved(text, is_xml) if len(body) <= LONGEST_DECODED else None


def _document(body: bytes) -> str | None:
    try:
        return text_of_document(body)
    except DecodeError:
        return None


def _plain(body: bytes) -> str:
    """Octets as UTF-16 if every other one is null, or if they are marked so; else UTF-8 or
    Windows-1252."""
    if body.startswith(_WIDE_MARKS):
        return body.decode("utf-16", "replace")
    if body[1::2].count(0) * 4 > len(body):
        return body.decode("utf-16-le", "replace")
    try:
        return body.decode()
    except UnicodeDecodeError:
        return body.decode("cp1252", "replace")


def _resolved(text: str, is_xml: bool) -> str:
    """A document with its references replaced by characters."""
    if is_xml:
        return _REFERENCE.sub(_referred, text)
    return whole(_ESCAPE.sub(_escaped, text))


def _referred(found: re.Match[str]) -> str:
    if found[3]:
        return _NAMED[found[3]]
    code = int(found[1]) if found[1] else int(found[2], 16)
    return chr(code) if code < _CODES else found[0]


def _escaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else _ESCAPED.get(found[2], found[2])
