"""Values as documents of XmlMessageFormatter of .NET, in the types that its reader expects."""

import base64
import datetime
import re
import struct
import uuid
from collections.abc import Callable, Iterable
from decimal import Decimal

from rpcqm.codec.bodies.value_texts import decimal_text
from rpcqm.codec.bodies.xml_bounds import MAXIMUM_DEPTH
from rpcqm.codec.bodies.xml_values import (
    ANY,
    DOTNET_TYPES,
    INSTANCE,
    INTEGERS,
    LARGEST_DECIMAL,
    LIST,
    SCHEMA,
)

_LONGEST_FRACTION = 64
"""Decimal places, as many as are read."""
_NAMESPACES = f' xmlns:xsd="{SCHEMA}" xmlns:xsi="{INSTANCE}"'
"""In the order in which .NET declares them."""
_ESCAPED = re.compile("[&<>\0-\x08\x0b-\x1f]|[^\0-\x7f]")
_NAMED = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_BY_REFERENCE = "\ufffe\uffff"
_PLAIN: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "long"),
    (float, "double"),
    (str, "string"),
    (bytes, "base64Binary"),
    (Decimal, "decimal"),
    (datetime.datetime, "dateTime"),
    (uuid.UUID, "guid"),
)
"""The default type of each value."""


def encode_xml(value: object, type: str | None = None) -> bytes:  # noqa: A002
    """A body as XmlMessageFormatter of .NET writes simple values, None, and lists of them.

    `type` is the one that the receiver's formatter expects, by its name in XML: `int`,
    `unsignedByte`, `float`, `char` and so on, `ArrayOfInt` for a list. Without it an int is a
    `long`, and a list of values of different types an `ArrayOfAnyType`. Raises TypeError for a
    value that is not of the type, OverflowError for one beyond its range, and ValueError for one
    that .NET cannot read, as the NaN of a Decimal.
    """
    element = _element(value, type or _type_of(value), 1)
    return b'<?xml version="1.0"?>' + element.encode("ascii")


def _type_of(value: object) -> str:
    if value is None:
        return ANY
    if isinstance(value, list | tuple):
        common = _common_type(value)
        return LIST + common[0].upper() + common[1:]
    for kind, name in _PLAIN:
        if isinstance(value, kind):
            beyond = name == "long" and value > INTEGERS["long"][1]  # type: ignore[operator]
            return "unsignedLong" if beyond else name
    raise TypeError(f"a {type(value).__name__} has no simple XML form")


def _common_type(values: Iterable[object]) -> str:
    """The common type of a list's elements, else `anyType`."""
    types = {_type_of(each) for each in values if each is not None}
    if types == {"long", "unsignedLong"}:
        return "unsignedLong"
    return types.pop() if len(types) == 1 else ANY


def _element(value: object, name: str, depth: int) -> str:
    if depth > MAXIMUM_DEPTH:
        raise ValueError("lists nested too deeply")
    declared = _NAMESPACES if depth == 1 else ""
    if value is None:
        _check_type(name)
        return f'<{name}{declared} xsi:nil="true" />'
    if name.startswith(LIST):
        return _list(value, name, declared, depth)
    if name == ANY:
        said = _type_of(value)
        return f"<{ANY}{declared}{_said(said)}>{_text(value, said)}</{ANY}>"
    text = _text(value, name)
    blank = ' xml:space="preserve"' if text.isspace() else ""
    return f"<{name}{blank}>{text}</{name}>"


def _list(value: object, name: str, declared: str, depth: int) -> str:
    if not isinstance(value, list | tuple):
        raise TypeError(f"a {type(value).__name__} is no {name}")
    of = name.removeprefix(LIST)
    inner = of if of.startswith(LIST) else of[:1].lower() + of[1:]
    _check_type(inner)
    elements = "".join(_element(each, inner, depth + 1) for each in value)
    return f"<{name}{declared}>{elements}</{name}>"


def _check_type(name: str) -> None:
    while name.startswith(LIST):
        name = name.removeprefix(LIST)
        name = name if name.startswith(LIST) else name[:1].lower() + name[1:]
    if name != ANY and name not in _WRITERS:
        raise ValueError(f"`{name}` is no type in XML; there are {', '.join([*_WRITERS, ANY])}")


def _said(name: str) -> str:
    """The attribute for the type of an `anyType`."""
    if name.startswith(LIST):
        raise TypeError("a list within a list of values of different types has no XML form")
    if name in ("guid", "char"):
        return f' xmlns:q1="{DOTNET_TYPES}" xsi:type="q1:{name}"'
    return f' xsi:type="xsd:{name}"'


def _text(value: object, name: str) -> str:
    _check_type(name)
    kinds, write = _WRITERS[name]
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise TypeError(f"a {type(value).__name__} is no {name}")
    return write(value)


# The writers of each type


def _integer(name: str) -> Callable[[int], str]:
    least, most = INTEGERS[name]

    def write(value: int) -> str:
        if not least <= value <= most:
            raise OverflowError(f"{value} is beyond the range of {name}")
        return str(value)

    return write


def _float(code: str) -> Callable[[float], str]:
    def write(value: float) -> str:
        number = float(value)
        struct.pack(code, number)  # OverflowError for numbers that are too large
        return repr(number).replace("inf", "INF").replace("nan", "NaN")

    return write


def _decimal(value: Decimal | int) -> str:
    exact = Decimal(value)
    if not exact.is_finite():
        raise ValueError(f"{value} is no decimal of .NET")
    if not -LARGEST_DECIMAL <= exact <= LARGEST_DECIMAL:
        raise OverflowError(f"{value} is beyond the range of decimal")
    exponent = exact.as_tuple().exponent
    if exact and isinstance(exponent, int) and exponent < -_LONGEST_FRACTION:
        raise ValueError(f"{value} has more than {_LONGEST_FRACTION} decimal places")
    return decimal_text(exact)


def _string(value: str) -> str:
    return _ESCAPED.sub(_escaped, value)


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    if "\ud800" <= character <= "\udfff":
        raise ValueError("half of a surrogate pair, which no text in XML has")
    if character < " " or character in _BY_REFERENCE:
        return f"&#x{ord(character):X};"
    return _NAMED.get(character) or f"&#{ord(character)};"


def _character(value: str) -> str:
    if len(value) != 1 or value > "\uffff" or "\ud800" <= value <= "\udfff":
        raise ValueError(f"{value[:40]!r} is no single character of .NET")
    return str(ord(value))


def _date(value: datetime.datetime) -> str:
    offset = value.utcoffset()
    if offset is None:
        return value.isoformat()
    if offset % datetime.timedelta(minutes=1):
        raise ValueError("an offset of a time zone with seconds, which no dateTime has")
    return value.isoformat() if offset else value.replace(tzinfo=None).isoformat() + "Z"


_WRITERS: dict[str, tuple[tuple[type, ...], Callable[..., str]]] = {
    "boolean": ((bool,), lambda value: "true" if value else "false"),
    **{name: ((int,), _integer(name)) for name in INTEGERS},
    "float": ((float, int), _float("<f")),
    "double": ((float, int), _float("<d")),
    "decimal": ((Decimal, int), _decimal),
    "string": ((str,), _string),
    "char": ((str,), _character),
    "dateTime": ((datetime.datetime,), _date),
    "guid": ((uuid.UUID,), str),
    "base64Binary": (
        (bytes, bytearray, memoryview),
        lambda value: base64.b64encode(value).decode(),
    ),
}
SIMPLE_TYPES = tuple(_WRITERS)
"""Names of types that a single value can have."""
