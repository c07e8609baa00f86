"""`archive`: a queue → Parquet, as a stream; messages leave the queue once they are kept."""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rpcqm.pipeline import jobs
from rpcqm.pipeline.html import Report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PASSWORD_VARIABLE = "RPCQM_PASSWORD"
"""Not an option, because everybody on a machine can read the command lines of everybody."""


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
    query = writer.trigger(**trigger).start(str(output / "archive"))
    query.awaitTermination()
    for progress in query.recentProgress:
        rows = int(progress.numInputRows)
        summary.rows_in["messages"] = summary.rows_in.get("messages", 0) + rows
    summary.rows_out["messages"] = summary.rows_in.get("messages", 0)
    _report(spark, output, summary)


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
