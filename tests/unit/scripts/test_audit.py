"""`scripts/soak audit` says that nothing is wrong only when that is known."""

import sys
from pathlib import Path

import pytest

from tests.support.project.audit import CLEAN, UNKNOWN, WEAK, audit, main, verdict

GOOD = {"name": "lark", "version": "1.3", "vulns": []}
BAD = {"name": "old", "version": "1.0", "vulns": [{"id": "PYSEC-1"}]}
SKIPPED = {"name": "unknown", "skip_reason": "not found"}
OWN = {"name": "rpcqm", "skip_reason": "editable"}


def test_packages_without_weaknesses_pass() -> None:
    assert verdict([GOOD, OWN]) == (CLEAN, "1 packages have no known weaknesses.")


def test_a_weakness_is_named() -> None:
    assert verdict([GOOD, BAD, SKIPPED]) == (WEAK, "Known weaknesses: old 1.0 (PYSEC-1).")


@pytest.mark.parametrize("packages", [[GOOD, SKIPPED], [OWN], []])
def test_what_could_not_be_looked_up_proves_nothing(packages: list[dict[str, object]]) -> None:
    """pip-audit itself ends with 0 when it has found nothing out."""
    status, sentence = verdict(packages)
    assert status == UNKNOWN
    assert sentence.startswith("Nothing is proved: ")


@pytest.mark.parametrize("program", ["raise SystemExit('no network')", "print('{')"])
def test_a_database_that_cannot_be_asked_is_one_sentence(program: str) -> None:
    status, sentence = audit((sys.executable, "-c", program))
    assert status == UNKNOWN
    assert sentence.startswith("Nothing is proved: the database of known weaknesses cannot be")
    assert "\n" not in sentence


def test_the_database_is_asked_again_by_each_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "soak.md"
    for status, outcome in ((WEAK, "**1 failed**: It is weak."), (CLEAN, "well")):
        told = (status, "It is weak." if status else "All is well.")
        monkeypatch.setattr("tests.support.project.audit.audit", lambda told=told: told)
        assert main(["--state", str(tmp_path), "--page", str(page)]) == status
        assert f"| audit | {outcome} |" in page.read_text("utf-8")
