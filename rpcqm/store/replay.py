"""Applies the records of a replicated log to a database, in strict order.

A record that is damaged, missing, of another log, of an older epoch than one before it, or of an
unsupported version ends the replay with one sentence: nothing behind it is written.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from rocksdict import WriteBatch

from rpcqm.store.database import Database
from rpcqm.store.errors import ReplicationError
from rpcqm.store.migration import FORMAT, place_of_database
from rpcqm.store.records import LOG_POSITION_KEY, LOG_WRITER_KEY, SYNCED_KEY, Family
from rpcqm.store.replication import LogRecord, Place, RecordKind, place_of, read_rows

Row = tuple[Family, bytes, bytes | None]
_OF_THIS_NODE = frozenset({LOG_POSITION_KEY, LOG_WRITER_KEY, SYNCED_KEY})
"""In META: the records that each node has of its own."""


_TIME = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class TakenOver:
    """The last takeover: its writer's octets, and its time (milliseconds since 1970)."""

    time: int
    body: bytes

    def encode(self) -> bytes:
        return _TIME.pack(self.time) + self.body


def last_takeover(database: Database) -> TakenOver | None:
    """The last takeover that was read here; None before the first one.

    Raises ReplicationError if its record is damaged.
    """
    octets = database.get(Family.META, LOG_WRITER_KEY)
    if octets is None:
        return None
    if len(octets) < _TIME.size:
        raise ReplicationError(f"The writer of the log in {database.path} is damaged.")
    return TakenOver(_TIME.unpack_from(octets)[0], octets[_TIME.size :])


class Replay:
    """Applies the records behind a database's place, in the order of the log.

    `end` is the log's end as far as it was read, `latest` the latest time of a writer. A write in
    parts is made once its last part is there; incomplete parts are void when a next epoch begins.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.end = place_of_database(database)
        self.latest = 0
        self._parts: list[LogRecord] = []

    @property
    def is_between(self) -> bool:
        """Whether all parts of the last write have come."""
        return not self._parts

    def feed(self, octets: bytes) -> LogRecord:
        """Apply the next record; raises ReplicationError, and then nothing has changed."""
        number = self.end.number + 1
        try:
            record = LogRecord.decode(octets)
            self._check_order(record)
            rows = self._rows_of(record)
        except ReplicationError as error:
            raise ReplicationError(
                f"Record {number} of the log {error}; what comes before it is in "
                f"{self._database.path}."
            ) from error
        place = place_of(record, octets)
        self._take(record)
        if record.kind is RecordKind.TAKEOVER:
            self._write_writer(TakenOver(record.time, record.body))
        elif rows is not None:
            self._write(rows, place)
        self.end = place
        self.latest = max(self.latest, record.time)
        return record

    def _check_order(self, record: LogRecord) -> None:
        if record.incarnation != self.end.incarnation:
            raise ReplicationError("belongs to another log")
        if record.number != self.end.number + 1 or record.before != self.end.digest:
            raise ReplicationError("does not follow the one before it")
        begins = record.kind is RecordKind.TAKEOVER
        if record.epoch < self.end.epoch + begins or (record.epoch > self.end.epoch and not begins):
            raise ReplicationError("is of a writer that another one has taken over from")
        if record.store_format > FORMAT:
            raise ReplicationError("is of a newer version of rpcqm")
        if not begins and record.part != self._next_part(record):
            raise ReplicationError("has a part that does not follow the one before it")

    def _next_part(self, record: LogRecord) -> int:
        """The part that may come now: a write that was begun comes first."""
        if not self._parts:
            return 1
        last = self._parts[-1]
        whole = (record.kind, record.parts) == (last.kind, last.parts)
        return last.part + 1 if whole else 0

    def _rows_of(self, record: LogRecord) -> list[Row] | None:
        """The rows of the write that a record completes, or None."""
        if record.kind is not RecordKind.ROWS or record.part < record.parts:
            return None
        rows = list(read_rows(b"".join(part.body for part in (*self._parts, record))))
        if any(key in _OF_THIS_NODE for family, key, _ in rows if family is Family.META):
            raise ReplicationError("has a row that each node has of its own")
        return rows

    def _take(self, record: LogRecord) -> None:
        if record.kind is RecordKind.ROWS and record.part < record.parts:
            self._parts.append(record)
        else:
            self._parts.clear()

    def _write_writer(self, writer: TakenOver) -> None:
        """Store the writer; the place stays, so a start reads and stores the same again."""
        batch = WriteBatch(raw_mode=True)
        batch.put(LOG_WRITER_KEY, writer.encode(), self._database.handles[Family.META])
        self._database.write(batch, sync=False)

    def _write(self, rows: Iterable[Row], place: Place) -> None:
        """Write rows and the log's place after them, unsynced, since the log has them."""
        batch = WriteBatch(raw_mode=True)
        handles = self._database.handles
        for family, key, value in rows:
            if value is None:
                batch.delete(key, handles[family])
            else:
                batch.put(key, value, handles[family])
        self._database.write(batch, sync=False, position=place.encode())
