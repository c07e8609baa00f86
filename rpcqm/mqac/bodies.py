"""Bodies of messages as VARIANTs, and back ([MC-MQAC] 3.17.4.1.21, .22)."""

import struct
from collections.abc import Callable
from decimal import Decimal

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.automation.values import SafeArray, Variant
from rpcqm.codec.types.mqvalues import VARENUM
from rpcqm.mqac.arguments import VT_BYTES, octets_variant, plain

_NUMBERS = {
    VARENUM.VT_I1: struct.Struct("<b"),
    VARENUM.VT_UI1: struct.Struct("<B"),
    VARENUM.VT_I2: struct.Struct("<h"),
    VARENUM.VT_UI2: struct.Struct("<H"),
    VARENUM.VT_I4: struct.Struct("<i"),
    VARENUM.VT_UI4: struct.Struct("<I"),
    VARENUM.VT_R4: struct.Struct("<f"),
    VARENUM.VT_R8: struct.Struct("<d"),
    VARENUM.VT_DATE: struct.Struct("<d"),
}
_READ_ONLY = {VARENUM.VT_I8: struct.Struct("<q"), VARENUM.VT_UI8: struct.Struct("<Q")}
"""Types that other programs send, but that [MC-MQAC] cannot send."""
_READ = {int(vt): layout for vt, layout in (_NUMBERS | _READ_ONLY).items()}
_CURRENCY = struct.Struct("<q")
_CURRENCY_PLACES = Decimal(10_000)
"""A CURRENCY is a number of ten-thousandths."""
_TRUE, _FALSE = b"\xff\xff", b"\0\0"


def body_of(argument: Variant) -> tuple[int, bytes]:
    """The BodyType and the octets of a value, without a length or a terminating null.

    Raises E_INVALIDARG for types that [MC-MQAC] does not name, E_NOINTERFACE for objects: their
    IPersistStream is the client's (G283).
    """
    given = plain(argument)
    vt = VARENUM.VT_EMPTY if given is None else given.vt
    writer = _WRITERS.get(vt)
    if given is None or writer is None:
        raise MQError(HResult.E_INVALIDARG, f"no body of VARIANT type {vt}")
    try:
        return vt, writer(given)
    except (struct.error, OverflowError, TypeError, ArithmeticError) as error:
        raise MQError(HResult.E_INVALIDARG, str(error)) from error


def _number(given: Variant) -> bytes:
    return _NUMBERS[VARENUM(given.vt)].pack(given.value)


def _boolean(given: Variant) -> bytes:
    return _TRUE if given.value else _FALSE


def _currency(given: Variant) -> bytes:
    if not isinstance(given.value, Decimal):
        raise TypeError("no CURRENCY")
    return _CURRENCY.pack(int(given.value * _CURRENCY_PLACES))


def _text(given: Variant) -> bytes:
    value = given.value
    if isinstance(value, bytes):
        return value
    return str(value or "").encode("utf-16-le", "surrogatepass")


def _octets(given: Variant) -> bytes:
    array = given.value
    if array is None:
        return b""
    if not isinstance(array, SafeArray) or not isinstance(array.values, bytes):
        raise TypeError("no array of octets")
    return array.values


def _object(given: Variant) -> bytes:
    raise MQError(HResult.E_NOINTERFACE, "objects of clients cannot be written into a message")


_WRITERS: dict[int, Callable[[Variant], bytes]] = {
    **dict.fromkeys(map(int, _NUMBERS), _number),
    VARENUM.VT_BOOL: _boolean,
    VARENUM.VT_CY: _currency,
    VARENUM.VT_BSTR: _text,
    VT_BYTES: _octets,
    VARENUM.VT_UNKNOWN: _object,
    VARENUM.VT_DISPATCH: _object,
}


def body_variant(body_type: int, body: bytes) -> Variant:
    """A body as its type says; octets where the type says nothing or does not fit the body.

    The texts of VT_LPSTR and VT_LPWSTR end at their null and become BSTRs.
    """
    if body_type in _READ:
        return _read_number(body_type, _READ[body_type], body)
    if body_type == VARENUM.VT_BOOL and len(body) == len(_TRUE):
        return Variant(body_type, body != _FALSE)
    if body_type == VARENUM.VT_CY and len(body) == _CURRENCY.size:
        return Variant(body_type, Decimal(_CURRENCY.unpack(body)[0]) / _CURRENCY_PLACES)
    if body_type in (VARENUM.VT_BSTR, VARENUM.VT_LPWSTR):
        return Variant(VARENUM.VT_BSTR, _read_text(body_type, body))
    if body_type == VARENUM.VT_LPSTR:
        return Variant(VARENUM.VT_BSTR, body.partition(b"\0")[0].decode("latin-1"))
    if body_type == VARENUM.VT_NULL:
        return Variant(VARENUM.VT_NULL)
    return octets_variant(body)


def _read_number(body_type: int, layout: struct.Struct, body: bytes) -> Variant:
    if len(body) != layout.size:
        return octets_variant(body)
    return Variant(body_type, layout.unpack(body)[0])


def _read_text(body_type: int, body: bytes) -> str | bytes:
    """A text; its octets if they are not UTF-16."""
    try:
        text = body.decode("utf-16-le")
    except UnicodeDecodeError:
        return body
    return text.partition("\0")[0] if body_type == VARENUM.VT_LPWSTR else text
