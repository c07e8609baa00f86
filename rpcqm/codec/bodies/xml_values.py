"""Values as XmlMessageFormatter of .NET writes and reads them: simple ones, and lists of them.

A document that its readers refuse has no value here either: it is its text then (G442).
"""

import base64
import datetime
import re
import struct
import uuid
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from decimal import Decimal

from rpcqm.base.errors import DecodeError
from rpcqm.codec.bodies.formatters import Value
from rpcqm.codec.bodies.value_texts import parse_duration
from rpcqm.codec.bodies.xml_bounds import MAXIMUM_DEPTH

INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"
SCHEMA = "http://www.w3.org/2001/XMLSchema"
DOTNET_TYPES = "http://microsoft.com/wsdl/types/"
LIST, ANY = "ArrayOf", "anyType"
INTEGERS = {
    "byte": (-(1 << 7), (1 << 7) - 1),
    "unsignedByte": (0, (1 << 8) - 1),
    "short": (-(1 << 15), (1 << 15) - 1),
    "unsignedShort": (0, (1 << 16) - 1),
    "int": (-(1 << 31), (1 << 31) - 1),
    "unsignedInt": (0, (1 << 32) - 1),
    "long": (-(1 << 63), (1 << 63) - 1),
    "unsignedLong": (0, (1 << 64) - 1),
}
LARGEST_DECIMAL = (1 << 96) - 1
_SPACE = " \t\r\n"
_INTEGER = re.compile(r"([+-]?)0*(\d{1,20})", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(\d{1,64}(\.\d{0,64})?|\.\d{1,64})", re.ASCII)
_FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,9})?", re.ASCII)
_NO_NUMBERS = {
    **dict.fromkeys(("INF", "Infinity"), float("inf")),
    **dict.fromkeys(("-INF", "-Infinity"), float("-inf")),
    "NaN": float("nan"),
}
_GUID = re.compile(
    r"[0-9A-Fa-f]{32}|(\{)?(\()?[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?(1)\})(?(2)\))"
)
_DATE = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:(T\d\d:\d\d:\d\d)(?:\.(\d{1,64}))?)?([Zz]|[+-]\d\d:\d\d)?", re.ASCII
)


def value_of_xml(root: ElementTree.Element) -> Value:
    """The value of an element as XmlMessageFormatter writes simple values and lists of them.

    Raises DecodeError for elements of other names, which only their reader understands, and for
    lists in more than MAXIMUM_DEPTH levels.
    """
    return _value(root, 1)


def _value(element: ElementTree.Element, depth: int) -> Value:
    if depth > MAXIMUM_DEPTH:
        raise DecodeError("elements nested too deeply")
    tag = _tag(element)
    if (element.get(f"{{{INSTANCE}}}nil") or "").strip(_SPACE) in ("true", "1"):
        _reader(tag)
        return None
    if tag.startswith(LIST):
        return [_value(child, depth + 1) for child in element]
    if len(element):
        raise DecodeError(f"an element {tag} that holds others is no simple value")
    return simple_value(tag, element.text or "")


def _tag(element: ElementTree.Element) -> str:
    """The name of an element without its namespace; for `anyType` that of its stated type."""
    tag = element.tag.rpartition("}")[2]
    said = (element.get(f"{{{INSTANCE}}}type") or tag).strip(_SPACE)
    prefix, _, name = said.rpartition(":")
    if name == tag:
        return tag
    if tag != ANY or not (prefix or name.startswith(LIST)):
        raise DecodeError(f"an element {tag} of type {said} is no simple value")
    return name


def simple_value(tag: str, text: str) -> Value:
    """The value of a text in an element; raises DecodeError if it has none."""
    read = _reader(tag)
    try:
        return read(text)
    except (ValueError, ArithmeticError) as error:
        raise DecodeError(f"{text[:40]!r} is no {tag}") from error


def _reader(tag: str) -> Callable[[str], Value]:
    if tag.startswith(LIST):
        return str
    read = _READERS.get(tag)
    if read is None:
        raise DecodeError(f"an element {tag} is no simple value")
    return read


def _integer(tag: str) -> Callable[[str], Value]:
    least, most = INTEGERS[tag]
    signs = "" if tag == "unsignedByte" else "+-"

    def read(text: str) -> int:
        found = _INTEGER.fullmatch(text.strip(_SPACE))
        if found is None or found[1] not in signs:
            raise ValueError(text)
        value = int(found[1] + found[2])
        if not least <= value <= most:
            raise OverflowError(value)
        return value

    return read


def _float(code: str) -> Callable[[str], Value]:
    def read(text: str) -> float:
        text = text.strip(_SPACE)
        if text in _NO_NUMBERS:
            return _NO_NUMBERS[text]
        if not _FLOAT.fullmatch(text):
            raise ValueError(text)
        value = float(text)
        struct.pack(code, value)
        if value in (_NO_NUMBERS["INF"], _NO_NUMBERS["-INF"]):
            raise OverflowError(text)
        return value

    return read


def _decimal(text: str) -> Decimal:
    """A number without an exponent, whose few octets could take any amount of memory."""
    if not _DECIMAL.fullmatch(text.strip(_SPACE)):
        raise ValueError(text)
    value = Decimal(text.strip(_SPACE))
    if not -LARGEST_DECIMAL <= value <= LARGEST_DECIMAL:
        raise OverflowError(text)
    return value


def _boolean(text: str) -> bool:
    if text.strip(_SPACE) not in ("true", "false", "1", "0"):
        raise ValueError(text)
    return text.strip(_SPACE) in ("true", "1")


def _character(text: str) -> str:
    """A character of .NET; half of a surrogate pair is refused, as no text can contain it."""
    code = _UNSIGNED_SHORT(text)
    if not isinstance(code, int) or 0xD800 <= code <= 0xDFFF:
        raise ValueError(code)
    return chr(code)


def _octets(text: str) -> bytes:
    return base64.b64decode("".join(text.split()), validate=True)


def _date(text: str) -> datetime.datetime:
    """A date, or a date and a time; digits beyond microseconds are cut off."""
    found = _DATE.fullmatch(text.strip(_SPACE))
    if found is None:
        raise ValueError(text)
    date, time, fraction, zone = found.groups(default="")
    moment = f"{date}{time or 'T00:00:00'}.{fraction:0<6.6}"
    return datetime.datetime.fromisoformat(moment + zone.upper())


def _guid(text: str) -> uuid.UUID:
    if not _GUID.fullmatch(text.strip(_SPACE)):
        raise ValueError(text)
    return uuid.UUID(text.strip(_SPACE).strip("(){}"))


_UNSIGNED_SHORT = _integer("unsignedShort")
_READERS: dict[str, Callable[[str], Value]] = {
    "string": str,
    ANY: str,
    "boolean": _boolean,
    **{tag: _integer(tag) for tag in INTEGERS},
    "float": _float("<f"),
    "double": _float("<d"),
    "decimal": _decimal,
    "char": _character,
    "base64Binary": _octets,
    "dateTime": _date,
    "dateTimeOffset": _date,
    "guid": _guid,
    "TimeSpan": lambda text: parse_duration(text.strip(_SPACE)),
}
