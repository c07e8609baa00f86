"""Rows as Arrow batches."""

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from rpcqm.capture.export import arrow_schema
from rpcqm.pipeline.capture_tables import SCHEMAS

BATCH = 5_000


def batches(rows: Iterable[Mapping[str, object]], table: str) -> Iterator[pa.RecordBatch]:
    """Rows of one of the tables in batches; at least one batch, so that the columns are known."""
    yield from batches_of(rows, arrow_schema(SCHEMAS[table]))


def batches_of(rows: Iterable[Mapping[str, object]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    waiting: list[Mapping[str, object]] = []
    for row in rows:
        waiting.append(row)
        if len(waiting) >= BATCH:
            yield pa.RecordBatch.from_pylist(waiting, schema)
            waiting = []
    yield pa.RecordBatch.from_pylist(waiting, schema)
