"""Arguments from clients: VARIANTs, BSTRs and interface pointers to plain values."""

import re
from typing import TypeVar

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.automation.values import SafeArray, Variant
from rpcqm.codec.types.mqvalues import INFINITE, VARENUM
from rpcqm.dcom.com_object import ComObject

VT_BYTES = VARENUM.VT_ARRAY | VARENUM.VT_UI1
"""An array of octets."""
_NOTHING = frozenset({VARENUM.VT_EMPTY, VARENUM.VT_NULL})

_DIGITS = re.compile(r"[0-9]{1,20}", re.ASCII)
_SIXTY_FOUR_BITS = 0xFFFF_FFFF_FFFF_FFFF

Object = TypeVar("Object", bound=ComObject)


def plain(argument: Variant | None) -> Variant | None:
    """The VARIANT that an argument refers to; None if it was not given, or is empty.

    A client of late binding passes a reference to a VARIANT; two such steps are all that [MS-OAUT]
    2.2.29.2 allows.
    """
    for _ in range(2):
        if argument is None or not argument.vt & VARENUM.VT_BYREF:
            break
        inner = argument.value
        argument = (
            inner if isinstance(inner, Variant) else Variant(argument.vt & ~VARENUM.VT_BYREF, inner)
        )
    if argument is None or argument.vt in _NOTHING or argument.vt == VARENUM.VT_ERROR:
        return None
    return argument


def integer(argument: Variant | None, default: int) -> int:
    """A number of any type; raises DISP_E_TYPEMISMATCH if the argument is no number."""
    given = plain(argument)
    if given is None:
        return default
    value = given.value
    if isinstance(value, bool):
        return -1 if value else 0
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value == value // 1:
        return int(value)
    raise MQError(HResult.DISP_E_TYPEMISMATCH, f"VARIANT of type {given.vt}")


def milliseconds(argument: Variant | None) -> int:
    """A time to wait, INFINITE if it is not given; -1 is INFINITE, too.

    Raises DISP_E_OVERFLOW for a value that no `long` can have (G416), DISP_E_TYPEMISMATCH if the
    argument is no number.
    """
    number = integer(argument, INFINITE)
    if not -0x8000_0000 <= number <= INFINITE:
        raise MQError(HResult.DISP_E_OVERFLOW, f"{number} milliseconds")
    return number & INFINITE


def boolean(argument: Variant | None, default: bool) -> bool:
    """A Boolean: every number but 0 is true."""
    return bool(integer(argument, int(default)))


def lookup_identifier(argument: Variant | None) -> int:
    """A lookup identifier, as a number or as its decimal digits (G274).

    Raises MQ_ERROR_INVALID_PARAMETER for 0, and for any other argument.
    """
    given = plain(argument)
    if given is not None and isinstance(given.value, str):
        number = int(given.value) if _DIGITS.fullmatch(given.value) else 0
    else:
        number = integer(given, 0)
        if -(1 << 63) <= number < 0:  # VT_I8 has a sign
            number &= _SIXTY_FOUR_BITS
    if not 0 < number <= _SIXTY_FOUR_BITS:
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "no lookup identifier")
    return number


def text(argument: str | bytes | None) -> str:
    """A BSTR, "" for NULL; MQ_ERROR_ILLEGAL_PROPERTY_VALUE for other types (G413)."""
    if isinstance(argument, bytes):
        raise MQError(HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE, "no text")
    return argument or ""


def octets(argument: Variant) -> bytes:
    """An array of octets, b"" for an empty VARIANT; raises E_INVALIDARG for any other."""
    given = plain(argument)
    if given is None:
        return b""
    array = given.value
    if given.vt == VT_BYTES and isinstance(array, SafeArray) and isinstance(array.values, bytes):
        return array.values
    raise MQError(HResult.E_INVALIDARG, f"VARIANT of type {given.vt}, not an array of octets")


def instance(pointer: object, of: type[Object]) -> Object | None:
    """The object that a client passes, None for NULL; raises E_INVALIDARG for another kind.

    Objects of clients are of another kind, too: they are not queried over the network.
    """
    if pointer is None or isinstance(pointer, of):
        return pointer
    raise MQError(HResult.E_INVALIDARG, f"not {of.__name__}")


def octets_variant(values: bytes) -> Variant:
    """The VARIANT of octets; an empty array for no octets."""
    return Variant(VT_BYTES, SafeArray(VARENUM.VT_UI1, values))


def signed(value: int) -> int:
    """An unsigned number of 32 bits as a `long`."""
    return value - 0x1_0000_0000 if value >= 0x8000_0000 else value
