"""How long each suite of a run takes: what CI prints at its end."""

from dataclasses import dataclass

import pytest

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


class Minutes:
    """Sums what tests take by suite, also of worker processes, and prints a table of it."""

    def __init__(self) -> None:
        self._suites: dict[str, Suite] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        suite = self._suites.setdefault(suite_of(report.nodeid), Suite())
        suite.tests += report.when == "call"
        suite.work += report.duration
        suite.first = min(suite.first, report.start)
        suite.last = max(suite.last, report.stop)

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
