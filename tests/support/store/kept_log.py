"""A log that keeps what a store has appended, and answers when the test says so."""

from collections import deque
from collections.abc import Iterable
from pathlib import Path

from rpcqm.base.completion import Completion
from rpcqm.store import replication
from rpcqm.store.database import Database
from rpcqm.store.migration import FORMAT, enter_cluster, place_of_database
from rpcqm.store.records import LOG_WRITER_KEY, SYNCED_KEY, Family
from rpcqm.store.replay import Replay
from rpcqm.store.replication import LogRecord, Place, RecordKind, place_of
from rpcqm.store.settings import StoreSettings

INCARNATION = bytes(range(16))
Rows = dict[tuple[Family, bytes], bytes]


class KeptLog:
    """What one store after another has appended; each begins with a takeover."""

    def __init__(self, place: Place) -> None:
        self.end = place
        self.records: list[bytes] = []
        self._waiting: deque[tuple[Completion[Place], Place]] = deque()
        self.error: Exception | None = None
        """What the next appends fail with."""

    def take_over(self) -> None:
        self._add(RecordKind.TAKEOVER, b"", self.end.epoch + 1)

    def append(self, body: bytes) -> Completion[Place]:
        bodies = replication.parts_of(body)
        for number, part in enumerate(bodies, 1):
            self._add(RecordKind.ROWS, part, self.end.epoch, number, len(bodies))
        outcome: Completion[Place] = Completion()
        self._waiting.append((outcome, self.end))
        return outcome

    def _add(
        self, kind: RecordKind, body: bytes, epoch: int, part: int = 1, parts: int = 1
    ) -> None:
        end = self.end
        record = LogRecord(
            kind, end.incarnation, epoch, end.number + 1, end.digest, FORMAT, 7, body, part, parts
        )
        self.records.append(record.encode())
        self.end = place_of(record, self.records[-1])

    def answer(self) -> bool:
        """Answer the append that waits; False if none does."""
        if not self._waiting:
            return False
        outcome, place = self._waiting.popleft()
        if self.error is not None:
            outcome.fail(self.error)
        else:
            outcome.succeed(place)
        return True


def begin_cluster(directory: Path) -> KeptLog:
    """Make a directory the first one of a cluster, whose log is empty."""
    place = Place.beginning(INCARNATION)
    database = Database(directory, StoreSettings())
    enter_cluster(database, place)
    database.close()
    return KeptLog(place)


def replay(directory: Path, records: Iterable[bytes]) -> Place:
    """Write records to the directory of a standby; gives the place that it has then."""
    database = Database(directory, StoreSettings())
    try:
        follower = Replay(database)
        for record in records:
            follower.feed(record)
        return place_of_database(database)
    finally:
        database.close()


def rows_of(directory: Path) -> Rows:
    """Every row of a database but those that each node has of its own."""
    database = Database(directory, StoreSettings())
    try:
        return {
            (family, key): value
            for family in Family
            for key, value in database.items(family)
            if family is not Family.META or key not in (SYNCED_KEY, LOG_WRITER_KEY)
        }
    finally:
        database.close()
