"""Reads RocksDB's log format, that of its write-ahead logs and manifests.

A file is blocks of 32 KiB; a record lies in one piece or in several, never over the end of a block.
A piece begins with a masked CRC-32C (u32), its length (u16) and its type (u8); where logs are
reused the number of the log (u32) follows, which distinguishes the pieces of an earlier log.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from google_crc32c import value as crc32c

BLOCK = 32_768
PLAIN_HEADER = struct.Struct("<IHB")
NUMBERED_HEADER = struct.Struct("<IHBI")
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4
NUMBERED = 4
"""Added to the types of pieces that have a log's number."""

_CHECKED_FROM = 6
"""The offset in a piece of the octets that its checksum covers: its type."""
_MASK_DELTA = 0xA282EAD8
"""RocksDB masks checksums, so that one of data with checksums in it is no weaker."""


def masked_crc(data: bytes) -> int:
    """The checksum of a piece, over its type, its log's number if any, and its content."""
    crc: int = crc32c(data)
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece whose checksum is right, without its header."""

    kind: int
    content: bytes
    end: int


def read_piece(data: bytes, at: int, number: int | None) -> Piece | None:
    """The piece at an offset; None if it is not whole, or is of another log."""
    header = PLAIN_HEADER if number is None else NUMBERED_HEADER
    start = at + header.size
    if start > len(data):
        return None
    crc, length, kind, *numbers = header.unpack_from(data, at)
    kind -= 0 if number is None else NUMBERED
    end = start + length
    if not FULL <= kind <= LAST or end > min(len(data), at - at % BLOCK + BLOCK):
        return None
    if numbers and numbers[0] != number:
        return None
    if masked_crc(data[at + _CHECKED_FROM : end]) != crc:
        return None
    return Piece(kind, data[start:end], end)


def whole_records(
    data: bytes, number: int | None = None, at: int = 0
) -> Iterator[tuple[bytes, int]]:
    """Each record with the offset of its end, up to the first that is not whole.

    `number` is the log's own number if its pieces carry one; it is None for manifests.
    """
    header = PLAIN_HEADER if number is None else NUMBERED_HEADER
    content: list[bytes] = []
    while True:
        if (left := BLOCK - at % BLOCK) < header.size:
            at += left
        piece = read_piece(data, at, number)
        if piece is None or (piece.kind in (FULL, FIRST)) is bool(content):
            return
        at = piece.end
        content.append(piece.content)
        if piece.kind in (FULL, LAST):
            yield b"".join(content), at
            content.clear()
