"""Checks a data directory that is not in use.

It changes nothing, except that it cuts off a torn end that a crash has left, as the next start
would.
"""

import enum
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from rpcqm.adm.records import decode_queue
from rpcqm.adm.sent_keys import SENT_KEY_PREFIX, SENT_KEY_SIZE, SentKey
from rpcqm.base.errors import DecodeError
from rpcqm.codec.packet.types import SEQUENTIAL_BITS
from rpcqm.store.counters import Counters
from rpcqm.store.database import DATABASE_NAME, Database, locked
from rpcqm.store.errors import StoreError
from rpcqm.store.log_repair import repair_logs
from rpcqm.store.migration import FORMAT, OF_CLUSTER, check_format, read_format
from rpcqm.store.records import (
    COUNTER,
    MOST,
    POSITION,
    POSITION_KEY,
    QUEUE_ID,
    SERIAL,
    STAGED,
    STAGED_KEY,
    STAGED_MESSAGE,
    STAGED_OPERATION,
    Family,
)
from rpcqm.store.settings import StoreSettings

SYSTEM_QUEUES = 16
"""Queue ids below this have no record of their own."""


class StoreProblemKind(enum.Enum):
    """Kinds of damage; the value says what it means for the messages."""

    DAMAGED_FILE = "the database cannot read one of its files"
    UNREADABLE_QUEUE = "the queue is lost, with the messages in it"
    QUEUE_WITHOUT_PARENT = "the messages of the subqueue cannot be reached"
    UNREADABLE_POSITION = "the message is lost, though its body may be there"
    POSITION_WITHOUT_QUEUE = "the message cannot be reached"
    POSITION_WITHOUT_BODY = "the message is lost, only its place is left"
    WRONG_SIZE = "the message is damaged, or quotas are wrong"
    SHARED_BODY = "removing one message takes the body of another"
    UNREADABLE_STAGED = "an operation of a transaction is lost"
    STAGED_WITHOUT_BODY = "a message of a transaction is lost"
    ORPHANED_BODY = "no message is affected, only disk space"
    UNREADABLE_KEY = "the request of a program may be carried out twice"
    COUNTER_BEHIND = "identifiers may be given twice"


@dataclass(frozen=True, slots=True)
class StoreProblem:
    """One damaged item: its kind, and where it is."""

    kind: StoreProblemKind
    subject: str

    def __str__(self) -> str:
        name = self.kind.name.lower().replace("_", " ")
        return f"{self.subject}: {name} ({self.kind.value})"


def check(
    directory: Path | str, progress: Callable[[str, int], None] | None = None
) -> list[StoreProblem]:
    """Find all damage in a data directory, calling `progress(family, records)` at intervals.

    Raises StoreError if there is no database, or it is in use, or of a newer format.
    """
    path = Path(directory)
    if not (path / DATABASE_NAME / "CURRENT").exists():
        raise StoreError(f"There is no database of rpcqm in {path}.")
    with locked(path):
        repair_logs(path / DATABASE_NAME)
        database = Database(path, StoreSettings(), read_only=True)
        try:
            check_format(database, (read_format(database) or FORMAT) & ~OF_CLUSTER)
            return _Check(database, progress).run()
        finally:
            database.close()


class _Check:
    """One run over all families."""

    def __init__(self, database: Database, progress: Callable[[str, int], None] | None) -> None:
        self._database = database
        self._progress = progress
        self.findings: list[StoreProblem] = []
        self._queue_ids: set[int] = set(range(SYSTEM_QUEUES))
        self._serials = array("Q")
        self._largest = {"serial": 0, "lookup identifier": 0, "queue id": 0}

    def run(self) -> list[StoreProblem]:
        self._check_queues()
        self._check_positions()
        self._check_staged()
        self._check_bodies()
        self._check_sent_keys()
        self._check_counters()
        return self.findings

    def _found(self, kind: StoreProblemKind, subject: str) -> None:
        self.findings.append(StoreProblem(kind, subject))

    def _records(self, family: Family) -> Iterator[tuple[bytes, bytes]]:
        count = 0
        try:
            for count, record in enumerate(self._database.items(family), 1):
                if self._progress is not None and count % 10_000 == 0:
                    self._progress(family.value, count)
                yield record
        except Exception as error:  # RocksDB has one kind of error; the other families can be read
            self._found(StoreProblemKind.DAMAGED_FILE, f"family {family.value}: {error}")
        if self._progress is not None:
            self._progress(family.value, count)

    def _see(self, counter: str, number: int) -> None:
        self._largest[counter] = max(self._largest[counter], number)

    def _check_queues(self) -> None:
        parents: list[tuple[int, int]] = []
        for key, value in self._records(Family.QUEUE):
            try:
                queue_id = QUEUE_ID.unpack(key)[0] if len(key) == QUEUE_ID.size else 0
                record = decode_queue(queue_id, value)
            except DecodeError:  # damage is reported, and the check goes on
                self._found(StoreProblemKind.UNREADABLE_QUEUE, f"queue {key.hex()}")
                continue
            for number in filter(None, (queue_id, record.journal_id)):
                self._queue_ids.add(number)
                self._see("queue id", number)
            if record.parent_id:
                parents.append((queue_id, record.parent_id))
        for queue_id, parent_id in parents:
            if parent_id not in self._queue_ids:
                self._found(StoreProblemKind.QUEUE_WITHOUT_PARENT, f"queue {queue_id}")

    def _check_positions(self) -> None:
        for key, value in self._records(Family.POSITION):
            if len(key) != POSITION_KEY.size or len(value) != POSITION.size:
                self._found(StoreProblemKind.UNREADABLE_POSITION, f"position {key.hex()}")
                continue
            queue_id, lookup_identifier = POSITION_KEY.unpack(key)
            serial, _, _, size, *_ = POSITION.unpack(value)
            subject = f"message {lookup_identifier:#x} of queue {queue_id}"
            if lookup_identifier >> SEQUENTIAL_BITS > 7:
                self._found(StoreProblemKind.UNREADABLE_POSITION, subject)
            if queue_id not in self._queue_ids:
                self._found(StoreProblemKind.POSITION_WITHOUT_QUEUE, subject)
            self._see("queue id", queue_id)
            self._see("lookup identifier", lookup_identifier & (1 << SEQUENTIAL_BITS) - 1)
            self._check_body(serial, size, subject, StoreProblemKind.POSITION_WITHOUT_BODY)

    def _check_body(self, serial: int, size: int, subject: str, missing: StoreProblemKind) -> None:
        self._serials.append(serial)
        self._see("serial", serial)
        try:
            body = self._database.get(Family.BODY, SERIAL.pack(serial))
        except Exception as error:  # RocksDB has one kind of error; the check goes on
            self._found(StoreProblemKind.DAMAGED_FILE, f"{subject}: {error}")
            return
        if body is None:
            self._found(missing, subject)
        elif len(body) != size:
            self._found(StoreProblemKind.WRONG_SIZE, subject)

    def _check_staged(self) -> None:
        for key, value in self._records(Family.STAGED):
            if len(key) != STAGED_KEY.size:
                self._found(StoreProblemKind.UNREADABLE_STAGED, f"operation {key.hex()}")
                continue
            transaction_id, number = STAGED_KEY.unpack(key)
            subject = f"operation {number} of transaction {transaction_id.hex()}"
            if len(value) < STAGED.size:
                self._found(StoreProblemKind.UNREADABLE_STAGED, subject)
                continue
            kind, _, serial, size = STAGED.unpack_from(value)
            if kind == STAGED_MESSAGE:
                self._check_body(serial, size, subject, StoreProblemKind.STAGED_WITHOUT_BODY)
            elif kind != STAGED_OPERATION:
                self._found(StoreProblemKind.UNREADABLE_STAGED, subject)

    def _check_bodies(self) -> None:
        """Every body belongs to exactly one position or staged operation."""
        owned = array("Q", sorted(self._serials))
        for before, serial in pairwise(owned):
            if before == serial:
                self._found(StoreProblemKind.SHARED_BODY, f"body {serial}")
        for key, _ in self._records(Family.BODY):
            serial = SERIAL.unpack(key)[0] if len(key) == SERIAL.size else 0
            at = bisect_left(owned, serial)
            if at == len(owned) or owned[at] != serial:
                self._found(StoreProblemKind.ORPHANED_BODY, f"body {key.hex()}")
            self._see("serial", serial)

    def _check_sent_keys(self) -> None:
        for key, value in self._records(Family.STREAM):
            if key.startswith(SENT_KEY_PREFIX):
                try:
                    if len(key) == SENT_KEY_SIZE and SentKey.decode(value):
                        continue
                except DecodeError:  # damage is the subject of the check: it is reported
                    pass
                self._found(StoreProblemKind.UNREADABLE_KEY, f"key {key.hex()}")

    def _check_counters(self) -> None:
        for counter in Counters(lambda key, value: None).all():
            value = self._database.get(Family.META, counter.key)
            if value is None or len(value) == COUNTER.size:
                counter.resume(value)
                if MOST > counter.next > self._largest.get(counter.name, 0):
                    continue
            self._found(StoreProblemKind.COUNTER_BEHIND, f"counter {counter.name}")
