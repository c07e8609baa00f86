"""Byte ranges of captures: where the records of a range begin is found inside the file."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rpcqm.capture import pcap, pcapng
from rpcqm.capture.columnar.stretch import Piece, Stretch, block_pieces, pcap_pieces
from rpcqm.capture.problems import Problems
from rpcqm.capture.reading import CaptureError, read_records
from rpcqm.capture.record import Record
from rpcqm.capture.source import is_compressed

DEFAULT_SPLIT = 64 << 20
_BLOCK = 1 << 23
_HEAD = 1 << 16


@dataclass(frozen=True, slots=True)
class Split:
    """The records that begin at `start` or later and before `end`; -1 for the whole file."""

    file: str
    start: int
    end: int


def splits(file: Path, size: int = DEFAULT_SPLIT) -> list[Split]:
    """Ranges of about `size` octets; files that are compressed, small or unreadable are whole."""
    try:
        length = file.stat().st_size
        whole = length <= size or is_compressed(file)
    except OSError:
        whole = True
    if whole:
        return [Split(str(file), 0, -1)]
    starts = range(0, length, size)
    return [Split(str(file), start, min(start + size, length)) for start in starts]


def read_split(split: Split, problems: Problems) -> Iterator[Record]:
    """The records of a range; CaptureError and OSError as for whole files."""
    if split.end < 0:
        yield from read_records(Path(split.file), problems)
        return
    for piece in split_pieces(split, problems):
        if isinstance(piece, Stretch):
            yield from (piece.record(index) for index in range(len(piece)))
        else:
            yield piece


def split_pieces(split: Split, problems: Problems) -> Iterator[Piece]:
    """The records of a range that is not a whole file, in stretches; raises the same."""
    with Path(split.file).open("rb") as file:
        head = file.read(_HEAD)
        if head[:4] in pcap.MAGICS:
            pieces = _pcap(file, head, split, problems)
        elif head[:4] == pcapng.MAGIC:
            pieces = _pcapng(file, head, split, problems)
        else:
            raise CaptureError(f"{split.file} is no pcap or pcapng file.")
        for piece in pieces:
            if isinstance(piece, Stretch):
                inside = piece.until(split.end)
                if len(inside):
                    yield inside
                if len(inside) < len(piece):
                    return
            elif piece[4] >= split.end:
                return
            else:
                yield piece


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    while block := file.read(_BLOCK):
        yield block


def _pcap(file: IO[bytes], head: bytes, split: Split, problems: Problems) -> Iterator[Piece]:
    form = pcap.PcapFormat(head)
    start = max(split.start, pcap.FILE_HEADER)
    file.seek(start)
    buffer = file.read(_BLOCK)
    # The first range begins with a record; in the others one is looked for.
    at = 0 if split.start == 0 else form.find_record(buffer, 0, len(buffer) < _BLOCK)
    if at < 0:
        return iter(())
    return pcap_pieces(form, buffer, at, start, _chunks(file), problems)


def _pcapng(file: IO[bytes], head: bytes, split: Split, problems: Problems) -> Iterator[Piece]:
    file.seek(0)
    if split.start == 0:
        return block_pieces(pcapng.Reader(_chunks(file), problems))
    # Interfaces are described in the section's first blocks.
    described = pcapng.Reader(iter([head]), Problems())
    for _ in described.records():
        pass
    file.seek(split.start)
    buffer = file.read(_BLOCK)
    at = described.section.find_block(buffer, 0)
    if at < 0:
        return iter(())
    reader = pcapng.Reader(_again(buffer[at:], file), problems, split.start + at)
    reader.section = described.section
    return block_pieces(reader)


def _again(first: bytes, file: IO[bytes]) -> Iterator[bytes]:
    yield first
    yield from _chunks(file)


def flow_of(link: int, data: bytes) -> str:
    """Both ends of a frame's connection, the same for both directions; empty for other traffic."""
    if link == 1 and len(data) >= 54 and data[12:14] == b"\x08\0" and data[14] == 0x45:
        if data[23] != 6:
            return ""
        ends = sorted((data[26:30] + data[34:36], data[30:34] + data[36:38]))
        return (ends[0] + ends[1]).hex()
    return _slow_flow(link, data)


def _slow_flow(link: int, data: bytes) -> str:
    from rpcqm.capture.network import TCP, Network

    found = Network(Problems()).payload(link, data, 0)
    if found is None:
        # Fragments of IP packets meet in the one task that has them all.
        return "fragments"
    protocol, addresses, segment, _ = found
    if protocol != TCP or len(segment) < 4:
        return ""
    half = len(addresses) // 2
    one, other = struct.unpack_from("!2s2s", segment)
    return b"".join(sorted((addresses[:half] + one, addresses[half:] + other))).hex()
