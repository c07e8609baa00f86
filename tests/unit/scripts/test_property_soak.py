"""`scripts/soak properties` tries property tests with seeds of its own."""

from pathlib import Path

import pytest

from tests.support.property_soak import command, main, run_round

PROPERTY = """
from hypothesis import given, strategies as st

@given(st.integers())
def test_numbers_are_small(number):
    assert number < {most}

def test_that_is_no_property():
    assert False
"""


def written(directory: Path, most: str) -> str:
    path = directory / "test_written.py"
    path.write_text(PROPERTY.format(most=most))
    return str(path)


def test_a_round_tells_what_has_failed_and_with_which_seed(tmp_path: Path) -> None:
    told = run_round(41, [written(tmp_path, "100")], 600)
    assert "assert 100 < 100" in told
    assert "1 failed, 1 deselected" in told
    assert "--hypothesis-seed=41" in command(41, [])


def test_a_round_without_failures_or_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RPCQM_CI", "1")
    assert run_round(41, [written(tmp_path, "number + 1")], 600) == ""
    (tmp_path / "none").mkdir()
    assert run_round(41, [str(tmp_path / "none")], 600) == "no property test was found\n"


def test_no_round_begins_when_the_time_is_over(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--minutes", "0", "--first", "7"]) == 0
    assert capsys.readouterr().out == "0 rounds from seed 7 on, 0 failed\n"
