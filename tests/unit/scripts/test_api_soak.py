"""`scripts/soak api` drives the interface for programs for a given time."""

import itertools
from collections import Counter
from pathlib import Path

import pytest

from tests.support.soak.api_soak import Driven, command, main


def test_a_round_that_fails_is_told_with_its_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = itertools.count(step=100)
    rounds = []

    def run_round(seed: int, seconds: int) -> Driven:
        rounds.append((seed, seconds))
        asked = Counter({("GET /queues", 200): 2, ("GET /queues", 400): 1})
        return Driven(asked, "it answered 500\n" if seed == 7 else "")

    monkeypatch.setattr("tests.support.soak.soak_record.time.monotonic", lambda: next(times))
    monkeypatch.setattr("tests.support.soak.api_soak.run_round", run_round)
    assert main(["--minutes", "3", "--first", "7", "--state", str(tmp_path)]) == 1
    assert rounds == [(7, 120), (8, 80)]
    again = "seed 7 failed: scripts/soak api --minutes 2 --first 7"
    assert capsys.readouterr().out == (
        f"it answered 500\n{again}\n"
        "api: 2 parts, 3.3 of 3 minutes: 2 rounds, 6 requests, 4 answers 200, 2 answers 400, "
        "at most 1 operations in a round; 3.3 minutes of work\n"
        f"failed: {again}\n"
    )


def test_the_tool_is_given_its_time_and_its_seed() -> None:
    words = command(("127.0.0.1", 80), 41, 50, "fuzzing")
    assert words[words.index("--max-time") + 1] == "50"
    assert words[words.index("--seed") + 1] == "41"
