"""Parquet files written by tasks: first beside the tables, then all at once into them."""

import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from rpcqm.capture.arrow_schema import arrow_schema
from rpcqm.capture.columnar.record_batch import distinct
from rpcqm.capture.export import Row
from rpcqm.pipeline.capture_tables import SCHEMAS

PARTITIONED = frozenset({"calls", "messages"})
"""Tables with a directory for each day and interface."""

ROWS_OF_A_GROUP = 1 << 17
_OCTETS_OF_A_GROUP = 1 << 26
"""Rows, and octets, that are written at once: large groups are read fast, and fit in memory."""
MOST_FILES = 64
"""How many files a task has open at once, below the usual limit of a process."""
_DAY = 86_400_000_000
_ALIKE = (
    *("file", "client", "server", "protocol", "interface", "name", "status_name", "queue"),
    *("opnum", "status", "kind", "account"),
)
"""Columns with few different values; a dictionary makes them small."""


class TableWriter:
    """Writes the rows of one task below a directory; `files` are those that are complete."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._name = uuid.uuid4().hex
        self._open: dict[str, _TableFile] = {}
        self._count = 0
        self.rows: dict[str, int] = {}
        self.files: list[str] = []

    def write(self, table: str, batch: pa.RecordBatch) -> None:
        """Append rows to a table."""
        self.rows[table] = self.rows.get(table, 0) + len(batch)
        if table not in PARTITIONED:
            self._file(table, table).write(batch)
            return
        for place, rows in _by_day_and_interface(batch):
            self._file(table, f"{table}/{place}").write(rows.drop_columns(["interface"]))

    def _file(self, table: str, place: str) -> "_TableFile":
        found = self._open.get(place)
        if found is None:
            if len(self._open) >= MOST_FILES:
                self._close(next(iter(self._open)))
            self._count += 1
            name = f"{place}/part-{self._name}-{self._count:05}.parquet"
            found = self._open[place] = _TableFile(self._directory / name, table)
            self.files.append(name)
        return found

    def _close(self, place: str) -> None:
        self._open.pop(place).close()

    def close(self) -> None:
        """Complete all files."""
        for place in list(self._open):
            self._close(place)


class _TableFile:
    """One Parquet file, written in large groups of rows."""

    def __init__(self, path: Path, table: str) -> None:
        schema = arrow_schema(SCHEMAS[table])
        if table in PARTITIONED:
            schema = schema.remove(schema.get_field_index("interface"))
        path.parent.mkdir(parents=True, exist_ok=True)
        alike = [name for name in schema.names if name in _ALIKE]
        self._writer = pq.ParquetWriter(path, schema, use_dictionary=alike, compression="snappy")
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._octets = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._rows += len(batch)
        self._octets += batch.nbytes
        if self._rows >= ROWS_OF_A_GROUP or self._octets >= _OCTETS_OF_A_GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting))
        self._waiting.clear()
        self._rows = self._octets = 0

    def close(self) -> None:
        self._flush()
        self._writer.close()


def _by_day_and_interface(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The directories of the rows of a batch, each with its rows."""
    days = batch.column("time").cast(pa.int64()).to_numpy() // _DAY
    encoded = batch.column("interface").fill_null("unknown").dictionary_encode()
    both = days * len(encoded.dictionary) + encoded.indices.to_numpy()
    for each in distinct(both):
        day, interface = divmod(each, len(encoded.dictionary))
        name = encoded.dictionary[interface].as_py()
        place = f"day={np.datetime64(day, 'D')}/interface={name}"
        mine = both == each
        yield place, batch if mine.all() else batch.filter(pa.array(mine))


class Staging:
    """A directory beside the tables whose files are moved into them once all are complete."""

    def __init__(self, output: Path) -> None:
        self._output = output
        self.directory = output / f".staging-{uuid.uuid4().hex}"

    def __enter__(self) -> "Staging":
        self.directory.mkdir(parents=True)
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)

    def move(self, files: Iterable[str]) -> None:
        """Make files part of their tables."""
        for name in files:
            target = self._output / name
            target.parent.mkdir(parents=True, exist_ok=True)
            (self.directory / name).replace(target)

    def move_empty(self, tables: Sequence[str]) -> None:
        """Write an empty file for each table without rows, so that its columns are known."""
        for table in tables:
            if not (self._output / table).exists():
                name = f"{table}/part-{uuid.uuid4().hex}.parquet"
                _TableFile(self.directory / name, table).close()
                self.move([name])


def counted(table: Path, *columns: str) -> list[Row]:
    """How many rows of a table have each combination of some columns, sorted."""
    made = ds.dataset(table, format="parquet", partitioning="hive")
    grouped = made.to_table(columns=list(columns)).group_by(list(columns))
    rows = grouped.aggregate([([], "count_all")]).rename_columns([*columns, "count"]).to_pylist()
    return sorted(rows, key=lambda row: tuple(str(row[name]) for name in columns))
