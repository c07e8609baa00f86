"""Conformance claims: which points of conformance.csv which passing tests prove."""

import csv
import json
import os
from importlib import resources
from pathlib import Path

import pytest

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
        "--conformance-report", metavar="FILE", help="write {point: [tests that passed]} as JSON"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        unknown = [point for point in points_of(item) if point not in KNOWN]
        if unknown:
            raise pytest.UsageError(f"{item.nodeid} claims unknown points: {', '.join(unknown)}")
        item.user_properties.append(("conformance", points_of(item)))


class ConformanceReport:
    """Collects the claims of passing tests, also from worker processes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.passed: dict[str, list[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" or not report.passed:
            return
        for name, points in report.user_properties:
            if name == "conformance":
                for point in points if isinstance(points, list) else []:
                    self.passed.setdefault(point, []).append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.passed, indent=1, sort_keys=True) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--conformance-report")
    if path and "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(ConformanceReport(Path(path)), "conformance-report")
