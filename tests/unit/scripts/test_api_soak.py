"""`scripts/soak api` drives the interface for programs for a given time."""

from collections import Counter

import pytest

from tests.support.api_soak import Driven, command, main


def test_no_round_begins_when_the_time_is_over(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--minutes", "0", "--first", "7"]) == 0
    told = "0 rounds from seed 7 on, 0 failed; 0 requests to 0 operations (none)\n"
    assert capsys.readouterr().out == told


def test_a_round_that_fails_is_told_with_its_seed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = iter((0.0, 0.0, 100.0, 121.0))
    seeds = []

    def run_round(seed: int, seconds: int) -> Driven:
        seeds.append((seed, seconds))
        asked = Counter({("GET /queues", 200): 2, ("GET /queues", 400): 1})
        return Driven(asked, "it answered 500\n" if seed == 7 else "")

    monkeypatch.setattr("tests.support.api_soak.time.monotonic", lambda: next(times))
    monkeypatch.setattr("tests.support.api_soak.run_round", run_round)
    assert main(["--minutes", "2", "--first", "7"]) == 1
    assert seeds == [(7, 120), (8, 20)]
    assert capsys.readouterr().out == (
        "it answered 500\n"
        "seed 7 failed: scripts/soak api --minutes 2 --first 7\n"
        "2 rounds from seed 7 on, 1 failed; 6 requests to 1 operations (200: 4, 400: 2)\n"
    )


def test_the_tool_is_given_its_time_and_its_seed() -> None:
    words = command(("127.0.0.1", 80), 41, 50, "fuzzing")
    assert words[words.index("--max-time") + 1] == "50"
    assert words[words.index("--seed") + 1] == "41"
