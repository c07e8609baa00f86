"""VARIANTs of one type to values of another, as automation coerces arguments.

[MS-OAUT] 3.1.4.4.4 leaves the rules to the server; these are those of VariantChangeType in the
invariant locale (G260). Refusals are MQError: DISP_E_TYPEMISMATCH, DISP_E_OVERFLOW, and
DISP_E_BADVARTYPE for a type that no VARIANT has.
"""

import math
import struct
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Context, Decimal, InvalidOperation

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.automation.values import MISSING, Variant
from rpcqm.codec.types.mqvalues import (
    VT_ARRAY,
    VT_BOOL,
    VT_BSTR,
    VT_BYREF,
    VT_CY,
    VT_DATE,
    VT_DECIMAL,
    VT_DISPATCH,
    VT_EMPTY,
    VT_ERROR,
    VT_I1,
    VT_I2,
    VT_I4,
    VT_I8,
    VT_INT,
    VT_NULL,
    VT_R4,
    VT_R8,
    VT_UI1,
    VT_UI2,
    VT_UI4,
    VT_UI8,
    VT_UINT,
    VT_UNKNOWN,
    VT_VARIANT,
)

INTEGERS: dict[int, tuple[int, int]] = {
    VT_I1: (-(1 << 7), (1 << 7) - 1),
    VT_I2: (-(1 << 15), (1 << 15) - 1),
    VT_I4: (-(1 << 31), (1 << 31) - 1),
    VT_I8: (-(1 << 63), (1 << 63) - 1),
    VT_INT: (-(1 << 31), (1 << 31) - 1),
    VT_UI1: (0, (1 << 8) - 1),
    VT_UI2: (0, (1 << 16) - 1),
    VT_UI4: (0, (1 << 32) - 1),
    VT_UI8: (0, (1 << 64) - 1),
    VT_UINT: (0, (1 << 32) - 1),
}
"""The least and the greatest value of each type of integers."""

POINTERS = frozenset({VT_DISPATCH, VT_UNKNOWN})

_KNOWN = frozenset(
    {*INTEGERS, *POINTERS, VT_EMPTY, VT_NULL, VT_R4, VT_R8, VT_CY, VT_DATE, VT_BSTR, VT_ERROR}
    | {VT_BOOL, VT_VARIANT, VT_DECIMAL}
)
_EPOCH = datetime(1899, 12, 30)
_FORMATS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d", "%m/%d/%Y %H:%M:%S", "%m/%d/%Y", "%H:%M:%S")
_GREATEST_DECIMAL = (1 << 96) - 1
_LONGEST_NUMBER = 64
"""Characters of a text that is read as a number: more than any type can tell apart."""
_EXACT = Context(prec=700)
"""Computes without rounding: the largest double has 309 digits, and a text's number 513."""


def dereferenced(variant: Variant) -> Variant:
    """The target of a VARIANT with VT_BYREF; any other one unchanged.

    A null reference, and one to another reference, is DISP_E_TYPEMISMATCH.
    """
    if not variant.vt & VT_BYREF:
        return variant
    vt, value = variant.vt & ~VT_BYREF, variant.value
    if vt == VT_VARIANT:
        if isinstance(value, Variant) and not value.vt & VT_BYREF:
            return value
    elif value is not None or vt in POINTERS or vt == VT_BSTR:
        return Variant(vt, value)
    raise MQError(HResult.DISP_E_TYPEMISMATCH, "a reference to nothing")


def is_missing(variant: Variant) -> bool:
    """Whether a VARIANT marks an optional argument as absent."""
    return variant == MISSING


def coerce(variant: Variant, vt: int) -> object:
    """The value of a VARIANT converted to the type `vt`; for VT_VARIANT itself without VT_BYREF."""
    if variant.vt == vt:
        return variant.value
    variant = dereferenced(variant)
    if vt in (VT_VARIANT, variant.vt):
        return variant if vt == VT_VARIANT else variant.value
    if variant.vt & ~VT_ARRAY not in _KNOWN:
        raise MQError(HResult.DISP_E_BADVARTYPE, f"type {variant.vt:#06x}")
    convert = _CONVERSIONS.get(vt)
    if convert is None or variant.vt & VT_ARRAY or variant.vt in (VT_NULL, VT_ERROR):
        raise _mismatch(variant, vt)
    return convert(variant)


def _mismatch(variant: Variant, vt: int) -> MQError:
    text = f"type {variant.vt:#06x} cannot become {vt:#06x}"
    return MQError(HResult.DISP_E_TYPEMISMATCH, text)


def _overflow(vt: int) -> MQError:
    return MQError(HResult.DISP_E_OVERFLOW, f"too large for type {vt:#06x}")


def _number(variant: Variant, vt: int) -> int | float | Decimal:
    """A VARIANT as a number; truth is -1, as in automation."""
    value = variant.value
    if variant.vt == VT_EMPTY:
        return 0
    if variant.vt in POINTERS:
        raise _mismatch(variant, vt)
    if isinstance(value, bool):
        return -int(value)
    if isinstance(value, str) or (variant.vt == VT_BSTR and value is None):
        return _parsed(value or "", variant, vt)
    if isinstance(value, int | float | Decimal):
        return value
    raise _mismatch(variant, vt)


def _parsed(text: str, variant: Variant, vt: int) -> Decimal:
    try:
        if len(text) <= _LONGEST_NUMBER and "_" not in text:
            number = Decimal(text.strip())
            if number.is_finite() and abs(number.adjusted()) <= _LONGEST_NUMBER * 8:
                return number
    except InvalidOperation:
        pass
    raise _mismatch(variant, vt)


def _integer(vt: int) -> Callable[[Variant], int]:
    least, greatest = INTEGERS[vt]

    def convert(variant: Variant) -> int:
        number = _number(variant, vt)
        if isinstance(variant.value, bool):
            return int(number) & greatest if least == 0 else int(number)
        if isinstance(number, float) and not math.isfinite(number):
            raise _overflow(vt)
        # Halves go to the even neighbour, in Python as in automation.
        whole = round(number)
        if not least <= whole <= greatest:
            raise _overflow(vt)
        return whole

    return convert


def _boolean(variant: Variant) -> bool:
    if isinstance(variant.value, str):
        word = variant.value.strip().lower().strip("#")
        if word in ("true", "false"):
            return word == "true"
    return _number(variant, VT_BOOL) != 0


def _double(variant: Variant) -> float:
    number = _number(variant, VT_R8)
    value = float(number)
    if math.isinf(value) and isinstance(number, Decimal):
        raise _overflow(VT_R8)
    return value


def _single(variant: Variant) -> float:
    value = _double(variant)
    try:
        (single,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        raise _overflow(VT_R4) from None
    return float(single)


def _currency(variant: Variant) -> Decimal:
    return _fixed(variant, VT_CY, 4, (1 << 63) - 1)


def _decimal(variant: Variant) -> Decimal:
    number = _number(variant, VT_DECIMAL)
    if isinstance(number, Decimal):
        _, digits, exponent = number.as_tuple()
        if -28 <= int(exponent) <= 0 and int("".join(map(str, digits))) <= _GREATEST_DECIMAL:
            return number
    whole = not isinstance(number, float) or number.is_integer()
    return _fixed(variant, VT_DECIMAL, 0 if whole else 15, _GREATEST_DECIMAL)


def _fixed(variant: Variant, vt: int, places: int, greatest: int) -> Decimal:
    """A number rounded to decimal places, halves to the even neighbour."""
    number = _number(variant, vt)
    try:
        exact = number if isinstance(number, Decimal) else Decimal(repr(number))
        fixed = exact.quantize(Decimal(1).scaleb(-places), context=_EXACT)
    except InvalidOperation:
        raise _overflow(vt) from None
    if abs(fixed.scaleb(places, _EXACT)) > greatest:
        raise _overflow(vt)
    return fixed


def _date(variant: Variant) -> float:
    if variant.vt == VT_BSTR:
        text = variant.value.strip() if isinstance(variant.value, str) else ""
        for form in _FORMATS:
            try:
                read = datetime.strptime(text, form)
            except ValueError:
                continue
            if form == "%H:%M:%S":
                read = datetime.combine(_EPOCH, read.time())
            return (read - _EPOCH) / timedelta(days=1)
    return _double(variant)


def _text(variant: Variant) -> str:
    value = variant.value
    if variant.vt == VT_EMPTY:
        return ""
    if variant.vt == VT_DATE and isinstance(value, float):
        return _date_text(value, variant)
    number = _number(variant, VT_BSTR)
    if isinstance(number, float):
        digits = 7 if variant.vt == VT_R4 else 15
        return f"{number:.{digits}G}"
    if isinstance(number, Decimal):
        return f"{number.normalize(_EXACT):f}"
    return str(number)


def _date_text(days: float, variant: Variant) -> str:
    """A date as an American writes it; a whole day has no time."""
    whole = math.trunc(days) if math.isfinite(days) else 0
    try:
        moment = _EPOCH + timedelta(days=whole, seconds=round(abs(days - whole) * 86_400))
    except OverflowError:
        raise _mismatch(variant, VT_BSTR) from None
    return moment.strftime("%m/%d/%Y %H:%M:%S")


def _pointer(vt: int) -> Callable[[Variant], object]:
    def convert(variant: Variant) -> object:
        if variant.vt not in POINTERS:
            raise _mismatch(variant, vt)
        return variant.value

    return convert


_CONVERSIONS: dict[int, Callable[[Variant], object]] = {
    **{vt: _integer(vt) for vt in INTEGERS},
    **{vt: _pointer(vt) for vt in POINTERS},
    VT_BOOL: _boolean,
    VT_R4: _single,
    VT_R8: _double,
    VT_CY: _currency,
    VT_DECIMAL: _decimal,
    VT_DATE: _date,
    VT_BSTR: _text,
    VT_ERROR: _integer(VT_I4),
}
