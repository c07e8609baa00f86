"""Writes records as RocksDB does, for tests of what reads them."""

from collections.abc import Iterable

from rpcqm.store.log_format import (
    BLOCK,
    FIRST,
    FULL,
    LAST,
    MIDDLE,
    NUMBERED,
    NUMBERED_HEADER,
    PLAIN_HEADER,
    masked_crc,
)


def write_piece(kind: int, content: bytes, number: int | None = None) -> bytes:
    """One piece of a record."""
    if number is None:
        header = PLAIN_HEADER.pack(0, len(content), kind)
    else:
        header = NUMBERED_HEADER.pack(0, len(content), kind + NUMBERED, number)
    checked = header[6:] + content
    return masked_crc(checked).to_bytes(4, "little") + header[4:6] + checked


def write_records(records: Iterable[bytes], number: int | None = None, at: int = 0) -> bytes:
    """Records one after another, the first at an offset of the file."""
    header = PLAIN_HEADER.size if number is None else NUMBERED_HEADER.size
    written, start = bytearray(), at
    for record in records:
        first, rest = True, record
        while first or rest:
            if (left := BLOCK - (start + len(written)) % BLOCK) < header:
                written += bytes(left)
                left = BLOCK
            content, rest = rest[: left - header], rest[left - header :]
            kind = (FIRST if first else MIDDLE) if rest else (FULL if first else LAST)
            written += write_piece(kind, content, number)
            first = False
    return bytes(written)
