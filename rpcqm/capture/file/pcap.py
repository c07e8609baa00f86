"""The classic capture format: a file header, then records behind headers of 16 octets."""

import re
import struct
import sys
from collections.abc import Callable, Iterator
from itertools import chain
from typing import TypeVar

from rpcqm.capture.file.problems import Problems
from rpcqm.capture.file.record import MAXIMUM_RECORD, Record
from rpcqm.capture.file.source import CaptureError
from rpcqm.capture.file.window import Window

FILE_HEADER = 24
RECORD_HEADER = 16
CHAIN = 4
"""How many plausible record headers in a row prove that the first is no coincidence."""

_MAGICS = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
MAGICS = frozenset(_MAGICS)
MAXIMUM_FRAME = 1 << 18
"""The longest record that is searched for behind damage: what tcpdump captures at most."""

LOOKAHEAD = CHAIN * (MAXIMUM_FRAME + RECORD_HEADER)
"""How many octets show for certain whether a chain of records begins at the first of them."""

_WEEK = 7 * 86400
"""Seconds that a record behind damage may be away from the one before: longer is chance."""

Several = TypeVar("Several")


class PcapFormat:
    """What the file header says: byte order, unit of time, link type, snap length."""

    __slots__ = ("_beginning", "link_type", "order", "snap_length", "unit", "unpack")

    def __init__(self, head: bytes) -> None:
        if len(head) < FILE_HEADER or head[:4] not in _MAGICS:
            raise CaptureError("The file is no capture: its header is cut short.")
        self.order, self.unit = _MAGICS[head[:4]]
        self.snap_length, network = struct.unpack_from(self.order + "II", head, 16)
        self.link_type = network & 0xFFFF
        self.unpack = struct.Struct(self.order + "IIII").unpack_from
        # The lengths of a record that is worth a closer look.
        lengths = rb"..[\0-\3]\0...\0" if self.order == "<" else rb"\0[\0-\3]..\0..."
        self._beginning = re.compile(rb"(?s)(?=.{8}" + lengths + rb")")

    def plausible(self, buffer: bytes, at: int, near: int | None = None) -> int:
        """Where the record at `at` ends; 0 if no plausible record begins there."""
        seconds, fraction, captured, original = self.unpack(buffer, at)
        if captured > MAXIMUM_FRAME or captured > original or original > MAXIMUM_RECORD:
            return 0
        if captured == 0 or fraction >= 1_000_000_000 // self.unit:
            return 0
        if near is not None and abs(seconds - near) > _WEEK:
            return 0
        return at + RECORD_HEADER + int(captured)

    def find_record(self, buffer: bytes, start: int, whole: bool, near: int | None = None) -> int:
        """The first offset from which a chain of plausible records starts; -1 without one.

        `whole`: the buffer ends where the file ends, so that a chain may end there. Otherwise only
        those offsets are looked at behind which enough octets are at hand, so that what is found
        does not depend on them.
        """
        last = len(buffer) - (0 if whole else LOOKAHEAD)
        for match in self._beginning.finditer(buffer, start):
            if match.start() > last:
                break
            if self._chain(buffer, match.start(), whole, near):
                return match.start()
        return -1

    def can_begin(self, buffer: bytes, at: int) -> bool:
        """Whether what is at `at` can be the header of a record, however long that is."""
        _, _, captured, original = self.unpack(buffer, at)
        return bool(captured <= MAXIMUM_RECORD and captured <= original + 65536)

    def _chain(self, buffer: bytes, at: int, whole: bool, near: int | None) -> bool:
        for _ in range(CHAIN):
            if at + RECORD_HEADER > len(buffer):
                return whole and at == len(buffer)
            seconds = near if near is not None else self.unpack(buffer, at)[0]
            at, near = self.plausible(buffer, at, near), seconds
            if not at:
                return False
        return True


class PcapReader(Window):
    """Reads records out of chunks; a damaged record is passed over.

    `near` are the seconds of the last record, None before the first: those behind damage are of
    about the same time.
    """

    def __init__(
        self,
        form: PcapFormat,
        chunks: Iterator[bytes],
        problems: Problems,
        base: int = 0,
        limit: int = sys.maxsize,
    ) -> None:
        super().__init__(chunks, base, limit)
        self.form = form
        self.near: int | None = None
        self._problems = problems
        if not base:
            # Only the reader of the file's beginning takes its header.
            while len(self._buffer) < FILE_HEADER and self._fill():
                pass
            self._at = FILE_HEADER

    def records(self) -> Iterator[Record]:
        """The records one by one."""
        return self.pieces(None)

    def pieces(self, many: Callable[[], Several | None] | None) -> Iterator[Record | Several]:
        """The records; `many` may take all the whole records in the window at once."""
        while True:
            if many is None:
                yield from self._whole_records()
            elif (several := many()) is not None:
                yield several
            if self.offset >= self._limit:
                return
            if self._is_damaged():
                if not self._pass_damage():
                    return
            elif not self._fill():
                break
        if self._at < len(self._buffer):
            left = len(self._buffer) - self._at
            reason = f"the last record is cut short after {left} octets"
            self._problems.add("truncated", self.offset, reason)
            self._begin_damage()
            self._at = len(self._buffer)

    def _whole_records(self) -> Iterator[Record]:
        form, buffer, end = self.form, self._buffer, len(self._buffer)
        last = min(end - RECORD_HEADER, self._limit - self._base - 1)
        while (at := self._at) <= last:
            seconds, fraction, captured, original = form.unpack(buffer, at)
            stop = at + RECORD_HEADER + captured
            if captured > MAXIMUM_RECORD or captured > original + 65536 or stop > end:
                return
            self._at, self.near = stop, seconds
            time = seconds * 1_000_000_000 + fraction * form.unit
            data = buffer[at + RECORD_HEADER : stop]
            yield time, form.link_type, data, original, self._base + at

    def _is_damaged(self) -> bool:
        """Whether no record can begin here, however long it is."""
        whole = self._at + RECORD_HEADER <= len(self._buffer)
        return whole and not self.form.can_begin(self._buffer, self._at)

    def _pass_damage(self) -> bool:
        """Go to the next record behind a damaged one; False without one."""
        start, skipped, whole = self.offset, 1, False
        claimed = self.form.unpack(self._buffer, self._at)[2]
        self._begin_damage()
        while (found := self._found(skipped, whole)) < 0 and not whole:
            # What is left may hold the beginning of a chain.
            keep = min(len(self._buffer) - self._at - skipped, LOOKAHEAD)
            self._at, skipped = len(self._buffer) - keep, 0
            whole = not self._fill()
        self._at = found if found >= 0 else len(self._buffer)
        if found >= 0:
            self._end_damage()
        after = f"records go on at {self.offset}" if found >= 0 else "nothing behind it is a record"
        self._problems.add("record", start, f"a record claims {claimed} octets; {after}")
        return found >= 0

    def _found(self, skipped: int, whole: bool) -> int:
        return self.form.find_record(self._buffer, self._at + skipped, whole, self.near)


def reader_of(chunks: Iterator[bytes], problems: Problems) -> PcapReader:
    """A reader from the beginning of a file on; raises CaptureError."""
    first = next(chunks, b"")
    return PcapReader(PcapFormat(first), chain((first,), chunks), problems)
