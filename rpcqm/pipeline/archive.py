"""`archive`: a queue → Parquet, as a stream; messages leave the queue once they are kept."""

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpcqm.pipeline import jobs
from rpcqm.pipeline.errors import sentence_of
from rpcqm.pipeline.html import Report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PASSWORD_VARIABLE = "RPCQM_PASSWORD"
"""Not an option, because everybody on a machine can read the command lines of everybody."""

_QUERIES = "org.apache.spark.sql.execution.streaming"
"""The part of Spark that logs why a query has failed."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the job's options to a parser."""
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--server", metavar="HOST[:PORT]", help="the server's endpoint mapper")
    where.add_argument("--socket", metavar="FILE", help="the socket of a local queue manager")
    parser.add_argument(
        "--queue",
        metavar="Q",
        required=True,
        help="the queue: a private one by its name, or a format name "
        "(`DIRECT=OS:host\\private$\\q;journal`, `…;deadletter` and the like)",
    )
    parser.add_argument("--output", metavar="DIR", required=True, help="where the messages go")
    parser.add_argument(
        "--checkpoint", metavar="DIR", required=True, help="where Spark keeps what it has done"
    )
    parser.add_argument(
        "--user",
        default="",
        help=f"the user to log on with; the password is read from {PASSWORD_VARIABLE}",
    )
    parser.add_argument("--domain", default="", help="the domain to log on with")
    parser.add_argument(
        "--follow", action="store_true", help="go on for ever instead of until the queue is empty"
    )


def work(spark: "SparkSession", arguments: argparse.Namespace, summary: jobs.Summary) -> None:
    """Append to the table `archive` what the queue holds, then write the report."""
    from pyspark.sql import functions as f

    reader = spark.readStream.format("msmq").option("queue", arguments.queue)
    for name in ("server", "socket", "user", "domain"):
        if getattr(arguments, name):
            reader = reader.option(name, getattr(arguments, name))
    if arguments.user:
        reader = reader.option("password", os.environ.get(PASSWORD_VARIABLE, ""))
    output = Path(arguments.output)
    frame = reader.load().withColumn("day", f.to_date("arrived"))
    writer = frame.writeStream.format("parquet").partitionBy("day")
    writer = writer.option("checkpointLocation", arguments.checkpoint)
    trigger = {"processingTime": "1 second"} if arguments.follow else {"availableNow": True}
    with _quiet(spark):
        query = writer.trigger(**trigger).start(str(output / "archive"))
        _await(query)
    for progress in query.recentProgress:
        rows = int(progress.numInputRows)
        summary.rows_in["messages"] = summary.rows_in.get("messages", 0) + rows
    summary.rows_out["messages"] = summary.rows_in.get("messages", 0)
    _report(spark, output, summary)


def _await(query: "StreamingQuery") -> None:
    """Wait for the end; JobError with the sentence of the source if that cannot go on.

    A query that ends has asked for a next batch, by which its last one has left the queue.
    """
    from pyspark.errors import StreamingQueryException

    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        sentence = sentence_of(error)
        if sentence is None:
            raise
        raise jobs.JobError(sentence) from None


@contextmanager
def _quiet(spark: "SparkSession") -> Iterator[None]:
    """Keep Spark from writing the plan of a query that fails, of which `_await` tells."""
    log4j: Any = spark.sparkContext._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    level = log4j.LogManager.getLogger(_QUERIES).getLevel()
    log4j.core.config.Configurator.setLevel(_QUERIES, log4j.Level.OFF)
    try:
        yield
    finally:
        log4j.core.config.Configurator.setLevel(_QUERIES, level)


def _report(spark: "SparkSession", output: Path, summary: jobs.Summary) -> None:
    from pyspark.sql import functions as f

    report = Report("Archived messages")
    report.summary(summary.as_object())
    if (output / "archive" / "_spark_metadata").is_dir():
        kept = spark.read.parquet(str(output / "archive"))
        days = kept.groupBy("day", "priority", "message_class").agg(
            f.count("*").alias("messages"), f.sum(f.length("body")).alias("octets")
        )
        rows = jobs.rows_of(days.orderBy("day"))
        report.plot("Messages by day", jobs.bars(rows, "day", "messages"))
        report.table("days", "Days", rows)
    report.write(output)


if __name__ == "__main__":
    sys.exit(jobs.main(add, work, "archive"))
