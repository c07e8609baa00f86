"""kill -9 in the middle of sends under keys, which their program repeats: each is there once."""

import subprocess
import sys
import time
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

from rpcqm.store.fsck import check
from tests.crash.keyed_sends import TASKS_EVERY, Program, answers
from tests.support.queue_manager import MEMORY
from tests.support.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
SEED = 7
COUNT = 1_000
KILLS = 3


def start(directory: Path, count: int, *options: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "tests.crash.keyed_sends", str(directory), str(count)]
    return subprocess.Popen([*command, *options], cwd=ROOT)


def kill_after(directory: Path, count: int, answered: int) -> None:
    """One life, which ends when so many more requests have got their answers, or all have."""
    acknowledged = directory / "acknowledged"
    process, target = start(directory, count), len(answers(acknowledged)) + answered
    deadline = time.monotonic() + PATIENCE
    while len(answers(acknowledged)) < target and process.poll() is None:
        assert time.monotonic() < deadline, "the process makes no progress"
    process.kill()
    process.wait()


def verify(directory: Path, count: int, finished: bool) -> None:
    """Nothing is there twice, nothing that was told is lost, and tasks are done as a whole."""
    told = answers(directory / "acknowledged")
    assert all(len(identifiers) == 1 for identifiers in told.values()), "two answers to one request"
    program = Program(directory, count)
    orders, tasks, results = program.contents()
    program.stop()
    assert len(orders) == len(set(orders)), "a message was sent twice"
    assert set(told) <= set(orders), "a message that was told is lost"
    assert results == [number for number in orders if number % TASKS_EVERY == 0]
    assert sorted(tasks + results) == list(range(TASKS_EVERY, count + 1, TASKS_EVERY))
    if finished:
        assert sorted(orders) == list(range(1, count + 1))
        assert tasks == []
    assert check(directory / "data") == []


def test_a_thousand_sends_killed_and_repeated_are_there_once_each() -> None:
    random = Random(SEED)
    with TemporaryDirectory(prefix="rpcqm-keys-", dir=MEMORY) as name:
        directory = Path(name)
        for _ in range(KILLS):
            kill_after(directory, COUNT, random.randrange(20, 180))
            verify(directory, COUNT, finished=False)
        assert start(directory, COUNT).wait(PATIENCE) == 0
        verify(directory, COUNT, finished=True)


@pytest.mark.parametrize("step", ["write", "callbacks"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_sends_killed_at_a_step_of_their_commit_are_there_once_each(when: str, step: str) -> None:
    with TemporaryDirectory(prefix="rpcqm-keys-", dir=MEMORY) as name:
        directory = Path(name)
        assert start(directory, 40, "--die", f"{when}-{step}:2").wait(PATIENCE) == -9
        verify(directory, 40, finished=False)
        assert start(directory, 40).wait(PATIENCE) == 0
        verify(directory, 40, finished=True)
