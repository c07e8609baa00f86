"""The block format of Wireshark: sections, interfaces, packets; other blocks are passed over."""

import re
import struct
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from rpcqm.capture.file.problems import Problems
from rpcqm.capture.file.record import MAXIMUM_RECORD, Record
from rpcqm.capture.file.source import CaptureError
from rpcqm.capture.file.window import Window

SECTION_HEADER = 0x0A0D0D0A
INTERFACE_DESCRIPTION = 1
OLD_PACKET = 2
SIMPLE_PACKET = 3
ENHANCED_PACKET = 6
_KNOWN = frozenset({SECTION_HEADER, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0xBAD, 0x40000BAD})

Several = TypeVar("Several")
MAGIC = b"\x0a\x0d\x0d\x0a"
_ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_IF_TSRESOL, _IF_TSOFFSET = 9, 14
_SECOND = 1_000_000_000
_LATEST = (1 << 63) - 1
MAXIMUM_BLOCK = MAXIMUM_RECORD + 4096
LEAST_BLOCK = 12
MOST_INTERFACES = 1 << 17
"""Interfaces of one section, each of which costs memory."""
SEARCHED_BLOCK = 1 << 18
"""Behind damage, blocks of up to this size are looked for."""
CHAIN = 4
"""How many blocks in a row prove that the first is no coincidence."""
LOOKAHEAD = CHAIN * SEARCHED_BLOCK
"""How many octets show for certain whether such blocks begin at the first of them."""
_BEGINNING = re.compile(rb"(?=[\x01-\x0a]\0\0\0|\0\0\0[\x01-\x0a]|\x0a\x0d\x0d\x0a)")


@dataclass(frozen=True, slots=True)
class CapturedInterface:
    """What an Interface Description Block says; a second has `resolution` ticks."""

    link_type: int
    snap_length: int
    resolution: int = 1_000_000
    offset_seconds: int = 0

    def nanoseconds(self, ticks: int) -> int:
        """The time of a packet since 1970, as far as 64 bits go."""
        found = ticks * _SECOND // self.resolution + self.offset_seconds * _SECOND
        if -_LATEST <= found <= _LATEST:
            return found
        return _LATEST if found > 0 else -_LATEST - 1


class Section:
    """The state of one section: its byte order and the interfaces described so far."""

    def __init__(self, order: str = "<") -> None:
        self.interfaces: list[CapturedInterface] = []
        self._known: dict[CapturedInterface, CapturedInterface] = {}
        self._set_order(order)

    def _set_order(self, order: str) -> None:
        self.order = order
        self.head = struct.Struct(order + "II").unpack_from
        self.length = struct.Struct(order + "I").unpack_from
        self.packet = struct.Struct(order + "IIIII").unpack_from
        self.old_packet = struct.Struct(order + "HHIIII").unpack_from
        self.description = struct.Struct(order + "HHI").unpack_from
        self.option = struct.Struct(order + "HH").unpack_from

    def begin(self, buffer: bytes, at: int) -> bool:
        """Begin the section whose header is at `at`; False if its byte order is not known."""
        order = _ORDERS.get(buffer[at + 8 : at + 12])
        if order is None:
            return False
        self._set_order(order)
        return True

    def forget(self) -> None:
        """What was described is of no account for what comes."""
        self.interfaces.clear()
        self._known.clear()

    def describe(self, body: bytes) -> None:
        """Take an Interface Description Block's body."""
        link_type, _, snap_length = self.description(body, 0)
        resolution, offset = 1_000_000, 0
        for code, value in self._options(body, 8):
            if code == _IF_TSRESOL and value:
                exponent = value[0] & 0x7F
                resolution = 2**exponent if value[0] & 0x80 else 10**exponent
            elif code == _IF_TSOFFSET and len(value) == 8:
                offset = struct.unpack(self.order + "q", value)[0]
        described = CapturedInterface(link_type, snap_length, resolution, offset)
        # Nearly all are alike, and one of them stands for all.
        self.interfaces.append(self._known.setdefault(described, described))

    def _options(self, body: bytes, at: int) -> Iterator[tuple[int, bytes]]:
        while at + 4 <= len(body):
            code, length = self.option(body, at)
            if code == 0 or at + 4 + length > len(body):
                return
            yield code, body[at + 4 : at + 4 + length]
            at += 4 + (length + 3 & ~3)

    def find_block(self, buffer: bytes, start: int, whole: bool) -> int:
        """The first offset at which blocks begin that follow each other; -1 without one.

        `whole`: the buffer ends where the file ends. Otherwise only those offsets are looked at
        behind which enough octets are at hand, so that what is found does not depend on them.
        """
        last = len(buffer) - (0 if whole else LOOKAHEAD)
        for match in _BEGINNING.finditer(buffer, start):
            if match.start() > last:
                break
            if self._chain(buffer, match.start(), whole):
                return match.start()
        return -1

    def _chain(self, buffer: bytes, at: int, whole: bool) -> bool:
        """Whether so many blocks begin here, or fewer up to the end of the file."""
        order = self.order
        for number in range(CHAIN):
            if number and whole and _is_cut_short(buffer, at, order):
                return True
            order = _order_at(buffer, at, order)
            length = _searched(buffer, at, order) if order else 0
            if not length or (not number and _kind(buffer, at, order) not in _KNOWN):
                return False
            at += length
        return True


def _kind(buffer: bytes, at: int, order: str) -> int:
    return int(struct.unpack_from(order + "I", buffer, at)[0])


def _order_at(buffer: bytes, at: int, order: str) -> str:
    """The byte order of the block at `at`; empty for a section header that has none."""
    if buffer[at : at + 4] == MAGIC:
        return _ORDERS.get(buffer[at + 8 : at + 12], "")
    return order


def _searched(buffer: bytes, at: int, order: str) -> int:
    """The length of the whole block at `at`; 0 if no plausible block begins there."""
    if at + LEAST_BLOCK > len(buffer):
        return 0
    length = int(struct.unpack_from(order + "I", buffer, at + 4)[0])
    if length % 4 or not LEAST_BLOCK <= length <= SEARCHED_BLOCK:
        return 0
    return length if buffer[at + length - 4 : at + length] == buffer[at + 4 : at + 8] else 0


def _is_cut_short(buffer: bytes, at: int, order: str) -> bool:
    """Whether the octets from `at` on are none, or the beginning of one more block."""
    left = len(buffer) - at
    if left < LEAST_BLOCK:
        return True
    length = struct.unpack_from(order + "I", buffer, at + 4)[0]
    return bool(length % 4 == 0 and left < length <= MAXIMUM_BLOCK)


class PcapngReader(Window):
    """Reads blocks out of chunks; a damaged block is passed over."""

    def __init__(
        self,
        chunks: Iterator[bytes],
        problems: Problems,
        base: int = 0,
        limit: int = sys.maxsize,
    ) -> None:
        super().__init__(chunks, base, limit)
        self.section = Section()
        self.is_renewed = False
        """Whether a section has begun, so that the interfaces described before it are void."""
        self._problems = problems

    def records(self) -> Iterator[Record]:
        """The packets of all sections."""
        return self.pieces(None)

    def pieces(self, many: Callable[[], Several | None] | None) -> Iterator[Record | Several]:
        """The packets of all sections; `many` may take several blocks at once."""
        while True:
            yield from self._whole_blocks(many)
            if self.offset >= self._limit:
                return
            if self._ready_to_fill():
                if not self._fill():
                    break
            elif not self._pass_damage():
                return
        if self._at < len(self._buffer):
            self._problems.add("truncated", self.offset, "the last block is cut short")
            self._begin_damage()
            self._at = len(self._buffer)

    def _whole_blocks(
        self, many: Callable[[], Several | None] | None
    ) -> Iterator[Record | Several]:
        """The packets of the blocks that are whole in the buffer."""
        buffer, end = self._buffer, len(self._buffer)
        last = min(end - LEAST_BLOCK, self._limit - self._base - 1)
        while self._at <= last:
            if many is not None and (several := many()) is not None:
                yield several
                continue
            at = self._at
            kind, length = self.section.head(buffer, at)
            if kind == SECTION_HEADER:
                if not self.section.begin(buffer, at):
                    return
                length = self.section.length(buffer, at + 4)[0]
            stop = at + length
            if length % 4 or not LEAST_BLOCK <= length <= MAXIMUM_BLOCK or stop > end:
                return
            if buffer[stop - 4 : stop] != buffer[at + 4 : at + 8]:
                return
            self._at = stop
            if kind == ENHANCED_PACKET:
                record = self._enhanced(buffer, at, stop)
            else:
                record = self._other(kind, buffer[at + 8 : stop - 4], at)
            if record is not None:
                yield record

    def _ready_to_fill(self) -> bool:
        """Whether the next block may only be incomplete, not damaged."""
        buffer, at = self._buffer, self._at
        if at + LEAST_BLOCK > len(buffer):
            return True
        kind, length = self.section.head(buffer, at)
        if kind == SECTION_HEADER and buffer[at + 8 : at + 12] not in _ORDERS:
            return False
        if length % 4 or not LEAST_BLOCK <= length <= MAXIMUM_BLOCK:
            return False
        return bool(at + length > len(buffer))

    def _pass_damage(self) -> bool:
        """Go to the next whole block behind a damaged one; False without one."""
        start, skipped, whole = self.offset, 1, False
        self._begin_damage()
        while (
            found := self.section.find_block(self._buffer, self._at + skipped, whole)
        ) < 0 and not whole:
            # What is left may hold the beginning of a block.
            keep = min(len(self._buffer) - self._at - skipped, LOOKAHEAD)
            self._at, skipped = len(self._buffer) - keep, 0
            whole = not self._fill()
        if found < 0:
            self._at = len(self._buffer)
            reason = "a damaged block; nothing behind it is a block"
            self._problems.add("record", start, reason)
            return False
        self._at = found
        self._end_damage()
        self._problems.add("record", start, f"a damaged block; blocks go on at {self.offset}")
        return True

    def _enhanced(self, buffer: bytes, at: int, stop: int) -> Record | None:
        if stop - at < 32:
            self._refuse(at, "a packet block without its fixed fields")
            return None
        number, high, low, captured, original = self.section.packet(buffer, at + 8)
        if number >= len(self.section.interfaces):
            self._refuse(at, f"a packet of interface {number}, which is not described")
            return None
        if captured > stop - at - 32:
            self._refuse(at, f"a packet of {captured} octets in a block of {stop - at}")
            return None
        interface = self.section.interfaces[number]
        time = interface.nanoseconds(high << 32 | low)
        data = buffer[at + 28 : at + 28 + captured]
        return time, interface.link_type, data, original, self._base + at

    def _refuse(self, at: int, reason: str) -> None:
        self._problems.add("record", self._base + at, reason)

    def _other(self, kind: int, body: bytes, at: int) -> Record | None:
        if kind == SECTION_HEADER:
            self.section.forget()
            self.is_renewed = True
        elif kind == INTERFACE_DESCRIPTION:
            if len(body) < 8:
                self._refuse(at, "an interface block without its fixed fields")
                return None
            if len(self.section.interfaces) >= MOST_INTERFACES:
                self._refuse(at, f"more than {MOST_INTERFACES:,} interfaces in a section")
                return None
            self.section.describe(body)
        elif kind == SIMPLE_PACKET:
            return self._simple(body, at)
        elif kind == OLD_PACKET and len(body) >= 20:
            number, _, high, low, captured, original = self.section.old_packet(body, 0)
            if number < len(self.section.interfaces) and captured <= len(body) - 20:
                found = self.section.interfaces[number]
                time = found.nanoseconds(high << 32 | low)
                return time, found.link_type, body[20 : 20 + captured], original, self._base + at
        return None

    def _simple(self, body: bytes, at: int) -> Record | None:
        """A Simple Packet Block: of the first interface, and without a time."""
        if not self.section.interfaces or len(body) < 4:
            self._refuse(at, "a packet of an interface that is not described")
            return None
        found = self.section.interfaces[0]
        original = self.section.length(body, 0)[0]
        captured = min(original, found.snap_length or original, len(body) - 4)
        return 0, found.link_type, body[4 : 4 + captured], original, self._base + at


def reader_of(chunks: Iterator[bytes], problems: Problems) -> PcapngReader:
    """A reader from the beginning of a file on; raises CaptureError."""
    first = next(chunks, b"")
    if len(first) < LEAST_BLOCK or first[8:12] not in _ORDERS:
        raise CaptureError("The file is no capture: its section header is damaged.")
    return PcapngReader(chain((first,), chunks), problems)
