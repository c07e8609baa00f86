"""Run CI several times beside busy loops, which take the processors: no test depends on speed.

Each run has a clone of its own, in a temporary folder, of what is committed here. It ends with the
first run in which a test fails, has an error or is begun again, and keeps what that run printed.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.soak.soak_record import ROOT, Goal, Part, Record, options, run_parts

COMMAND = (".ci/run",)
BUSY = """
import os
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""
"""Ends with the process that has started it."""
_STEP = re.compile(r"^ *(\d+\.\d)  (\S+)$")
_ROW = re.compile(r"^ *(\d+\.\d) of +[\d.]+  (.+)$")
_TESTS = re.compile(r"(\d+) (passed|failed|errors?|skipped)\b")
_SUMMARY = re.compile(r"\bin \d+\.\d+s")
_FAILED = re.compile(r"^(?:FAILED|ERROR) ([^\s\[]+(?:\[[^\]]*\])?)")
_BEGUN_AGAIN = re.compile(r"^replacing crashed worker |\bRERUN\b")
_AFTER = "minutes by step"


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("scripts/soak ci", description=__doc__)
    made.add_argument("--times", type=int, default=5, help="runs (%(default)s)")
    made.add_argument("--busy", type=int, default=2, help="busy loops beside them (%(default)s)")
    made.add_argument("--source", type=Path, default=ROOT, help="the repository (this one)")
    return options(made)


def part_of(output: Sequence[str], status: int) -> Part:
    """What the lines of a run tell, and the status with which it ended."""
    part = Part()
    for line in [line for line in output if _SUMMARY.search(line)][:1]:
        for count, word in _TESTS.findall(line):
            part.figures[word] = float(count)
    part.failures = list(dict.fromkeys(told[1] for told in map(_FAILED.match, output) if told))
    part.failures += [f"begun again: {line}" for line in output if _BEGUN_AGAIN.search(line)]
    if status:
        last = next((line for line in reversed(output) if line.strip()), "it printed nothing")
        part.failures.append(f".ci/run ended with {status}: {last}")
    for line in output[output.index(_AFTER) :] if _AFTER in output else ():
        if found := _STEP.match(line) or _ROW.match(line):
            part.most[f"minutes of {found[2]}"] = float(found[1])
    return part


@contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes take as much of the processors as they get."""
    loops = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def run(source: Path, log: Path, loops: int, command: Sequence[str] = COMMAND) -> Part:
    """One run on a clone; what it prints is in the log, which stays if anything was wrong."""
    with tempfile.TemporaryDirectory(prefix="rpcqm-ci-") as place:
        clone = Path(place) / "rpcqm"
        subprocess.run(["git", "clone", "--quiet", source, clone], check=True)
        with log.open("wb") as said, busy(loops):
            ended = subprocess.run(
                command, cwd=clone, stdout=said, stderr=said, env=environment(), check=False
            )
    part = part_of(log.read_text("utf-8", "replace").splitlines(), ended.returncode)
    if not part.failures:
        log.unlink()
    return part


def environment() -> dict[str, str]:
    """What a CI has: nothing that was set here for queue managers, tests or Python."""
    own = ("RPCQM_", "PYTEST_", "PYTHON", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if not name.startswith(own)}


def until_failure(record: Record, times: int) -> Iterator[str]:
    """The names of the runs, as long as nothing has failed."""
    for number in range(1, times + 1):
        if record.failures:
            return
        yield f"{number}/{times}"


def main(words: Sequence[str] | None = None) -> int:
    made = parser()
    given = made.parse_args(words)
    command = ["git", "status", "--porcelain", "--untracked-files=no"]
    if subprocess.run(command, cwd=given.source, stdout=subprocess.PIPE, check=True).stdout:
        print("Commit first: the clones have what is committed.", file=sys.stderr)
        return 2
    record = Record(made, given, Goal(given.times))

    def work(name: str) -> Part:
        log = given.state / f"ci-{record.commit}-{name.partition('/')[0]}.log"
        print(f"run {name} prints to {log}", flush=True)
        return run(given.source, log, given.busy)

    return run_parts(record, until_failure(record, given.times), work)
