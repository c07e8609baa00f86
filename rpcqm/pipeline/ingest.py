"""`ingest`: captures → Parquet, partitioned by day and interface; only what is new."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rpcqm.pipeline import jobs
from rpcqm.pipeline.html import Report

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rpcqm.pipeline.flow_index import Plan
    from rpcqm.pipeline.splitting import RangeClaim

TABLES = ("calls", "messages", "flows", "problems")
FURTHER_TABLES = ("pdus", "packets")
CLAIMS = "claims"
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


def work(spark: "SparkSession", arguments: argparse.Namespace, summary: jobs.Summary) -> None:
    """Append what the files that were not ingested yet hold."""
    from rpcqm.pipeline.paths import expand, separated

    output = Path(arguments.output)
    known = _manifest(output)
    paths = [path for text in arguments.input for path in separated(text)]
    files = {str(each): _signature(each) for each in expand(paths)}
    missing = [name for name, signature in files.items() if signature is None]
    if missing:
        raise jobs.JobError(f"{missing[0]} is not there.")
    new = [name for name, signature in files.items() if known.get(name) != signature]
    summary.rows_in["files"] = len(new)
    summary.rows_out["files already there"] = len(files) - len(new)
    if new:
        output.mkdir(parents=True, exist_ok=True)
        rows = _ingest(spark, new, arguments, output)
        for name in arguments.tables:
            (summary.rejected if name == "problems" else summary.rows_out)[name] = rows[name]
        known.update({name: files[name] for name in new})
        (output / MANIFEST).write_text(json.dumps(known, indent=2) + "\n", "utf-8")
    _report(output, summary)


def _ingest(
    spark: "SparkSession", new: list[str], arguments: argparse.Namespace, output: Path
) -> Counter[str]:
    """Write the tables; how many rows each has got."""
    from rpcqm.pipeline.tables import table

    keys = arguments.account + arguments.keytab
    together = [name for name in arguments.tables if name in TABLES]
    rows = _ingest_together(spark, new, keys, [*together, CLAIMS], output)
    for name in arguments.tables:
        if name in FURTHER_TABLES:
            rows[name] = _append(table(spark, name, new, keys), name, output)
    return rows


def _ingest_together(
    spark: "SparkSession", new: list[str], keys: list[str], names: list[str], output: Path
) -> Counter[str]:
    """Write those tables that one pass makes, each task its own files."""
    from rpcqm.pipeline.flow_index import exact, followed, in_order, misread, plan, unbroken
    from rpcqm.pipeline.table_files import PARTITIONED, Staging, TableWriter

    context = spark.sparkContext
    made = plan([Path(name) for name in new], context.defaultParallelism)
    rows: Counter[str] = Counter()
    with Staging(output) as staging:
        directory = staging.directory

        def write(pairs: Iterator[tuple[int, Any]]) -> Iterator[Any]:
            writer = TableWriter(directory)
            ordered = sorted((row for _, row in pairs), key=in_order)
            for name, batch in followed(ordered, names, keys, made.parts):
                writer.write(name, batch)
            writer.close()
            yield writer.files, writer.rows

        tasks, claims = _indexed(context, made)
        rest, claims = unbroken(made, claims)
        linked = exact(rest, claims)
        if len(linked.ranges) < len(made.ranges) or misread(linked, claims):
            tasks, claims = _indexed(context, linked)
        if wrong := misread(linked, claims):
            raise jobs.JobError(f"{wrong[0]} has changed while it was read.")
        for files, counts in tasks.mapPartitions(write).collect():
            staging.move(files)
            rows.update(counts)
        staging.move_empty([name for name in names if name not in PARTITIONED])
    return rows


def _indexed(context: Any, made: "Plan") -> tuple[Any, list["RangeClaim"]]:
    """The index of the captures by task, and what the readers of the ranges took.

    Spark makes the index when the claims are asked for, and keeps it for the tasks that follow.
    """
    from rpcqm.pipeline.flow_index import index_rows

    behind = made.count

    def index(number: int) -> Iterator[tuple[int, Any]]:
        for row in index_rows(made, number):
            claim = row.pop("claim", None)
            if claim is not None:
                yield behind, (number, claim)
            yield row["task"], row

    # Not as data frames, because of what those cost before the first row.
    numbers = context.parallelize(range(made.steps), made.steps)
    pairs = numbers.flatMap(index).partitionBy(behind + 1, int)
    if not made.ranges:
        return pairs, []
    found = context.runJob(pairs, _values, [behind])
    tasks = pairs.mapPartitionsWithIndex(lambda n, rows: rows if n < behind else iter(()))
    return tasks, [claim for _, claim in sorted(found, key=lambda pair: int(pair[0]))]


def _values(pairs: Iterator[tuple[int, Any]]) -> Iterator[Any]:
    return (value for _, value in pairs)


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


def _append(frame: "DataFrame", name: str, output: Path) -> int:
    frame = frame.persist()
    count = int(frame.count())
    frame.write.mode("append").parquet(str(output / name))
    frame.unpersist()
    return count


def _report(output: Path, summary: jobs.Summary) -> None:
    from rpcqm.pipeline.table_files import counted

    report = Report("Ingested captures")
    jobs.tell(report, summary, output)
    if (output / "calls").is_dir():
        rows = counted(output / "calls", "interface", "name")
        plotted = sorted(jobs.bars(rows, "name", "count"), key=lambda bar: -bar[1])[:25]
        report.plot("Calls by method", plotted)
        report.table("methods", "Methods", rows)
    if (output / "problems").is_dir():
        report.table("problems", "Problems", counted(output / "problems", "file", "kind"))
    report.write(output)


if __name__ == "__main__":
    sys.exit(jobs.main(add, work, "ingest"))
