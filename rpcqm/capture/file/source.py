"""A capture's octets in blocks, whatever they are compressed with."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Protocol

from rpcqm.capture.file.problems import Problems

BLOCK = 1 << 22
"""How many octets are read at a time."""

_PIECE = 1 << 16
"""How many octets are decompressed at a time, so that little is lost where a file is cut."""

GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"


class CaptureError(Exception):
    """A file that cannot be read as a capture at all; the text is a sentence."""


def blocks(path: Path, problems: Problems, size: int = BLOCK) -> Iterator[bytes]:
    """The octets of a file, decompressed; a compressed file cut short ends where it is cut.

    Raises OSError when the file cannot be read.
    """
    with path.open("rb") as file:
        head = file.read(4)
        file.seek(0)
        if head[:2] == GZIP:
            with gzip.GzipFile(fileobj=file) as unzipped:
                yield from _guarded(unzipped, problems)
        elif head == ZSTD:
            yield from _zstd(file, problems)
        else:
            yield from _plain(file, size)


def is_compressed(path: Path) -> bool:
    """Whether offsets of a file are not those of its capture."""
    with path.open("rb") as file:
        head = file.read(4)
    return head[:2] == GZIP or head == ZSTD


def _plain(file: IO[bytes], size: int) -> Iterator[bytes]:
    while block := file.read(size):
        yield block


def _zstd(file: IO[bytes], problems: Problems) -> Iterator[bytes]:
    # Only now, because few captures need it.
    import zstandard

    reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    with closing(reader):
        yield from _guarded(reader, problems, zstandard.ZstdError)


class _Readable(Protocol):
    def read1(self, size: int, /) -> bytes: ...


def _guarded(
    file: _Readable,
    problems: Problems,
    error: type[Exception] = zlib.error,
) -> Iterator[bytes]:
    """Blocks up to the first octet that cannot be decompressed."""
    offset, block = 0, bytearray()
    while True:
        try:
            piece = file.read1(_PIECE)
        except (EOFError, OSError, error) as reason:
            offset += len(block)
            problems.add("compression", offset, f"cannot be decompressed further: {reason}")
            piece = b""
        block += piece
        if len(block) >= BLOCK or not piece:
            yield bytes(block)
            offset, block = offset + len(block), bytearray()
        if not piece:
            return
