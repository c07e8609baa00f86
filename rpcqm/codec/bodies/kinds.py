"""Bodies by the kinds that people name: text, xml, json, int and so on.

`body_of` writes a kind as the formatters of .NET and ActiveX read it, `kind_and_value` tells the
kind and the value of a body that came (G192, G193).
"""

import datetime
import json
import re
import uuid
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation
from typing import NamedTuple, NoReturn, TypeVar

from rpcqm.base.errors import DecodeError
from rpcqm.codec.bodies.budget import BudgetError, DecodeBudget
from rpcqm.codec.bodies.formatters import (
    DOTNET_BINARY,
    VT_ARRAY_UI1,
    VT_VECTOR_UI1,
    Value,
    decode_body,
    encode_body,
    encode_xml,
    parse_xml,
    value_of_xml,
)
from rpcqm.codec.types.mqvalues import (
    VT_BOOL,
    VT_BSTR,
    VT_CLSID,
    VT_CY,
    VT_DATE,
    VT_EMPTY,
    VT_I8,
    VT_LPSTR,
    VT_LPWSTR,
    VT_NULL,
    VT_R4,
    VT_R8,
    VT_UI8,
)

BYTES, DOTNET, INTEGER, JSON = "bytes", "dotnet", "int", "json"
TEXT, XML = "text", "xml"
_KINDS = {
    VT_BSTR: TEXT,
    VT_LPWSTR: TEXT,
    VT_LPSTR: TEXT,
    VT_I8: "long",
    VT_UI8: "long",
    VT_R4: "double",
    VT_R8: "double",
    VT_BOOL: "bool",
    VT_DATE: "date",
    VT_CY: "currency",
    VT_CLSID: "guid",
    VT_NULL: "null",
    VT_ARRAY_UI1: BYTES,
    VT_VECTOR_UI1: BYTES,
    DOTNET_BINARY: DOTNET,
}
"""The kinds of types; those that are not here and have a value are integers."""
_BEFORE_A_DOCUMENT = b"\xef\xbb\xbf\xff\xfe \t\r\n\0"
"""Octets of byte order marks and of white space, in UTF-8 and UTF-16."""
_FIRST = frozenset({b"<", b"{", b"["})
_LONGEST_EXCERPT = 40
MAXIMUM_JSON_DEPTH = 128
"""Objects and arrays of JSON within each other."""
_JSON_TEXT = re.compile(rb'"[^"]*"?')

T = TypeVar("T")
Written = tuple[bytes, int]
"""A body and its type."""


class ReadBody(NamedTuple):
    """A body that was read; `problem` says why it was not read as what it says that it is."""

    kind: str
    value: object
    problem: str = ""


def kind_and_value(body: bytes, body_type: int) -> tuple[str, object]:
    """The kind of a body, and its value; `read_body` has the reason, too."""
    kind, value, _ = read_body(body, body_type, DecodeBudget(len(body)))
    return kind, value


def read_body(body: bytes, body_type: int, budget: DecodeBudget) -> ReadBody:
    """The kind of a body, and its value, as far as its budget goes.

    A body without a type is `xml` if it is a document, `json` if it is an object or an array, else
    `bytes`, as is a body that is not what its type says. Of a document of XmlMessageFormatter the
    value is what that has written if it is a simple value, else the text of the document.
    """
    if body_type == VT_EMPTY:
        return _recognised(body, budget)
    try:
        value = decode_body(body, body_type, budget)
    except DecodeError as error:
        return ReadBody(BYTES, body, error.reason)
    return ReadBody(kind_of_type(body_type), value)


def kind_of_type(body_type: int) -> str:
    """The kind that a type says; without a type it is `bytes`."""
    return BYTES if body_type == VT_EMPTY else _KINDS.get(body_type, INTEGER)


def may_be_document(body: bytes) -> bool:
    """Whether a body without a type begins like XML or JSON; others are octets."""
    return body.lstrip(_BEFORE_A_DOCUMENT)[:1] in _FIRST


def _recognised(body: bytes, budget: DecodeBudget) -> ReadBody:
    first = body.lstrip(_BEFORE_A_DOCUMENT)[:1]
    try:
        if first == b"<":
            return ReadBody(XML, _value_of_document(body, budget))
        if first in _FIRST:
            return ReadBody(JSON, _parse_json(body, budget))
    except BudgetError as error:
        return ReadBody(BYTES, body, error.reason)
    except (DecodeError, ValueError):
        pass  # it only begins like that
    return ReadBody(BYTES, body)


def _value_of_document(body: bytes, budget: DecodeBudget) -> object:
    root = parse_xml(body, budget)
    try:
        return value_of_xml(root)
    except DecodeError:  # a document with elements of its own
        pass
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:  # it names another encoding
        return ElementTree.tostring(root, "unicode")


def body_of(kind: str, octets: bytes) -> Written:
    """The body and the type for a kind of WRITERS, from what a person has written in UTF-8.

    Raises ValueError with a sentence that says what the octets are not.
    """
    return WRITERS[kind](octets)


def _plain(octets: bytes) -> str:
    try:
        return octets.decode()
    except UnicodeDecodeError:
        raise ValueError("the body is no text in UTF-8") from None


def _write_text(octets: bytes) -> Written:
    return encode_body(_plain(octets))


def _write_xml(octets: bytes) -> Written:
    """A document as it is; other text as XmlMessageFormatter writes a string."""
    try:
        parse_xml(octets)
        return octets, VT_EMPTY
    except DecodeError as error:
        if octets.lstrip(_BEFORE_A_DOCUMENT).startswith(b"<"):
            raise ValueError(f"the body is {error.reason}") from None
    document = encode_xml(_plain(octets))
    try:
        parse_xml(document)
    except DecodeError:
        raise ValueError("the body has characters that XML does not have") from None
    return document, VT_EMPTY


def _write_json(octets: bytes) -> Written:
    try:
        _parse_json(octets, None)
    except BudgetError as error:
        raise ValueError(f"the body is no JSON that can be read: {error.reason}") from None
    return octets, VT_EMPTY


def _parse_json(octets: bytes, budget: DecodeBudget | None) -> object:
    """What JSON says; how many values it has is known before they are made (G395)."""
    text = _plain(octets)
    opening = octets.count(b"[") + octets.count(b"{")
    values = 1 + opening + octets.count(b",")
    if budget is not None:
        budget.spend(values if values <= budget.left else _values_of_json(octets))
    try:
        value: object = json.loads(text, parse_constant=_no_number)
    except RecursionError:
        raise BudgetError(_TOO_DEEP) from None
    except json.JSONDecodeError as error:
        raise ValueError(f"the body is no JSON: {error}") from None
    if opening > MAXIMUM_JSON_DEPTH:
        _check_depth(value)
    return value


def _values_of_json(octets: bytes) -> int:
    """Each value but the outermost one is behind a comma, or the first one of its parent."""
    outside = _JSON_TEXT.sub(b"", octets.replace(rb"\\", b"").replace(rb"\"", b""))
    return 1 + outside.count(b"[") + outside.count(b"{") + outside.count(b",")


def _check_depth(value: object) -> None:
    level: list[object] = [value]
    for _ in range(MAXIMUM_JSON_DEPTH):
        level = [each for parent in level for each in _members(parent) if type(each) in _PARENTS]
    if level:
        raise BudgetError(_TOO_DEEP)


def _members(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


_PARENTS = frozenset({dict, list})
_TOO_DEEP = "it is nested too deeply"


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"the body is no JSON: {word} is no number there")


def _write_octets(octets: bytes) -> Written:
    return octets, VT_VECTOR_UI1


def _write_null(octets: bytes) -> Written:
    if octets:
        raise ValueError("a message of type null has no body")
    return encode_body(None)


def _write_long(octets: bytes) -> Written:
    """64 bits also where 32 would do."""
    value = _value_of(octets, int, "whole number")
    try:
        return value.to_bytes(8, "little", signed=True), VT_I8
    except OverflowError:
        return WRITERS[INTEGER](octets)


def _value_of(octets: bytes, read: Callable[[str], T], what: str) -> T:
    text = _plain(octets).strip()
    try:
        return read(text)
    except (ValueError, InvalidOperation):
        raise ValueError(f"`{text[:_LONGEST_EXCERPT]}` is no {what}") from None


def _simple(read: Callable[[str], Value], what: str) -> Callable[[bytes], Written]:
    """Writes what `encode_body` makes of a value that `read` reads."""

    def write(octets: bytes) -> Written:
        try:
            return encode_body(_value_of(octets, read, what))
        except OverflowError as error:
            raise ValueError(str(error)) from None

    return write


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false", "1", "0"):
        raise ValueError(text)
    return text.lower() in ("true", "1")


WRITERS: dict[str, Callable[[bytes], Written]] = {
    TEXT: _write_text,
    XML: _write_xml,
    JSON: _write_json,
    BYTES: _write_octets,
    INTEGER: _simple(int, "whole number"),
    "long": _write_long,
    "double": _simple(float, "number"),
    "bool": _simple(_boolean, "true or false"),
    "date": _simple(datetime.datetime.fromisoformat, "date like 2026-11-22T12:30:00"),
    "currency": _simple(Decimal, "number"),
    "guid": _simple(uuid.UUID, "GUID"),
    "null": _write_null,
}
"""What writes each kind that can be sent."""
