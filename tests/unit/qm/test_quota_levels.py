"""When quotas get nearly full, and what is told of it (G633)."""

from rpcqm.adm.queue import Queue
from rpcqm.qm.quota_levels import level_of, percent_of
from tests.support.queue_manager import RunningQueueManager


class Heard(list[tuple[Queue | None, int]]):
    def __init__(self, qm: RunningQueueManager) -> None:
        super().__init__()
        qm.engine.quotas.levels.hooks.append(self.hear)

    def hear(self, queue: Queue | None, level: int, used: int, quota: int) -> None:
        assert used * 100 >= level * quota
        self.append((queue, level))


def fill(qm: RunningQueueManager, queue: Queue, count: int) -> None:
    """Send messages of a kilobyte each, with their headers."""
    headers = len(qm.compose(queue, b"").packet)
    for _ in range(count):
        qm.send(queue, bytes(1024 - headers))


def empty(qm: RunningQueueManager, queue: Queue, count: int) -> None:
    descriptor = qm.open(queue)
    for _ in range(count):
        qm.receive(descriptor)


def test_each_level_is_told_of_once_until_it_has_been_left(qm: RunningQueueManager) -> None:
    """Going back and forth at a level tells of nothing: it is left 5 % below."""
    queue, heard = qm.create(quota=40), Heard(qm)
    fill(qm, queue, 31)
    assert heard == []
    fill(qm, queue, 1)
    assert heard == [(queue, 80)]
    for _ in range(3):
        empty(qm, queue, 2)
        fill(qm, queue, 2)
    assert heard == [(queue, 80)]
    fill(qm, queue, 6)
    assert heard == [(queue, 80), (queue, 95)]
    empty(qm, queue, 3)
    fill(qm, queue, 1)
    assert heard == [(queue, 80), (queue, 95)], "95 % are left, and 80 % were not"
    empty(qm, queue, 8)
    fill(qm, queue, 5)
    assert heard == [(queue, 80), (queue, 95), (queue, 80)]


def test_one_step_over_both_levels_tells_of_the_higher(qm: RunningQueueManager) -> None:
    queue, heard = qm.create(quota=1), Heard(qm)
    fill(qm, queue, 1)
    assert heard == [(queue, 95)]


def test_a_journal_and_all_messages_together_have_levels_of_their_own(
    qm: RunningQueueManager,
) -> None:
    queue = qm.create(journaling=True, journal_quota=5)
    journal = queue.journal_queue_reference
    heard = Heard(qm)
    fill(qm, queue, 4)
    empty(qm, queue, 4)
    assert heard == [(journal, 80)]
    qm.engine.queue_manager.queue_manager_quota = 6  # four are in the journal
    fill(qm, queue, 1)
    assert heard == [(journal, 80), (None, 80)]


def test_nobody_is_told_again_after_a_restart(qm: RunningQueueManager) -> None:
    queue = qm.create(quota=10)
    fill(qm, queue, 8)
    qm.restart()
    heard = Heard(qm)
    fill(qm, qm.find(), 1)
    assert heard == []


def test_what_queues_have_reached_goes_with_them(qm: RunningQueueManager) -> None:
    for number in range(50):
        queue = qm.create(rf"private$\q{number}", quota=1)
        fill(qm, queue, 1)
        qm.done(qm.engine.queues.delete_queue(queue))
    kept = qm.create(quota=1)
    fill(qm, kept, 1)
    there = qm.engine.queue_manager.queue_collection
    assert len(qm.engine.quotas.levels._levels) <= 2 * len(there)


def test_levels_and_percents_are_of_whole_bytes() -> None:
    assert [level_of(used, 100) for used in (79, 80, 94, 95, 100)] == [0, 80, 80, 95, 95]
    assert [level_of(used, 100, 95) for used in (91, 90, 76, 75)] == [95, 80, 80, 0]
    assert [percent_of(used, 1000) for used in (0, 9, 10, 999, 1000)] == [0, 0, 1, 99, 100]
    assert percent_of(5, None) is None
    assert percent_of(0, 0) == 0
