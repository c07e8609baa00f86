"""The tables of many captures as data frames; a large file's flows are put together by a shuffle.

Files up to the size of a split are analysed by one task each. Of larger ones an index is made in
ranges, whose exact places are found first, and shuffled by flow (`flow_index`). For the tables
`pdus` and `packets` it is the packets that are brought together by flow, sorted, and analysed flow
by flow as they stream by: a task holds the state of one flow at a time, however large that is.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from rpcqm.capture.arrow_schema import arrow_schema
from rpcqm.capture.export import Row
from rpcqm.pipeline.capture_tables import SCHEMAS, PduRows, batches_of
from rpcqm.pipeline.column_tables import TABLES
from rpcqm.pipeline.flow_index import INDEX, Plan, exact, followed, index_batches, plan, unbroken
from rpcqm.pipeline.paths import expand
from rpcqm.pipeline.splitting import DEFAULT_SPLIT, RangeClaim, claimed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOT_SHUFFLED = frozenset({"packets"})


def table(
    spark: "SparkSession",
    name: str,
    paths: Sequence[str],
    accounts: Sequence[str] = (),
    split_bytes: int = DEFAULT_SPLIT,
) -> "DataFrame":
    """A table of all the captures under some paths."""
    files = expand(paths)
    if name in TABLES:
        return _followed_table(spark, name, files, accounts, split_bytes)
    if name in NOT_SHUFFLED:
        return _read(spark, name, [str(file) for file in files], accounts, split_bytes)
    made = plan(files, spark.sparkContext.defaultParallelism, split_bytes)
    made, _ = unbroken(made, _claims(spark, made))
    small, large = made.small, list(dict.fromkeys(split.file for split in made.ranges))
    found = _read(spark, name, small, accounts, split_bytes)
    if large:
        packets = _read(spark, "packets", large, accounts, split_bytes)
        found = found.unionByName(_shuffled(packets, tuple(accounts)))
    return found


def index_frame(spark: "SparkSession", made: Plan) -> "DataFrame":
    """The index of some captures, each task's rows in their order."""

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield from index_batches(made, number)

    frame = spark.range(0, made.steps, 1, max(made.steps, 1)).mapInArrow(make, INDEX)
    frame = frame.repartitionById(max(made.count, 1), "task")
    return frame.sortWithinPartitions("task", "first")


def _followed_table(
    spark: "SparkSession",
    name: str,
    files: Sequence[Path],
    accounts: Sequence[str],
    split_bytes: int,
) -> "DataFrame":
    """A table that is made in columns."""
    context = spark.sparkContext
    made = plan(files, context.defaultParallelism, split_bytes)
    made = exact(*unbroken(made, _claims(spark, made)))

    def analyse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist())
        for _, batch in followed(rows, (name,), tuple(accounts), made.parts):
            yield batch

    return index_frame(spark, made).mapInArrow(analyse, SCHEMAS[name])


def _claims(spark: "SparkSession", made: Plan) -> list[RangeClaim]:
    """What readers of the ranges take."""
    if not made.ranges:
        return []
    ranges = spark.sparkContext.parallelize(made.ranges, len(made.ranges))
    return list(ranges.map(claimed).collect())


def _read(
    spark: "SparkSession",
    name: str,
    files: Sequence[str],
    accounts: Sequence[str],
    split_bytes: int,
) -> "DataFrame":
    if not files:
        return spark.createDataFrame([], SCHEMAS[name])
    reader = spark.read.format("msmq_capture").option("table", name)
    reader = reader.option("account", "\n".join(accounts))
    return reader.option("splitBytes", str(split_bytes)).load(list(files))


def _shuffled(packets: "DataFrame", accounts: tuple[str, ...]) -> "DataFrame":
    """The table of PDUs made of packets, flow by flow."""

    def analyse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return batches_of(_rows(batches, accounts), arrow_schema(SCHEMAS["pdus"]))

    keys = ("file", "flow")
    ordered = packets.where("flow <> ''").repartition(*keys)
    ordered = ordered.sortWithinPartitions(*keys, "time_ns", "offset")
    return ordered.mapInArrow(analyse, SCHEMAS["pdus"])


def _rows(batches: Iterator[pa.RecordBatch], accounts: tuple[str, ...]) -> Iterator[Row]:
    maker: PduRows | None = None
    current: tuple[str, str] | None = None
    for batch in batches:
        columns = [batch.column(each).to_pylist() for each in _NEEDED]
        for file, flow, time, link, data, original, offset in zip(*columns, strict=True):
            if maker is None or (file, flow) != current:
                yield from _finished(maker)
                maker, current = PduRows(file, accounts), (file, flow)
            maker.feed((time, link, data, original, offset))
        if maker is not None:
            yield from maker.taken()
    yield from _finished(maker)


_NEEDED = ("file", "flow", "time_ns", "link", "data", "original", "offset")


def _finished(maker: PduRows | None) -> list[Row]:
    if maker is None:
        return []
    maker.finish()
    return maker.taken()
