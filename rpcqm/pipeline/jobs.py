"""What all jobs have in common: their options, their session, their run summary."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, SupportsFloat

from rpcqm.pipeline.errors import SourceError
from rpcqm.pipeline.html import MOST_ROWS, Report, Row
from rpcqm.pipeline.java import JavaMissingError
from rpcqm.pipeline.paths import local_path
from rpcqm.pipeline.session import DEFAULT_MASTER, spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Work = Callable[["SparkSession", argparse.Namespace, "Summary"], None]


class JobError(Exception):
    """A job that cannot be done; the text is a sentence."""


@dataclass
class Summary:
    """Rows in, rows out and rejected, by what they are."""

    rows_in: dict[str, int] = field(default_factory=dict)
    rows_out: dict[str, int] = field(default_factory=dict)
    rejected: dict[str, int] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)

    def as_object(self) -> Row:
        return {
            "rows_in": self.rows_in,
            "rows_out": self.rows_out,
            "rejected": self.rejected,
            "seconds": round(time.monotonic() - self.began, 3),
        }

    def line(self) -> str:
        parts = (("in", self.rows_in), ("out", self.rows_out), ("rejected", self.rejected))
        told = (
            f"{word}: " + (", ".join(f"{n:,} {what}" for what, n in rows.items()) or "nothing")
            for word, rows in parts
        )
        return "; ".join(told) + f"; {time.monotonic() - self.began:.1f} s"


def add_master(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--master",
        metavar="URL",
        help=f"the Spark master ({DEFAULT_MASTER}, or what spark-submit was told)",
    )


def run(work: Work, name: str, arguments: argparse.Namespace) -> int:
    """Do a job in a session of its own; the exit status."""
    try:
        _take_local_paths(arguments)
        with _private_files(), session(arguments.master, name) as spark:
            summary = Summary()
            work(spark, arguments, summary)
    except (JobError, JavaMissingError, SourceError) as error:
        print(f"rpcqm: {error}", file=sys.stderr)
        return 1
    print(f"{name}: {summary.line()}")
    return 0


def _take_local_paths(arguments: argparse.Namespace) -> None:
    """Make paths of URLs with the scheme file; raises SourceError for other file systems."""
    for name in ("input", "output", "left", "right"):
        if isinstance(given := getattr(arguments, name, None), str):
            setattr(arguments, name, local_path(given))


@contextmanager
def _private_files() -> Iterator[None]:
    """What is written is for its owner alone (G133), by this process and those that it starts."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def session(master: str | None, name: str) -> "Iterator[SparkSession]":
    """A session that is stopped when the block ends, unless it was there before."""
    from pyspark.sql import SparkSession

    before = SparkSession.getActiveSession()
    settings = {"spark.hadoop.fs.permissions.umask-mode": "077"}
    if sys.stderr.isatty():
        settings["spark.ui.showConsoleProgress"] = "true"
    spark = spark_session(master, f"rpcqm {name}", **settings)
    try:
        yield spark
    finally:
        if before is None:
            spark.stop()


def main(add: Callable[[argparse.ArgumentParser], None], work: Work, name: str) -> int:
    """A job as a program of its own, for spark-submit."""
    parser = argparse.ArgumentParser(prog=name)
    add(parser)
    add_master(parser)
    return run(work, name, parser.parse_args())


def rows_of(frame: "DataFrame") -> list[Row]:
    """A small data frame as rows."""
    return [row.asDict() for row in frame.collect()]


def first_rows(frame: "DataFrame", most: int = MOST_ROWS) -> list[Row]:
    """The rows of a table of a report, and one more if there are more."""
    return rows_of(frame.limit(most + 1))


def required_table(spark: "SparkSession", directory: str, name: str) -> "DataFrame":
    """A table that an earlier job has written; raises JobError if it does not exist."""
    path = Path(directory) / name
    if not path.is_dir():
        raise JobError(f"{path} is not there; run `rpcqm pipeline ingest` first.")
    return spark.read.parquet(str(path))


def tell(report: Report, summary: Summary, *inputs: str | Path) -> None:
    """The summary at the top of a report, and which octets of the captures were never read.

    `inputs` are the directories that `ingest` has written.
    """
    from rpcqm.pipeline.coverage import tell_coverage

    told = tell_coverage(summary.rejected, *inputs)
    report.summary(summary.as_object())
    report.table("octets", "Octets that no reader claimed, or more than one", told)


def bars(rows: Sequence[Row], name: str, value: str) -> list[tuple[str, float]]:
    """The bars of a plot: a column of names, and a column of numbers or nothing."""
    pairs = ((str(row[name]), row[value]) for row in rows)
    return [(text, float(n) if isinstance(n, SupportsFloat) else 0.0) for text, n in pairs]
