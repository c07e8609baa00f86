"""The format of Windows' Network Monitor, version 2: a header, frames, and a table of their places.

The header's moment is local time of the computer that captured, and does not say which; it is taken
for local time here. Since version 2.3 each frame has its own moment in UTC.
"""

import mmap
import struct
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from rpcqm.capture.file.problems import Problems
from rpcqm.capture.file.record import MAXIMUM_RECORD, Record
from rpcqm.capture.file.source import CaptureError, is_compressed
from rpcqm.capture.file.window import Run
from rpcqm.capture.frames.numbers import NETMON_LINKS, NETMON_NETWORKS

MAGIC = b"GMBU"
_HEADER = struct.Struct("<4xBBHHHxxHHHHHII")
_FRAME = struct.Struct("<qII")
_NETWORK = struct.Struct("<H")
_MOMENT = struct.Struct("<Q")
_OFFSET = struct.Struct("<I")
_HEADER_SIZE = 128
_TRAILERS = (0, 2, 6, 15)
"""Octets behind a frame, by the minor version; later ones are not there."""
_MOMENT_AT = 6
_TO_1970 = 116_444_736_000_000_000
"""Units of 100 nanoseconds from 1601, where Windows' moments begin, to 1970."""
_LATEST = (1 << 63) - 1
_FURTHER, _DLT = 0xFFE0, 0xE000
"""From `_FURTHER` on frames are notes of Network Monitor, from `_DLT` on those of a link type."""
_LONGEST = 1 << 32
"""Octets that a table can point to."""


class NetmonReader:
    """Reads the frames in the order of the table."""

    def __init__(self, octets: bytes | mmap.mmap, problems: Problems) -> None:
        if len(octets) < _HEADER_SIZE:
            raise CaptureError("The file is no capture: its header is cut short.")
        minor, major, network, *moment, table, length = _HEADER.unpack_from(octets)
        if major != 2:
            raise CaptureError(f"The file is of Network Monitor {major}, which is not read.")
        self.octets = octets
        self._problems = problems
        self._minor = min(minor, len(_TRAILERS) - 1)
        self._network = network
        self._table, self._length = table, length
        self._runs: list[Run] = [(0, _HEADER_SIZE)]
        self._is_whole = True
        self._start = self._moment(moment)

    def _moment(self, moment: list[int]) -> int:
        """When the capture began, in nanoseconds since 1970."""
        year, month, day, hour, minute, second, millisecond = moment
        try:
            local = datetime(year, month, day, hour, minute, second).astimezone()
            return int(local.timestamp()) * 1_000_000_000 + millisecond * 1_000_000
        except (ValueError, OverflowError, OSError):
            self._refuse(8, "the moment at which the capture began is none")
            return 0

    def _refuse(self, at: int, reason: str) -> None:
        self._is_whole = False
        self._problems.add("record", at, reason)

    @property
    def end(self) -> int:
        """Where the file ends."""
        return len(self.octets)

    @property
    def taken(self) -> list[Run]:
        """Which octets were read; all of them if every frame could be."""
        if self._is_whole:
            return [(0, self.end)]
        merged: list[Run] = []
        for begin, end in sorted(self._runs):
            if merged and begin <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(end, merged[-1][1])
            else:
                merged.append((begin, end))
        return merged

    def records(self) -> Iterator[Record]:
        """The frames; notes of Network Monitor among them are passed over."""
        room = self.end
        for entry in self._entries():
            at = _OFFSET.unpack_from(self.octets, entry)[0]
            size = self._size(at, entry)
            # Frames do not overlap: their sizes are bounded by that of the file.
            room -= size
            if room < 0:
                self._refuse(entry, "frames of the table overlap; those from here on are left out")
                return
            if size and (record := self._record(at)) is not None:
                yield record

    def _entries(self) -> range:
        """Where in the table the places of frames stand."""
        count = min(self._length, max(self.end - self._table, 0)) // _OFFSET.size
        if count * _OFFSET.size < self._length:
            self._is_whole = False
            what = f"the table has {self._length} octets, of which {count * 4} are there"
            self._problems.add("truncated", self._table, what)
        if count:
            self._take(self._table, self._table + count * _OFFSET.size)
        return range(self._table, self._table + count * _OFFSET.size, _OFFSET.size)

    def _size(self, at: int, entry: int) -> int:
        """The octets of a frame with its header and trailer; 0 if it is not inside the file."""
        if at + _FRAME.size > self.end:
            self._refuse(entry, f"the table has a frame at {at}, behind the end of the file")
            return 0
        captured = _FRAME.unpack_from(self.octets, at)[2]
        size = int(_FRAME.size + captured + _TRAILERS[self._minor])
        if captured > MAXIMUM_RECORD or at + size > self.end:
            self._refuse(at, f"a frame claims {captured} octets")
            return 0
        self._take(at, at + size)
        return size

    def _take(self, begin: int, end: int) -> None:
        """Note octets that were read; frames nearly always follow one another."""
        if self._runs[-1][1] == begin:
            begin = self._runs.pop()[0]
        self._runs.append((begin, end))

    def _record(self, at: int) -> Record | None:
        delta, original, captured = _FRAME.unpack_from(self.octets, at)
        begin, behind = at + _FRAME.size, at + _FRAME.size + captured
        network = self._network
        if self._minor:
            network = _NETWORK.unpack_from(self.octets, behind)[0]
        if network >= _FURTHER:
            return None
        time = self._start + delta * 1000
        if _TRAILERS[self._minor] > _MOMENT_AT:
            moment = _MOMENT.unpack_from(self.octets, behind + _MOMENT_AT)[0]
            time = (moment - _TO_1970) * 100 if moment else time
        time = max(min(time, _LATEST), -_LATEST - 1)
        return time, _link(network), self.octets[begin:behind], original, at


def _link(network: int) -> int:
    """The link type that frames of a network have."""
    if network >= _DLT:
        return network - _DLT
    known = NETMON_LINKS.get(network)
    return int(known) if known is not None else NETMON_NETWORKS + network


def reader_of(path: Path, chunks: Iterator[bytes], problems: Problems) -> NetmonReader:
    """A reader of a file, whose table may be anywhere in it; raises CaptureError and OSError.

    What is compressed is unpacked to a file that nobody else sees, as far as a table can point.
    """
    if is_compressed(path):
        with tempfile.TemporaryFile() as file:
            for chunk in chunks:
                if file.tell() + len(chunk) > _LONGEST:
                    raise CaptureError(f"{path} holds more than Network Monitor's files can.")
                file.write(chunk)
            file.flush()
            return NetmonReader(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), problems)
    with path.open("rb") as file:
        return NetmonReader(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), problems)
