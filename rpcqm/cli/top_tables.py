"""The tables of `rpcqm top` beside that of the queues: leases, transactions and sessions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rpcqm.base.text import folded, visible
from rpcqm.base.units import duration_text
from rpcqm.cli.output import Table
from rpcqm.cli.watching import is_wanted

Row = Mapping[str, Any]
Flight = Mapping[str, Any]
"""What is in flight, as the queue manager tells it."""
Value = str | float


@dataclass(frozen=True, slots=True)
class Column:
    """A column: `value` is what rows are sorted by, and what is shown where `text` is None.

    `width` 0 is the rest of the screen.
    """

    heading: str
    width: int
    value: Callable[[Row, datetime], Value]
    text: Callable[[Value], str] | None = None

    def cell(self, row: Row, now: datetime) -> str:
        """A cell of a row."""
        value = self.value(row, now)
        return visible(str(value)) if self.text is None else self.text(value)

    @property
    def is_number(self) -> bool:
        return self.text is not None


def _since(name: str) -> Callable[[Row, datetime], Value]:
    return lambda row, now: max((now - datetime.fromisoformat(row[name])).total_seconds(), 0)


def _until(name: str) -> Callable[[Row, datetime], Value]:
    return lambda row, now: max((datetime.fromisoformat(row[name]) - now).total_seconds(), 0)


def _named(name: str) -> Callable[[Row, datetime], Value]:
    return lambda row, now: row[name] or "-"


def _duration(value: Value) -> str:
    return duration_text(float(value))


def _number(value: Value) -> str:
    return f"{int(value):,}"


def _queues(row: Row, now: datetime) -> Value:
    return ", ".join(_short(name) for name in row["queues"]) or "-"


def _queue(row: Row, now: datetime) -> Value:
    return _short(row["queue"])


def _short(name: str) -> str:
    """A private queue without the name of the machine, as commands take it."""
    return str(name).partition("\\private$\\")[2] or str(name)


def _end(row: Row, now: datetime) -> Value:
    return "ending" if row.get("prepared") else "open"


def _opened(row: Row, now: datetime) -> Value:
    return "us" if row["opened_here"] else "them"


def _peer(row: Row, now: datetime) -> Value:
    return row["address"] or "connecting"


TABLES: Mapping[str, tuple[Column, ...]] = {
    "leases": (
        Column("QUEUE", 0, _queue),
        Column("HELD BY", 16, _named("account")),
        Column("FOR", 11, _since("received"), _duration),
        Column("ENDS IN", 11, _until("lease_expires"), _duration),
        Column("DELIVERY", 9, lambda row, now: row["delivery_count"], _number),
    ),
    "transactions": (
        Column("QUEUES", 0, _queues),
        Column("HELD BY", 18, _named("owner")),
        Column("FOR", 11, _since("begun"), _duration),
        Column("MESSAGES", 9, lambda row, now: row["operations"], _number),
        Column("STATE", 8, _end),
    ),
    "sessions": (
        Column("WITH", 0, _peer),
        Column("PROTO", 7, _named("protocol")),
        Column("BY", 5, _opened),
        Column("STATE", 8, _named("state")),
        Column("FOR", 11, _since("since"), _duration),
        Column("SENT", 8, lambda row, now: row["sent"], _number),
        Column("RECVD", 8, lambda row, now: row["received"], _number),
        Column("UNACKED", 8, lambda row, now: row["unacknowledged"], _number),
        Column("WAIT", 6, lambda row, now: row["waiting"], _number),
    ),
}
"""Their columns; those of names come first, the ages of what is held in the middle."""

NAMES = ("queues", *TABLES)
"""All tables, in the order of their keys."""


@dataclass(slots=True)
class Order:
    """Which column a table is sorted by, and whether from its other end."""

    column: int = 0
    reverse: bool = False


@dataclass(slots=True)
class Tables:
    """Which table is shown, and the order of each."""

    shown: str = "queues"
    orders: dict[str, Order] = field(
        default_factory=lambda: {
            "leases": Order(2, True),
            "transactions": Order(2, True),
            "sessions": Order(),
        }
    )

    def sort_by_next(self) -> None:
        """Sort by the next column: numbers from the largest, names from the first."""
        order, columns = self.orders[self.shown], TABLES[self.shown]
        order.column = (order.column + 1) % len(columns)
        order.reverse = columns[order.column].is_number

    def turn_round(self) -> None:
        """Sort from the other end."""
        order = self.orders[self.shown]
        order.reverse = not order.reverse


def cells_of(flight: Flight, tables: Tables, pattern: str) -> list[list[str]]:
    """The rows of the table that is shown in which the pattern is, sorted."""
    columns, order = TABLES[tables.shown], tables.orders[tables.shown]
    now = datetime.fromisoformat(flight["now"])
    key = columns[order.column].value
    rows = sorted(
        flight[tables.shown]["rows"],
        key=lambda row: _key(key(row, now)),
        reverse=order.reverse,
    )
    found = ([column.cell(row, now) for column in columns] for row in rows)
    return [each for each in found if is_wanted(pattern or None, " ".join(each))]


def _key(value: Value) -> tuple[float, str]:
    return (0.0, folded(value)) if isinstance(value, str) else (float(value), "")


def tabs(flight: Flight | None, overview: Mapping[str, Any], shown: str) -> str:
    """The line that names the tables, with how many rows each has as far as that is known."""
    counts: dict[str, int] = {name: overview[name] for name in ("queues", "leases", "transactions")}
    if flight is not None:
        counts |= {name: flight[name]["total"] for name in TABLES}
    words = [
        f"{number} {name}" + (f" ({counts[name]:,})" if name in counts else "")
        for number, name in enumerate(NAMES, 1)
    ]
    return "  ".join(
        f"[{each}]" if name == shown else each for name, each in zip(NAMES, words, strict=True)
    )


def print_table(flight: Flight, tables: Tables, pattern: str) -> None:
    """The table as plain text."""
    columns = TABLES[tables.shown]
    table = Table([f"{'>' * each.is_number}{each.heading}" for each in columns])
    for row in cells_of(flight, tables, pattern):
        table.add(*row)
    table.print()
