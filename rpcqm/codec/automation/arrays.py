"""SAFEARRAYs on the wire: their heads, and those whose elements are scalars ([MS-OAUT] 2.2.30)."""

import math
import struct
from dataclasses import dataclass

from rpcqm.base.errors import DecodeError
from rpcqm.codec.automation.scalars import SCALARS
from rpcqm.codec.automation.strings import GAPS, Append, Octets
from rpcqm.codec.automation.values import SafeArray
from rpcqm.codec.types.oautvalues import (
    FADF_BSTR,
    FADF_DISPATCH,
    FADF_HAVEVARTYPE,
    FADF_UNKNOWN,
    FADF_VARIANT,
    SF_BSTR,
    SF_DISPATCH,
    SF_HAVEIID,
    SF_I1,
    SF_I2,
    SF_I4,
    SF_I8,
    SF_UNKNOWN,
    SF_VARIANT,
    VT_BSTR,
    VT_DISPATCH,
    VT_I2,
    VT_I4,
    VT_I8,
    VT_UI1,
    VT_UNKNOWN,
    VT_VARIANT,
)

_ARMS = {
    **{vt: (scalar.array,) for vt, scalar in SCALARS.items()},
    VT_BSTR: (SF_BSTR,),
    VT_UNKNOWN: (SF_UNKNOWN, SF_HAVEIID),
    VT_DISPATCH: (SF_DISPATCH, SF_HAVEIID),
    VT_VARIANT: (SF_VARIANT,),
}
"""The arms of the union that an array of a type can have; we write the first one."""

_BY_ARM = {
    SF_I1: VT_UI1,
    SF_I2: VT_I2,
    SF_I4: VT_I4,
    SF_I8: VT_I8,
    SF_BSTR: VT_BSTR,
    SF_UNKNOWN: VT_UNKNOWN,
    SF_HAVEIID: VT_UNKNOWN,
    SF_DISPATCH: VT_DISPATCH,
    SF_VARIANT: VT_VARIANT,
}
"""The type of an array that does not state it."""

_FEATURES = {
    VT_BSTR: FADF_BSTR,
    VT_UNKNOWN: FADF_UNKNOWN,
    VT_DISPATCH: FADF_DISPATCH,
    VT_VARIANT: FADF_VARIANT,
}
_VARIANT_SIZE = 16
"""The octets of a VARIANT in memory, which cbElements contains."""

_OF_OCTETS = struct.Struct("<IHHIIIIIIiI")
"""An array in NDR that has one dimension, up to its elements."""


class Layout:
    """The differences between the transfer syntaxes."""

    def __init__(self, ndr64: bool) -> None:
        self.ndr64 = ndr64
        self.word = 8 if ndr64 else 4
        self.word_code = "Q" if ndr64 else "I"
        self.word_form = struct.Struct(f"<{self.word_code}")
        # Maximum count, cDims, fFeatures, cbElements, cLocks, sfType, Size and the pointer.
        self.array = struct.Struct("<QHHII4xI4xI4xQ" if ndr64 else "<IHHIIIII")


@dataclass(frozen=True, slots=True)
class Head:
    """`size` elements of `vt` with `bounds`; `there` says whether data follows."""

    vt: int
    size: int
    bounds: list[tuple[int, int]]
    there: bool


class ArrayForm:
    """Reads and writes arrays, except elements that are pointers."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def read(self, octets: Octets, offset: int, end: int, vt: int | None) -> tuple[Head, int]:
        """The head of an array of type `vt`, or of the type that it states itself."""
        form = self.layout.array
        offset = (offset + self.layout.word - 1) & -self.layout.word
        if offset + form.size > end:
            raise DecodeError("a SAFEARRAY ends too early", offset)
        maximum, dims, features, _, locks, arm, size, pointer = form.unpack_from(octets, offset)
        vt = _element(arm, features, locks, vt, offset)
        offset += form.size + (16 if arm == SF_HAVEIID else 0)
        if maximum != dims or not dims or offset + 8 * dims > end:
            raise DecodeError("the dimensions of a SAFEARRAY are wrong", offset)
        bounds = list(struct.iter_unpack("<Ii", octets[offset : offset + 8 * dims]))
        bounds.reverse()
        if not _agree(bounds, size) or (size and not pointer):
            raise DecodeError("the bounds of a SAFEARRAY are not those of its elements", offset)
        plain = [] if dims == 1 and bounds[0][1] == 0 else bounds
        return Head(vt, size, plain, bool(pointer)), offset + 8 * dims

    def read_octets(self, octets: Octets, offset: int, end: int) -> tuple[SafeArray, int] | None:
        """A whole array of VT_UI1 in NDR; None if it is not in the usual form."""
        offset = (offset + 3) & ~3
        start = offset + _OF_OCTETS.size
        if self.layout.ndr64 or start > end:
            return None
        maximum, dims, features, _, locks, arm, size, pointer, elements, lowest, count = (
            _OF_OCTETS.unpack_from(octets, offset)
        )
        is_usual = maximum == dims == 1 and arm == SF_I1 and pointer and not lowest
        if features & FADF_HAVEVARTYPE and locks >> 16 != VT_UI1:
            is_usual = False
        if not (is_usual and size == elements == count and start + size <= end):
            return None
        return SafeArray(VT_UI1, bytes(octets[start : start + size])), start + size

    def read_scalars(
        self, octets: Octets, offset: int, end: int, head: Head
    ) -> tuple[bytes | list[object], int]:
        """The elements behind the maximum count."""
        scalar = SCALARS[head.vt]
        offset = (offset + scalar.size - 1) & -scalar.size
        behind = offset + head.size * scalar.size
        if behind > end:
            raise DecodeError("the data of a SAFEARRAY ends too early", offset)
        if head.vt == VT_UI1:
            return bytes(octets[offset:behind]), behind
        numbers = struct.unpack_from(f"<{head.size}{scalar.code}", octets, offset)
        return list(map(scalar.value, numbers) if scalar.value else numbers), behind

    def write(self, append: Append, offset: int, value: SafeArray, referent: int) -> int:
        """Write the head; the pointer to the data is `referent`."""
        count = len(value.values)
        bounds = value.bounds or [(count, 0)]
        if math.prod(elements for elements, _ in bounds) != count:
            raise ValueError("the bounds of an array are not those of its elements")
        if value.vt not in _ARMS:
            raise ValueError(f"there are no arrays of type {value.vt:#06x}")
        gap = -offset & self.layout.word - 1
        features = FADF_HAVEVARTYPE | _FEATURES.get(value.vt, 0)
        head = self.layout.array.pack(
            *(len(bounds), len(bounds), features, self._element_size(value.vt)),
            *(value.vt << 16, _ARMS[value.vt][0], count, referent),
        )
        shape = (number for pair in reversed(bounds) for number in pair)
        append(GAPS[gap] + head + struct.pack("<" + "Ii" * len(bounds), *shape))
        return offset + gap + len(head) + 8 * len(bounds)

    def write_scalars(self, append: Append, offset: int, value: SafeArray) -> int:
        """Write the maximum count and the elements."""
        scalar, word = SCALARS[value.vt], self.layout.word
        gap = -offset & word - 1
        append(GAPS[gap] + self.layout.word_form.pack(len(value.values)))
        offset += gap + word
        gap = -offset & scalar.size - 1
        append(GAPS[gap] + _octets(value))
        return offset + gap + len(value.values) * scalar.size

    def _element_size(self, vt: int) -> int:
        if vt in SCALARS:
            return SCALARS[vt].size
        return _VARIANT_SIZE if vt == VT_VARIANT else self.layout.word


def _octets(value: SafeArray) -> bytes:
    if isinstance(value.values, bytes):
        if value.vt != VT_UI1:
            raise TypeError("only arrays of VT_UI1 are bytes")
        return value.values
    scalar = SCALARS[value.vt]
    numbers = map(scalar.number, value.values) if scalar.number else value.values
    return struct.pack(f"<{len(value.values)}{scalar.code}", *numbers)


def _element(arm: int, features: int, locks: int, vt: int | None, offset: int) -> int:
    """The type of the elements, if all its statements agree (G247)."""
    told = locks >> 16 if features & FADF_HAVEVARTYPE else None
    if vt is None:
        vt = told if told is not None else _BY_ARM.get(arm, 0)
    known = [each for each in (vt, told) if each is not None]
    if any(arm not in _ARMS.get(each, ()) for each in known):
        raise DecodeError("the type of a SAFEARRAY is not that of its elements", offset)
    return vt


def _agree(bounds: list[tuple[int, int]], size: int) -> bool:
    """Whether the bounds make so many elements, without computing the product of thousands."""
    if not size or any(not elements for elements, _ in bounds):
        return not size and any(not elements for elements, _ in bounds)
    product = 1
    for elements, _ in bounds:
        product *= elements
        if product > size:
            return False
    return product == size
