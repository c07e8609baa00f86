"""A capture's octets in blocks, whatever they are compressed with."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Protocol

from rpcqm.capture.file.problems import Problems

BLOCK = 1 << 22
"""How many octets are read at a time."""

_PIECE = 1 << 16
"""How many octets are decompressed at a time, so that little is lost where a file is cut."""

_PACKED = 1 << 10
"""Octets of zstd that are decompressed at a time; at most 32 MiB come of them, 128 KiB of four."""

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
    head = head_of(path)
    return head[:2] == GZIP or head == ZSTD


def head_of(path: Path) -> bytes:
    """The first four octets of a file, which tell its format."""
    with path.open("rb") as file:
        return file.read(4)


def _plain(file: IO[bytes], size: int) -> Iterator[bytes]:
    while block := file.read(size):
        yield block


def _zstd(file: IO[bytes], problems: Problems) -> Iterator[bytes]:
    # Only now, because few captures need it.
    import zstandard

    yield from _guarded(_ZstdFrames(file), problems, zstandard.ZstdError)


class _ZstdFrames:
    """The octets of a zstd file, frame by frame.

    The library's own readers end silently where a file was cut, so the end of each frame is
    looked for here.
    """

    def __init__(self, file: IO[bytes]) -> None:
        import zstandard

        self._file = file
        self._begin = zstandard.ZstdDecompressor().decompressobj
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._rest = b""

    def read1(self, _: int, /) -> bytes:
        """The next octets, b"" at the end; raises EOFError if that is within a frame."""
        piece = b""
        while not piece:
            packed, self._rest = self._rest or self._file.read(_PACKED), b""
            if not packed:
                return self._ended()
            self._frame = self._frame or self._begin()
            piece = self._frame.decompress(packed)
            if self._frame.eof:
                self._rest, self._frame = self._frame.unused_data, None
        return piece

    def _ended(self) -> bytes:
        if self._frame is None:
            return b""
        self._frame = None
        raise EOFError("the file ends within a frame of zstd")


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
