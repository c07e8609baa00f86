"""`ingest`: captures → Parquet, partitioned by day and interface; only what is new."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rpcqm.pipeline import jobs
from rpcqm.pipeline.html import Report

TABLES = ("calls", "messages", "flows", "problems")
FURTHER_TABLES = ("pdus", "packets")
MANIFEST = "ingested.json"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the job's options to a parser."""
    parser.add_argument(
        "--input",
        metavar="PATH",
        nargs="+",
        required=True,
        help="captures: files, globs, directories",
    )
    parser.add_argument("--output", metavar="DIR", required=True, help="where the tables are")
    parser.add_argument(
        "--account",
        metavar="ACCOUNT",
        action="append",
        default=[],
        help="unseal with DOMAIN\\user:password or a file of such lines; may be repeated",
    )
    parser.add_argument(
        "--keytab",
        metavar="FILE",
        action="append",
        default=[],
        help="unseal with the Kerberos keys of services; may be repeated",
    )
    parser.add_argument(
        "--tables",
        metavar="NAME",
        nargs="+",
        choices=(*TABLES, *FURTHER_TABLES),
        default=list(TABLES),
        help=f"which tables to write ({' '.join(TABLES)})",
    )


def work(spark: Any, arguments: argparse.Namespace, summary: jobs.Summary) -> None:
    """Append what the files that were not ingested yet hold."""
    # Only now, because the command line needs none of it.
    from rpcqm.pipeline.capture_source import expand
    from rpcqm.pipeline.tables import table

    output = Path(arguments.output)
    known = _manifest(output)
    files = {str(each): _signature(each) for each in expand(",".join(arguments.input))}
    missing = [name for name, signature in files.items() if signature is None]
    if missing:
        raise jobs.JobError(f"{missing[0]} is not there.")
    new = [name for name, signature in files.items() if known.get(name) != signature]
    summary.rows_in["files"] = len(new)
    summary.rows_out["files already there"] = len(files) - len(new)
    if new:
        keys = arguments.account + arguments.keytab
        for name in arguments.tables:
            rows = _append(table(spark, name, new, keys), name, output)
            (summary.rejected if name == "problems" else summary.rows_out)[name] = rows
        known.update({name: files[name] for name in new})
        (output / MANIFEST).write_text(json.dumps(known, indent=2) + "\n", "utf-8")
    _report(spark, output, summary)


def _signature(path: Path) -> list[int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return [found.st_size, found.st_mtime_ns]


def _manifest(output: Path) -> dict[str, Any]:
    path = output / MANIFEST
    known: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return known


def _append(frame: Any, name: str, output: Path) -> int:
    from pyspark.sql import functions as f

    frame = frame.persist()
    partitions: list[str] = []
    if name in ("calls", "messages"):
        frame = frame.withColumn("day", f.to_date("time"))
        frame = frame.withColumn("interface", f.coalesce("interface", f.lit("unknown")))
        partitions = ["day", "interface"]
    count = int(frame.count())
    frame.write.mode("append").partitionBy(*partitions).parquet(str(output / name))
    frame.unpersist()
    return count


def _report(spark: Any, output: Path, summary: jobs.Summary) -> None:
    report = Report("Ingested captures")
    report.summary(summary.as_object())
    if (output / "calls").is_dir():
        calls = spark.read.parquet(str(output / "calls"))
        by_method = calls.groupBy("interface", "name").count().orderBy("interface", "name")
        rows = jobs.rows_of(by_method)
        plotted = sorted(jobs.bars(rows, "name", "count"), key=lambda bar: -bar[1])[:25]
        report.plot("Calls by method", plotted)
        report.table("methods", "Methods", rows)
    if (output / "problems").is_dir():
        problems = spark.read.parquet(str(output / "problems"))
        kinds = problems.groupBy("file", "kind").count().orderBy("file", "kind")
        report.table("problems", "Problems", jobs.rows_of(kinds))
    report.write(output)


if __name__ == "__main__":
    sys.exit(jobs.main(add, work, "ingest"))
