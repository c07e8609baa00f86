"""Bodies as values: those of MSMQ's ActiveX and binary formatters, read as data only.

Nothing in a body is ever run, imported or fetched.
"""

import datetime
import struct
import uuid
from decimal import Decimal

from rpcqm.base.errors import DecodeError
from rpcqm.codec.bodies.budget import DecodeBudget
from rpcqm.codec.types.mqvalues import (
    VT_ARRAY,
    VT_BOOL,
    VT_BSTR,
    VT_CLSID,
    VT_CY,
    VT_DATE,
    VT_EMPTY,
    VT_I4,
    VT_I8,
    VT_LPSTR,
    VT_LPWSTR,
    VT_NULL,
    VT_R4,
    VT_R8,
    VT_UI1,
    VT_UI8,
    VT_VECTOR,
)

VT_ARRAY_UI1, VT_VECTOR_UI1 = VT_ARRAY | VT_UI1, VT_VECTOR | VT_UI1
DOTNET_BINARY = 768
"""The body type of System.Messaging.BinaryMessageFormatter."""

Value = (
    None
    | bool
    | int
    | float
    | str
    | bytes
    | Decimal
    | datetime.datetime
    | datetime.timedelta
    | uuid.UUID
    | list["Value"]
    | dict[str, "Value"]
)

_INTEGERS = {2: "h", 3: "i", 16: "b", 17: "B", 18: "H", 19: "I", 20: "q", 21: "Q", 22: "i", 23: "I"}
_FLOATS = {VT_R4: "f", VT_R8: "d"}
_EPOCH = datetime.datetime(1899, 12, 30)
"""Day 0 of OLE dates, which have no time zone."""
_DAY = datetime.timedelta(days=1)


def encode_body(value: object) -> tuple[bytes, int]:
    """A body and its type, as the ActiveX formatter writes them; bytes have no type.

    Raises TypeError for a value without a type, OverflowError for numbers over 64 bits, and
    ValueError for a Decimal with more than the four decimal places of a currency and for a datetime
    with a time zone.
    """
    match value:
        case None:
            return b"", VT_NULL
        case bytes() | bytearray() | memoryview():
            return bytes(value), VT_EMPTY
        case str():
            return value.encode("utf-16-le"), VT_BSTR
        case bool():
            return struct.pack("<h", -1 if value else 0), VT_BOOL
        case int():
            return _encode_integer(value)
        case float():
            return struct.pack("<d", value), VT_R8
        case Decimal():
            return _encode_currency(value)
        case datetime.datetime():
            return _encode_date(value), VT_DATE
        case uuid.UUID():
            return value.bytes_le, VT_CLSID
    raise TypeError(f"a {type(value).__name__} cannot be a body")


def _encode_date(value: datetime.datetime) -> bytes:
    if value.tzinfo is not None:
        raise ValueError(
            "the body is a datetime with a time zone, and dates of messages have none; give it "
            "without one"
        )
    return struct.pack("<d", (value - _EPOCH) / _DAY)


def _encode_currency(value: Decimal) -> tuple[bytes, int]:
    scaled = value.scaleb(4)
    if not value.is_finite() or scaled != scaled.to_integral_value():
        raise ValueError(f"{value} has more than four decimal places")
    try:
        return struct.pack("<q", int(scaled)), VT_CY
    except struct.error:
        raise OverflowError(f"{value} has more than 64 bits") from None


def _encode_integer(value: int) -> tuple[bytes, int]:
    for vt in (VT_I4, VT_I8, VT_UI8):
        code = _INTEGERS[vt]
        try:
            return struct.pack(f"<{code}", value), vt
        except struct.error:  # the next type is wider
            continue
    raise OverflowError(f"{value} has more than 64 bits")


def decode_body(body: bytes, body_type: int, budget: DecodeBudget | None = None) -> Value:
    """The value of a body of a type; a body without a type is its own bytes.

    Raises DecodeError for an unsupported type, and for a body that does not fit its type;
    BudgetError, a subclass, for a body that exceeds its `budget`.
    """
    if body_type in (VT_EMPTY, VT_ARRAY_UI1, VT_VECTOR_UI1):
        return body
    if body_type == VT_NULL:
        return None
    if body_type in (VT_BSTR, VT_LPWSTR, VT_LPSTR):
        return _text(body, "latin-1" if body_type == VT_LPSTR else "utf-16-le")
    if body_type == DOTNET_BINARY:
        from rpcqm.codec.bodies.dotnet_binary import decode_binary

        value: Value = decode_binary(body, budget)
        return value
    return _number(body, body_type)


def _number(body: bytes, body_type: int) -> Value:
    if body_type in _INTEGERS:
        return int(_unpack(body, _INTEGERS[body_type]))
    if body_type in _FLOATS:
        return float(_unpack(body, _FLOATS[body_type]))
    if body_type == VT_BOOL:
        return bool(_unpack(body, "h"))
    if body_type == VT_CY:
        return Decimal(int(_unpack(body, "q"))).scaleb(-4)
    if body_type == VT_DATE:
        return _date(float(_unpack(body, "d")))
    if body_type == VT_CLSID and len(body) == 16:
        return uuid.UUID(bytes_le=body)
    raise DecodeError(f"{len(body)} bytes are no body of type {body_type:#x}")


def _unpack(body: bytes, code: str) -> int | float:
    if len(body) != struct.calcsize(f"<{code}"):
        raise DecodeError(f"{len(body)} bytes are no number of {struct.calcsize('<' + code)}")
    number: int | float = struct.unpack(f"<{code}", body)[0]
    return number


def _text(body: bytes, encoding: str) -> str:
    try:
        return body.decode(encoding).removesuffix("\0")
    except UnicodeDecodeError as error:
        raise DecodeError(f"no text: {error}") from error


def _date(days: float) -> datetime.datetime:
    try:
        return _EPOCH + datetime.timedelta(days=days)
    except (OverflowError, ValueError) as error:
        raise DecodeError(f"no date: {days}") from error
