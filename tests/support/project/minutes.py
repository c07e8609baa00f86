"""How long each suite of a run takes, and each row of CI: what CI prints at its end.

python -m tests.support.project.minutes REPORT STEP=SECONDS…

prints the rows from what a run of tests has written with --minutes-report, and the steps of
scripts/test. Tests of all rows run beside each other in several processes, so the minutes of a row
are its share of the step `tests`: as much of its length as of the work of all processes. Thus the
rows add up to what CI took, but for the checks, which belong to none.
"""

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True, slots=True)
class Row:
    """A part of CI with the minutes that it may take, on two processors."""

    name: str
    minutes: float
    folders: tuple[str, ...] = ()
    step: str = "tests"
    """The step of scripts/test that it is a part of."""


ROWS = (
    Row("unit and model", 5, ("tests/unit", "tests/model")),
    Row("integration", 5, ("tests/integration",)),
    Row("peers", 5, ("tests/interop",)),
    Row("crash", 2, ("tests/crash",)),
    Row("fuzz", 1, ("tests/fuzz",)),
    Row("Spark", 3, ("tests/integration/pipeline",)),
    Row("mutations", 2.5, step="mutations"),
    Row("browser", 1.5, ("tests/interop/browser",)),
    Row("directory", 1, ("tests/integration/directory", "tests/interop/directory")),
    Row("replica", 1, ("tests/integration/replica", "tests/interop/replica")),
)
"""Whoever adds tests takes their minutes from the same row, or moves others to the soak."""
ALL = 27.0
"""Minutes; CI fails above them."""
OUTSIDE = ("peers", "set-up")
"""Steps that are not the tests' doing: how long packages take to come."""

DEEP = ("integration", "unit", "interop")
"""Folders whose own folders are suites of their own."""


@dataclass(slots=True)
class Suite:
    """Seconds: `work` in all processes together, `first` and `last` since 1970."""

    tests: int = 0
    work: float = 0.0
    first: float = float("inf")
    last: float = 0.0

    @property
    def wall(self) -> float:
        """Seconds from its first test's beginning to its last one's end."""
        return max(0.0, self.last - self.first)


def suite_of(nodeid: str) -> str:
    """The suite of a test: `crash` for tests/crash, `integration/cli` for tests/integration/cli."""
    folders = nodeid.partition("::")[0].split("/")[:-1]
    if folders[:1] == ["tests"]:
        folders = folders[1:]
    return "/".join(folders[: 2 if folders[:1] and folders[0] in DEEP else 1]) or "."


def row_of(nodeid: str) -> str | None:
    """The row of a test: that of the nearest folder that has one."""
    folder = nodeid.partition("::")[0].rpartition("/")[0]
    rows = {each: row.name for row in ROWS for each in row.folders}
    while folder and folder not in rows:
        folder = folder.rpartition("/")[0]
    return rows.get(folder)


class Minutes:
    """Sums what tests take by suite, also of worker processes, and prints a table of it.

    A report is JSON: `work` in seconds and `tests` by row, and how many tests had each `outcome`.
    """

    def __init__(self, report: Path | None = None) -> None:
        self._report = report
        self._suites: dict[str, Suite] = {}
        self._work: dict[str, float] = {}
        self._tests: Counter[str] = Counter()
        self._outcomes: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        suite = self._suites.setdefault(suite_of(report.nodeid), Suite())
        suite.tests += report.when == "call"
        suite.work += report.duration
        suite.first = min(suite.first, report.start)
        suite.last = max(suite.last, report.stop)
        row = row_of(report.nodeid) or "none"
        self._work[row] = self._work.get(row, 0.0) + report.duration
        self._tests[row] += report.when == "call"
        if report.when == "call" or report.failed:
            self._outcomes[report.outcome if report.when == "call" else "error"] += 1

    def pytest_sessionfinish(self) -> None:
        if self._report is None:
            return
        told = {"work": self._work, "tests": self._tests, "outcome": self._outcomes}
        self._report.parent.mkdir(parents=True, exist_ok=True)
        self._report.write_text(json.dumps(told, indent=1) + "\n", "utf-8")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._suites:
            return
        terminalreporter.section("minutes of work, and from first to last test, by suite")
        longest = sorted(self._suites.items(), key=lambda each: -each[1].work)
        for name, suite in [*longest, ("total", self._total())]:
            terminalreporter.write_line(
                f"{suite.work / 60:6.1f} {suite.wall / 60:6.1f}  {suite.tests:6} tests  {name}"
            )

    def _total(self) -> Suite:
        every = list(self._suites.values())
        return Suite(
            sum(suite.tests for suite in every),
            sum(suite.work for suite in every),
            min(suite.first for suite in every),
            max(suite.last for suite in every),
        )


def minutes_of_rows(work: Mapping[str, float], steps: Mapping[str, float]) -> dict[str, float]:
    """The minutes of each row, and of the checks; `work` and `steps` are in seconds."""
    every = sum(work.values()) or 1.0
    minutes = {
        row.name: steps.get(row.step, 0.0)
        * (work.get(row.name, 0.0) / every if row.folders else 1.0)
        / 60
        for row in ROWS
    }
    counted = {*OUTSIDE, *(row.step for row in ROWS)}
    minutes["checks"] = sum(took for step, took in steps.items() if step not in counted) / 60
    return minutes


def table(work: Mapping[str, float], steps: Mapping[str, float]) -> list[str]:
    """The lines that CI prints: each row with its minutes, and those that took more."""
    minutes = minutes_of_rows(work, steps)
    lines = ["minutes by row, and how many it may take"]
    lines += [f"{minutes[row.name]:6.1f} of {row.minutes:4.1f}  {row.name}" for row in ROWS]
    lines.append(f"{minutes['checks']:6.1f}          checks")
    lines.append(f"{sum(minutes.values()):6.1f} of {ALL:4.1f}  in all")
    lines += [
        f"{row.name} took {minutes[row.name]:.1f} minutes and may take {row.minutes:g}: make it "
        "quicker, or move what takes long to scripts/soak."
        for row in ROWS
        if minutes[row.name] > row.minutes
    ]
    return lines


def main(words: Sequence[str]) -> None:
    """Print the rows of a run of CI."""
    report, *told = words
    steps = {name: float(took) for name, _, took in (each.partition("=") for each in told)}
    print("\n".join(table(json.loads(Path(report).read_text("utf-8"))["work"], steps)))


if __name__ == "__main__":
    main(sys.argv[1:])
