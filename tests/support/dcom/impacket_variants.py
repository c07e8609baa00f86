"""VARIANTs on the wire by impacket's NDR, and as our values.

impacket's own oaut lacks the pointers of SAFEARRAYs and what Invoke answers by reference; here its
classes are put together as [MS-OAUT] 2.2.29 and 2.2.30 say.
"""

import struct
from decimal import Decimal
from typing import Any, ClassVar

from impacket.dcerpc.v5 import dcomrt
from impacket.dcerpc.v5.dcom import oaut
from impacket.dcerpc.v5.dtypes import NULL, ULONG
from impacket.dcerpc.v5.ndr import NDRPOINTER, NDRSTRUCT, NDRUniConformantArray

from rpcqm.codec.automation.values import SafeArray, Variant
from rpcqm.codec.types.mqvalues import VARENUM

VT_BSTR, VT_VARIANT, VT_BOOL = VARENUM.VT_BSTR, VARENUM.VT_VARIANT, VARENUM.VT_BOOL
VT_ARRAY, VT_UI1, VT_CY = VARENUM.VT_ARRAY, VARENUM.VT_UI1, VARENUM.VT_CY
_OBJECTS = (VARENUM.VT_DISPATCH, VARENUM.VT_UNKNOWN)
_EMPTY = (VARENUM.VT_EMPTY, VARENUM.VT_NULL)
_SF_I1 = 0x10
"""Arrays of octets of any sign ([MS-OAUT] 2.2.9)."""
FADF_HAVEVARTYPE = 0x80
_SIGNED = {VARENUM.VT_ERROR: struct.Struct("<i"), VARENUM.VT_I1: struct.Struct("<b")}


class PVariants(NDRPOINTER):  # type: ignore[misc]
    """Its referent, an array of VARIANTs, is declared behind VARIANT."""


class POctets(NDRPOINTER):  # type: ignore[misc]
    referent = (("Data", dcomrt.BYTE_ARRAY),)


class _SafeVariants(NDRSTRUCT):  # type: ignore[misc]
    structure = (("Size", ULONG), ("aVariant", PVariants))


class _SafeOctets(NDRSTRUCT):  # type: ignore[misc]
    structure = (("clSize", ULONG), ("pData", POctets))


class _ArrayUnion(oaut.SAFEARRAYUNION):  # type: ignore[misc]
    union: ClassVar = {
        VT_BSTR: ("array", oaut.SAFEARR_BSTR),
        VT_VARIANT: ("array", _SafeVariants),
        _SF_I1: ("array", _SafeOctets),
    }


class _SafeArray(NDRSTRUCT):  # type: ignore[misc]
    structure = (
        ("cDims", oaut.USHORT),
        ("fFeatures", oaut.USHORT),
        ("cbElements", ULONG),
        ("cLocks", ULONG),
        ("uArrayStructs", _ArrayUnion),
        ("rgsabound", oaut.SAFEARRAYBOUND_ARRAY),
    )


class _PSafeArray(NDRPOINTER):  # type: ignore[misc]
    referent = (("Data", _SafeArray),)


class _PPSafeArray(NDRPOINTER):  # type: ignore[misc]
    referent = (("Data", _PSafeArray),)


class _VariantUnion(oaut.varUnion):  # type: ignore[misc]
    union = oaut.varUnion.union | {VT_ARRAY: ("parray", _PPSafeArray)}


class _WireVariant(oaut.wireVARIANTStr):  # type: ignore[misc]
    structure = (*oaut.wireVARIANTStr.structure[:-1], ("_varUnion", _VariantUnion))


class VARIANT(NDRPOINTER):  # type: ignore[misc]
    referent = (("Data", _WireVariant),)


class VARIANTS(NDRUniConformantArray):  # type: ignore[misc]
    item = VARIANT


PVariants.referent = (("Data", VARIANTS),)


def arm_of(vt: int) -> str:
    name: str = oaut.varUnion.union[vt][0]
    return name


def write_objref(pointer: Any, octets: object) -> None:
    """An interface pointer that refers to what an OBJREF says."""
    assert isinstance(octets, bytes)
    pointer["ulCntData"] = len(octets)
    pointer["abData"] = list(octets)


def write_variant(to: Any, value: Variant) -> None:
    """Put a value into an impacket VARIANT."""
    to["clSize"] = 5  # what impacket's own examples say
    to["vt"] = value.vt
    union = to["_varUnion"]
    if value.vt & VT_ARRAY:
        union["tag"] = int(VT_ARRAY)
        _write_octets(to, value)
        return
    union["tag"] = value.vt
    name = arm_of(value.vt)
    if value.vt == VT_BSTR:
        union[name]["asData"] = value.value
    elif value.vt in _OBJECTS and value.value is None:
        union.fields[name] = NULL
    elif value.vt in _OBJECTS:
        write_objref(union.fields[name], value.value)
    elif value.vt == VT_CY:
        assert isinstance(value.value, Decimal)
        union[name]["int64"] = int(value.value * 10_000)
    elif value.vt not in _EMPTY:
        union[name] = _number(value)


def _number(value: Variant) -> object:
    if value.vt == VT_BOOL:
        return 0xFFFF if value.value else 0
    if value.vt in _SIGNED:
        assert isinstance(value.value, int)
        width = _SIGNED[VARENUM(value.vt)]
        octets = (value.value & (1 << 8 * width.size) - 1).to_bytes(width.size, "little")
        return width.unpack(octets)[0]
    return value.value


def _array_in(variant: Any) -> Any:
    """The SAFEARRAY behind its two pointers."""
    return variant["_varUnion"].fields["parray"].fields["Data"].fields["Data"]


def _write_octets(to: Any, value: Variant) -> None:
    array = value.value
    assert isinstance(array, SafeArray)
    assert isinstance(array.values, bytes)
    wire = _array_in(to)
    wire["cDims"], wire["fFeatures"] = 1, FADF_HAVEVARTYPE
    wire["cbElements"], wire["cLocks"] = 1, VT_UI1 << 16
    wire["uArrayStructs"]["tag"] = _SF_I1
    octets = wire["uArrayStructs"]["array"]
    octets["clSize"] = len(array.values)
    octets.fields["pData"].fields["Data"]["Data"] = list(array.values)
    bound = oaut.SAFEARRAYBOUND()
    bound["cElements"], bound["lLbound"] = len(array.values), 0
    wire["rgsabound"].append(bound)


def made_variant(value: Variant) -> Any:
    found = VARIANT(None, False)
    write_variant(found, value)
    return found


def read_text(blob: Any) -> str | None:
    """The text of a BSTR."""
    if blob == b"" or blob["cBytes"] == 0xFFFFFFFF:
        return None
    text: str = blob["asData"]
    return text


def read_objref(pointer: Any) -> bytes | None:
    """The OBJREF of an interface pointer."""
    return None if pointer == b"" else b"".join(pointer["abData"])


def read_variant(found: Any) -> Variant:
    """The value of an impacket VARIANT; an object is its OBJREF."""
    vt = found["vt"]
    union = found["_varUnion"]
    if vt & VT_ARRAY:
        return Variant(vt, _read_array(vt & ~VT_ARRAY, _array_in(found)))
    if vt in _EMPTY:
        return Variant(vt)
    value = union[arm_of(vt)]
    if vt == VT_BSTR:
        return Variant(vt, read_text(value))
    if vt in _OBJECTS:
        return Variant(vt, read_objref(value))
    if vt == VT_BOOL:
        return Variant(vt, value != 0)
    if vt == VT_CY:
        return Variant(vt, Decimal(value["int64"]) / 10_000)
    return Variant(vt, value)


def _read_array(vt: int, wire: Any) -> SafeArray:
    array = wire["uArrayStructs"]["array"]
    if wire["uArrayStructs"]["tag"] == _SF_I1:
        return SafeArray(vt, b"".join(array["pData"]))
    if vt == VT_BSTR:
        return SafeArray(vt, [read_text(each["Data"]) for each in array["aBstr"]])
    return SafeArray(vt, [read_variant(each) for each in array["aVariant"]])
