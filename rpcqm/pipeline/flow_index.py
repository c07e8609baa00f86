"""Large captures by flow: an index of the records, made in byte ranges, shuffled, then followed.

What is shuffled is where the records of a flow are and when they were captured; their octets stay
in the file, which the task that analyses them maps. Records that change nothing are left out.
"""

import json
import mmap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from rpcqm.capture.arrow_schema import arrow_schema
from rpcqm.capture.columnar.record_batch import Array, Piece, RecordBatch, distinct
from rpcqm.capture.columnar.segments import tcp_headers
from rpcqm.capture.file.problems import Problems
from rpcqm.capture.file.reading import CaptureError
from rpcqm.capture.file.record import Record
from rpcqm.pipeline.column_tables import ColumnTables, Rows, file_tables
from rpcqm.pipeline.coverage import claim_rows
from rpcqm.pipeline.splitting import (
    DEFAULT_SPLIT,
    FRAGMENTS,
    RangeClaim,
    RangeReading,
    Split,
    flow_of,
    is_exact,
    linked,
    splits,
)

INDEX = (
    "task int, file string, part int, first long, kind string, count int, header int, "
    "offset binary, time binary, captured binary, link binary, data binary"
)
"""A row has records of one part of a file in arrays (`records`), or one in `data` (`record`), a
problem (`problem`), what a range's reader took (`claim`), or stands for a whole file (`file`)."""

PARTS_PER_CORE = 4
"""Parts by flow of a large file for each core: several, because their sizes differ."""

IndexRow = dict[str, Any]
"""A row by the names of its columns; those that it has not are null."""

_ARRAYS = ("offset", "time", "captured", "link")
_MOST_RECORDS = 1 << 16
_MASK = (1 << 64) - 1
_ENDS, _FLOWS = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F
_FIRST = -1
"""Where rows that are no records are sorted: before all records."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The byte ranges of large files, the small files, and how many tasks follow flows.

    `tasks` has for each file the number of its first task; a large file has `parts` of them.
    """

    ranges: list[Split]
    small: list[str]
    tasks: dict[str, int]
    parts: int
    count: int

    @property
    def steps(self) -> int:
        """How many numbers `index_rows` takes."""
        return len(self.ranges) + bool(self.small)


def plan(files: Sequence[Path], cores: int, size: int = DEFAULT_SPLIT) -> Plan:
    """How to read some files."""
    parts = max(2, PARTS_PER_CORE * cores)
    ranges: list[Split] = []
    small: list[str] = []
    tasks: dict[str, int] = {}
    count = 0
    for file in files:
        found = splits(file, size)
        tasks[str(file)] = count
        if len(found) > 1:
            ranges += found
            count += parts
        else:
            small.append(str(file))
            count += 1
    return Plan(ranges, small, tasks, parts, count)


def exact(made: Plan, claims: Sequence[RangeClaim]) -> Plan:
    """The plan with the exact places of its ranges, found with what was read of each of them."""
    ranges: list[Split] = []
    for file in dict.fromkeys(split.file for split in made.ranges):
        mine = [n for n, split in enumerate(made.ranges) if split.file == file]
        ranges += linked([made.ranges[n] for n in mine], [claims[n] for n in mine])
    return replace(made, ranges=ranges)


def unbroken(made: Plan, claims: Sequence[RangeClaim]) -> tuple[Plan, list[RangeClaim]]:
    """The plan without the ranges of files that have fragments, which one task reads whole.

    With the claims of the ranges that stay.
    """
    whole = {claim.split.file for claim in claims if claim.has_fragments}
    kept = [n for n, split in enumerate(made.ranges) if split.file not in whole]
    ranges = [made.ranges[n] for n in kept]
    small = made.small + sorted(whole)
    return replace(made, ranges=ranges, small=small), [claims[n] for n in kept]


def misread(made: Plan, claims: Sequence[RangeClaim]) -> list[str]:
    """The files of which a range was not read from its exact place."""
    pairs = zip(made.ranges, claims, strict=True)
    return sorted({split.file for split, claim in pairs if not is_exact(split, claim)})


# Making the index.


def index_rows(made: Plan, number: int) -> Iterator[IndexRow]:
    """The index of a range, or behind the last range that of all small files."""
    if number < len(made.ranges):
        split = made.ranges[number]
        return _range_rows(split, made.tasks[split.file], made.parts)
    return (_row(made.tasks[file], file, 0, _FIRST, "file") for file in made.small)


def index_batches(made: Plan, number: int) -> Iterator[pa.RecordBatch]:
    """The same in batches with the columns of `INDEX`."""
    schema = arrow_schema(INDEX)
    yield from (pa.RecordBatch.from_pylist([row], schema) for row in index_rows(made, number))


def in_order(row: IndexRow) -> tuple[int, int]:
    """The key by which rows are sorted before they are followed."""
    return row["task"], row["first"]


def _row(task: int, file: str, part: int, first: int, kind: str, **more: object) -> IndexRow:
    return {"task": task + part, "file": file, "part": part, "first": first, "kind": kind} | more


def _range_rows(split: Split, task: int, parts: int) -> Iterator[IndexRow]:
    problems = Problems(split.file)
    reading, fragments = RangeReading(split, problems), False
    try:
        for piece in reading:
            if isinstance(piece, RecordBatch):
                part, broken = _parts(piece, parts)
                yield from _batch_rows(split.file, piece, task, part)
            else:
                flow = flow_of(piece[1], piece[2])
                broken = flow == FRAGMENTS
                yield _record_row(split.file, piece, task, part_of(flow, parts))
            fragments = fragments or broken
    except (CaptureError, OSError) as error:
        if split.start == 0:
            problems.add("unreadable", 0, str(error))
    for problem in problems:
        told = json.dumps([problem.kind, problem.offset, problem.reason]).encode()
        yield _row(task, split.file, 0, _FIRST, "problem", data=told)
    claim = replace(reading.claim, has_fragments=fragments)
    runs = json.dumps(list(claim_rows(claim))).encode()
    # The claim itself is for the driver, which has planned the ranges.
    yield _row(task, split.file, 0, _FIRST, "claim", data=runs, claim=claim)


def _record_row(file: str, record: Record, task: int, part: int) -> IndexRow:
    time, link, data, _, offset = record
    octets = _arrays(offset=[offset], time=[time], captured=[len(data)], link=[link])
    return _row(task, file, part, offset, "record", count=1, header=0, data=data, **octets)


def _arrays(**arrays: object) -> dict[str, bytes]:
    return {name: packed(np.asarray(array, np.int64)) for name, array in arrays.items()}


def packed(values: Array) -> bytes:
    """Integers in few octets: the least of them, and how much larger each is."""
    least, most = int(values.min()), int(values.max())
    size = next(n for n in (0, 1, 2, 4, 8) if most - least < 1 << 8 * n)
    head = least.to_bytes(8, "little", signed=True) + bytes([size])
    return head + (values - least).astype(f"<u{size}").tobytes() if size else head


def unpacked(octets: bytes, count: int) -> Array:
    """The integers that `packed` has packed."""
    least, size = int.from_bytes(octets[:8], "little", signed=True), octets[8]
    if not size:
        return np.full(count, least, np.int64)
    return np.frombuffer(octets, f"<u{size}", count, 9).astype(np.int64) + least


def _batch_rows(file: str, records: RecordBatch, task: int, part: Array) -> Iterator[IndexRow]:
    for number in distinct(part):
        mine = np.flatnonzero(part == number)
        for at in range(0, len(mine) if number >= 0 else 0, _MOST_RECORDS):
            rows = mine[at : at + _MOST_RECORDS]
            arrays = _arrays(**{name: getattr(records, name)[rows] for name in _ARRAYS})
            more = {"count": len(rows), "header": records.header}
            first = int(records.offset[rows[0]])
            yield _row(task, file, number, first, "records", **more, **arrays)


def _parts(records: RecordBatch, parts: int) -> tuple[Array, bool]:
    """The part of a file that each record belongs to, -1 for what changes nothing.

    And whether fragments are among them of which only the whole packet tells the flow.
    """
    found = tcp_headers(records)
    part = np.full(len(records), -1, np.int64)
    slow = np.ones(len(records), bool)
    if found is not None:
        known = found.sound & ~found.idle
        part[known] = _hashed(found.head["addresses"][known], found.head["ports"][known], parts)
        slow = ~(found.sound | found.empty)
    broken = False
    for index in np.flatnonzero(slow).tolist():
        record = records.record(index)
        flow = flow_of(record[1], record[2])
        broken = broken or flow == FRAGMENTS
        part[index] = part_of(flow, parts)
    return part, broken


def _hashed(addresses: Array, ports: Array, parts: int) -> Array:
    """The part of TCP over IPv4, the same for both directions."""
    wide = ports.astype(np.uint64)
    one = (addresses & np.uint64(0xFFFFFFFF)) | (wide & np.uint64(0xFFFF)) << np.uint64(32)
    other = (addresses >> np.uint64(32)) | (wide >> np.uint64(16)) << np.uint64(32)
    mixed = _mixed(one) + _mixed(other)
    return ((mixed * np.uint64(_FLOWS)) >> np.uint64(40)).astype(np.int64) % parts


def _mixed(end: Array) -> Array:
    product = end * np.uint64(_ENDS)
    return np.asarray(product ^ product >> np.uint64(29))


def part_of(flow: str, parts: int) -> int:
    """The part that a flow belongs to; 0 for what is of no connection."""
    try:
        ends = bytes.fromhex(flow)
    except ValueError:
        return 0
    half = len(ends) // 2
    products = (int.from_bytes(end, "little") * _ENDS & _MASK for end in (ends[:half], ends[half:]))
    mixed = sum(product ^ product >> 29 for product in products)
    return (((mixed & _MASK) * _FLOWS & _MASK) >> 40) % parts


# Following it.


def followed(
    index: Iterable[IndexRow], wanted: Sequence[str], accounts: Sequence[str], parts: int
) -> Iterator[Rows]:
    """The rows of those tables that are wanted, of an index that is `in_order`."""
    rows = _Rows(iter(index))
    while (head := rows.head) is not None:
        if head["kind"] == "file":
            rows.next()
            yield from file_tables(wanted, head["file"], accounts)
        else:
            yield from _followed_part(rows, head, wanted, accounts, parts)


def _followed_part(
    rows: "_Rows", head: IndexRow, wanted: Sequence[str], accounts: Sequence[str], parts: int
) -> Iterator[Rows]:
    tables = ColumnTables(head["file"], accounts, wanted, head["part"], parts)
    with Path(head["file"]).open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    yield from tables.read(_pieces(rows, head["task"], mapped, tables))


class _Rows:
    """Rows one by one, with a look at the next."""

    def __init__(self, rows: Iterator[IndexRow]) -> None:
        self._rows = rows
        self.head = next(rows, None)

    def next(self) -> None:
        self.head = next(self._rows, None)


def _pieces(rows: _Rows, task: int, mapped: mmap.mmap, tables: ColumnTables) -> Iterator[Piece]:
    """What the rows of one task have, in large batches."""
    waiting: list[IndexRow] = []
    while (row := rows.head) is not None and row["task"] == task:
        rows.next()
        if row["kind"] == "problem":
            kind, offset, reason = json.loads(row["data"])
            tables.problems.add(kind, offset, reason)
            continue
        if row["kind"] == "claim":
            tables.claim(json.loads(row["data"]))
            continue
        full = sum(each["count"] for each in waiting) + row["count"] > _MOST_RECORDS
        if waiting and (full or row["kind"] == "record"):
            yield _records(waiting, mapped)
            waiting = []
        if row["kind"] == "records":
            waiting.append(row)
            continue
        offset, time, captured, link = (unpacked(row[name], 1)[0] for name in _ARRAYS)
        yield int(time), int(link), row["data"], int(captured), int(offset)
    if waiting:
        yield _records(waiting, mapped)


def _records(rows: list[IndexRow], mapped: mmap.mmap) -> RecordBatch:
    """The records of some rows, one behind the other."""
    offset, time, captured, link = (
        np.concatenate([unpacked(row[name], row["count"]) for row in rows]) for name in _ARRAYS
    )
    header = np.repeat([row["header"] for row in rows], [row["count"] for row in rows])
    return RecordBatch(mapped, 0, offset, offset + header, captured, captured, time, link)
