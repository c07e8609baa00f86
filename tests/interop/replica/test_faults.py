"""A cluster of real processes on machines of their own, of which some fail."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cluster.log_servers import SERVER
from tests.support.cluster.machines import alone, why_not
from tests.support.soak.replica_soak import storm
from tests.support.waiting import PATIENCE

ROOT = Path(__file__).parents[3]
SEED = 34
"""Of a leader's full disk, a primary that is cut off the log, a wrong clock and a restart."""
MESSAGES = 10_000


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


@pytest.mark.soak
def test_a_transfer_goes_on_when_the_primary_s_machine_dies(tmp_path: Path) -> None:
    outcome = tmp_path / "outcome.json"
    program = [sys.executable, "-m", "tests.support.cluster.transfer", MESSAGES, outcome]
    subprocess.run(alone(program), cwd=ROOT, check=True, timeout=900)
    told = json.loads(outcome.read_text("utf-8"))
    assert 0 < told["at_death"] < MESSAGES
    assert told["arrived"] == [*range(1, MESSAGES + 1)]
    assert told["died"] != told["took_over"]
    assert told["role"] == "standby"
