"""Bodies by kinds with names for people: text, xml, json, int and so on.

`body_of` writes a kind as the formatters of .NET and ActiveX read it, `kind_and_value` gives the
kind and the value of a received body (G192, G193).
"""

import contextlib
import datetime
import json
import re
import uuid
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
)
from rpcqm.codec.bodies.xml_documents import parse_xml, read_document
from rpcqm.codec.bodies.xml_values import simple_value, value_of_xml
from rpcqm.codec.bodies.xml_writing import SIMPLE_TYPES, encode_xml
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
"""The kinds of types; all other types with values are integers."""
_BEFORE_A_DOCUMENT = b"\xef\xbb\xbf\xff\xfe \t\r\n\0"
"""Octets of byte order marks and of white space, in UTF-8 and UTF-16."""
_FIRST = frozenset({b"<", b"{", b"["})
_LONGEST_EXCERPT = 40
MAXIMUM_JSON_DEPTH = 128
"""Objects and arrays of JSON within each other.

Bound `body.json_depth` [levels]: the body is told by its octets, with the reason.
"""
_JSON_TEXT = re.compile(r'"[^"]*"?')

T = TypeVar("T")
Written = tuple[bytes, int]
"""A body and its type."""


class ReadBody(NamedTuple):
    """A body that was read; `problem` says why it does not fit its type.

    `text` is that of a document, None for other bodies, and `note` names the mistakes of a document
    that was read all the same.
    """

    kind: str
    value: object
    problem: str = ""
    text: str | None = None
    note: str = ""


def kind_and_value(body: bytes, body_type: int) -> tuple[str, object]:
    """The kind of a body, and its value; `read_body` has the reason, too."""
    return read_body(body, body_type, DecodeBudget(len(body)))[:2]


def read_body(body: bytes, body_type: int, budget: DecodeBudget) -> ReadBody:
    """The kind of a body, its value, and remarks about it, within its budget.

    A body without a type is `xml` if it is a document, `json` if it is an object or an array, else
    `bytes`, as is a body that does not fit its type. The value of a document of XmlMessageFormatter
    is the simple value in it, if there is one, else the text of the document.
    """
    if body_type == VT_EMPTY:
        return _recognised(body, budget)
    try:
        value = decode_body(body, body_type, budget)
    except DecodeError as error:
        return ReadBody(BYTES, body, error.reason)
    return ReadBody(kind_of_type(body_type), value)


def kind_of_type(body_type: int) -> str:
    """The kind of a type; without a type it is `bytes`."""
    return BYTES if body_type == VT_EMPTY else _KINDS.get(body_type, INTEGER)


def may_be_document(body: bytes) -> bool:
    """Whether a body without a type begins like XML or JSON; others are octets."""
    return body.lstrip(_BEFORE_A_DOCUMENT)[:1] in _FIRST


def _recognised(body: bytes, budget: DecodeBudget) -> ReadBody:
    first = body.lstrip(_BEFORE_A_DOCUMENT)[:1]
    try:
        if first == b"<":
            return _read_document(body, budget)
        if first in _FIRST:
            text = _json_text(body)
            return ReadBody(JSON, _parse_json(text, budget), text=text)
    except BudgetError as error:
        return ReadBody(BYTES, body, error.reason)
    except (DecodeError, ValueError):
        pass  # it only begins like JSON
    return ReadBody(BYTES, body)


def _read_document(body: bytes, budget: DecodeBudget) -> ReadBody:
    document = read_document(body, budget)
    value: object = document.text
    with contextlib.suppress(DecodeError):  # a document with elements of its own
        value = value_of_xml(document.root)
    return ReadBody(XML, value, text=document.text, note=document.note)


def body_of(kind: str, octets: bytes) -> Written:
    """The body and the type for a kind of WRITERS, from a person's text in UTF-8.

    Raises ValueError with a sentence about the mistake.
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
    """A document unchanged; other text as XmlMessageFormatter writes a string."""
    try:
        parse_xml(octets)
        return octets, VT_EMPTY
    except DecodeError as error:
        if octets.lstrip(_BEFORE_A_DOCUMENT).startswith(b"<"):
            raise ValueError(f"the body is {error.reason}") from None
    return encode_xml(_plain(octets)), VT_EMPTY


def _write_json(octets: bytes) -> Written:
    """In UTF-8 without a byte order mark, which many readers of JSON refuse."""
    text = _json_text(octets)
    try:
        _parse_json(text, None)
    except BudgetError as error:
        raise ValueError(f"the body is no JSON that can be read: {error.reason}") from None
    return text.encode(), VT_EMPTY


def _json_text(octets: bytes) -> str:
    """The text of JSON in an encoding of Unicode, without a mark and without a null at its end."""
    try:
        return octets.decode(json.detect_encoding(octets)).rstrip("\0")
    except UnicodeDecodeError:
        raise ValueError("the body is no text in UTF-8") from None


def _parse_json(text: str, budget: DecodeBudget | None) -> object:
    """The value of JSON; its number of values is computed before it is decoded (G395)."""
    opening = text.count("[") + text.count("{")
    values = 1 + opening + text.count(",")
    if budget is not None:
        budget.spend(values if values <= budget.left else _values_of_json(text))
    try:
        value: object = json.loads(text, parse_constant=_no_number)
    except RecursionError:
        raise BudgetError(_TOO_DEEP) from None
    except json.JSONDecodeError as error:
        raise ValueError(f"the body is no JSON: {error}") from None
    if opening > MAXIMUM_JSON_DEPTH:
        _check_depth(value)
    return value


def _values_of_json(text: str) -> int:
    """The number of values: each but the outermost is behind a comma, or first in its parent."""
    outside = _JSON_TEXT.sub("", text.replace(r"\\", "").replace(r"\"", ""))
    return 1 + outside.count("[") + outside.count("{") + outside.count(",")


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
    """64 bits, even if 32 would do."""
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
    """Writes the result of `encode_body` for a value that `read` reads."""

    def write(octets: bytes) -> Written:
        try:
            return encode_body(_value_of(octets, read, what))
        except OverflowError as error:
            raise ValueError(str(error)) from None

    return write


def _as_xml(name: str) -> Callable[[bytes], Written]:
    """Writes a document for a reader of XmlMessageFormatter for that type (G443)."""

    def write(octets: bytes) -> Written:
        if name == "base64Binary":
            return encode_xml(octets, name), VT_EMPTY
        text = _plain(octets)
        try:
            value = text if name in ("string", "char") else simple_value(name, text)
            return encode_xml(value, name), VT_EMPTY
        except DecodeError:
            raise ValueError(f"`{text.strip()[:_LONGEST_EXCERPT]}` is no {name}") from None

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
    **{f"{XML}:{name}": _as_xml(name) for name in SIMPLE_TYPES},
}
"""The writer of each kind that can be sent."""
