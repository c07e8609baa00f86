"""VARIANT and SAFEARRAY as Python values ([MS-OAUT] 2.2.29, 2.2.30).

A BSTR is a str; None if it is null; bytes if it is no text (an odd number of octets, half of a
surrogate pair). An interface pointer on the wire is its OBJREF's octets, None if it is null; `dcom`
replaces it by an object.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Variant:
    """A value with its type: `vt` is a VARENUM, with VT_ARRAY and VT_BYREF where they apply.

    `value`: None for VT_EMPTY and VT_NULL; int for the integers and VT_ERROR; float for VT_R4 and
    VT_R8, and for VT_DATE, in days since 1899-12-30 UTC; bool for VT_BOOL; decimal.Decimal for
    VT_CY and VT_DECIMAL; a BSTR; an interface pointer for VT_UNKNOWN and VT_DISPATCH; a SafeArray
    for VT_ARRAY; for VT_BYREF the target: a value of the type, a Variant for VT_BYREF|VT_VARIANT.
    """

    vt: int
    value: object = None


@dataclass(frozen=True, slots=True)
class SafeArray:
    """An array of `vt`: `values` are bytes for VT_UI1, else a list, the first dimension fastest.

    `bounds` are pairs of the number of elements and the lowest index, one for each dimension;
    without them the array has one dimension, from 0.
    """

    vt: int
    values: "bytes | list[object]"
    bounds: list[tuple[int, int]] = field(default_factory=list)


EMPTY = Variant(0)
MISSING = Variant(10, 0x80020004)
"""An absent optional argument: DISP_E_PARAMNOTFOUND."""
