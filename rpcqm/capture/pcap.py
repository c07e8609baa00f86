"""The classic capture format: a file header, then records behind headers of 16 octets."""

import re
import struct
from collections.abc import Iterator

from rpcqm.capture.problems import Problems
from rpcqm.capture.record import MAXIMUM_RECORD, Record
from rpcqm.capture.source import CaptureError

FILE_HEADER = 24
RECORD_HEADER = 16
CHAIN = 4
"""So many record headers in a row tell a record from octets that look like one."""

_MAGICS = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
MAGICS = frozenset(_MAGICS)
MAXIMUM_FRAME = 1 << 18
"""Behind damage, records of up to this size are looked for."""

_WEEK = 7 * 86400


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
        """Where the record that begins at `at` ends; 0 when none can begin there."""
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

        `whole`: the buffer ends where the file ends, so that a chain may end there.
        """
        for match in self._beginning.finditer(buffer, start):
            if self._chain(buffer, match.start(), whole, near):
                return match.start()
        return -1

    def _chain(self, buffer: bytes, at: int, whole: bool, near: int | None) -> bool:
        for _ in range(CHAIN):
            if at + RECORD_HEADER > len(buffer):
                return whole and at == len(buffer)
            seconds = near if near is not None else self.unpack(buffer, at)[0]
            at, near = self.plausible(buffer, at, near), seconds
            if not at:
                return False
        return True


def records(chunks: Iterator[bytes], problems: Problems) -> Iterator[Record]:
    """The records of a capture whose octets come in chunks; raises CaptureError."""
    buffer = next(chunks, b"")
    form = PcapFormat(buffer)
    yield from records_from(form, buffer, FILE_HEADER, 0, chunks, problems)


def records_from(
    form: PcapFormat,
    buffer: bytes,
    at: int,
    base: int,
    chunks: Iterator[bytes],
    problems: Problems,
) -> Iterator[Record]:
    """The records from `at` in `buffer` on, which begins at offset `base` of its file."""
    unpack, unit, link = form.unpack, form.unit, form.link_type
    near: int | None = None
    while True:
        end = len(buffer)
        while at + RECORD_HEADER <= end:
            seconds, fraction, captured, original = unpack(buffer, at)
            if captured > MAXIMUM_RECORD or captured > original + 65536:
                break
            stop = at + RECORD_HEADER + captured
            if stop > end:
                break
            data = buffer[at + RECORD_HEADER : stop]
            yield seconds * 1_000_000_000 + fraction * unit, link, data, original, base + at
            near, at = seconds, stop
        damaged = at + RECORD_HEADER <= end and not header_fits(form, buffer, at)
        if damaged:
            buffer, base, at = resume(form, buffer[at:], base + at, chunks, near, problems)
            if at < 0:
                return
            continue
        block = next(chunks, b"")
        buffer, base, at = buffer[at:] + block, base + at, 0
        if not block:
            break
    tell_truncated(buffer, base, problems)


def tell_truncated(buffer: bytes, base: int, problems: Problems) -> None:
    """Tell of what is left of a last record that is cut short."""
    if buffer:
        problems.add("truncated", base, f"the last record is cut short after {len(buffer)} octets")


def header_fits(form: PcapFormat, buffer: bytes, at: int) -> bool:
    """Whether what is at `at` can be the header of a record, however long that is."""
    _, _, captured, original = form.unpack(buffer, at)
    return bool(captured <= MAXIMUM_RECORD and captured <= original + 65536)


def resume(
    form: PcapFormat,
    buffer: bytes,
    base: int,
    chunks: Iterator[bytes],
    near: int | None,
    problems: Problems,
) -> tuple[bytes, int, int]:
    """Buffer, base and offset at which records go on behind a damaged header; -1 if nowhere."""
    damage, claimed = base, form.unpack(buffer, 0)[2]
    start = 1
    while True:
        block = next(chunks, b"")
        buffer += block
        found = form.find_record(buffer, start, not block, near)
        if found >= 0 or not block:
            break
        keep = min(len(buffer), CHAIN * (MAXIMUM_FRAME + RECORD_HEADER))
        base, buffer, start = base + len(buffer) - keep, buffer[len(buffer) - keep :], 0
    after = f"records go on at {base + found}" if found >= 0 else "nothing behind it is a record"
    problems.add("record", damage, f"a record claims {claimed} octets; {after}")
    return buffer, base, found
