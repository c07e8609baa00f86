"""Every property test again and again, each round with a seed of its own.

python -m tests.support.property_soak [--minutes N] [--first N] [PATH…]

A round that fails is told with the command that repeats it; the others go on. Exit 1 if any failed.
"""

import argparse
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

MOST_SEEDS = 1 << 32
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


def soak(minutes: float, first: int, paths: Sequence[str]) -> int:
    """Rounds until the time is over; how many of them failed."""
    end, seed, failed, rounds = time.monotonic() + 60 * minutes, first, 0, 0
    while (left := end - time.monotonic()) > 0:
        told = run_round(seed, paths, left)
        rounds += 1
        if told:
            failed += 1
            print(f"{told}seed {seed} failed: {' '.join(command(seed, paths))}", flush=True)
        seed = (seed + 1) % MOST_SEEDS
    print(f"{rounds} rounds from seed {first} on, {failed} failed")
    return failed


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/soak properties")
    parser.add_argument("--minutes", type=float, default=30, help="how long (%(default)s)")
    parser.add_argument("--first", type=int, help="the seed of the first round (a random one)")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="tests (unit and model)")
    arguments = parser.parse_args(words)
    first = random.randrange(MOST_SEEDS) if arguments.first is None else arguments.first
    root = Path(__file__).parents[1]
    paths = arguments.paths or [str(root / "unit"), str(root / "model")]
    return int(soak(arguments.minutes, first, paths) > 0)


if __name__ == "__main__":
    sys.exit(main())
