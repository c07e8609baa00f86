"""Byte ranges of captures, each record in exactly one of them.

Where the first record of a range begins is known for certain only when everything before it has
been followed: what looks like a record may be the contents of one. So a range is first read from
where records seem to begin, all ranges at once, and says what it took (`RangeClaim`). Then the
claims are held against each other from the file's beginning on: a range whose claim does not begin
where the one before it ends, with what is known there, is read again from there.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

import numpy as np

from rpcqm.capture.columnar.record_batch import BLOCK, Piece, RecordBatch, pieces
from rpcqm.capture.columnar.segments import tcp_headers
from rpcqm.capture.file import pcap, pcapng
from rpcqm.capture.file.netmon import NetmonReader
from rpcqm.capture.file.problems import Problems
from rpcqm.capture.file.reading import CaptureError, Reader, reader_of
from rpcqm.capture.file.record import Record
from rpcqm.capture.file.source import head_of
from rpcqm.capture.file.window import Run
from rpcqm.capture.frames.ends import Fragment, Segment
from rpcqm.capture.frames.octets import Octets
from rpcqm.capture.frames.walking import end_of_frame

DEFAULT_SPLIT = 64 << 20
FRAGMENTS = "fragments"
"""Stands for the flow of fragments, which is not known before they are put together."""
_SPLIT = pcap.MAGICS | {pcapng.MAGIC}
"""How files begin in which records can be found from anywhere."""
_HEAD = 1 << 16
"""Octets of a file's beginning that are read for its format and its first interfaces."""
_LEAST_BLOCK = 1 << 16
"""Octets that are read first behind the end of a range, where its last record ends."""
_GUESS = 1 << 21
"""Octets of a range in which its first record is searched."""


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """Where a record or block begins, and what the reader knows from those before it.

    Of a pcapng file that is the section's byte order and its interfaces, of a pcap file the
    seconds of the last record.
    """

    at: int
    order: str = ""
    interfaces: tuple[pcapng.CapturedInterface, ...] = ()
    near: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Split:
    """The records that begin at `start` or later and before `end`; -1 for the whole file.

    `length` is that of the file, `modified` its time in nanoseconds, `place` where the first of
    the records begins, when that is known.
    """

    file: str
    start: int
    end: int
    length: int = 0
    modified: int = 0
    place: RecordPlace | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it is known that no record begins in it."""
        return self.place is not None and self.end >= 0 and self.place.at >= self.end


@dataclass(frozen=True, slots=True)
class RangeClaim:
    """What the reader of a range took: from where, to where, and what it knew then.

    `begin` is None when no record was found to begin with, or the file is no capture. `is_renewed`:
    a section began, so that what was known before is of no account. `length` is that of the file,
    unpacked. `has_fragments`: flows of the range cannot be told before packets are put together.
    """

    split: Split
    begin: RecordPlace | None
    end: RecordPlace | None
    is_renewed: bool
    runs: tuple[Run, ...]
    length: int
    has_fragments: bool = False

    def follows(self, place: RecordPlace) -> bool:
        """Whether the range was read from there on, whatever was known of interfaces."""
        known = self.begin
        return known is not None and (known.at, known.order) == (place.at, place.order)

    def behind(self, place: RecordPlace) -> RecordPlace:
        """What is known behind the range, when it `follows` that place."""
        assert self.begin is not None
        assert self.end is not None
        if self.is_renewed:
            return self.end
        new = self.end.interfaces[len(self.begin.interfaces) :]
        return replace(self.end, interfaces=place.interfaces + new)


def splits(file: Path, size: int = DEFAULT_SPLIT) -> list[Split]:
    """Ranges of about `size` octets; files that are compressed, small or of one part are whole."""
    try:
        found = file.stat()
        more = found.st_size, found.st_mtime_ns
        whole = more[0] <= size or head_of(file) not in _SPLIT
    except OSError:
        more, whole = (0, 0), True
    if whole:
        return [Split(str(file), 0, -1, *more)]
    starts = range(0, more[0], size)
    return [Split(str(file), start, min(start + size, more[0]), *more) for start in starts]


def exact_splits(file: Path, size: int = DEFAULT_SPLIT) -> list[Split]:
    """The same, of which each knows where its first record begins: the file is read for that."""
    found = splits(file, size)
    return found if len(found) == 1 else linked(found, [None] * len(found))


def linked(ranges: Sequence[Split], claims: Sequence[RangeClaim | None]) -> list[Split]:
    """The ranges of a file with their exact places; unchanged if it is no capture.

    `claims` are what was read of them; a range of which that is not known, or which was read from
    the wrong place, is read here.
    """
    place = RecordPlace(0)
    exact: list[Split] = []
    for split, claim in zip(ranges, claims, strict=True):
        exact.append(replace(split, place=place))
        if exact[-1].is_empty or split.end == split.length:
            continue
        if claim is None or not claim.follows(place):
            claim = claimed(exact[-1])
        if claim.begin is None:
            return list(ranges)
        place = claim.behind(place)
    return exact


def is_exact(exact: Split, claim: RangeClaim) -> bool:
    """Whether a claim is what the range with its exact place is to be read from."""
    if exact.place is None or exact.is_empty:
        return claim.begin is None
    return claim.begin == exact.place


def claimed(split: Split) -> RangeClaim:
    """The claim of a reader on a range; the records themselves are passed over."""
    reading, fragments = RangeReading(split, Problems()), False
    try:
        for piece in reading:
            fragments = fragments or holds_fragments(piece)
    except (CaptureError, OSError):
        # The reader of the records reports the error.
        pass
    return replace(reading.claim, has_fragments=fragments)


class RangeReading:
    """The records of a range, in batches; `claim` is what has been taken of it so far.

    Iterating raises CaptureError and OSError as for whole files.
    """

    def __init__(self, split: Split, problems: Problems) -> None:
        self._split = split
        self._problems = problems
        self._begin: RecordPlace | None = None
        self._reader: Reader | None = None

    def __iter__(self) -> Iterator[Piece]:
        split = self._split
        if split.end < 0:
            self._reader = reader_of(Path(split.file), self._problems, BLOCK)
            self._begin = RecordPlace(0)
            yield from pieces(self._reader)
        elif not split.is_empty:
            with Path(split.file).open("rb") as file:
                self._reader = self._ranged(file)
                if self._reader is not None:
                    yield from pieces(self._reader)

    def _ranged(self, file: IO[bytes]) -> Reader | None:
        split = self._split
        head = file.read(min(_HEAD, split.length))
        if head[:4] in pcap.MAGICS:
            form = pcap.PcapFormat(head)
            place = split.place or _guessed_record(file, form, split)
        elif head[:4] == pcapng.MAGIC:
            form = None
            pcapng.reader_of(iter([head]), Problems())
            place = split.place or _guessed_block(file, head, split)
        else:
            raise CaptureError(f"{split.file} is no pcap or pcapng file.")
        self._begin = place
        if place is None:
            return None
        return _reader_at(place, form, _chunks(file, place.at, split), self._problems, split.end)

    @property
    def claim(self) -> RangeClaim:
        split, reader = self._split, self._reader
        if reader is None:
            return RangeClaim(split, None, None, False, (), split.length)
        runs = tuple(reader.taken)
        length = split.length if split.end >= 0 else max(split.length, reader.end)
        if isinstance(reader, NetmonReader):
            return RangeClaim(split, self._begin, RecordPlace(reader.end), False, runs, length)
        if isinstance(reader, pcap.PcapReader):
            end = RecordPlace(reader.offset, near=reader.near)
            return RangeClaim(split, self._begin, end, False, runs, length)
        section = reader.section
        end = RecordPlace(reader.offset, section.order, tuple(section.interfaces))
        return RangeClaim(split, self._begin, end, reader.is_renewed, runs, length)


def _reader_at(
    place: RecordPlace,
    form: pcap.PcapFormat | None,
    chunks: Iterator[bytes],
    problems: Problems,
    limit: int,
) -> Reader:
    if form is not None:
        records = pcap.PcapReader(form, chunks, problems, place.at, limit)
        records.near = place.near
        return records
    blocks = pcapng.PcapngReader(chunks, problems, place.at, limit)
    if place.at:
        blocks.section = pcapng.Section(place.order)
        blocks.section.interfaces += place.interfaces
    return blocks


def _chunks(file: IO[bytes], at: int, split: Split) -> Iterator[bytes]:
    """The octets from `at` on: large chunks to the end of the range, then what its last record
    needs, up to the end that the file had when it was split."""
    file.seek(at)
    size = _LEAST_BLOCK
    while at < split.length:
        if at < split.end:
            wanted = min(BLOCK, split.end - at)
        else:
            wanted, size = min(size, split.length - at), min(2 * size, BLOCK)
        block = file.read(wanted)
        if not block:
            return
        at += len(block)
        yield block


def _guess_window(file: IO[bytes], split: Split) -> tuple[bytes, bool]:
    """Octets in which records are looked for, and whether they are all that is left."""
    file.seek(split.start)
    wanted = min(_GUESS, split.length - split.start)
    return file.read(wanted), wanted == split.length - split.start


def _guessed_record(file: IO[bytes], form: pcap.PcapFormat, split: Split) -> RecordPlace | None:
    """Where records seem to begin in a range."""
    if not split.start:
        return RecordPlace(0)
    buffer, whole = _guess_window(file, split)
    found = form.find_record(buffer, max(pcap.FILE_HEADER - split.start, 0), whole)
    return _inside(split, found, "", ())


def _guessed_block(file: IO[bytes], head: bytes, split: Split) -> RecordPlace | None:
    """Where blocks seem to begin in a range; interfaces as in the file's first blocks."""
    if not split.start:
        return RecordPlace(0)
    described = pcapng.PcapngReader(iter([head]), Problems())
    for _ in described.records():
        pass
    section = described.section
    buffer, whole = _guess_window(file, split)
    found = section.find_block(buffer, 0, whole)
    return _inside(split, found, section.order, tuple(section.interfaces))


def _inside(
    split: Split, found: int, order: str, interfaces: tuple[pcapng.CapturedInterface, ...]
) -> RecordPlace | None:
    if found < 0 or split.start + found >= split.end:
        return None
    return RecordPlace(split.start + found, order, interfaces)


def records_of(found: Iterable[Piece]) -> Iterator[Record]:
    """The records of batches one by one."""
    for piece in found:
        if isinstance(piece, RecordBatch):
            yield from (piece.record(index) for index in range(len(piece)))
        else:
            yield piece


def flow_of(link: int, data: bytes) -> str:
    """Both ends of a frame's connection, the same for both directions; empty for other traffic."""
    usual = link == 1 and len(data) >= 54 and data[12:15] == b"\x08\0\x45" and data[23] == 6
    if usual and not (data[20] & 0x3F or data[21]):
        ends = sorted((data[26:30] + data[34:36], data[30:34] + data[36:38]))
        return (ends[0] + ends[1]).hex()
    return _slow_flow(link, data)


def _slow_flow(link: int, data: bytes) -> str:
    frame = Octets(data)
    found = end_of_frame(link, frame)
    if isinstance(found, Fragment):
        # Those that may hold a connection make the file one that is read whole.
        return FRAGMENTS if found.may_hold_tcp else ""
    if isinstance(found, Segment) and frame.has(found.at, 4):
        addresses, half = found.addresses, len(found.addresses) // 2
        one, other = data[found.at : found.at + 2], data[found.at + 2 : found.at + 4]
        return b"".join(sorted((addresses[:half] + one, addresses[half:] + other))).hex()
    return ""


def holds_fragments(piece: Piece) -> bool:
    """Whether fragments are among some records of which only the whole packet tells the flow."""
    if not isinstance(piece, RecordBatch):
        return flow_of(piece[1], piece[2]) == FRAGMENTS
    found = tcp_headers(piece)
    slow = np.ones(len(piece), bool) if found is None else ~(found.sound | found.empty)
    records = (piece.record(index) for index in np.flatnonzero(slow).tolist())
    return any(flow_of(record[1], record[2]) == FRAGMENTS for record in records)
