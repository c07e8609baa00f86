"""The long runs of scripts/soak, each a command of its own: its help tells its options."""

import argparse
import importlib
from collections.abc import Sequence

from tests.support.soak.soak_record import main_of

RUNS = {
    "api": (
        "tests.support.soak.api_soak:main",
        "ask the interface for programs all that it declares",
    ),
    "archive": (
        "tests.support.soak.archive_soak:main",
        "kill driver, workers and queue manager behind each log of an archive",
    ),
    "audit": (
        "tests.support.project.audit:main",
        "ask which installed packages have known weaknesses",
    ),
    "captures": (
        "tests.support.soak.capture_soak:main",
        "read captures made at random, and count their calls by tshark as well",
    ),
    "ci": ("tests.support.soak.ci_soak:main", "run what CI runs on clones, beside busy loops"),
    "crash": ("tests.crash.soak:main", "crash the store at every point of seeded runs"),
    "mutations": ("tests.support.soak.mutation_soak:main", "try every mutation"),
    "network": (
        "tests.support.soak.network_soak:main",
        "send over failing networks between queue managers that die; with --processes between "
        "real ones, with --http over HTTP",
    ),
    "properties": (
        "tests.support.soak.property_soak:main",
        "repeat every property test with seeds that are new in each round",
    ),
    "replica": (
        "tests.support.soak.replica_soak:main",
        "kill, pause and cut off nodes of a cluster and servers of its log, under load",
    ),
    "slow": (
        "tests.support.soak.pytest_soak:slow",
        "run the tests that take too long for each change",
    ),
    "spark-versions": (
        "tests.support.soak.spark_versions:main",
        "run the tests of the pipeline with the oldest and the newest Spark and Arrow",
    ),
    "templates-off": (
        "tests.support.soak.pytest_soak:templates_off",
        "run every test without request templates",
    ),
    "without-fast": (
        "tests.support.soak.pytest_soak:without_fast",
        "run every test where the product has no fast room",
    ),
}
PARTS_OF_CRASH = {"power": "only loss of power", "kill": "only kill -9", "all": "both"}
"""Commands of their own too: `scripts/soak power` is `scripts/soak crash power`."""

NOTE = """\
Each writes a row of docs/soak.md when it is run with its defaults, seeds apart; --page FILE writes
it elsewhere. What was done is kept in var/soak: the same command on the same commit goes on after
an interruption. `scripts/fuzz` is a long run too. `scripts/soak RUN --help` has the options.
"""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("scripts/soak", description=__doc__, epilog=NOTE)
    runs = made.add_subparsers(title="runs", metavar="RUN", required=True)
    for name, (_, sentence) in RUNS.items():
        runs.add_parser(name, help=sentence)
    for name, sentence in PARTS_OF_CRASH.items():
        runs.add_parser(name, help=f"of crash {sentence}")
    return made


def main(words: Sequence[str]) -> int:
    """Hand the words after the name of a run to it."""
    name, *rest = words or ["--help"]
    if name in PARTS_OF_CRASH:
        name, rest = "crash", [name, *rest]
    if name not in RUNS:
        parser().parse_args(words or ["--help"])
        return 2
    module, _, function = RUNS[name][0].partition(":")
    status: int = getattr(importlib.import_module(module), function)(rest)
    return status


if __name__ == "__main__":
    main_of(main)
