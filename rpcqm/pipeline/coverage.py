"""Finds octets of captures that no reader took, or that several readers took.

Every reader writes down where the octets are that it took for records, blocks and their headers
(table `claims`); here these are added up and held against the sizes of the files.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypedDict

import pyarrow.dataset as ds

from rpcqm.capture.file.window import Run
from rpcqm.pipeline.splitting import RangeClaim


class ClaimRow(TypedDict):
    """A row of `claims`: octets of a file that a reader took."""

    file: str
    size: int
    modified: int
    first: int
    behind: int


class Coverage(TypedDict):
    """How many octets of a file were claimed by no reader, and how many more than once."""

    file: str
    size: int
    unclaimed: int
    twice: int


def claim_rows(claim: RangeClaim) -> Iterator[ClaimRow]:
    """The rows of `claims` of one reader: one at least, so that the file's size is known."""
    split = claim.split
    for first, behind in claim.runs or ((split.start, split.start),):
        yield ClaimRow(
            file=split.file,
            size=claim.length,
            modified=split.modified,
            first=first,
            behind=behind,
        )


def counts(runs: Iterable[Run], size: int) -> tuple[int, int]:
    """How many of a file's octets are in no run, and how many in more than one."""
    claimed = twice = end = 0
    for first, behind in sorted(runs):
        twice += max(0, min(behind, end) - first)
        claimed += max(0, behind - max(first, end))
        end = max(end, behind)
    return size - claimed, twice


def coverage(rows: Iterable[ClaimRow]) -> list[Coverage]:
    """A row for each file: its size, and the octets claimed by no reader and more than once."""
    runs: dict[tuple[str, int, int], list[Run]] = {}
    for row in rows:
        key = row["file"], row["modified"], row["size"]
        runs.setdefault(key, []).append((row["first"], row["behind"]))
    told: list[Coverage] = []
    for (file, _, size), mine in sorted(runs.items()):
        unclaimed, twice = counts(mine, size)
        told.append(Coverage(file=file, size=size, unclaimed=unclaimed, twice=twice))
    return told


def read_coverage(directory: str | Path) -> list[Coverage]:
    """The coverage of ingested captures; empty if a version without claims ingested them."""
    table = Path(directory) / "claims"
    if not table.is_dir():
        return []
    return coverage(ds.dataset(table, format="parquet").to_table().to_pylist())


def tell_coverage(rejected: dict[str, int], *directories: str | Path) -> list[Coverage]:
    """The coverage of some ingested captures; wrong counts are printed to stderr too.

    `rejected` gets the sums of all files.
    """
    rows = [row for directory in directories for row in read_coverage(directory)]
    rejected["octets claimed by no reader"] = sum(row["unclaimed"] for row in rows)
    rejected["octets claimed twice"] = sum(row["twice"] for row in rows)
    for row in rows:
        for count, what in ((row["unclaimed"], "by no reader"), (row["twice"], "twice")):
            if count:
                print(
                    f"rpcqm: {count} octets of {row['file']} were claimed {what}.", file=sys.stderr
                )
    return rows
