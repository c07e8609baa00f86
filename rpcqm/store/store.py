"""The store: one durable place for messages and records, with its public methods."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from rpcqm.base.clock import Clock, SystemClock
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.log import get_logger
from rpcqm.base.metrics import Metrics
from rpcqm.store import recovery, restored
from rpcqm.store.background import BackgroundWork
from rpcqm.store.backup import write_backup
from rpcqm.store.ballast import Ballast
from rpcqm.store.changes import Changes
from rpcqm.store.counters import Counters
from rpcqm.store.database import Database
from rpcqm.store.disk_space import DiskSpaceMonitor, free_space
from rpcqm.store.environment import StoreEnvironment
from rpcqm.store.errors import StoreError, StoreStoppedError
from rpcqm.store.expiry import ExpiryHeap
from rpcqm.store.express import ExpressBodies
from rpcqm.store.group_commit import GroupCommit
from rpcqm.store.index import QueueIndex
from rpcqm.store.migration import (
    bring_to_format,
    check_of_cluster,
    is_of_cluster,
    leave_cluster,
    refuse_without_log,
)
from rpcqm.store.put_off import PutOff
from rpcqm.store.queue_usage import QueueUsage
from rpcqm.store.records import SERIAL, Family
from rpcqm.store.replication import GROUP_BYTES, GroupLog
from rpcqm.store.settings import StoreSettings
from rpcqm.store.transaction import StoreTransaction
from rpcqm.store.uncommitted import UncommittedOperation, UncommittedTransaction

_log = get_logger("store")

EXIT_STATUS = 74
"""The exit status after a write with an unknown outcome (EX_IOERR)."""


def exit_unanswered(error: BaseException) -> None:
    """End the process at once, so that no caller gets an uncertain outcome."""
    os._exit(EXIT_STATUS)


class Store:
    """Messages and records of one queue manager, in one directory.

    Everything is called from one thread. Made by `Store.open`.
    """

    def __init__(
        self,
        directory: Path,
        settings: StoreSettings,
        surroundings: StoreEnvironment,
        clock: Clock,
        metrics: Metrics,
        free: Callable[[], int],
        log: GroupLog | None,
        database: Database | None,
    ) -> None:
        self.directory = directory
        self.metrics = metrics
        self.is_replicated = log is not None
        self._database = database or Database(directory, settings)
        self._heap = ExpiryHeap()
        self._indexes: dict[int, QueueIndex] = {}
        self._open_transaction: Changes | None = None
        self._put_off = PutOff()
        self._closed = False
        self._background_errors = 0
        self._clock = clock
        self._settings = settings
        self._next_tidy = 0
        self.total = QueueUsage()
        self.uncommitted: dict[bytes, UncommittedTransaction] = {}
        self.handles = self._database.handles
        self.body_handle = self.handles[Family.BODY]
        self.position_handle = self.handles[Family.POSITION]
        self._bodies = self._database.families[Family.BODY]
        self.express = ExpressBodies(directory, settings.express_memory)
        ballast = Ballast(directory, settings.ballast)
        self.space = DiskSpaceMonitor(clock, settings, free, ballast)
        self._writer = GroupCommit(
            self._database, settings, surroundings, self._before_write, metrics, log
        )
        self._writer.gather = self._put_off.carry_out
        self._background = BackgroundWork(surroundings)
        self.counters = Counters(self._writer.reserve)

    @classmethod
    def open(
        cls,
        directory: Path | str,
        *,
        end_of_turn: Callable[[Callable[[], None]], object],
        clock: Clock | None = None,
        settings: StoreSettings | None = None,
        fatal: Callable[[BaseException], None] = exit_unanswered,
        executor: Callable[[Callable[[], None]], object] | None = None,
        call_from_thread: Callable[[Callable[[], None]], object] | None = None,
        metrics: Metrics | None = None,
        free: Callable[[], int] | None = None,
        stopwatch: Callable[[], int] = time.perf_counter_ns,
        begin_anew: restored.BeginAnew | None = None,
        log: GroupLog | None = None,
        database: Database | None = None,
        later: bool = False,
    ) -> "Store":
        """Open the store of a directory, which is made when it is not there; recover it.

        The arguments are those of `environment.StoreEnvironment`; `free` gives the free bytes of
        the disk; `begin_anew` is what restored data begins with, whose mark stays without it. With
        a `log` the directory is one of a cluster, and what is written is appended there first; its
        `database` may be open already, and is the store's from now on. If `later`, the caller has
        it recovered, and drops what was staged afterwards.
        Raises StoreError (StoreLockedError, StoreFormatError), with a sentence for the operator,
        if the directory cannot be used.
        """
        path, settings = Path(directory), settings or StoreSettings()
        if log is not None:
            settings = replace(settings, group_bytes=min(settings.group_bytes, GROUP_BYTES))
        Ballast(path, settings.ballast).make_room()
        store = cls(
            path,
            settings,
            StoreEnvironment(end_of_turn, fatal, executor, call_from_thread, stopwatch),
            clock or SystemClock(),
            metrics or Metrics(),
            free or (lambda: free_space(path)),
            log,
            database,
        )
        try:
            if log is None:
                store._prepare(begin_anew)
            else:
                store._prepare_in_cluster()
            if not later:
                store.recover()
                store.drop_staged()
        except BaseException:
            store.close()
            raise
        return store

    def recover(self) -> None:
        """Build the state in memory from the disk, before anybody uses the store.

        It may run in a thread, so that a node gives signs of life meanwhile.
        """
        recovery.recover(self._database, self.counters, self.index)

    def _prepare(self, begin_anew: restored.BeginAnew | None) -> None:
        """Bring the data to this version, and let restored data go on by themselves."""
        database = self._database
        if is_of_cluster(database):
            if begin_anew is None or not restored.is_pending(database, self.directory):
                refuse_without_log(database)
            leave_cluster(database)
        bring_to_format(database)
        if begin_anew is not None:
            restored.go_on(database, self.directory, begin_anew, self._clock)

    def _prepare_in_cluster(self) -> None:
        """Refuse data that the log does not go on from: nothing is written past it (G668)."""
        check_of_cluster(self._database)
        if restored.is_pending(self._database, self.directory):
            raise StoreError(
                f"The data directory {self.directory} was restored from a backup, and the "
                "cluster's log has gone on since: it must not go on from there."
            )

    def drop_staged(self) -> None:
        """Drop the staged operations of open transactions; with a log by the first write (G668)."""
        if not self.is_replicated:
            recovery.drop_staged(self._database)
        elif removals := list(recovery.staged(self._database)):
            with self.transaction("drop staged") as txn:
                txn.operations.extend(removals)
                txn.sync = True

    @property
    def has_stopped(self) -> bool:
        """Whether it is closed, or a write has failed: it takes nothing more."""
        return self._closed or self._writer.failed is not None

    def transaction(self, name: str) -> StoreTransaction:
        """A synchronous block of changes, `with store.transaction("name") as txn:`.

        Entering it raises RuntimeError inside another block, and StoreStoppedError after `close`
        or a failed write.
        """
        return StoreTransaction(self, name)

    def begin(self, changes: Changes) -> None:
        """Begin a block; called by the transaction."""
        if self._open_transaction is not None:
            inner, outer = changes.name, self._open_transaction.name
            raise RuntimeError(f"the transaction {inner} began inside {outer}")
        if self._put_off.waits:
            self._put_off.carry_out()
        if self.has_stopped:
            raise StoreStoppedError("The store has stopped.")
        self._open_transaction = changes

    def commit(self, changes: Changes) -> None:
        """Write a block together with the others of this turn; a transaction calls this."""
        self._writer.add(changes)

    def leave(self) -> None:
        """End a block; called by the transaction."""
        self._open_transaction = None

    def tell_together(self, context: AbstractContextManager[object]) -> None:
        """Surround the callbacks of each group of transactions, so that its answers go out
        together.

        The callbacks of `call_after` run inside the context, which is entered for each group.
        """
        self._writer.together.append(context)

    def put_off(self, carry_out: Callable[[], None]) -> None:
        """Call `carry_out` once, at the end of this turn, and write its changes.

        While a thread writes, it is called when that has ended. It is called sooner before anybody
        changes the store, looks at what it may change, or takes a number of messages: so nobody can
        notice the delay (G595).
        """
        self._put_off.add(carry_out)
        self._writer.announce()

    def carry_out_first(self) -> None:
        """Carry out the work that was put off to the end of the turn."""
        if self._put_off.waits:
            self._put_off.carry_out()

    def next_message_ordinal(self) -> int:
        """A number for the identifier of a message."""
        if self._put_off.waits:
            self._put_off.carry_out()
        return self.counters.message_ordinal.take()

    def usage_of(self, queue_id: int) -> QueueUsage:
        """The quota's counts for a queue (G56)."""
        if self._put_off.waits:
            self._put_off.carry_out()
        return self.index(queue_id).account

    def index(self, queue_id: int) -> QueueIndex:
        """The messages of a queue; an empty index if the queue has had none."""
        index = self._indexes.get(queue_id)
        if index is None:
            index = self._indexes[queue_id] = QueueIndex(
                queue_id, self._heap, self.total, self._put_off
            )
        return index

    def queue_ids(self) -> list[int]:
        """Queues that have an index."""
        return list(self._indexes)

    def forget_index(self, queue_id: int) -> None:
        """Drop the index of a deleted queue, which is empty; called by the transaction."""
        del self._indexes[queue_id]

    def keep_express(self, serial: int, packet: bytes) -> None:
        """Keep the packet of an express message; called by the transaction.

        Raises MQError(MQ_ERROR_INSUFFICIENT_RESOURCES) if it has to go to a disk that is full.
        """
        if not self.express.fits(len(packet)):
            self.admit(len(packet))
        try:
            self.express.put(serial, packet)
        except OSError as error:
            raise MQError(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, str(error)) from error

    def keep_express_many(self, serials: range, packets: Sequence[bytes], size: int) -> None:
        """Keep the packets of express messages, of `size` bytes together, or none of them.

        Raises MQError as `keep_express`.
        """
        if self.express.fits(size):
            self.express.put_many(serials, packets, size)
            return
        try:
            for serial, packet in zip(serials, packets, strict=True):
                self.keep_express(serial, packet)
        except MQError:
            self.express.discard_many(serials)
            raise

    def read_packet(self, serial: int) -> bytes:
        """The UserMessage packet of a visible message; raises KeyError if there is none."""
        packet: bytes | None = self._bodies.get(SERIAL.pack(serial))
        return self.express.get(serial) if packet is None else packet

    def read_packets(self, serials: Iterable[int]) -> list[bytes]:
        """The packets of several messages, as `read_packet` gives each."""
        numbers = list(serials)
        keys: list[Any] = list(map(SERIAL.pack, numbers))
        packets = cast(list[bytes | None], self._bodies.get(keys))
        if None not in packets:
            return cast(list[bytes], packets)
        return [
            self.express.get(serial) if packet is None else packet
            for serial, packet in zip(numbers, packets, strict=True)
        ]

    def get(self, family: Family, key: bytes) -> bytes | None:
        """A record as it was last written; pending changes do not count."""
        return self._database.get(family, key)

    def records(self, family: Family, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Records whose key begins with `prefix`, in order; pending changes do not count."""
        return self._database.items(family, prefix)

    def packets(self, first: int) -> Iterator[tuple[int, bytes]]:
        """Packets on the disk with their serials, from `first` on, of open transactions too.

        Pending packets are not among them. The iterator must not outlive the store. Raises
        StoreStoppedError if the store is closed.
        """
        if self._closed:
            raise StoreStoppedError("The store has stopped.")
        for key, packet in self._database.items(Family.BODY, first=SERIAL.pack(first)):
            yield SERIAL.unpack(key)[0], packet

    def next_expiry(self) -> int | None:
        """The time at which to call `expire` (milliseconds since 1970; possibly early), or None."""
        return self._heap.next_expiry()

    def expire(self, now: int, limit: int = 1_000) -> list[tuple[int, int]]:
        """(queue id, lookup identifier) of available messages that have expired.

        The caller removes them; locked ones are returned once released (G13). There may be more
        when `limit` is reached.
        """
        return self._heap.take_due(now, limit)

    def charge_staged(self, operation: UncommittedOperation) -> None:
        """Count a staged message in its queue's account."""
        operation.charged = True
        self.index(operation.queue_id).account.charge(operation.size)
        self.total.charge(operation.size)

    def release_staged(self, operation: UncommittedOperation) -> None:
        """Undo `charge_staged`."""
        if operation.charged:
            operation.charged = False
            self.index(operation.queue_id).account.release(operation.size)
            self.total.release(operation.size)

    def _before_write(self) -> None:
        """Check the disk and the errors of RocksDB's threads; called at intervals."""
        if self.space.before_write():
            self._watch_background_errors()
        self._tidy_when_full()

    def admit(self, size: int) -> None:
        """Let a new message of `size` bytes in; called by the transaction.

        Raises MQError(MQ_ERROR_INSUFFICIENT_RESOURCES) if the disk is full. Perhaps nothing is
        written any more then, so that a refusal has to start the tidying too.
        """
        try:
            self.space.admit(size)
        except MQError:
            self._tidy_when_full()
            raise

    def _tidy_when_full(self) -> None:
        if self.space.refusing and self._clock.monotonic() >= self._next_tidy:
            self._next_tidy = self._clock.monotonic() + self._settings.tidy_interval
            if not self._background.busy:
                self._background.run(self._database.tidy)

    def _watch_background_errors(self) -> None:
        errors = self._database.background_errors()
        if errors > self._background_errors:
            self.metrics.count("store_background_errors", errors - self._background_errors)
            _log.error(
                "the database cannot tidy up in the background: is the disk full or failing? "
                "Its own LOG file has the details; messages are safe, writes may stop",
                errors=errors,
            )
        self._background_errors = errors

    def backup(
        self,
        path: Path | str,
        files: Sequence[Path] = (),
        note: Mapping[str, object] | None = None,
        configuration: Mapping[str, bytes] | None = None,
    ) -> Completion[None]:
        """Copy the durable data, while running, to a directory that is new or empty.

        The files are copied with it, the `configuration` (names and contents of files) goes beside
        them, and the note describes it. The completion fails with StoreError when the directory is
        not empty, or with another error if it cannot be written.
        """
        work = partial(write_backup, self._database, Path(path), files, note or {}, configuration)
        return self._background.run(work)

    def compact(self) -> Completion[None]:
        """Reclaim the disk space of removed messages; no message is removed."""
        return self._background.run(self._database.compact)

    def disk_bytes(self) -> int:
        """The bytes that the store takes on the disk."""
        return self._database.disk_bytes()

    def close(self) -> None:
        """Write the pending changes, and release the directory."""
        if not self._closed:
            self.carry_out_first()
            self._writer.drain()
            self._closed = True
            if self._background.busy:
                self._database.cancel_background_work()
                self._background.wait()
            self.express.close()
            del self.body_handle, self.position_handle, self._bodies
            self._database.close()
