"""Open a capture, whatever its format and compression."""

from collections.abc import Iterator
from pathlib import Path

from rpcqm.capture.file import pcap, pcapng
from rpcqm.capture.file.problems import Problems
from rpcqm.capture.file.record import Record
from rpcqm.capture.file.source import CaptureError, blocks

__all__ = ["CaptureError", "read_records"]


def read_records(path: Path, problems: Problems) -> Iterator[Record]:
    """The records of a pcap or pcapng file, plain, gzip or zstd.

    Raises CaptureError when it is no capture, OSError when it cannot be read; damage behind the
    file's header goes to `problems`.
    """
    chunks = blocks(path, problems)
    first = next(chunks, b"")
    again = _again(first, chunks)
    if first[:4] in pcap.MAGICS:
        return pcap.records(again, problems)
    if first[:4] == pcapng.MAGIC:
        return pcapng.records(again, problems)
    what = "is empty" if not first else f"begins with {first[:4].hex(' ')}"
    raise CaptureError(f"{path} is no pcap or pcapng file: it {what}.")


def _again(first: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from chunks
