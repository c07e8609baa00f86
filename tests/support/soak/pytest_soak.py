"""Run tests for longer than CI may, in parts: those that take long, or all in another way."""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from tests.support.project.without_fast import tree_without_fast, variables
from tests.support.soak.soak_record import ROOT, Goal, Part, Record, options, run_parts

NO_TESTS = 5
TEMPLATES_OFF = {"RPCQM_LIMITS_REQUEST_TEMPLATES": "false"}
"""For the queue managers that tests start, and for those in the processes of tests."""


def ran(words: Sequence[str], variables: Mapping[str, str], place: Path = ROOT) -> Part:
    """What came of tests: how many there were, and a sentence for each that failed."""
    with tempfile.TemporaryDirectory(prefix="rpcqm-soak-") as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", f"--junitxml={report}", *words]
        status = subprocess.run(command, cwd=place, env=os.environ | variables, check=False)
        if status.returncode == NO_TESTS:
            return Part()
        if not report.is_file():
            return Part(failures=[f"pytest {' '.join(words)} ended with {status.returncode}"])
        part = part_of(report)
    if status.returncode and not part.failures:
        part.failures.append(f"pytest {' '.join(words)} ended with {status.returncode}")
    return part


def part_of(report: Path) -> Part:
    """What a report of pytest tells."""
    part = Part({"tests": 0.0})
    for case in ElementTree.parse(report).iter("testcase"):
        part.figures["tests"] += 1
        name = f"{case.get('classname', '').replace('.', '/')}::{case.get('name')}"
        for child in case:
            if child.tag == "skipped":
                part.figures["skipped"] = part.figures.get("skipped", 0.0) + 1
            elif child.tag in ("failure", "error"):
                part.failures.append(f"{name}: {child.get('message', child.tag)}")
    return part


def files_with_marks(paths: Sequence[str]) -> list[str]:
    """The files below the paths that have tests that take long."""
    every = [file for path in paths for file in _test_files(path)]
    return [str(file) for file in every if "mark.soak" in file.read_text("utf-8")]


def folders(paths: Sequence[str]) -> list[str]:
    """The folders below the paths that have tests, without those within; single files too."""
    found: dict[str, None] = {}
    for path in paths:
        for file in _test_files(path):
            found[path if path.endswith(".py") else str(file.parent)] = None
    return list(found)


def _test_files(path: str) -> list[Path]:
    place = ROOT / path
    every = [place] if place.is_file() else sorted(place.rglob("test_*.py"))
    return [file.relative_to(ROOT) for file in every if "node_modules" not in file.parts]


def slow(words: Sequence[str] | None = None) -> int:
    """Each file with tests that take long is a part."""
    made = _parser("slow", "Run the tests that take too long for each change.")
    given = made.parse_args(words)
    parts = files_with_marks(given.paths)
    record = Record(made, given, Goal(len(parts)))
    return run_parts(record, parts, lambda name: ran(["-m", "soak", name], {}))


def templates_off(words: Sequence[str] | None = None) -> int:
    """Each folder is a part."""
    made = _parser("templates-off", "Run every test without request templates.")
    given = made.parse_args(words)
    parts = folders(given.paths)
    record = Record(made, given, Goal(len(parts)))

    def work(name: str) -> Part:
        place = ROOT / name
        files = sorted(place.glob("test_*.py")) if place.is_dir() else [place]
        return ran([str(file.relative_to(ROOT)) for file in files], TEMPLATES_OFF)

    return run_parts(record, parts, work)


def without_fast(words: Sequence[str] | None = None) -> int:
    """Each folder is a part, but those of the fast room itself and what needs it."""
    made = _parser("without-fast", "Run every test where the product has no fast room.")
    given = made.parse_args(words)
    parts = [each for each in folders(given.paths) if "fast" not in Path(each).parts]
    record = Record(made, given, Goal(len(parts)))

    def work(name: str) -> Part:
        place = ROOT / name
        every = sorted(place.glob("test_*.py")) if place.is_dir() else [place]
        files = [str(file.relative_to(ROOT)) for file in every if not of_fast(file)]
        if not files:
            return Part()
        with tree_without_fast() as tree:
            return ran(files, variables(tree), tree)

    return run_parts(record, parts, work)


def of_fast(file: Path) -> bool:
    """Whether a test file is about the fast room, by what it imports or looks at."""
    text = file.read_text("utf-8")
    return any(word in text for word in ("rpcqm.fast", "unit.fast", ".speed.", "templates"))


def _parser(name: str, description: str) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(f"scripts/soak {name}", description=description)
    made.add_argument("paths", nargs="*", default=["tests"], metavar="PATH", help="below tests")
    return options(made)
