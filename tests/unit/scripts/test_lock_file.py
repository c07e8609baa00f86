"""requirements.lock has a version of everything that setup.cfg asks for, and tells its age."""

from datetime import date, timedelta
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.project.lock_file import (
    KEPT_FOR,
    LOCK,
    changes,
    pinned,
    reminder,
    requirements,
    written,
)

WANTED = sorted({str(each) for extra in requirements().values() for each in extra})


@pytest.mark.parametrize("wanted", WANTED)
def test_each_requirement_has_a_version_within_its_bounds(wanted: str) -> None:
    requirement = Requirement(wanted)
    version = pinned(LOCK.read_text())[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(version)


def test_its_first_line_has_the_day_and_the_python_that_ci_has() -> None:
    first = LOCK.read_text().splitlines()[0].split()
    assert first[0] == "#"
    assert date.fromisoformat(first[1])
    assert first[2:] == ["Python", "3.11"]


def test_no_line_has_more_than_a_version_and_the_extras_that_need_it() -> None:
    extras = set(requirements())
    for line in LOCK.read_text().splitlines()[2:]:
        pin, _, behind = line.partition("  # ")
        name, _, version = pin.partition("==")
        assert name == canonicalize_name(name)
        assert version.replace(".", "").isalnum()
        assert set(behind.split(", ")) <= extras


def test_ci_asks_for_a_newer_one_after_30_days() -> None:
    text, day = LOCK.read_text(), date.fromisoformat(LOCK.read_text().split()[1])
    assert reminder(text, day + timedelta(KEPT_FOR)) == ""
    assert "31 days old: scripts/lock" in reminder(text, day + timedelta(KEPT_FOR + 1))


def package(name: str, *requires: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "version": "1.0", "requires_dist": list(requires)}}


def test_a_package_has_the_extras_behind_it_that_need_it_through_others_too() -> None:
    packages = [
        package("rpcqm", "Own_One", "big[fast]; extra == 'spark'", "big; extra == 'test'"),
        package("Own_One", "pip"),
        package("pip"),
        package("big", "small", "fast; extra == 'fast'", "never; python_version < '3'"),
        package("small"),
        package("fast", "own-one"),
    ]
    report = {"environment": {"python_full_version": "3.11.7"}, "install": packages}
    assert written(report, date(2026, 1, 31)).splitlines() == [
        "# 2026-01-31 Python 3.11",
        "# The versions that CI tests, for scripts/setup. Written by scripts/lock.",
        "big==1.0  # spark, test",
        "fast==1.0  # spark",
        "own-one==1.0",
        "small==1.0  # spark, test",
    ]


def test_what_has_changed_is_one_sentence() -> None:
    before, after = "#\na==1\nb==1\nc==1\n", "#\na==1\nb==2  # test\nd==1\n"
    assert changes(before, after) == "3 packages; b 1 → 2, c 1 → (gone), d (new) → 1."
    assert changes(after, after) == "3 packages; no version has changed."
