"""The types of VARIANTs and arrays whose values have a fixed size ([MS-OAUT] 2.2.7, 2.2.24-27)."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from rpcqm.base.errors import DecodeError
from rpcqm.codec.types.oautvalues import (
    SF_I1,
    SF_I2,
    SF_I4,
    SF_I8,
    VT_BOOL,
    VT_CY,
    VT_DATE,
    VT_ERROR,
    VT_I1,
    VT_I2,
    VT_I4,
    VT_I8,
    VT_INT,
    VT_R4,
    VT_R8,
    VT_UI1,
    VT_UI2,
    VT_UI4,
    VT_UI8,
    VT_UINT,
)

TRUE = -1
"""VARIANT_TRUE: all bits are set."""

DECIMAL = struct.Struct("<HBBIQ")
MAXIMUM_SCALE = 28
_NEGATIVE = 0x80
_CENTS = 10_000
"""The divisor of a currency's integer."""


def _currency(number: int) -> Decimal:
    return Decimal(number) / _CENTS


def _of_currency(value: object) -> int:
    if not isinstance(value, Decimal) or not value.is_finite():
        raise TypeError("a currency is a finite Decimal")
    number = value * _CENTS
    if number != int(number):
        raise ValueError("a currency has four decimal places")
    return int(number)


def _of_truth(value: object) -> int:
    return TRUE if value else 0


@dataclass(frozen=True, slots=True)
class Scalar:
    """A type: its code in `struct`, its size, the arm of its arrays, and the converters between the
    number on the wire and the value."""

    code: str
    size: int
    array: int
    value: Callable[[int], object] | None = None
    number: Callable[[object], int] | None = None


SCALARS = {
    VT_I1: Scalar("b", 1, SF_I1),
    VT_UI1: Scalar("B", 1, SF_I1),
    VT_I2: Scalar("h", 2, SF_I2),
    VT_UI2: Scalar("H", 2, SF_I2),
    VT_BOOL: Scalar("h", 2, SF_I2, bool, _of_truth),
    VT_I4: Scalar("i", 4, SF_I4),
    VT_UI4: Scalar("I", 4, SF_I4),
    VT_INT: Scalar("i", 4, SF_I4),
    VT_UINT: Scalar("I", 4, SF_I4),
    VT_ERROR: Scalar("I", 4, SF_I4),
    VT_R4: Scalar("f", 4, SF_I4),
    VT_I8: Scalar("q", 8, SF_I8),
    VT_UI8: Scalar("Q", 8, SF_I8),
    VT_R8: Scalar("d", 8, SF_I8),
    VT_CY: Scalar("q", 8, SF_I8, _currency, _of_currency),
    VT_DATE: Scalar("d", 8, SF_I8),
}


def decimal_of(octets: bytes | bytearray | memoryview, offset: int) -> Decimal:
    """The value of a DECIMAL; raises DecodeError for an invalid scale or sign."""
    _, scale, sign, high, low = DECIMAL.unpack_from(octets, offset)
    if scale > MAXIMUM_SCALE or sign not in (0, _NEGATIVE):
        raise DecodeError("a DECIMAL has a scale or sign that there is not", offset)
    digits = tuple(map(int, str(high << 64 | low)))
    return Decimal((1 if sign else 0, digits, -scale))


def octets_of_decimal(value: object) -> bytes:
    """A DECIMAL; raises ValueError for a number that has more than 96 bits or 28 places."""
    if not isinstance(value, Decimal) or not value.is_finite():
        raise TypeError("a DECIMAL is a finite Decimal")
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    number = int("".join(map(str, digits)))
    if 0 < exponent <= MAXIMUM_SCALE:
        number, exponent = number * 10**exponent, 0
    if number >> 96 or not -MAXIMUM_SCALE <= exponent <= 0:
        raise ValueError(f"{value} is no DECIMAL")
    return DECIMAL.pack(0, -exponent, _NEGATIVE * sign, number >> 64, number & 0xFFFFFFFFFFFFFFFF)
