"""Run what CI runs, and write down how many tests passed and how long each step took."""

import argparse
import re
import subprocess
import sys
from collections.abc import Sequence

from tests.support.soak_record import ROOT, Goal, Part, Record, options, run_parts

COMMAND = (".ci/run",)
_STEP = re.compile(r"^ *(\d+\.\d)  (\S+)$")
_TESTS = re.compile(r"(\d+) (passed|failed|errors?|skipped)\b")
_AFTER = "minutes by step"


def part_of(output: Sequence[str], status: int) -> Part:
    """What the lines of a run tell, and the status with which it ended."""
    part = Part(failures=[f".ci/run ended with {status}"] if status else [])
    summaries = [line for line in output if re.search(r"\bin \d+\.\d+s", line)]
    for line in summaries[:1]:
        for count, word in _TESTS.findall(line):
            part.figures[word] = float(count)
    steps = output[output.index(_AFTER) :] if _AFTER in output else ()
    for line in steps:
        if found := _STEP.match(line):
            part.figures[f"minutes of {found[2]}"] = float(found[1])
    return part


def run(command: Sequence[str] = COMMAND) -> Part:
    """Run it, and show its output as it comes."""
    lines = []
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout
        for line in process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            lines.append(line.rstrip("\n"))
    return part_of(lines, process.returncode)


def main(words: Sequence[str] | None = None) -> int:
    made = options(argparse.ArgumentParser("scripts/soak ci", description=__doc__))
    given = made.parse_args(words)
    record = Record(made, given, Goal(1))
    return run_parts(record, ["all"], lambda name: run())
