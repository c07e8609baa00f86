"""A cluster of real processes on machines of their own, of which some fail."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster.log_servers import SERVER
from tests.support.cluster.machines import alone, why_not

ROOT = Path(__file__).parents[3]
MESSAGES = 10_000


@pytest.fixture(scope="module", autouse=True)
def machines() -> None:
    """Where they can be had."""
    if SERVER is None:
        pytest.skip("nats-server is not installed")
    if reason := why_not():
        pytest.skip(f"machines take root: {reason}")


def _played(name: str, directory: Path, *words: object) -> Any:
    outcome = directory / "outcome.json"
    program = [sys.executable, "-m", f"tests.support.cluster.{name}", *words, outcome]
    subprocess.run(alone(program), cwd=ROOT, check=True, timeout=900)
    return json.loads(outcome.read_text("utf-8"))


@pytest.mark.soak
def test_a_transfer_goes_on_when_the_primary_s_machine_dies(tmp_path: Path) -> None:
    told = _played("transfer", tmp_path, MESSAGES)
    assert 0 < told["at_death"] < MESSAGES
    assert told["arrived"] == [*range(1, MESSAGES + 1)]
    assert told["died"] != told["took_over"]
    assert told["role"] == "standby"
