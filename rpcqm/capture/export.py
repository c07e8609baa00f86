"""Calls for other programs: JSON lines, or Parquet in columns."""

import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TextIO

from rpcqm.base.files import private_draft
from rpcqm.base.text import json_text
from rpcqm.capture.analysis import Exchange
from rpcqm.capture.arrow_schema import arrow_schema
from rpcqm.capture.conversation.subjects import message_identifiers
from rpcqm.capture.report import as_object

if TYPE_CHECKING:
    pass

Write = Callable[[Exchange, str], None]
Row = dict[str, object]
"""A row of a table, by the names of its columns."""

BATCH = 10_000

COLUMNS = (
    "time timestamp, client string, server string, protocol string, interface string, opnum int, "
    "name string, object string, status long, status_name string, duration_ms double, "
    "sealed boolean, request string, response string, conversation long, queue string, "
    "message_ids array<string>, request_size long, response_size long"
)
"""The columns of a Parquet file, in Spark's notation; `request` and `response` are JSON."""


def row(exchange: Exchange, queue: str) -> Row:
    """One call as a row of `COLUMNS`."""
    found: Row = {**as_object(exchange)}
    found["time"] = exchange.time // 1000
    for side in ("request", "response"):
        value = found[side]
        found[side] = None if value is None else json.dumps(value, ensure_ascii=False)
    found["conversation"] = exchange.conversation.number
    found["queue"] = queue or None
    found["message_ids"] = message_identifiers(exchange)
    found["request_size"] = exchange.request_size
    found["response_size"] = exchange.response_size
    return found


@contextmanager
def exporter(form: str, output: Path | None) -> Iterator[Write]:
    """A function that writes one call; the file is there when the block ends, for its owner.

    `output` is None for standard output, where Parquet cannot go.
    """
    if output is None:
        yield _json_lines(sys.stdout)
        return
    with private_draft(output) as file:
        if form == "parquet":
            with _parquet(file) as write:
                yield write
        else:
            text = io.TextIOWrapper(file, "utf-8")
            yield _json_lines(text)
            text.detach()


def _json_lines(file: TextIO) -> Write:
    def write(exchange: Exchange, queue: str) -> None:
        file.write(json_text(as_object(exchange)) + "\n")

    return write


@contextmanager
def _parquet(output: BinaryIO) -> Iterator[Write]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = arrow_schema(COLUMNS)
    rows: list[Row] = []
    with pq.ParquetWriter(output, schema) as writer:

        def flush() -> None:
            writer.write_table(pa.Table.from_pylist(rows, schema))
            rows.clear()

        def write(exchange: Exchange, queue: str) -> None:
            rows.append(row(exchange, queue))
            if len(rows) >= BATCH:
                flush()

        yield write
        flush()
