"""Variants as the PROPVARIANT structures of RPC calls ([MS-MQMQ] 2.2.13)."""

from collections.abc import Callable, Sized
from typing import Any, TypeVar
from uuid import UUID

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.properties import PropVariant, VarType, bool_of_variant, variant_bool
from rpcqm.codec.types.dtyp import LARGE_INTEGER, ULARGE_INTEGER
from rpcqm.codec.types.mqmq import (
    BLOB,
    CACLSID,
    CAL,
    CALPWSTR,
    CAPROPVARIANT,
    CAUB,
    CAUH,
    CAUI,
    CAUL,
    PROPVARIANT,
    PROPVARIANT_varUnion,
)

_Counted = BLOB | CAUB | CAUI | CAL | CAUL | CAUH | CACLSID | CALPWSTR | CAPROPVARIANT
_T = TypeVar("_T", bound=Sized)

MAXIMUM_DEPTH = 4
"""Levels of variants within variants; the deepest of the specification has two."""

_COUNTED: dict[VarType, Callable[..., object]] = {
    VarType.VT_VECTOR_UI2: CAUI,
    VarType.VT_VECTOR_I4: CAL,
    VarType.VT_VECTOR_UI4: CAUL,
    VarType.VT_VECTOR_CLSID: CACLSID,
    VarType.VT_VECTOR_LPWSTR: CALPWSTR,
}


def propvariant_of(variant: PropVariant) -> PROPVARIANT:
    """The structure for a variant."""
    return PROPVARIANT(
        vt=variant.vt, _varUnion=PROPVARIANT_varUnion(variant.vt, _arm(variant.vt, variant.value))
    )


def variant_of(structure: PROPVARIANT, depth: int = MAXIMUM_DEPTH) -> PropVariant:
    """The variant in a structure.

    Raises MQError: MQ_ERROR_ILLEGAL_PROPERTY_VT for an unknown type,
    MQ_ERROR_ILLEGAL_PROPERTY_VALUE for a null pointer, a count that differs from its array, a
    truth value that is neither, and variants nested too deeply.
    """
    arm = structure._varUnion.value
    if isinstance(arm, LARGE_INTEGER | ULARGE_INTEGER):
        return PropVariant.of(structure.vt, arm.QuadPart)
    if structure.vt == VarType.VT_BOOL and isinstance(arm, int):
        return PropVariant(VarType.VT_BOOL, bool_of_variant(arm))
    if arm is None or isinstance(arm, int | str | UUID):
        return PropVariant.of(structure.vt, arm)
    return PropVariant.of(structure.vt, _elements(arm, depth))


def _arm(vt: VarType, value: Any) -> Any:
    if vt in _COUNTED:
        return _COUNTED[vt](cElems=len(value), pElems=list(value))
    make = _ARMS.get(vt)
    return make(value) if make else value


def _variants(value: tuple[PropVariant, ...]) -> CAPROPVARIANT:
    return CAPROPVARIANT(cElems=len(value), pElems=[propvariant_of(item) for item in value])


def _large_numbers(value: tuple[int, ...]) -> CAUH:
    return CAUH(cElems=len(value), pElems=[ULARGE_INTEGER(QuadPart=item) for item in value])


_ARMS: dict[VarType, Callable[[Any], Any]] = {
    VarType.VT_BOOL: variant_bool,
    VarType.VT_I8: lambda value: LARGE_INTEGER(QuadPart=value),
    VarType.VT_UI8: lambda value: ULARGE_INTEGER(QuadPart=value),
    VarType.VT_BLOB: lambda value: BLOB(cbSize=len(value), pBlobData=value),
    VarType.VT_VECTOR_UI1: lambda value: CAUB(cElems=len(value), pElems=value),
    VarType.VT_VECTOR_UI8: _large_numbers,
    VarType.VT_VECTOR_VARIANT: _variants,
}


def _elements(arm: _Counted, depth: int) -> object:
    """The plain value of a counted array; an empty one may have a null pointer."""
    if isinstance(arm, BLOB):
        return bytes(_counted(arm.pBlobData or b"", arm.cbSize))
    if isinstance(arm, CAUB):
        return bytes(_counted(arm.pElems or b"", arm.cElems))
    if isinstance(arm, CAUH):
        return tuple(item.QuadPart for item in _counted(arm.pElems or [], arm.cElems))
    if isinstance(arm, CAPROPVARIANT):
        variants = _counted(arm.pElems or [], arm.cElems)
        if not depth:
            raise MQError(HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE, "variants nested too deeply")
        return tuple(variant_of(item, depth - 1) for item in variants)
    return tuple(_counted(arm.pElems or (), arm.cElems))


def _counted(items: _T, count: int) -> _T:
    if len(items) != count:
        raise MQError(HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE, f"{len(items)} of {count} elements")
    return items
