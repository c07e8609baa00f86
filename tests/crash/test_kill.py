"""kill -9 of a real process, at any time and at every named step of a commit."""

import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from rpcqm.store.fsck import check
from rpcqm.store.store import Store
from tests.crash.script import Script, marker_of, model_of
from tests.crash.workload import SETTINGS, STEPS
from tests.support.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
SEED = 3
LENGTH = 200


@pytest.fixture(scope="module")
def script() -> Script:
    return Script(SEED, LENGTH)


def start(directory: Path, *options: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "tests.crash.workload", str(directory), str(SEED), str(LENGTH)]
    return subprocess.Popen([*command, *options], cwd=ROOT, stdout=subprocess.DEVNULL)


def last(directory: Path, event: str) -> int:
    """The last change of which the process said so."""
    try:
        lines = (directory / "acknowledged").read_text().splitlines()
    except FileNotFoundError:
        return 0
    numbers = [int(line.split()[1]) for line in lines if line.startswith(event)]
    return max(numbers, default=0)


def verify(directory: Path, script: Script) -> int:
    """Nothing acknowledged is lost, nothing removed comes back; how many changes were found."""
    store = Store.open(directory / "data", end_of_turn=print, settings=SETTINGS)
    try:
        found = marker_of(store)
        assert last(directory, "done") <= found <= last(directory, "begun")
        assert model_of(store) == script.states[found]
    finally:
        store.close()
    assert check(directory / "data") == []
    return found


def test_killed_at_any_time_nothing_acknowledged_is_lost(tmp_path: Path, script: Script) -> None:
    random = Random(SEED)
    for life in range(6):
        process = start(tmp_path, *(["--thread"] if life % 2 else []))
        target = last(tmp_path, "done") + random.randrange(1, 40)
        deadline = time.monotonic() + PATIENCE
        while last(tmp_path, "done") < target and process.poll() is None:
            assert time.monotonic() < deadline, "the process makes no progress"
        process.kill()
        process.wait()
        if verify(tmp_path, script) == LENGTH:
            break
    assert last(tmp_path, "done") > 6


@pytest.mark.parametrize(
    "thread", [False, pytest.param(True, marks=pytest.mark.soak)], ids=["loop", "thread"]
)
@pytest.mark.parametrize(
    "step",
    [
        *(f"before-{step}" for step in STEPS),
        *(pytest.param(f"after-{step}", marks=pytest.mark.soak) for step in STEPS),
    ],
)
def test_killed_at_every_step_of_a_commit(
    tmp_path: Path, script: Script, step: str, thread: bool
) -> None:
    for occurrence in (1, 2, 12):
        options = ["--die", f"{step}:{occurrence}", *(["--thread"] if thread else [])]
        assert start(tmp_path, *options).wait() == -9
        verify(tmp_path, script)
    assert start(tmp_path).wait() == 0
    assert verify(tmp_path, script) == LENGTH
