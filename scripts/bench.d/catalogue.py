"""All rows that there are: which bench measures each, and what is wanted of it."""

from subjects import brokers, calls, objects, over_http, programs, records, replicas, storing
from subjects.row import Row, Table

TABLES: tuple[Table, ...] = (
    *storing.TABLES,
    *brokers.TABLES,
    *replicas.TABLES,
    *calls.TABLES,
    *programs.TABLES,
    *over_http.TABLES,
    *objects.TABLES,
    *records.TABLES,
)

ROWS: dict[str, Row] = {}
for _table in TABLES:
    for _row in _table.rows:
        if _row.name in ROWS:
            raise ValueError(f"two rows are named {_row.name!r}")
        ROWS[_row.name] = _row


def rows_of(bench: str) -> list[Row]:
    """The rows that a bench measures."""
    return [row for row in ROWS.values() if row.bench == bench]
