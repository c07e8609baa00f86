"""Group commit: one synced write holds all transactions of one turn of the loop."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from enum import Enum
from itertools import groupby, starmap
from operator import itemgetter, not_

from rocksdict import WriteBatch

from rpcqm.base.completion import Completion
from rpcqm.base.each import run_all
from rpcqm.base.log import get_logger
from rpcqm.base.metrics import Metrics
from rpcqm.store.changes import Changes
from rpcqm.store.database import Database
from rpcqm.store.environment import StoreEnvironment
from rpcqm.store.records import Family
from rpcqm.store.replication import GroupLog, Place, RowWriter
from rpcqm.store.runs import Operation
from rpcqm.store.settings import StoreSettings

_log = get_logger("store")
_FEW = 8
"""Operations that are put one by one; longer runs are joined."""
_first_of, _value_of, _key_and_family_of = itemgetter(0), itemgetter(1), itemgetter(0, 2)


def _nothing() -> None:
    """Do nothing: no work was put off."""


class WriteMode(Enum):
    """Where writes are made."""

    LOOP = "loop"
    THREAD = "thread"
    LOG = "log"
    """In the loop, once a replicated log has the group; then it needs no sync."""


class CommitGroup:
    """Transactions that are written together, after the counters that they need."""

    __slots__ = (
        "_database",
        "_reserved",
        "batch",
        "messages",
        "records",
        "requests",
        "size",
        "sync",
        "transactions",
    )

    def __init__(self, database: Database) -> None:
        self._database = database
        self._reserved: list[tuple[bytes, bytes]] = []
        self.batch = WriteBatch(raw_mode=True)
        self.transactions: list[Changes] = []
        self.records = self.messages = self.requests = 0
        self.size = 0
        self.sync = False

    def reserve(self, key: bytes, value: bytes) -> None:
        """Add a counter's limit, whatever becomes of the transaction that asked for it."""
        self.batch.put(key, value, self._database.handles[Family.META])
        self._reserved.append((key, value))
        self.records += 1
        self.sync = True

    def operations(self) -> Iterator[Operation]:
        """The operations of the batch, in an order with the same result."""
        handle = self._database.handles[Family.META]
        for key, value in self._reserved:
            yield key, value, handle
        for transaction in self.transactions:
            yield from transaction.operations

    def add(self, transaction: Changes) -> None:
        """Add a transaction wholly, or raise and leave the group as it was."""
        try:
            self._put(transaction)
        except BaseException:
            self._rebuild()
            raise
        self.records += len(transaction.operations)
        self.size += transaction.size
        self.messages += transaction.messages
        self.requests += transaction.requests
        self.sync = self.sync or transaction.sync
        self.transactions.append(transaction)

    def _put(self, transaction: Changes) -> None:
        operations = transaction.operations
        if len(operations) < _FEW:
            self._put_each(operations)
            return
        empty = map(not_, map(_value_of, operations))
        for is_empty, rows in groupby(zip(empty, operations, strict=True), _first_of):
            run = list(map(_value_of, rows))
            if not is_empty:
                run_all(starmap(self.batch.put, run))
            elif set(map(_value_of, run)) == {None}:
                run_all(starmap(self.batch.delete, map(_key_and_family_of, run)))
            else:
                self._put_each(run)

    def _put_each(self, operations: Iterable[Operation]) -> None:
        put, delete = self.batch.put, self.batch.delete
        for key, value, handle in operations:
            if value is None:
                delete(key, handle)
            else:
                put(key, value, handle)

    def _rebuild(self) -> None:
        self.batch = WriteBatch(raw_mode=True)
        for key, value in self._reserved:
            self.batch.put(key, value, self._database.handles[Family.META])
        for transaction in self.transactions:
            self._put(transaction)


class SyncTimes:
    """The moving median of how long syncs take, in microseconds."""

    def __init__(self, window: int) -> None:
        self._times: deque[int] = deque(maxlen=window)
        self.median = 0

    def add(self, microseconds: int) -> None:
        self._times.append(microseconds)
        self.median = sorted(self._times)[len(self._times) // 2]


class GroupCommit:
    """Writes groups one at a time, in order; then publishes them.

    `before_write` is called in the loop before each write. A write that fails is never repeated:
    `fatal` is called, and nothing else happens any more. The contexts in `together` surround the
    callbacks of each group. With a `log` each group is appended there before it is written, and is
    not synced here.

    `gather` is called before a group is written, so that work put off to the end of the turn
    belongs to it.
    """

    def __init__(
        self,
        database: Database,
        settings: StoreSettings,
        surroundings: StoreEnvironment,
        before_write: Callable[[], None],
        metrics: Metrics,
        log: GroupLog | None = None,
    ) -> None:
        self._database = database
        self._group_log = log
        self._rows = None if log is None else RowWriter(database.handles)
        self._settings = settings
        self._end_of_turn = surroundings.end_of_turn
        self._fatal = surroundings.fatal
        self._executor = surroundings.executor
        self._call_from_thread = surroundings.call_from_thread
        self._stopwatch = surroundings.stopwatch
        self._before_write = before_write
        self._metrics = metrics
        self._sync_times = metrics.histogram("store", "sync")
        self._sync_messages = metrics.histogram("store", "messages")
        self._groups: deque[CommitGroup] = deque([CommitGroup(database)])
        self._scheduled = self._waited = False
        self._writing: CommitGroup | None = None
        self._written = threading.Event()
        self._outcome: BaseException | None = None
        self.times = SyncTimes(settings.sync_window)
        self.mode = WriteMode.LOOP if log is None else WriteMode.LOG
        self.failed: BaseException | None = None
        self.together: list[AbstractContextManager[object]] = []
        self.gather: Callable[[], None] = _nothing

    @property
    def idle(self) -> bool:
        """Whether the group is empty and no write is under way."""
        group = self._groups[0]
        return self._writing is None and not group.transactions and not group.records

    def announce(self) -> None:
        """Call `gather` at the end of this turn, or after the write that is under way."""
        self._schedule()

    def reserve(self, key: bytes, value: bytes) -> None:
        """Write a counter's limit with or before all later commits."""
        self._groups[-1].reserve(key, value)
        self._schedule()

    def add(self, transaction: Changes) -> None:
        """Commit a transaction together with the others of this turn."""
        group = self._groups[-1]
        if group.transactions and self._too_much(group, transaction):
            group = CommitGroup(self._database)
            self._groups.append(group)
        group.add(transaction)
        self._schedule()

    def _too_much(self, group: CommitGroup, transaction: Changes) -> bool:
        return (
            group.size + transaction.size > self._settings.group_bytes
            or group.records + len(transaction.operations) > self._settings.group_records
        )

    def _schedule(self) -> None:
        if not self._scheduled and self._writing is None:
            self._scheduled = True
            self._end_of_turn(self._flush)

    def _flush(self) -> None:
        """Write the group; with many senders, wait one more turn for others, which saves syncs."""
        if self._writing is None and self.failed is None:
            self._gather()
            if self._groups[0].requests > 1 and not self._waited:
                self._waited = True
                self._end_of_turn(self._flush)
                return
        self._scheduled = self._waited = False
        if self._writing is None and self.failed is None and not self.idle:
            self._write_next()

    def _gather(self) -> None:
        try:
            self.gather()
        except Exception:  # the group must be written all the same
            _log.exception("what was put off to the end of a turn failed")

    def _write_next(self) -> None:
        if self._groups[0].records:
            self._before_write()
        group = self._groups.popleft()
        if not self._groups:
            self._groups.append(CommitGroup(self._database))
        if group.records and self.mode is WriteMode.LOG:
            self._append(group)
        elif group.records and self.mode is WriteMode.THREAD and group.sync:
            self._write_in_thread(group)
        elif self._write(group):
            self._publish(group)
            if not self.idle:
                self._schedule()

    def _write(self, group: CommitGroup) -> bool:
        """Write a group in this thread; False if that failed."""
        if group.records:
            try:
                began = self._stopwatch()
                self._database.write(group.batch, group.sync)
                self._account(group, self._stopwatch() - began)
            except BaseException as error:  # the outcome is unknown: nothing may go on
                self._fail(error)
                return False
        return True

    def _account(self, group: CommitGroup, nanoseconds: int) -> None:
        count = self._metrics.count
        count("store_writes")
        count("store_bytes", group.size)
        if group.sync:
            count("store_syncs")
            self._sync_times.add(nanoseconds)
            self._sync_messages.add(group.messages)
            self.times.add(nanoseconds // 1000)
            self._choose_mode()

    def _choose_mode(self) -> None:
        if self._executor is None or self.mode is WriteMode.LOG:
            return
        slow = self._settings.slow_sync
        if self.mode is WriteMode.LOOP and self.times.median > slow:
            self.mode = WriteMode.THREAD
            _log.debug("syncs are slow, writing in a thread", median_us=self.times.median)
        elif self.mode is WriteMode.THREAD and self.times.median * 2 < slow:
            self.mode = WriteMode.LOOP
            _log.debug("syncs are quick, writing in the loop", median_us=self.times.median)

    def _write_in_thread(self, group: CommitGroup) -> None:
        assert self._executor is not None
        self._writing = group
        self._written.clear()
        try:
            self._executor(self._run_in_thread)
        except Exception as error:  # without a thread nothing can be written any more
            self._fail(error)

    def _run_in_thread(self) -> None:
        group = self._writing
        assert group is not None
        assert self._call_from_thread is not None
        self._outcome = None
        began = self._stopwatch()
        try:
            self._database.write(group.batch, group.sync)
        except BaseException as error:  # raised in the loop, which this thread must not touch
            self._outcome = error
        self._elapsed = self._stopwatch() - began
        self._written.set()
        self._call_from_thread(lambda: self._finish_thread(group))

    def _finish_thread(self, group: CommitGroup) -> None:
        """In the loop: start the next write, then publish the one that has ended."""
        if self._writing is not group or self.failed is not None:
            return
        self._writing = None
        if self._outcome is not None:
            self._fail(self._outcome)
            return
        self._account(group, self._elapsed)
        self._gather()
        if self.mode is WriteMode.THREAD and not self.idle and self._groups[0].sync:
            self._write_next()
        self._publish(group)
        if not self.idle:
            self._schedule()

    def _append(self, group: CommitGroup) -> None:
        """Have the log append a group, including its unsynced part: a standby has all of it."""
        assert self._group_log is not None
        assert self._rows is not None
        self._writing = group
        began = self._stopwatch()
        try:
            appended = self._group_log.append(self._rows.write(group.operations()))
        except Exception as error:  # nothing can be appended any more
            self._fail(error)
            return
        appended.add_done_callback(lambda place: self._finish_append(group, began, place))

    def _finish_append(self, group: CommitGroup, began: int, appended: Completion[Place]) -> None:
        """Write an appended group, start the next one, then publish: no answer goes out before."""
        if self._writing is not group or self.failed is not None:
            return
        try:
            self._database.write(group.batch, sync=False, position=appended.result().encode())
        except BaseException as error:  # the next start writes what the log has
            self._fail(error)
            return
        self._writing = None
        elapsed = self._stopwatch() - began
        self._account(group, elapsed)
        self._metrics.histogram("cluster", "append").add(elapsed)
        self._gather()
        if not self.idle and self._groups[0].records:
            self._write_next()
        self._publish(group)
        if not self.idle:
            self._schedule()

    def _publish(self, group: CommitGroup) -> None:
        """Make the changes of a durable group visible, and resolve the completions of callers."""
        for context in self.together:
            context.__enter__()
        try:
            for transaction in group.transactions:
                try:
                    transaction.apply()
                except Exception as error:  # disk and memory differ: only a restart helps
                    self._fail(error)
                    return
                self._run_callbacks(transaction)
        finally:
            for context in reversed(self.together):
                context.__exit__(None, None, None)
        self._metrics.count("store_commits", len(group.transactions))
        self._metrics.count("store_messages", group.messages)

    def _run_callbacks(self, transaction: Changes) -> None:
        for callback in (*transaction.callbacks, transaction.finish):
            try:
                callback()
            except Exception:  # the group is durable, and the other callbacks must run
                self._metrics.count("store_callback_failures")
                _log.exception("callback after a commit failed", transaction=transaction.name)

    def _fail(self, error: BaseException) -> None:
        self.failed = error
        _log.critical(
            "a write failed and nobody knows its outcome; the process ends without answers, "
            "and finds out when it is started again",
            error=str(error),
        )
        self._fatal(error)

    def drain(self) -> None:
        """Write and publish everything in the group; for a clean stop.

        With a log, whose outcomes need the loop, the group is given up instead: its callers have no
        answer.
        """
        if self.mode is WriteMode.LOG:
            self._give_up()
        while not self.idle and self.failed is None:
            if self._writing is not None:
                self._written.wait()
                self._finish_thread(self._writing)
            else:
                self._write_next()

    def _give_up(self) -> None:
        """Drop the group, which keeps the database open."""
        for group in filter(None, (*self._groups, self._writing)):
            for transaction in group.transactions:
                transaction.operations.clear()
        self._groups, self._writing = deque([CommitGroup(self._database)]), None
