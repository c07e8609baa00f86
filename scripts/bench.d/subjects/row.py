"""A row: its name, its bench, and its target, or why it has none."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

BOTH = ", all processors for each"
"""Ends the names of rows in which each server may use all processors."""


@dataclass(frozen=True, slots=True)
class Row:
    """What a bench measures under a name that no other row has."""

    name: str
    target: float | None = None
    why: str = ""
    unit: str = "times"
    at_most: bool = False
    unprotected: bool = False
    computed: bool = False
    """Whether the target is made of what the same run measures, such as the disk's syncs."""
    bench: str = ""

    def __post_init__(self) -> None:
        if [self.target is not None, bool(self.why), self.computed].count(True) != 1:
            raise ValueError(f"{self.name}: a row has a target, or says why it has none")


@dataclass(frozen=True, slots=True)
class Table:
    """Rows that stand together on the page, at the place of its key."""

    key: str
    rows: tuple[Row, ...]


def rows_of_bench(bench: str, *rows: Row, unprotected: bool = False) -> list[Row]:
    """The rows of one bench; with calls at level NONE if that is said."""
    return [replace(each, bench=bench, unprotected=unprotected) for each in rows]


def least(name: str, target: float, unit: str = "times") -> Row:
    """A row that is to be at least its target."""
    return Row(name, target, unit=unit)


def most(name: str, target: float, unit: str = "times") -> Row:
    """A row that is to be at most its target."""
    return Row(name, target, unit=unit, at_most=True)


def shown(name: str, why: str, unit: str = "times") -> Row:
    """A row without a target."""
    return Row(name, why=why, unit=unit)


def table(key: str, *groups: Sequence[Row]) -> Table:
    """A table of the rows of some benches."""
    return Table(key, tuple(each for group in groups for each in group))
