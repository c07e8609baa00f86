"""Records of a capture many at a time: arrays of where they are, when, and how long."""

import mmap
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rpcqm.capture.file import netmon, pcap, pcapng
from rpcqm.capture.file.problems import Problems
from rpcqm.capture.file.reading import Reader, reader_of
from rpcqm.capture.file.record import MAXIMUM_RECORD, Record

Array = npt.NDArray[Any]
Buffer = bytes | mmap.mmap

BLOCK = 1 << 23
"""Octets that are read at a time: numpy needs many records to be worth its calls."""
_SECOND = 1_000_000_000
_PACKET_HEAD, _PACKET_BLOCK = 28, 32
"""Octets of an Enhanced Packet Block in front of its frame, and of one without a frame."""
_FIRST_BLOCKS, _SMALL_BLOCK = 64, 400
"""So many blocks are followed first; if they are smaller on average, the rest is searched."""


@dataclass(slots=True, eq=False)
class RecordBatch:
    """Whole records in a buffer.

    `begin` is where each frame begins in the buffer, `captured` how many octets of it are there,
    `offset` where its record begins in the file, and `header` what lies between the two there.
    """

    buffer: Buffer
    header: int
    offset: Array
    begin: Array
    captured: Array
    original: Array
    time: Array
    link: Array

    def __len__(self) -> int:
        return len(self.begin)

    def record(self, index: int) -> Record:
        """One of the records by itself."""
        begin = int(self.begin[index])
        data = self.buffer[begin : begin + int(self.captured[index])]
        link, original = int(self.link[index]), int(self.original[index])
        return int(self.time[index]), link, data, original, int(self.offset[index])


Piece = RecordBatch | Record


def distinct(values: Array) -> list[int]:
    """The different values of an array, sorted."""
    if not len(values):
        return []
    first = int(values[0])
    return [first] if (values == first).all() else [int(each) for each in np.unique(values)]


def gather(buffer: Buffer, places: Array, size: int) -> Array:
    """`size` octets at each place, as values without a type; they must be inside the buffer."""
    every = np.ndarray((len(buffer) - size + 1,), f"V{size}", buffer=buffer, strides=(1,))
    return every[places]


def words_at(buffer: bytes, places: Array, count: int, order: str) -> Array:
    """`count` numbers of 32 bits at each place, as rows; they must be inside the buffer."""
    return gather(buffer, places, 4 * count).view(order + "u4").reshape(-1, count).astype(np.int64)


def pieces(reader: Reader) -> Iterator[Piece]:
    """As `records` of the reader, with rows of ordinary packets as batches."""
    if isinstance(reader, netmon.NetmonReader):
        return reader.records()
    if isinstance(reader, pcap.PcapReader):
        return reader.pieces(lambda: _pcap_records(reader))
    return reader.pieces(lambda: _packet_blocks(reader))


def _pcap_records(reader: pcap.PcapReader) -> RecordBatch | None:
    """Take the whole records in the window; None without one."""
    buffer, at = reader.window
    starts, at = _pcap_chain(reader.form, buffer, at, reader.limit - reader.base)
    if not starts:
        return None
    reader.near = reader.form.unpack(buffer, starts[-1])[0]
    base = reader.base
    reader.go_to(at)
    return _pcap_batch(reader.form, buffer, base, starts)


def _pcap_chain(form: pcap.PcapFormat, buffer: bytes, at: int, limit: int) -> tuple[list[int], int]:
    """The offsets of whole records from `at` on, and the offset behind the last of them."""
    lengths = struct.Struct(form.order + "8xII").unpack_from
    starts: list[int] = []
    append, end = starts.append, len(buffer)
    last = min(end - pcap.RECORD_HEADER, limit - 1)
    while at <= last:
        captured, original = lengths(buffer, at)
        # Some writers capture a little more than they say there was; damage shows more.
        if captured > MAXIMUM_RECORD or captured > original + 65536:
            break
        stop = at + 16 + captured
        if stop > end:
            break
        append(at)
        at = stop
    return starts, at


def _pcap_batch(form: pcap.PcapFormat, buffer: bytes, base: int, found: list[int]) -> RecordBatch:
    starts = np.array(found, np.int64)
    words = words_at(buffer, starts, 4, form.order)
    time = words[:, 0] * _SECOND + words[:, 1] * form.unit
    link = np.full(len(starts), form.link_type, np.int32)
    begin = starts + pcap.RECORD_HEADER
    parts = starts + base, begin, words[:, 2], words[:, 3], time, link
    return RecordBatch(buffer, pcap.RECORD_HEADER, *parts)


def _packet_blocks(reader: pcapng.PcapngReader) -> RecordBatch | None:
    """Take the ordinary packet blocks that come next; None without one."""
    buffer, first = reader.window
    starts: Array | None = _followed_blocks(buffer, first, reader.section, _FIRST_BLOCKS)
    if starts is not None and len(starts) == _FIRST_BLOCKS:
        # Many small blocks are found faster than they are followed.
        small = starts[-1] - first < _FIRST_BLOCKS * _SMALL_BLOCK
        starts = _found_blocks(buffer, first, reader.section.order) if small else None
    if starts is None:
        starts = _followed_blocks(buffer, first, reader.section)
    return _checked(reader, buffer, starts) if len(starts) else None


def _found_blocks(buffer: bytes, first: int, order: str) -> Array | None:
    """Where blocks begin that look like packets; None if one is inside of another.

    Blocks are aligned, and their lengths stand at both ends.
    """
    words = np.frombuffer(buffer, order + "u4", (len(buffer) - first) // 4, first)
    if len(words) < _PACKET_BLOCK // 4 or words[0] != pcapng.ENHANCED_PACKET:
        return np.zeros(0, np.int64)
    heads = np.flatnonzero(words[:-1] == pcapng.ENHANCED_PACKET)
    length = words[heads + 1].astype(np.int64)
    ends = heads + length // 4
    good = (length & 3 == 0) & (length >= _PACKET_BLOCK) & (length <= pcapng.MAXIMUM_BLOCK)
    good &= ends <= len(words)
    good[good] = words[ends[good] - 1] == length[good]
    heads, ends = heads[good], ends[good]
    if not len(heads) or heads[0]:
        return np.zeros(0, np.int64)
    if (heads[1:] < ends[:-1]).any():
        return None
    apart = heads[1:] != ends[:-1]
    count = int(apart.argmax()) + 1 if apart.any() else len(heads)
    return np.asarray(heads[:count] * 4 + first)


def _followed_blocks(
    buffer: bytes, first: int, section: pcapng.Section, most: int = sys.maxsize
) -> Array:
    """Where packet blocks begin, found by following their lengths."""
    head, last, at = section.head, len(buffer) - _PACKET_BLOCK, first
    starts: list[int] = []
    append = starts.append
    while at <= last and len(starts) < most:
        kind, length = head(buffer, at)
        if kind != pcapng.ENHANCED_PACKET or length & 3 or length < _PACKET_BLOCK:
            break
        if length > pcapng.MAXIMUM_BLOCK or at + length > last + _PACKET_BLOCK:
            break
        append(at)
        at += length
    return np.array(starts, np.int64)


def _checked(reader: pcapng.PcapngReader, buffer: bytes, starts: Array) -> RecordBatch | None:
    """The blocks up to the first that is not as it should be."""
    section = reader.section
    order = section.order
    starts = starts[: np.searchsorted(starts, reader.limit - reader.base)]
    words = words_at(buffer, starts + 4, 6, order)
    length, number, captured = words[:, 0], words[:, 1], words[:, 4]
    tails = words_at(buffer, starts + length - 4, 1, order)[:, 0]
    # A frame may claim more than fits only where the block is damaged.
    good = (tails == length) & (number < len(section.interfaces))
    good &= captured <= length - _PACKET_BLOCK
    count = len(good) if good.all() else int(np.argmin(good))
    if not count:
        return None
    reader.go_to(int(starts[count - 1] + length[count - 1]))
    starts, words = starts[:count], words[:count]
    time, link = _times(section, words)
    parts = starts + reader.base, starts + _PACKET_HEAD, words[:, 4], words[:, 5], time, link
    return RecordBatch(buffer, _PACKET_HEAD, *parts)


def _times(section: pcapng.Section, words: Array) -> tuple[Array, Array]:
    """Nanoseconds and link types of packets, by their interfaces."""
    ticks = words[:, 2] << 32 | words[:, 3]
    numbers, row = np.unique(words[:, 1], return_inverse=True)
    interfaces = [section.interfaces[number] for number in numbers.tolist()]
    link = np.array([each.link_type for each in interfaces], np.int32)[row]
    factor = np.array([_factor(each) for each in interfaces], np.int64)[row]
    # The product must not overflow 64 bits; numbers that large are computed one by one.
    slow = (factor == 0) | (ticks < 0) | (ticks >= (1 << 62) // np.maximum(factor, 1))
    time = ticks * np.where(slow, 0, factor)
    for index in np.flatnonzero(slow).tolist():
        time[index] = interfaces[row[index]].nanoseconds(int(ticks[index]) & (1 << 64) - 1)
    return time, link


def _factor(interface: pcapng.CapturedInterface) -> int:
    """Nanoseconds of a tick; 0 where they are not whole, or not from 1970 on."""
    whole = _SECOND % interface.resolution == 0 and not interface.offset_seconds
    return _SECOND // interface.resolution if whole else 0


def read_pieces(path: Path, problems: Problems) -> Iterator[Piece]:
    """As `read_records`, with rows of ordinary packets as batches; raises what that raises."""
    return pieces(reader_of(path, problems, BLOCK))
