"""Rows as Arrow batches."""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from rpcqm.pipeline.capture_tables import SCHEMAS

BATCH = 5_000

_TYPES = {
    "string": pa.string(),
    "timestamp": pa.timestamp("us", "UTC"),
    "int": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "array<string>": pa.list_(pa.string()),
}


def arrow_schema(columns: str) -> pa.Schema:
    """The Arrow schema for columns in Spark's notation."""
    pairs = (column.strip().rsplit(" ", 1) for column in columns.split(","))
    return pa.schema([(name, _TYPES[kind]) for name, kind in pairs])


def batches(rows: Iterable[dict[str, Any]], table: str) -> Iterator[pa.RecordBatch]:
    """Rows of one of the tables in batches; at least one batch, so that the columns are known."""
    yield from batches_of(rows, arrow_schema(SCHEMAS[table]))


def batches_of(rows: Iterable[dict[str, Any]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    waiting: list[dict[str, Any]] = []
    for row in rows:
        waiting.append(row)
        if len(waiting) >= BATCH:
            yield pa.RecordBatch.from_pylist(waiting, schema)
            waiting = []
    yield pa.RecordBatch.from_pylist(waiting, schema)
