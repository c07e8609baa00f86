"""BSTRs and marshalled interface pointers on the wire ([MS-OAUT] 2.2.23, [MS-DCOM] 2.2.14).

Each function handles the target of a pointer. `read(octets, offset, end)` gives the value and the
offset behind it, and raises DecodeError; `write(append, offset, value, referents)` gives the offset
behind the octets that it has appended.
"""

import struct
from collections.abc import Callable

from rpcqm.base.errors import DecodeError

Append = Callable[[bytes], object]
Octets = bytes | bytearray | memoryview
Bstr = str | bytes | None
Referents = Callable[[], int]

NULL_BSTR = 0xFFFFFFFF
"""The number of octets of a BSTR that is null."""
GAPS = tuple(bytes(size) for size in range(8))


def bstr_reader(ndr64: bool) -> Callable[[Octets, int, int], tuple[Bstr, int]]:
    """The function that reads a FLAGGED_WORD_BLOB, little-endian in every stub.

    Its last count gives the octets that follow: some clients count a terminator in the first
    (G245).
    """
    form = struct.Struct("<QII" if ndr64 else "<III")
    unpack, size, mask = form.unpack_from, form.size, 7 if ndr64 else 3

    def read(octets: Octets, offset: int, end: int) -> tuple[Bstr, int]:
        offset = (offset + mask) & ~mask
        if offset + size > end:
            raise DecodeError("a BSTR ends too early", offset)
        _, length, words = unpack(octets, offset)
        offset += size
        if length == NULL_BSTR and not words:
            return None, offset
        if words != (length + 1) >> 1 or offset + 2 * words > end:
            raise DecodeError("the counts of a BSTR are wrong", offset)
        return text_of(octets[offset : offset + length]), offset + 2 * words

    return read


def text_of(octets: Octets) -> Bstr:
    """A BSTR's octets as text, if they are text."""
    if len(octets) & 1:
        return bytes(octets)
    try:
        return str(octets, "utf-16-le")
    except UnicodeDecodeError:
        return bytes(octets)


def octets_of(value: str | bytes) -> bytes:
    """The octets of a BSTR."""
    return value.encode("utf-16-le", "surrogatepass") if isinstance(value, str) else value


def bstr_writer(ndr64: bool) -> Callable[[Append, int, Bstr, Referents], int]:
    """The function that writes a FLAGGED_WORD_BLOB."""
    form = struct.Struct("<QII" if ndr64 else "<III")
    pack, size, mask = form.pack, form.size, 7 if ndr64 else 3

    def write(append: Append, offset: int, value: Bstr, _referents: Referents) -> int:
        gap = -offset & mask
        if value is None:
            append(GAPS[gap] + pack(0, NULL_BSTR, 0))
            return offset + gap + size
        octets = octets_of(value)
        length = len(octets)
        words = (length + 1) >> 1
        append(GAPS[gap] + pack(words, length, words) + octets + GAPS[length & 1])
        return offset + gap + size + 2 * words

    return write


def objref_reader(ndr64: bool, big_endian: bool) -> Callable[[Octets, int, int], tuple[bytes, int]]:
    """The function that reads an MInterfacePointer: the octets of an OBJREF."""
    form = struct.Struct((">" if big_endian else "<") + ("QI" if ndr64 else "II"))
    unpack, size, mask = form.unpack_from, form.size, 7 if ndr64 else 3

    def read(octets: Octets, offset: int, end: int) -> tuple[bytes, int]:
        offset = (offset + mask) & ~mask
        if offset + size > end:
            raise DecodeError("an interface pointer ends too early", offset)
        maximum, length = unpack(octets, offset)
        offset += size
        if maximum != length or offset + length > end:
            raise DecodeError("the counts of an interface pointer are wrong", offset)
        return bytes(octets[offset : offset + length]), offset + length

    return read


def objref_writer(ndr64: bool, big_endian: bool) -> Callable[[Append, int, bytes, Referents], int]:
    """The function that writes an MInterfacePointer."""
    form = struct.Struct((">" if big_endian else "<") + ("QI" if ndr64 else "II"))
    pack, size, mask = form.pack, form.size, 7 if ndr64 else 3

    def write(append: Append, offset: int, value: bytes, _referents: Referents) -> int:
        gap, length = -offset & mask, len(value)
        append(GAPS[gap] + pack(length, length) + value)
        return offset + gap + size + length

    return write
