"""Schemathesis drives the interface for programs by its OpenAPI, each round with another seed.

python -m tests.support.api_soak [--minutes N] [--first N]

A round is two minutes with a queue manager of its own. One that fails is told with the request
that failed and with the command that repeats the round; the others go on. Exit 1 if any failed.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rpcqm.testing import PrivateQueueManager, private_queue_manager

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_schema_conformance"
)
CONFIGURATION = "[console]\nlongest_wait = 1\n"
ROUND_SECONDS = 120
MOST_SEEDS = 1 << 32
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


def soak(minutes: float, first: int) -> int:
    """Rounds until the time is over; how many of them failed."""
    end, seed, failed, rounds = time.monotonic() + 60 * minutes, first, 0, 0
    asked: Counter[tuple[str, int]] = Counter()
    while (left := int(end - time.monotonic())) > 0:
        seconds = min(left, ROUND_SECONDS)
        driven = run_round(seed, seconds)
        rounds, asked = rounds + 1, asked + driven.asked
        if driven.failed:
            failed += 1
            again = f"scripts/soak api --minutes {seconds / 60:g} --first {seed}"
            print(f"{driven.failed}seed {seed} failed: {again}", flush=True)
        seed = (seed + 1) % MOST_SEEDS
    print(f"{rounds} rounds from seed {first} on, {failed} failed; {summary(asked)}")
    return failed


def summary(asked: Counter[tuple[str, int]]) -> str:
    """How much was asked, and how often each status was the answer."""
    operations = {operation for operation, _ in asked}
    statuses: Counter[int] = Counter()
    for (_, status), count in asked.items():
        statuses[status] += count
    told = ", ".join(f"{status}: {statuses[status]}" for status in sorted(statuses))
    return f"{asked.total()} requests to {len(operations)} operations ({told or 'none'})"


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/soak api")
    parser.add_argument("--minutes", type=float, default=30, help="how long (%(default)s)")
    parser.add_argument("--first", type=int, help="the seed of the first round (a random one)")
    arguments = parser.parse_args(words)
    first = random.randrange(MOST_SEEDS) if arguments.first is None else arguments.first
    return int(soak(arguments.minutes, first) > 0)


if __name__ == "__main__":
    sys.exit(main())
