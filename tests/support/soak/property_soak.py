"""Every property test again and again, each round with a seed of its own.

A round that fails is told with the command that repeats it; the others go on. Exit 1 if any failed.
"""

import argparse
import os
import random
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

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

_NO_TESTS = 5


def command(seed: int, paths: Sequence[str]) -> list[str]:
    """What runs all property tests below some paths with one seed."""
    words = ["-q", "--no-header", "--tb=short", "-p", "no:cacheprovider", "-m", "hypothesis"]
    return [sys.executable, "-m", "pytest", *words, f"--hypothesis-seed={seed}", *paths]


def run_round(seed: int, paths: Sequence[str], seconds: float) -> str:
    """What a round that failed has printed; empty when all is well or the time is over."""
    environment = {name: value for name, value in os.environ.items() if name != "RPCQM_CI"}
    try:
        done = subprocess.run(
            command(seed, paths), env=environment, capture_output=True, text=True, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return ""
    if done.returncode == _NO_TESTS:
        return "no property test was found\n"
    return done.stdout + done.stderr if done.returncode else ""


def main(words: Sequence[str] | None = None) -> int:
    made = argparse.ArgumentParser(prog="scripts/soak properties", description=__doc__)
    made.add_argument("--minutes", type=float, default=30, help="how long (%(default)s)")
    made.add_argument("--first", type=int, help="the seed of the first round (a random one)")
    made.add_argument("paths", nargs="*", metavar="PATH", help="tests (unit and model)")
    given = options(made).parse_args(words)
    first = random.randrange(MOST_SEEDS) if given.first is None else given.first
    record = Record(made, given, Goal(minutes=given.minutes), seed=first)
    root = Path(__file__).parents[2]
    paths = given.paths or [str(root / "unit"), str(root / "model")]

    def work(seed: str) -> Part:
        told = run_round(int(seed), paths, record.left)
        again = f"seed {seed} failed: {shlex.join(['pytest', *command(int(seed), paths)[3:]])}"
        if told:
            print(f"{told}{again}", flush=True)
        return Part({"rounds": 1}, failures=[again] if told else [])

    return run_parts(record, seeds(int(record.state.seed)), work)


if __name__ == "__main__":
    main_of(main)
