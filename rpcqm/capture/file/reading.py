"""Open a capture, whatever its format and compression."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from rpcqm.capture.file import netmon, pcap, pcapng
from rpcqm.capture.file.foreign import what_it_is
from rpcqm.capture.file.problems import Problems
from rpcqm.capture.file.record import Record
from rpcqm.capture.file.source import BLOCK, CaptureError, blocks

__all__ = ["CaptureError", "Reader", "read_records", "reader_of"]

Reader = pcap.PcapReader | pcapng.PcapngReader | netmon.NetmonReader


def read_records(path: Path, problems: Problems) -> Iterator[Record]:
    """The records of a file of pcap, pcapng or Network Monitor 2, plain, gzip or zstd.

    Raises CaptureError if the file is no capture, OSError if it cannot be read; damage behind the
    file's header goes to `problems`.
    """
    return reader_of(path, problems).records()


def reader_of(path: Path, problems: Problems, size: int = BLOCK) -> Reader:
    """A reader of a whole file, in blocks of `size` octets; raises what `read_records` raises."""
    chunks = blocks(path, problems, size)
    first = next(chunks, b"")
    if first[:4] in pcap.MAGICS:
        return pcap.reader_of(chain((first,), chunks), problems)
    if first[:4] == pcapng.MAGIC:
        return pcapng.reader_of(chain((first,), chunks), problems)
    if first[:4] == netmon.MAGIC:
        return netmon.reader_of(path, chain((first,), chunks), problems)
    raise CaptureError(what_it_is(path, first))
