"""`scripts/soak properties` tries property tests with seeds of its own."""

import itertools
from pathlib import Path

import pytest

from tests.support.soak.property_soak import command, main, run_round

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


def test_rounds_go_on_until_the_time_is_over_also_in_a_later_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A round takes 40 of the 60 seconds by this clock; its seed is the next one."""
    seeds = []

    def ran(seed: int, paths: list[str], seconds: float) -> str:
        seeds.append((seed, seconds))
        return "it failed\n" if seed == 8 else ""

    times = itertools.count(step=40)
    monkeypatch.setattr("tests.support.soak.soak_record.time.monotonic", lambda: next(times))
    monkeypatch.setattr("tests.support.soak.property_soak.run_round", ran)
    words = ["--minutes", "1", "--first", "7", "--state", str(tmp_path), "some"]
    assert main([*words, "--parts", "1"]) == 1
    told = "properties: 1 parts, 0.7 of 1 minutes: 1 rounds; 0.7 minutes of work\n"
    assert capsys.readouterr().out.startswith(told)
    assert main(words) == 1
    assert seeds == [(7, 60), (8, 20)]
    told = "properties: 2 parts, 1.3 of 1 minutes: 2 rounds; 1.3 minutes of work\n"
    assert told in capsys.readouterr().out
    assert main(words) == 1
    assert len(seeds) == 2
    assert "--hypothesis-seed=8 some\n" in capsys.readouterr().out
