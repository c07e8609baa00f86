"""How much the garbage collector looks at in one go, while nobody else is served."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from rpcqm.service.run import _settle_memory
from tests.support.queue_manager import RunningQueueManager

FEW = 8_000
"""Objects that are looked at in 4 ms on a slow processor."""


@pytest.fixture
def looked_at() -> Iterator[list[int]]:
    """How many objects each collection looks at, since the queue manager is ready."""
    found: list[int] = []

    def look(phase: str, about: dict[str, int]) -> None:
        if phase == "start":
            younger = range(about["generation"] + 1)
            found.append(sum(len(gc.get_objects(generation)) for generation in younger))

    before = gc.get_threshold()
    _settle_memory()
    gc.callbacks.append(look)
    yield found
    gc.callbacks.remove(look)
    gc.set_threshold(*before)
    gc.unfreeze()


def test_no_collection_looks_at_many_objects_however_many_are_kept(looked_at: list[int]) -> None:
    kept: list[object] = [[number] for number in range(300_000)]
    assert len(kept) == 300_000
    assert len(looked_at) > 100
    assert max(looked_at) <= FEW


def test_an_empty_queue_takes_few_objects(tmp_path: Path) -> None:
    queue_manager = RunningQueueManager(tmp_path)
    queue_manager.create(r"private$\first")
    gc.collect()
    before = len(gc.get_objects())
    for number in range(100):
        queue_manager.create(rf"private$\q{number}")
    gc.collect()
    assert len(gc.get_objects()) - before <= 25 * 100


def test_an_empty_queue_has_an_index_of_its_own_once_a_message_comes(tmp_path: Path) -> None:
    queue_manager = RunningQueueManager(tmp_path)
    queues = [queue_manager.create(rf"private$\q{number}") for number in range(3)]
    queue_manager.send(queues[1], b"one")
    assert [queue_manager.bodies(queue) for queue in queues] == [[], [b"one"], []]
