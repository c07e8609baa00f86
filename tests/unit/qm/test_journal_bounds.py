"""Journals that keep copies for a time, or so many of them: the oldest go first (G657)."""

import pytest
from structlog.testing import capture_logs

from rpcqm.adm.queue import Queue
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.qm import journal_bounds
from rpcqm.qm.journal_bounds import COUNTED, LOOK, PERIOD
from tests.support.queue_manager import RunningQueueManager


def receive(qm: RunningQueueManager, queue: Queue, *bodies: bytes, priority: int = 3) -> None:
    descriptor = qm.open(queue, QueueAccessType.RECEIVE_ACCESS)
    for body in bodies:
        message = qm.compose(queue, body, priority=priority)
        qm.done(qm.engine.messages.enqueue_message(queue, message))
        qm.receive(descriptor)
    qm.advance(0)


def journal_of(queue: Queue) -> Queue:
    assert queue.journal_queue_reference is not None
    return queue.journal_queue_reference


def bound(qm: RunningQueueManager, queue: Queue, age: int = 0, messages: int = 0) -> None:
    qm.done(qm.engine.journal_bounds.set(queue, age, messages))
    qm.advance(0)


def removed(qm: RunningQueueManager) -> int:
    return int(qm.store.metrics.counts[COUNTED])


def test_the_latest_copies_stay_whatever_their_priority(qm: RunningQueueManager) -> None:
    queue = qm.create(journaling=True)
    bound(qm, queue, messages=2)
    receive(qm, queue, b"a", priority=7)
    receive(qm, queue, b"b", priority=0)
    receive(qm, queue, b"c", priority=5)
    assert sorted(qm.bodies(journal_of(queue))) == [b"b", b"c"]
    receive(qm, queue, b"d", priority=3)
    assert sorted(qm.bodies(journal_of(queue))) == [b"c", b"d"]
    assert removed(qm) == 2


@pytest.mark.parametrize("restarted", [False, True])
def test_copies_go_when_they_are_old(qm: RunningQueueManager, restarted: bool) -> None:
    queue = qm.create(journaling=True)
    bound(qm, queue, age=3600)
    receive(qm, queue, b"a")
    qm.advance(1_800_000)
    receive(qm, queue, b"b")
    if restarted:
        qm.restart()
        queue = qm.find(r"private$\orders")
    qm.advance(1_800_000 + LOOK)
    assert qm.bodies(journal_of(queue)) == [b"b"]
    qm.advance(1_800_000)
    assert qm.bodies(journal_of(queue)) == []


def test_a_bound_that_is_set_later_counts_for_what_is_there(
    qm: RunningQueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_bounds, "AT_ONCE", 2)
    queue = qm.create(journaling=True)
    receive(qm, queue, *(b"%d" % number for number in range(7)))
    with capture_logs() as lines:
        bound(qm, queue, messages=1)
        assert qm.bodies(journal_of(queue)) == [b"6"]
        receive(qm, queue, b"7", b"8")
        qm.advance(PERIOD)
        receive(qm, queue, b"9")
    told = [line["copies"] for line in lines if "old copies" in line["event"]]
    assert sum(told) == removed(qm) == 9
    assert len(told) == 2
    bound(qm, queue)
    receive(qm, queue, b"10")
    assert qm.bodies(journal_of(queue)) == [b"9", b"10"]


def test_bounds_are_kept_over_a_restart(qm: RunningQueueManager) -> None:
    bound(qm, qm.create(journaling=True), age=60, messages=5)
    qm.restart()
    queue = qm.find(r"private$\orders")
    assert (queue.journal_max_age, queue.journal_max_messages) == (60, 5)


def test_nothing_is_kept_of_journals_that_are_gone(qm: RunningQueueManager) -> None:
    for name in ("a", "b"):
        queue = qm.create(rf"private$\{name}", journaling=True)
        bound(qm, queue, messages=1)
        receive(qm, queue, b"1", b"2")
    qm.done(qm.engine.queues.delete_queue(queue))
    qm.advance(LOOK)
    assert len(qm.engine.journal_bounds._told) == 1
