"""`rpcqm pipeline`: jobs on Spark over captures and queues."""

import argparse
import importlib.util
from collections.abc import Callable

from rpcqm.cli.errors import CommandError
from rpcqm.cli.parser import Parser, add_command, add_commands
from rpcqm.pipeline import archive, compare, conform, ingest, jobs, trace

_JOBS = (
    (
        ingest,
        "ingest",
        "Write captures as Parquet tables, partitioned by day and interface.",
        ("rpcqm pipeline ingest --input captures --output tables", "only files that are new"),
    ),
    (
        conform,
        "conform",
        "Hold what recorded servers did against the specifications.",
        ("rpcqm pipeline conform --input tables --output report", "see report/report.html"),
    ),
    (
        compare,
        "compare",
        "Compare two sets of captures: the same requests, differing answers.",
        ("rpcqm pipeline compare --left windows --right rpcqm --output report", "tables of ingest"),
    ),
    (
        trace,
        "trace",
        "Follow each message over hops and queues.",
        ("rpcqm pipeline trace --input tables --output lives", "see lives/report.html"),
    ),
    (
        archive,
        "archive",
        "Move a queue's messages to Parquet, as a stream.",
        (
            "rpcqm pipeline archive --server 192.0.2.1 --queue orders --output kept "
            "--checkpoint kept/checkpoint",
            "what is there now; with --follow for ever",
        ),
    ),
)


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the commands to the parser."""
    parser = commands.add_parser(
        "pipeline",
        help="jobs on Spark over captures and queues",
        description="Jobs on Spark over captures and queues. They need the extra `spark`.",
    )
    inner = add_commands(parser)
    for job, name, summary, example in _JOBS:
        command = add_command(inner, name, summary, [example], _runner(job.work, name))
        job.add(command)
        jobs.add_master(command)


def _runner(work: jobs.Work, name: str) -> Callable[[argparse.Namespace], int]:
    def run(arguments: argparse.Namespace) -> int:
        for package in ("pyspark", "pyarrow"):
            if importlib.util.find_spec(package) is None:
                raise CommandError("The pipeline needs Spark: pip install 'rpcqm[spark]'.")
        return jobs.run(work, name, arguments)

    return run
