"""Schemathesis drives the interface for programs by its OpenAPI, each round with another seed.

A round is two minutes with a queue manager of its own. One that fails is told with the request
that failed and with the command that repeats the round; the others go on. Exit 1 if any failed.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.soak.soak_record import (
    MOST_SEEDS,
    Goal,
    Part,
    Record,
    main_of,
    options,
    run_parts,
    seeds,
)

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_schema_conformance"
)
CONFIGURATION = "[console]\nlongest_wait = 1\n"
ROUND_SECONDS = 120
_GRACE = 120
"""Seconds that a round may take beyond its time: to load, and to shrink what failed."""
_HOOKS = Path(__file__).with_name("api_hooks.py")


@dataclass(frozen=True)
class Driven:
    """What was asked, as operations with the status of the answer, and what failed."""

    asked: Counter[tuple[str, int]]
    failed: str

    @property
    def operations(self) -> set[str]:
        """Those that were asked at least once."""
        return {operation for operation, _ in self.asked}


def command(address: tuple[str, int], seed: int, seconds: int, phases: str) -> list[str]:
    """What drives the interface at an address for so long."""
    host, port = address
    return [
        *(sys.executable, "-m", "schemathesis.cli", "run"),
        f"http://{host}:{port}/api/v1/openapi.json",
        *("--auth", "boss:secret", "--seed", str(seed), "--max-time", str(seconds)),
        *("--max-examples", "3", "--phases", phases, "--checks", CHECKS),
        *("--suppress-health-check", "all", "--generation-database", "none", "--no-color"),
    ]


def drive(
    running: PrivateQueueManager, directory: Path, seed: int, seconds: int, phases: str
) -> Driven:
    """Ask whatever the OpenAPI allows; backups and the tool's files go into the directory."""
    words = ("user", "add", "boss", "--group", "administrators", "--password-stdin")
    running.run(*words, input="secret\n")
    more = {"SCHEMATHESIS_HOOKS": str(_HOOKS), "RPCQM_API_SOAK": str(directory)}
    tried = subprocess.run(
        command(running.endpoint("console"), seed, seconds, phases),
        cwd=directory,
        env=os.environ | more,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds + _GRACE,
    )
    failed = tried.stdout + tried.stderr if tried.returncode else ""
    return Driven(_asked(directory / "asked"), failed + _errors(running))


def _asked(path: Path) -> Counter[tuple[str, int]]:
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    pairs = (line.rpartition("\t") for line in lines)
    return Counter((operation, int(status)) for operation, _, status in pairs)


def _errors(running: PrivateQueueManager) -> str:
    """What the queue manager calls an error, or that it has ended."""
    lines = [line for line in running.log.splitlines() if '"level": "error"' in line]
    if running.process is None or running.process.poll() is not None:
        lines.append("the queue manager has ended")
    return "".join(f"{line}\n" for line in lines)


def run_round(seed: int, seconds: int) -> Driven:
    """Everything that Schemathesis can do, against a queue manager of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="rpcqm-api-") as directory,
        private_queue_manager(("--console-port", "0"), CONFIGURATION) as running,
    ):
        phases = "examples,coverage,fuzzing,stateful"
        return drive(running, Path(directory), seed, seconds, phases)


def part_of(seed: int, seconds: int) -> Part:
    """One round; how much was asked, and how often each status was the answer."""
    driven = run_round(seed, seconds)
    statuses: Counter[str] = Counter()
    for (_, status), count in driven.asked.items():
        statuses[f"answers {status}"] += count
    figures = {"rounds": 1.0, "requests": float(driven.asked.total())}
    figures |= {name: float(statuses[name]) for name in sorted(statuses)}
    again = f"seed {seed} failed: scripts/soak api --minutes {seconds / 60:g} --first {seed}"
    if driven.failed:
        print(f"{driven.failed}{again}", flush=True)
    failures = [again] if driven.failed else []
    return Part(figures, {"operations in a round": len(driven.operations)}, failures)


def main(words: Sequence[str] | None = None) -> int:
    made = argparse.ArgumentParser(prog="scripts/soak api", description=__doc__)
    made.add_argument("--minutes", type=float, default=30, help="how long (%(default)s)")
    made.add_argument("--first", type=int, help="the seed of the first round (a random one)")
    given = options(made).parse_args(words)
    first = random.randrange(MOST_SEEDS) if given.first is None else given.first
    record = Record(made, given, Goal(minutes=given.minutes), seed=first)

    def work(seed: str) -> Part:
        return part_of(int(seed), min(ROUND_SECONDS, max(1, int(record.left))))

    return run_parts(record, seeds(int(record.state.seed)), work)


if __name__ == "__main__":
    main_of(main)
