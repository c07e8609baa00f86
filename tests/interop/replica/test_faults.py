"""A cluster of real processes on machines of their own, of which some fail."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster.log_servers import SERVER
from tests.support.cluster.machines import alone, why_not
from tests.support.soak.replica_soak import storm
from tests.support.waiting import PATIENCE

ROOT = Path(__file__).parents[3]
SEED = 34
"""Of a leader's full disk, a primary that is cut off the log, a wrong clock and a restart."""
MESSAGES = 10_000
DONE, REFUSED, NO_ANSWER = 201, 503, 0


@pytest.fixture(scope="module", autouse=True)
def machines() -> None:
    """Where they can be had."""
    if SERVER is None:
        pytest.skip("nats-server is not installed")
    if reason := why_not():
        pytest.skip(f"machines take root: {reason}")


def test_nothing_that_was_acknowledged_is_lost_or_doubled_by_faults() -> None:
    told = storm(SEED, 0, 4, prompt=PATIENCE)
    assert told["problems"] == []
    assert told["faults"] == 4
    assert told["acknowledged"] > 100
    assert told["taken"] > 10
    assert told["epochs"] > 1


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What callers see in each case of the table in docs/failover.md."""
    return _played("promises", tmp_path_factory.mktemp("promises"))


def _played(name: str, directory: Path, *words: object) -> Any:
    outcome = directory / "outcome.json"
    program = [sys.executable, "-m", f"tests.support.cluster.{name}", *words, outcome]
    subprocess.run(alone(program), cwd=ROOT, check=True, timeout=900)
    return json.loads(outcome.read_text("utf-8"))


@pytest.mark.parametrize("gone", ["a follower", "the standby"])
def test_without_one_of_those_that_only_follow_nobody_sees_a_difference(
    seen: Any, gone: str
) -> None:
    case = seen["cases"][gone]
    assert case["sends"] == [DONE]
    assert case["looks"] == 200
    assert case["ready"][0] == 200
    assert case["served_by"] == "the same"


def test_without_the_leader_of_the_log_the_primary_goes_on_in_a_while(seen: Any) -> None:
    assert seen["cases"]["the leader"]["sends"][-1] == DONE


@pytest.mark.parametrize("gone", ["two servers", "all servers"])
def test_without_a_majority_changes_and_reads_are_refused_and_nobody_takes_over(
    seen: Any, gone: str
) -> None:
    case = seen["cases"][gone]
    assert DONE not in case["sends"]
    assert case["sends"][-1] == REFUSED
    assert case["retry_after"]
    assert case["looks"] == REFUSED
    assert case["ready"] == [REFUSED, REFUSED]


def test_without_the_primary_the_standby_takes_over(seen: Any) -> None:
    case = seen["cases"]["the primary"]
    assert case["sends"][-1] == DONE
    assert case["served_by"] == "the other"


def test_without_both_nodes_nothing_is_answered_until_one_is_back(seen: Any) -> None:
    assert seen["cases"]["both nodes"]["sends"] == [NO_ANSWER]


def test_what_was_answered_is_there_once_whatever_was_gone(seen: Any) -> None:
    assert seen["answered"] > 7
    assert seen["lost"] == []
    assert seen["twice"] == 0
    assert seen["refused and there"] == []


@pytest.mark.soak
def test_a_transfer_goes_on_when_the_primary_s_machine_dies(tmp_path: Path) -> None:
    told = _played("transfer", tmp_path, MESSAGES)
    assert 0 < told["at_death"] < MESSAGES
    assert told["arrived"] == [*range(1, MESSAGES + 1)]
    assert told["died"] != told["took_over"]
    assert told["role"] == "standby"
