"""`trace`: the life of each message over hops and queues."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rpcqm.pipeline import jobs
from rpcqm.pipeline.html import Report

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_EVENTS = 5_000
"""Of the table of the report."""

_BARE = str.maketrans("", "", "{}")


def add(parser: argparse.ArgumentParser) -> None:
    """Add the job's options to a parser."""
    parser.add_argument("--input", metavar="DIR", required=True, help="what `ingest` has written")
    parser.add_argument("--output", metavar="DIR", help="where the trace goes (DIR of --input)")
    parser.add_argument(
        "--message-id",
        metavar="ID",
        help="only the message of this identifier, or of this \\number",
    )


def work(spark: "SparkSession", arguments: argparse.Namespace, summary: jobs.Summary) -> None:
    """Write the tables `trace` (a row per event) and `lives` (one per message), and the report."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    messages = jobs.required_table(spark, arguments.input, "messages")
    summary.rows_in["messages in calls"] = int(messages.count())
    if arguments.message_id:
        # Braces or not; `\\3` alone stands for every message of that number.
        bare = f.translate("message_id", "{}", "")
        messages = messages.where(bare.endswith(arguments.message_id.translate(_BARE)))
    window = Window.partitionBy("message_id").orderBy("time", "file", "record")
    trace = messages.withColumn("step", f.row_number().over(window))
    trace = trace.orderBy("message_id", "step").persist()
    lives = (
        trace.groupBy("message_id")
        .agg(
            f.min("time").alias("first"),
            f.max("time").alias("last"),
            f.count("*").alias("events"),
            f.array_join(f.array_distinct(f.collect_list("queue")), " → ").alias("queues"),
            f.array_join(f.array_distinct(f.collect_list("server")), " → ").alias("servers"),
        )
        .orderBy("first")
    )
    output = Path(arguments.output or arguments.input)
    trace.write.mode("overwrite").parquet(str(output / "trace"))
    lives.write.mode("overwrite").parquet(str(output / "lives"))
    summary.rows_out["events"] = int(trace.count())
    summary.rows_out["messages"] = int(lives.count())
    report = Report("The life of each message")
    jobs.tell(report, summary, arguments.input)
    _report(report, output, trace, lives)


def _report(report: Report, output: Path, trace: "DataFrame", lives: "DataFrame") -> None:
    rows = jobs.first_rows(lives)
    report.plot("Events by message", jobs.bars(rows[:25], "message_id", "events"))
    report.table("lives", "Messages", rows)
    columns = ("message_id", "step", "time", "queue", "interface", "name", "status_name")
    shown = jobs.first_rows(trace.select(*columns, "client", "server"), MOST_EVENTS)
    report.table("trace", "Events", shown, MOST_EVENTS)
    report.write(output)


if __name__ == "__main__":
    sys.exit(jobs.main(add, work, "trace"))
