"""Rules of the whole session: conformance claims, and no skipped test in CI."""

import csv
import json
import os
import signal
from collections.abc import Iterator
from importlib import import_module, resources
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, settings

from tests.support.cli.forked_commands import START_FROM_NOTHING, install
from tests.support.project.minutes import Minutes
from tests.support.shadow import switch

# No test depends on how fast the machine is, and what has landed stays green: CI tries the same
# values each time, everybody else new ones.
settings.register_profile(
    "rpcqm",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="RPCQM_CI" in os.environ,
)
settings.load_profile("rpcqm")

SPARK = "tests/integration/pipeline/"
SLOW = ("integration/pipeline", "interop", "model", "crash", "fuzz", "integration")

KNOWN = {
    row["id"]
    for row in csv.DictReader(
        (resources.files("rpcqm") / "conformance.csv").read_text("utf-8").splitlines()
    )
}


def points_of(item: pytest.Item) -> list[str]:
    """The points that a test claims, outermost marker last."""
    return [point for marker in item.iter_markers("conformance") for point in marker.args]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--conformance-report", metavar="FILE", help="write the points that tests prove, as JSON"
    )
    parser.addoption(
        "--minutes-report",
        metavar="FILE",
        help="write how long the tests of each row take, as JSON",
    )


def slow_first(item: pytest.Item) -> int:
    """Which of several processes' tests begin first: those of files that take long."""
    return next(
        (rank for rank, folder in enumerate(SLOW) if item.nodeid.startswith(f"tests/{folder}/")),
        len(SLOW),
    )


def leave_out_what_takes_long(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests for `scripts/soak slow`, unless marks or a single test are asked for."""
    if config.option.markexpr or any("::" in argument for argument in config.args):
        return
    long = [item for item in items if item.get_closest_marker("soak")]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if item not in long]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    leave_out_what_takes_long(config, items)
    if "PYTEST_XDIST_WORKER" in os.environ:
        # Otherwise one process would have the slowest file to itself at the end.
        items.sort(key=slow_first)
    for item in items:
        unknown = [point for point in points_of(item) if point not in KNOWN]
        if unknown:
            raise pytest.UsageError(f"{item.nodeid} claims unknown points: {', '.join(unknown)}")
        item.user_properties.append(("conformance", points_of(item)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """What --dist loadfile does, but all of Spark's tests in one process."""
    if config.getoption("dist") != "loadfile":
        return None
    scheduling = import_module("xdist.scheduler").LoadFileScheduling(config, log)
    # A second Spark takes seconds to start, and is starved beside the first one.
    scheduling._split_scope = lambda node: SPARK if node.startswith(SPARK) else node.split("::")[0]
    return scheduling


class ConformanceReport:
    """Collects the claims of all tests, also from worker processes.

    The file holds ``tests``, {point: [passing tests that claim it]}, and ``proved``, the points
    of which no claiming test failed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.passed: dict[str, list[str]] = {}
        self.failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        points = [
            str(point)
            for name, points in report.user_properties
            if name == "conformance" and isinstance(points, list)
            for point in points
        ]
        if report.failed:
            self.failed.update(points)
        elif report.when == "call" and report.passed:
            for point in points:
                self.passed.setdefault(point, []).append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        proved = sorted(set(self.passed) - self.failed)
        report = {"proved": proved, "tests": self.passed}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(report, indent=1, sort_keys=True) + "\n", "utf-8")


class NoSkips:
    """Fails the session when any test was skipped or expected to fail: CI must run all of them."""

    def __init__(self) -> None:
        self.skipped: list[str] = []

    def note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped:
            reason = (
                report.longrepr[2] if isinstance(report.longrepr, tuple) else "expected to fail"
            )
            self.skipped.append(f"{report.nodeid}: {reason}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.note(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.skipped:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.skipped:
            terminalreporter.section("skipped, which CI does not allow")
            for line in self.skipped:
                terminalreporter.write_line(line)


@pytest.fixture(scope="module", autouse=True)
def the_level_of_the_log_stays() -> Iterator[None]:
    """Fail a file that leaves another level behind: a test of a later file would miss lines."""
    before = structlog.get_config()["wrapper_class"]
    yield
    after = structlog.get_config()["wrapper_class"]
    structlog.configure(wrapper_class=before)
    assert after is before


@pytest.fixture(scope="module", autouse=True)
def ctrl_c_is_pythons_own() -> None:
    """A handler that the tests of an earlier file have left would not let commands end in order."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    switch.take_switch()
    if START_FROM_NOTHING not in os.environ:
        install()
    # What a shell runs in the background ignores SIGINT, and so would the commands of tests.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    path = config.getoption("--conformance-report")
    if path:
        config.pluginmanager.register(ConformanceReport(Path(path)), "conformance-report")
    if os.environ.get("RPCQM_CI") == "1":
        config.pluginmanager.register(NoSkips(), "no-skips")
    report = config.getoption("--minutes-report")
    if report or os.environ.get("RPCQM_CI") == "1":
        config.pluginmanager.register(Minutes(Path(report) if report else None), "minutes")
