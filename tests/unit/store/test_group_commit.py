"""Writing in groups: order, bounds, threads, and what happens when a step fails."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from rpcqm.base.metrics import Metrics
from rpcqm.store.database import Database
from rpcqm.store.errors import StoreStoppedError
from rpcqm.store.group_commit import WriteMode
from rpcqm.store.priority_index import PriorityIndex
from rpcqm.store.records import Family
from rpcqm.store.settings import StoreSettings
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction
from tests.support.store.stores import Turns

Q = 16


class Disk:
    """Watches the writes of a database, and lets them fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.writes: list[bool] = []
        """Whether each write was synced."""
        self.error: BaseException | None = None
        write = Database.write

        def watched(database: Database, batch: Any, sync: bool) -> None:
            self.writes.append(sync)
            if self.error is not None:
                raise self.error
            write(database, batch, sync)

        monkeypatch.setattr(Database, "write", watched)


@pytest.fixture
def disk(store: Store, monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Watches from when the store is open, with its counters reserved."""
    for counter in store.counters.all():
        counter.take()
    return Disk(monkeypatch)


def insert(store: Store, key: int, size: int = 10, durable: bool = True) -> StoreTransaction:
    with store.transaction("insert") as txn:
        txn.insert(Q, key, bytes(size), arrival=0, durable=durable)
    return txn


def insert_with_record(store: Store, key: int, record: bytes) -> None:
    with store.transaction("insert with record") as txn:
        txn.insert(Q, key, b"good", arrival=0)
        txn.operations.append((b"key", record, store.handles[Family.QUEUE]))


def test_what_one_turn_collects_is_one_synced_write(store: Store, turns: Turns, disk: Disk) -> None:
    turns.end()
    disk.writes.clear()
    for key in range(50):
        insert(store, key)
    assert disk.writes == []
    turns.end()
    assert disk.writes == [True]
    assert store.index(Q).count == 50


def test_where_several_send_one_more_turn_is_gathered(
    store: Store, turns: Turns, disk: Disk
) -> None:
    turns.end()
    disk.writes.clear()
    insert(store, 1)
    insert(store, 2)
    turns.callbacks.pop(0)()
    insert(store, 3)
    turns.callbacks.pop(0)()
    assert disk.writes == [True]
    assert store.index(Q).count == 3
    assert not turns.callbacks


def test_who_sends_alone_does_not_wait_for_a_turn(store: Store, turns: Turns, disk: Disk) -> None:
    turns.end()
    disk.writes.clear()
    insert(store, 1)
    turns.callbacks.pop(0)()
    assert disk.writes == [True]


class PutOff:
    """Messages that wait for the end of the turn, and go into one transaction then."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._keys: list[int] = []

    def put_off(self, *keys: int) -> None:
        self._keys += keys
        self._store.put_off(self._gather)

    def _gather(self) -> None:
        keys, self._keys = self._keys, []
        if keys:
            with self._store.transaction("gathered") as txn:
                txn.insert_many(Q, keys, [b"packet"] * len(keys), arrival=0)
                txn.requests = len(keys)


def test_what_was_put_off_is_written_at_the_end_of_the_turn(
    store: Store, turns: Turns, disk: Disk
) -> None:
    turns.end()
    disk.writes.clear()
    waiting = PutOff(store)
    waiting.put_off(1)
    turns.callbacks.pop(0)()
    assert disk.writes == [True]
    assert store.index(Q).count == 1
    assert not turns.callbacks


def test_what_was_put_off_by_several_waits_one_more_turn_for_others(
    store: Store, turns: Turns, disk: Disk
) -> None:
    turns.end()
    disk.writes.clear()
    waiting = PutOff(store)
    waiting.put_off(1, 2)
    turns.callbacks.pop(0)()
    waiting.put_off(3)
    insert(store, 4)
    turns.callbacks.pop(0)()
    assert disk.writes == [True]
    assert store.index(Q).count == 4
    assert not turns.callbacks


def test_putting_off_that_fails_stops_no_write(store: Store, turns: Turns) -> None:
    insert(store, 1)
    store.put_off(lambda: 1 // 0)  # type: ignore[arg-type]
    turns.end()
    assert store.index(Q).count == 1


def test_what_is_told_of_a_group_is_told_together(store: Store, turns: Turns) -> None:
    turns.end()
    told: list[str] = []

    @contextmanager
    def together() -> Iterator[None]:
        told.append("begin")
        yield
        told.append("end")

    store.tell_together(together())
    for key in (1, 2):
        insert(store, key).call_after(partial(told.append, str(key)))
    turns.end()
    assert told == ["begin", "1", "2", "end"]


def test_a_commit_leaves_nothing_to_the_collector_of_garbage(store: Store, turns: Turns) -> None:
    told: list[int] = []
    gc.collect()
    gc.disable()
    try:
        for key in range(10):
            insert(store, key).call_after(partial(told.append, key))
        turns.end()
        assert gc.collect() == 0
    finally:
        gc.enable()
    assert told == list(range(10))


def test_express_messages_need_no_write(store: Store, turns: Turns, disk: Disk) -> None:
    turns.end()
    disk.writes.clear()
    insert(store, 1, durable=False)
    assert store.index(Q).first_available() is None
    turns.end()
    assert store.index(Q).first_available() == 1
    with store.transaction("remove") as txn:
        txn.remove(Q, 1)
    turns.end()
    assert disk.writes == []


def test_staged_operations_are_written_but_not_synced(
    store: Store, turns: Turns, disk: Disk
) -> None:
    turns.end()
    disk.writes.clear()
    with store.transaction("stage") as txn:
        txn.stage_message(b"t" * 16, Q, b"packet", b"")
    turns.end()
    assert disk.writes == [False]


def test_a_reserved_counter_is_synced_even_without_a_transaction(
    store: Store, turns: Turns, disk: Disk
) -> None:
    turns.end()
    disk.writes.clear()
    for _ in range(20):
        store.counters.queue_id.take()
    turns.end()
    assert disk.writes == [True]


def test_records_of_one_commit_are_written_in_their_order(store: Store, turns: Turns) -> None:
    """Also empty ones, and those that are deleted and written again."""
    with store.transaction("many") as txn:
        for number in range(10):
            txn.put(Family.QUEUE, b"key %d" % number, b"" if number % 3 else b"first")
        for number in range(0, 10, 2):
            txn.delete(Family.QUEUE, b"key %d" % number)
        txn.put(Family.QUEUE, b"key 4", b"again")
        txn.put(Family.QUEUE, b"key 5", b"")
        txn.delete(Family.QUEUE, b"key 3")
        txn.put(Family.QUEUE, b"key 6", b"")
    turns.end()
    assert dict(store.records(Family.QUEUE, b"key ")) == {
        b"key 1": b"",
        b"key 4": b"again",
        b"key 5": b"",
        b"key 6": b"",
        b"key 7": b"",
        b"key 9": b"first",
    }


def test_a_group_is_bounded_in_records(turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    store = turns.open(settings=StoreSettings(reserve=0, group_records=10))
    disk = Disk(monkeypatch)
    told: list[int] = []
    for key in range(12):
        insert(store, key).call_after(partial(told.append, key))
    turns.end()
    assert disk.writes == [True] * 3
    assert told == list(range(12))
    store.close()


def test_a_group_is_bounded_in_bytes_but_one_commit_may_exceed_the_bound(
    turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = turns.open(settings=StoreSettings(reserve=0, group_bytes=1_000))
    disk = Disk(monkeypatch)
    for key, size in enumerate([400, 500, 5_000, 400, 500]):
        insert(store, key, size)
    turns.end()
    assert disk.writes == [True] * 3
    assert store.index(Q).count == 5
    store.close()


def test_groups_of_one_turn_are_written_in_turns_of_their_own(turns: Turns) -> None:
    store = turns.open(settings=StoreSettings(reserve=0, group_records=2))
    for key in range(3):
        insert(store, key)
    seen = []
    while turns.callbacks:
        turns.callbacks.pop(0)()
        seen.append(store.index(Q).count)
    assert seen == [1, 2, 3]
    store.close()


def test_an_express_message_is_published_behind_pending_commits(store: Store, turns: Turns) -> None:
    seen: list[tuple[int, int | None]] = []
    for key, durable in ((1, True), (2, False), (3, True)):
        txn = insert(store, key, durable=durable)
        txn.call_after(lambda: seen.append((store.index(Q).count, store.index(Q).last())))
    turns.end()
    assert seen == [(1, 1), (2, 2), (3, 3)]


def test_callbacks_may_begin_the_next_transaction(store: Store, turns: Turns) -> None:
    first = insert(store, 1)
    first.call_after(lambda: insert(store, 2).call_after(lambda: insert(store, 3)))
    turns.end()
    assert store.index(Q).count == 3


# A step fails


def test_a_failing_callback_stops_nothing(store: Store, turns: Turns) -> None:
    told: list[str] = []

    def fail() -> None:
        raise ConnectionError("the client has vanished")

    with store.transaction("first") as txn:
        txn.insert(Q, 1, b"x", arrival=0)
        txn.call_after(fail)
        txn.call_after(lambda: told.append("first"))
        txn.committed.add_done_callback(lambda _: fail())
    insert(store, 2).call_after(lambda: told.append("second"))
    turns.end()
    assert told == ["first", "second"]
    assert store.metrics.snapshot()["store_callback_failures"] == 2
    assert not turns.fatal


def assert_nothing_is_answered(store: Store, turns: Turns, told: list[str]) -> None:
    turns.end()
    assert told == []
    assert len(turns.fatal) == 1
    with pytest.raises(StoreStoppedError), store.transaction("after"):
        pass
    turns.end()
    assert told == []
    assert len(turns.fatal) == 1


@pytest.mark.parametrize("error", [OSError(5, "I/O error"), KeyboardInterrupt()])
def test_a_failed_write_answers_nobody_and_is_not_repeated(
    store: Store, turns: Turns, disk: Disk, error: BaseException
) -> None:
    told: list[str] = []
    turns.end()
    disk.writes.clear()
    insert(store, 1).call_after(lambda: told.append("inserted"))
    disk.error = error
    assert_nothing_is_answered(store, turns, told)
    assert turns.fatal == [error]
    assert disk.writes == [True]
    assert store.index(Q).first_available() is None


def test_changes_that_cannot_be_applied_answer_nobody(
    store: Store, turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def broken(*_: object) -> None:
        raise AssertionError("the index is broken")

    insert(store, 1).call_after(lambda: told.append("inserted"))
    with monkeypatch.context() as patch:
        patch.setattr(PriorityIndex, "insert", broken)
        assert_nothing_is_answered(store, turns, told)


def test_what_cannot_be_written_is_refused_at_once(store: Store, turns: Turns) -> None:
    not_bytes: Any = object()
    insert(store, 1)
    with pytest.raises(Exception, match="only support bytes"):
        insert_with_record(store, 2, not_bytes)
    insert(store, 3)
    turns.end()
    assert list(store.index(Q).keys()) == [1, 3]
    store = turns.reopen(store)
    assert list(store.index(Q).keys()) == [1, 3]
    store.close()


# Slow syncs go to a thread


class Threads:
    """A worker and the way back from it, both run by the test."""

    def __init__(self) -> None:
        self.work: list[Callable[[], None]] = []
        self.back: list[Callable[[], None]] = []

    def write(self) -> None:
        self.work.pop(0)()

    def tell(self) -> None:
        self.back.pop(0)()


class Stopwatch:
    """Every write takes as long as the test says, in microseconds."""

    def __init__(self) -> None:
        self.duration = 100
        self._now = 0

    def __call__(self) -> int:
        self._now += self.duration * 1000
        return self._now


@pytest.fixture
def threads() -> Threads:
    return Threads()


@pytest.fixture
def stopwatch() -> Stopwatch:
    return Stopwatch()


@pytest.fixture
def slow(turns: Turns, threads: Threads, stopwatch: Stopwatch) -> Store:
    """A store that has noticed that syncs are slow."""
    store = turns.open(
        settings=StoreSettings(reserve=0, slow_sync=1_000, sync_window=3),
        executor=threads.work.append,
        call_from_thread=threads.back.append,
        stopwatch=stopwatch,
    )
    stopwatch.duration = 5_000
    insert(store, 0)
    turns.end()
    assert store._writer.mode is WriteMode.THREAD
    return store


def test_only_one_write_is_outstanding_and_others_gather(
    slow: Store, turns: Turns, threads: Threads
) -> None:
    insert(slow, 1)
    turns.end()
    for key in (2, 3):
        insert(slow, key)
        turns.end()
    assert len(threads.work) == 1
    threads.write()
    assert list(slow.index(Q).keys()) == [0]
    threads.tell()
    assert list(slow.index(Q).keys()) == [0, 1]
    assert len(threads.work) == 1
    threads.write()
    threads.tell()
    assert list(slow.index(Q).keys()) == [0, 1, 2, 3]
    assert not threads.work
    slow.close()


def test_what_was_put_off_while_a_thread_writes_is_in_the_next_write(
    slow: Store, turns: Turns, threads: Threads
) -> None:
    waiting = PutOff(slow)
    insert(slow, 1)
    turns.end()
    for key in (2, 3):
        waiting.put_off(key)
        turns.end()
    assert not slow.index(Q).pending.keys() & {2, 3}
    threads.write()
    threads.tell()
    assert len(threads.work) == 1
    assert slow.index(Q).pending.keys() == {2, 3}
    threads.write()
    threads.tell()
    assert list(slow.index(Q).keys()) == [0, 1, 2, 3]
    assert not threads.work
    slow.close()


def test_the_next_write_begins_before_the_last_is_answered(
    slow: Store, turns: Turns, threads: Threads
) -> None:
    seen: list[int] = []
    insert(slow, 1).call_after(lambda: seen.append(len(threads.work)))
    turns.end()
    insert(slow, 2)
    threads.write()
    threads.tell()
    assert seen == [1]
    threads.write()
    slow.close()


def test_an_express_message_waits_for_the_thread_too(
    slow: Store, turns: Turns, threads: Threads
) -> None:
    insert(slow, 1)
    turns.end()
    insert(slow, 2, durable=False)
    turns.end()
    assert list(slow.index(Q).keys()) == [0]
    threads.write()
    threads.tell()
    turns.end()
    assert list(slow.index(Q).keys()) == [0, 1, 2]
    assert not threads.work
    slow.close()


def test_writes_return_to_the_loop_when_syncs_are_quick(
    slow: Store, turns: Turns, threads: Threads, stopwatch: Stopwatch
) -> None:
    stopwatch.duration = 100
    for key in (1, 2):
        insert(slow, key)
        turns.end()
        threads.write()
        threads.tell()
    assert slow._writer.mode is WriteMode.LOOP
    insert(slow, 3)
    turns.end()
    assert not threads.work
    assert slow.index(Q).count == 4
    slow.close()


def test_one_slow_sync_among_quick_ones_changes_nothing(
    turns: Turns, threads: Threads, stopwatch: Stopwatch
) -> None:
    store = turns.open(
        executor=threads.work.append, call_from_thread=threads.back.append, stopwatch=stopwatch
    )
    for key, duration in enumerate([100, 100, 90_000, 100]):
        stopwatch.duration = duration
        insert(store, key)
        turns.end()
    assert store._writer.mode is WriteMode.LOOP
    store.close()


def test_a_write_that_fails_in_the_thread_answers_nobody(
    slow: Store, turns: Turns, threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    disk = Disk(monkeypatch)
    disk.error = OSError(28, "No space left on device")
    insert(slow, 1).call_after(lambda: told.append("inserted"))
    turns.end()
    threads.write()
    assert not turns.fatal
    threads.tell()
    assert_nothing_is_answered(slow, turns, told)
    assert not threads.work


def test_a_worker_that_cannot_be_started_answers_nobody(
    turns: Turns, threads: Threads, stopwatch: Stopwatch
) -> None:
    told: list[str] = []

    def refuse(_: Callable[[], None]) -> None:
        raise RuntimeError("cannot start a thread")

    stopwatch.duration = 5_000
    store = turns.open(executor=refuse, call_from_thread=threads.back.append, stopwatch=stopwatch)
    insert(store, 1)
    turns.end()
    insert(store, 2).call_after(lambda: told.append("inserted"))
    assert_nothing_is_answered(store, turns, told)


def test_closing_waits_for_the_thread_and_writes_the_rest(
    turns: Turns, threads: Threads, stopwatch: Stopwatch
) -> None:
    store = turns.open(
        executor=lambda work: work(),
        call_from_thread=threads.back.append,
        stopwatch=stopwatch,
    )
    stopwatch.duration = 5_000
    told: list[int] = []
    for key in range(4):
        insert(store, key).call_after(partial(told.append, key))
        if key < 3:
            turns.end()
    store.close()
    assert told == [0, 1, 2, 3]
    for tell in threads.back:
        tell()
    store = turns.open()
    assert list(store.index(Q).keys()) == [0, 1, 2, 3]
    store.close()


def test_metrics_count_commits_messages_and_writes(turns: Turns) -> None:
    metrics = Metrics()
    store = turns.open(metrics=metrics)
    for key in range(3):
        insert(store, key, size=100)
    turns.end()
    store.close()
    counts = metrics.snapshot()
    assert counts["store_commits"] == counts["store_messages"] == 3
    assert counts["store_syncs"] == counts["store_writes"] == 1
    assert counts["store_bytes"] == 300
