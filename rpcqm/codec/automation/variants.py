"""VARIANTs and SAFEARRAYs on the wire ([MS-OAUT] 2.2.29, 2.2.30).

Both are little-endian in every stub; only the counts of interface pointers in them follow the stub.
Every count is checked against the remaining octets before it is used.
"""

import struct
from collections.abc import Callable
from typing import Any

from rpcqm.base.errors import DecodeError
from rpcqm.codec.automation.arrays import ArrayForm, Layout
from rpcqm.codec.automation.scalars import DECIMAL, SCALARS, decimal_of, octets_of_decimal
from rpcqm.codec.automation.strings import (
    GAPS,
    Append,
    Octets,
    Referents,
    bstr_reader,
    bstr_writer,
    objref_reader,
    objref_writer,
)
from rpcqm.codec.automation.values import EMPTY, SafeArray, Variant
from rpcqm.codec.types.oautvalues import (
    VT_ARRAY,
    VT_BSTR,
    VT_BYREF,
    VT_DECIMAL,
    VT_DISPATCH,
    VT_EMPTY,
    VT_NULL,
    VT_UI1,
    VT_UNKNOWN,
    VT_VARIANT,
)

MAXIMUM_DEPTH = 16
"""VARIANTs that hold others, by reference or in arrays.

Deeper than any that MSMQ knows, and little stack.

Bound `dcom.variant_nesting` [levels]: the call is refused with RPC_X_BAD_STUB_DATA.
"""

_HEADER = struct.Struct("<IIHHHHI")
_FLAGS = VT_ARRAY | VT_BYREF


class Marshaller:
    """Reads and writes the targets of pointers to VARIANTs and SAFEARRAYs in one syntax.

    `read_…` raise DecodeError; `write_…` raise ValueError, TypeError and struct.error for values
    that cannot be written.
    """

    def __init__(self, ndr64: bool, big_endian: bool) -> None:
        self.layout = Layout(ndr64)
        self.arrays = ArrayForm(self.layout)
        self._readers: dict[int, Callable[[Octets, int, int, int], tuple[Any, int]]] = {
            VT_BSTR: _without_depth(bstr_reader(ndr64)),
            VT_UNKNOWN: _without_depth(objref_reader(ndr64, big_endian)),
            VT_DISPATCH: _without_depth(objref_reader(ndr64, big_endian)),
            VT_VARIANT: self._read_variant,
        }
        self._writers: dict[int, Callable[[Append, int, Any, Referents], int]] = {
            VT_BSTR: bstr_writer(ndr64),
            VT_UNKNOWN: objref_writer(ndr64, big_endian),
            VT_DISPATCH: objref_writer(ndr64, big_endian),
            VT_VARIANT: self.write_variant,
        }
        self._arm = 24 if ndr64 else 20
        self._scalars = {vt: self._scalar_form(vt) for vt in SCALARS}
        self._empty = {VT_EMPTY, VT_NULL}
        self._empty_size = 24 if ndr64 else 20

    def _scalar_form(self, vt: int) -> struct.Struct:
        """The whole of a VARIANT that holds a scalar."""
        scalar = SCALARS[vt]
        at = self._arm if scalar.size < 8 else 24
        behind = -(at + scalar.size) % 8 if self.layout.ndr64 else 0
        return struct.Struct(f"<IIHHHHI{at - 20}x{scalar.code}{behind}x")

    # reading

    def read_variant(self, octets: Octets, offset: int, end: int) -> tuple[Variant, int]:
        return self._read_variant(octets, offset, end, 0)

    def read_array(self, octets: Octets, offset: int, end: int) -> tuple[SafeArray | None, int]:
        return self._read_array(octets, offset, end, None, 0)

    def _read_variant(
        self, octets: Octets, offset: int, end: int, depth: int
    ) -> tuple[Variant, int]:
        offset = (offset + 7) & ~7
        if offset + 20 > end:
            raise DecodeError("a VARIANT ends too early", offset)
        _, _, vt, _, _, _, tag = _HEADER.unpack_from(octets, offset)
        if tag != (vt & _FLAGS if vt & VT_ARRAY else vt):
            raise DecodeError("the union of a VARIANT is not of its type", offset + 16)
        form = self._scalars.get(vt)
        if form is None:
            return self._read_other(octets, offset, end, vt, depth)
        if offset + form.size > end:
            raise DecodeError("a VARIANT ends too early", offset)
        value = form.unpack_from(octets, offset)[7]
        make = SCALARS[vt].value
        return Variant(vt, make(value) if make else value), offset + form.size

    def _read_other(
        self, octets: Octets, offset: int, end: int, vt: int, depth: int
    ) -> tuple[Variant, int]:
        if vt in self._empty:
            return Variant(vt), offset + self._empty_size
        if vt == VT_DECIMAL:
            _require(offset + 40 <= end, offset)
            return Variant(vt, decimal_of(octets, offset + 24)), offset + 40
        kind = vt & ~_FLAGS
        if not (vt & _FLAGS or (kind in self._readers and kind != VT_VARIANT)):
            raise DecodeError(f"a VARIANT is of type {vt:#06x}, that there is not", offset + 8)
        there, offset = self._read_pointer(octets, offset + self._arm, end)
        if not there:
            return Variant(vt), offset
        if depth >= MAXIMUM_DEPTH:
            raise DecodeError("VARIANTs are nested too deeply", offset)
        value, offset = self._read_referent(octets, offset, end, vt, depth + 1)
        return Variant(vt, value), offset

    def _read_pointer(self, octets: Octets, offset: int, end: int) -> tuple[int, int]:
        """A referent identifier, and the offset behind it."""
        form = self.layout.word_form
        offset = (offset + form.size - 1) & -form.size
        _require(offset + form.size <= end, offset)
        return form.unpack_from(octets, offset)[0], offset + form.size

    def _read_referent(
        self, octets: Octets, offset: int, end: int, vt: int, depth: int
    ) -> tuple[object, int]:
        """The target of a VARIANT's pointer; a pointer of the type's own may be first."""
        kind = vt & ~_FLAGS
        pointers = bool(vt & VT_BYREF and (vt & VT_ARRAY or kind in self._readers))
        for _ in range(pointers + bool(vt & VT_ARRAY)):
            there, offset = self._read_pointer(octets, offset, end)
            if not there:
                return (EMPTY if vt == VT_BYREF | VT_VARIANT else None), offset
        if vt & VT_ARRAY:
            return self._read_array(octets, offset, end, kind, depth)
        if kind in self._readers:
            return self._readers[kind](octets, offset, end, depth)
        return self._read_scalar(octets, offset, end, kind)

    def _read_scalar(self, octets: Octets, offset: int, end: int, kind: int) -> tuple[object, int]:
        """A value of fixed size by itself."""
        if kind == VT_DECIMAL:
            offset = (offset + 7) & ~7
            _require(offset + DECIMAL.size <= end, offset)
            return decimal_of(octets, offset), offset + DECIMAL.size
        scalar = SCALARS.get(kind)
        if scalar is None:
            raise DecodeError(f"there are no references to type {kind:#06x}", offset)
        offset = (offset + scalar.size - 1) & -scalar.size
        _require(offset + scalar.size <= end, offset)
        (number,) = struct.unpack_from(f"<{scalar.code}", octets, offset)
        return (scalar.value(number) if scalar.value else number), offset + scalar.size

    def _read_array(
        self, octets: Octets, offset: int, end: int, vt: int | None, depth: int
    ) -> tuple[SafeArray, int]:
        if vt == VT_UI1:
            found = self.arrays.read_octets(octets, offset, end)
            if found is not None:
                return found
        head, offset = self.arrays.read(octets, offset, end, vt)
        if not head.there:
            return SafeArray(head.vt, _no_values(head.vt), head.bounds), offset
        count, offset = self._read_pointer(octets, offset, end)
        if count != head.size:
            raise DecodeError("the size of a SAFEARRAY's data is not that of its elements", offset)
        if head.vt in SCALARS:
            values, offset = self.arrays.read_scalars(octets, offset, end, head)
            return SafeArray(head.vt, values, head.bounds), offset
        _require(count * self.layout.word <= end - offset, offset)
        there = struct.unpack_from(f"<{count}{self.layout.word_code}", octets, offset)
        offset += count * self.layout.word
        read, items = self._readers[head.vt], []
        null = EMPTY if head.vt == VT_VARIANT else None
        for each in there:
            item, offset = read(octets, offset, end, depth) if each else (null, offset)
            items.append(item)
        return SafeArray(head.vt, items, head.bounds), offset

    # writing

    def write_variant(
        self, append: Append, offset: int, value: Variant | None, referents: Referents
    ) -> int:
        vt, held = (value.vt, value.value) if value is not None else (VT_EMPTY, None)
        gap = -offset & 7
        form = self._scalars.get(vt)
        if form is not None:
            number = SCALARS[vt].number
            held = number(held) if number else held
            append(GAPS[gap] + form.pack(-(-form.size // 8), 0, vt, 0, 0, 0, vt, held))
            return offset + gap + form.size
        parts: list[bytes] = []
        start = offset + gap
        behind = self._write_other(parts.append, start, vt, held, referents)
        quads = -(-(behind - start) // 8)
        tag = vt & _FLAGS if vt & VT_ARRAY else vt
        append(GAPS[gap] + _HEADER.pack(quads, 0, vt, 0, 0, 0, tag) + b"".join(parts))
        return behind

    def _write_other(
        self, append: Append, start: int, vt: int, value: object, referents: Referents
    ) -> int:
        """Write the arm of the union, and the target of its pointer."""
        append(bytes(self._arm - 20))
        offset = start + self._arm
        if vt in self._empty:
            return offset
        kind = vt & ~_FLAGS
        if vt == VT_DECIMAL:
            append(bytes(24 - self._arm) + octets_of_decimal(value))
            return start + 40
        if not vt & _FLAGS and (kind not in self._writers or kind == VT_VARIANT):
            raise ValueError(f"there is no VARIANT of type {vt:#06x}")
        if value is None and self._null_is_a_pointer(vt):
            return self._write_pointer(append, offset, 0)
        offset = self._write_pointer(append, offset, referents())
        return self._write_referent(append, offset, vt, value, referents)

    def _null_is_a_pointer(self, vt: int) -> bool:
        """Whether None is a null pointer of the VARIANT, not a null value behind one."""
        kind = vt & ~_FLAGS
        if vt & VT_BYREF:
            return not vt & VT_ARRAY and kind not in (VT_BSTR, VT_UNKNOWN, VT_DISPATCH)
        return vt != VT_BSTR

    def _write_pointer(self, append: Append, offset: int, identifier: int) -> int:
        form = self.layout.word_form
        gap = -offset & form.size - 1
        append(GAPS[gap] + form.pack(identifier))
        return offset + gap + form.size

    def _write_referent(
        self, append: Append, offset: int, vt: int, value: Any, referents: Referents
    ) -> int:
        kind = vt & ~_FLAGS
        null = value is None and bool(vt & VT_ARRAY or kind != VT_BSTR)
        pointers = bool(vt & VT_BYREF and (vt & VT_ARRAY or kind in self._writers))
        for _ in range(pointers + bool(vt & VT_ARRAY)):
            offset = self._write_pointer(append, offset, 0 if null else referents())
            if null:
                return offset
        if vt & VT_ARRAY:
            return self._write_array(append, offset, value, referents, kind)
        if kind in self._writers:
            return self._writers[kind](append, offset, value, referents)
        return self._write_scalar(append, offset, kind, value)

    def _write_scalar(self, append: Append, offset: int, kind: int, value: object) -> int:
        if kind == VT_DECIMAL:
            gap = -offset & 7
            append(GAPS[gap] + octets_of_decimal(value))
            return offset + gap + DECIMAL.size
        if kind not in SCALARS:
            raise ValueError(f"there are no references to type {kind:#06x}")
        scalar = SCALARS[kind]
        gap = -offset & scalar.size - 1
        number = scalar.number(value) if scalar.number else value
        append(GAPS[gap] + struct.pack(f"<{scalar.code}", number))
        return offset + gap + scalar.size

    def write_array(
        self, append: Append, offset: int, value: SafeArray, referents: Referents
    ) -> int:
        return self._write_array(append, offset, value, referents, value.vt)

    def _write_array(
        self, append: Append, offset: int, value: SafeArray, referents: Referents, vt: int
    ) -> int:
        if value.vt != vt:
            raise ValueError(f"an array of type {value.vt:#06x} is in a VARIANT of {vt:#06x}")
        offset = self.arrays.write(append, offset, value, referents())
        if vt in SCALARS:
            return self.arrays.write_scalars(append, offset, value)
        offset = self._write_pointer(append, offset, len(value.values))
        always = vt in (VT_BSTR, VT_VARIANT)
        there = [referents() if always or v is not None else 0 for v in value.values]
        append(struct.pack(f"<{len(there)}{self.layout.word_code}", *there))
        offset += len(there) * self.layout.word
        write = self._writers[vt]
        for each, identifier in zip(value.values, there, strict=True):
            if identifier:
                offset = write(append, offset, each, referents)
        return offset


def _require(condition: bool, offset: int) -> None:
    if not condition:
        raise DecodeError("a VARIANT or SAFEARRAY ends too early", offset)


def _no_values(vt: int) -> bytes | list[object]:
    return [] if vt != 0x11 else b""


def _without_depth(
    read: Callable[[Octets, int, int], tuple[Any, int]],
) -> Callable[[Octets, int, int, int], tuple[Any, int]]:
    def function(octets: Octets, offset: int, end: int, _depth: int) -> tuple[Any, int]:
        return read(octets, offset, end)

    return function
