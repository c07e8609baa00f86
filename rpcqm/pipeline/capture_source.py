"""The data source `msmq_capture`: captures as tables.

    spark.read.format("msmq_capture").option("table", "calls").load("captures/*.pcapng")

Options: `path` (paths, globs or directories, separated by commas; also load's argument, which may
be a list as well), `table` (calls), `account` (as on the command line, several separated by
newlines), `splitBytes`.
"""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from rpcqm.capture.export import Row
from rpcqm.capture.file.problems import Problems
from rpcqm.capture.file.reading import CaptureError
from rpcqm.pipeline.capture_tables import SCHEMAS, batches, pdu_rows
from rpcqm.pipeline.column_tables import TABLES, file_batches
from rpcqm.pipeline.coverage import claim_rows
from rpcqm.pipeline.paths import expand, given_paths
from rpcqm.pipeline.splitting import (
    DEFAULT_SPLIT,
    RangeReading,
    Split,
    claimed,
    exact_splits,
    flow_of,
    records_of,
)

_SPLIT = frozenset({"packets", "claims"})
"""Tables that are read in byte ranges."""


class CaptureSource(DataSource):
    """Batch reading of captures."""

    @classmethod
    def name(cls) -> str:
        return "msmq_capture"

    @property
    def _table(self) -> str:
        table = self.options.get("table", "calls")
        if table not in SCHEMAS:
            raise ValueError(f"table {table!r}; there are {', '.join(SCHEMAS)}")
        return table

    def schema(self) -> str:
        return SCHEMAS[self._table]

    def reader(self, schema: object) -> DataSourceReader:
        accounts = tuple(filter(None, self.options.get("account", "").split("\n")))
        size = int(self.options.get("splitbytes", DEFAULT_SPLIT))
        return CaptureReader(given_paths(self.options), self._table, accounts, size)


class CapturePartition(InputPartition):
    """A range of one file."""

    def __init__(self, split: Split) -> None:
        super().__init__((split.file, split.start, split.end))
        self.split = split


class CaptureReader(DataSourceReader):
    """Reads ranges of files for `packets` and `claims`, whole files for the other tables."""

    def __init__(self, paths: list[str], table: str, accounts: tuple[str, ...], size: int) -> None:
        self._paths = paths
        self._table = table
        self._accounts = accounts
        self._size = size

    def partitions(self) -> Sequence[InputPartition]:
        files = expand(self._paths)
        if self._table not in _SPLIT:
            return [CapturePartition(Split(str(file), 0, -1)) for file in files]
        return [CapturePartition(each) for file in files for each in exact_splits(file, self._size)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, CapturePartition):  # Spark's own, where there are no files
            return batches([], self._table)
        split = partition.split
        if self._table == "packets":
            rows: Iterator[Mapping[str, object]] = _packets(split)
        elif self._table == "claims":
            rows = claim_rows(claimed(split))
        elif self._table in TABLES:
            return file_batches(self._table, split.file, self._accounts)
        else:
            rows = pdu_rows(split.file, self._accounts)
        return batches(rows, self._table)


def _packets(split: Split) -> Iterator[Row]:
    reading = RangeReading(split, Problems(split.file))
    try:
        for time, link, data, original, offset in records_of(reading):
            yield {
                "file": split.file,
                "offset": offset,
                "time_ns": time,
                "link": link,
                "flow": flow_of(link, data),
                "original": original,
                "data": data,
            }
    except (CaptureError, OSError):
        # It is told in the table of problems.
        return
