"""The records of a replicated log, and the interface of the engine that keeps it.

Each write of a replicated store is one record. It is appended under the condition that the log ends
where the writer expects; then it is written locally, and only then are callers answered. So no
local disk has anything that the log lacks, and of two writers that go on from one place only one
can succeed.

Records are numbered from 1 on without a gap, and each contains the digest of the one before it.
Readers notice records that are missing, damaged, or of another log.
"""

import enum
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Protocol

from google_crc32c import value as crc32c

from rpcqm.base.completion import Completion
from rpcqm.store.errors import ReplicationError
from rpcqm.store.records import MOST, Family

if TYPE_CHECKING:
    from rocksdict import ColumnFamily as FamilyHandle

    from rpcqm.store.runs import Operation

RECORD_FORMAT = 1
"""The version of the records that this code writes and reads."""
MAXIMUM_BODY = (1 << 20) - (1 << 12)
"""Octets of one record: a longer one would delay all others, and engines take 1 MiB with their own
headers."""
GROUP_BYTES = 3 << 18
"""Octets of messages in a group, so that most groups are one record."""
MAXIMUM_PARTS = 1 << 10
"""Parts of one write that is larger than a record."""
DIGEST_SIZE = 8
INCARNATION_SIZE = 16

_CRC = struct.Struct("<I")
_HEADER = struct.Struct("<HBxHHH6x16sQQQ8s")
_PLACE = struct.Struct("<16sQQ8s")
_ROW = struct.Struct("<BHI")
_DELETED = 0x80
_CODES = {
    Family.META: 0,
    Family.QUEUE: 1,
    Family.BODY: 2,
    Family.POSITION: 3,
    Family.STAGED: 4,
    Family.STREAM: 5,
    Family.HISTORY: 6,
}
_FAMILIES = {code: family for family, code in _CODES.items()}


class RecordKind(enum.IntEnum):
    """The kinds of records."""

    ROWS = 1
    """Rows of the database, or a part of them."""
    NOTHING = 2
    """A sign of life."""
    TAKEOVER = 3
    """Another writer begins the next epoch; the body identifies it."""
    SWITCH_OVER = 4
    """The writer has stopped on purpose; the body names the next writer, and itself."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a log ends: its last record, by the number, the epoch and the digest of that.

    `incarnation` is the log's own identifier. Number 0 is the place before the first record.
    """

    incarnation: bytes
    epoch: int
    number: int
    digest: bytes

    @classmethod
    def beginning(cls, incarnation: bytes) -> "Place":
        """The place before the first record of a log that begins with an empty database."""
        return cls(incarnation, 0, 0, bytes(DIGEST_SIZE))

    def encode(self) -> bytes:
        return _PLACE.pack(self.incarnation, self.epoch, self.number, self.digest)

    @classmethod
    def decode(cls, octets: bytes) -> "Place":
        """Raises ReplicationError for other octets."""
        if len(octets) != _PLACE.size:
            raise ReplicationError("The place in the log is damaged.")
        return cls(*_PLACE.unpack(octets))


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One record, the part `part` of `parts` of a write.

    `before` is the digest of the record before it; `time` is the writer's, in milliseconds since
    1970; `store_format` is the version of the rows.
    """

    kind: RecordKind
    incarnation: bytes
    epoch: int
    number: int
    before: bytes
    store_format: int
    time: int
    body: bytes = b""
    part: int = 1
    parts: int = 1

    def encode(self) -> bytes:
        header = _HEADER.pack(
            RECORD_FORMAT,
            self.kind,
            self.part,
            self.parts,
            self.store_format,
            self.incarnation,
            self.epoch,
            self.number,
            self.time,
            self.before,
        )
        checked = header + self.body
        return _CRC.pack(crc32c(checked)) + checked

    @classmethod
    def decode(cls, octets: bytes) -> "LogRecord":
        """Raises ReplicationError for a record that is damaged, or of a later version."""
        if not _CRC.size + _HEADER.size <= len(octets) <= MAXIMUM_RECORD:
            raise ReplicationError("is no record of rpcqm")
        (crc,) = _CRC.unpack_from(octets)
        if crc != crc32c(octets[_CRC.size :]):
            raise ReplicationError("is damaged")
        version, kind, part, parts, store_format, incarnation, epoch, number, time, before = (
            _HEADER.unpack_from(octets, _CRC.size)
        )
        if version != RECORD_FORMAT or kind not in RecordKind.__members__.values():
            raise ReplicationError("is of a newer version of rpcqm")
        body = octets[_CRC.size + _HEADER.size :]
        record = cls(
            RecordKind(kind),
            incarnation,
            epoch,
            number,
            before,
            store_format,
            time,
            body,
            part,
            parts,
        )
        record._check()
        return record

    def _check(self) -> None:
        whole = self.kind is not RecordKind.ROWS
        if not 1 <= self.part <= self.parts <= (1 if whole else MAXIMUM_PARTS):
            raise ReplicationError("has a wrong part")
        if not 0 < self.number < MOST or not 0 < self.epoch < MOST:
            raise ReplicationError("has a wrong number")


MAXIMUM_RECORD = _CRC.size + _HEADER.size + MAXIMUM_BODY


def place_of(record: LogRecord, octets: bytes) -> Place:
    """The end of a log whose last record was encoded so."""
    digest = blake2b(octets, digest_size=DIGEST_SIZE).digest()
    return Place(record.incarnation, record.epoch, record.number, digest)


class RowWriter:
    """Writes the rows of a database's batches, whose families are named by `handles`."""

    def __init__(self, handles: Mapping[Family, "FamilyHandle"]) -> None:
        self._codes = {id(handles[family]): code for family, code in _CODES.items()}

    def write(self, operations: "Iterable[Operation]") -> bytes:
        """Rows in the order in which they are to be written."""
        codes, pack = self._codes, _ROW.pack
        pieces: list[bytes] = []
        add = pieces.append
        for key, value, handle in operations:
            code = codes[id(handle)]
            if value is None:
                add(pack(code | _DELETED, len(key), 0) + key)
            else:
                add(pack(code, len(key), len(value)) + key)
                add(value)
        return b"".join(pieces)


def read_rows(body: bytes) -> Iterator[tuple[Family, bytes, bytes | None]]:
    """Family, key and value (None: deleted) of each row; raises ReplicationError."""
    at, end = 0, len(body)
    while at < end:
        if end - at < _ROW.size:
            raise ReplicationError("ends within a row")
        code, key_size, size = _ROW.unpack_from(body, at)
        family = _FAMILIES.get(code & ~_DELETED)
        start = at + _ROW.size
        at = start + key_size + size
        if family is None or (code & _DELETED and size) or at > end:
            raise ReplicationError("has a wrong row")
        key = body[start : start + key_size]
        yield family, key, None if code & _DELETED else body[start + key_size : at]


def parts_of(body: bytes) -> list[bytes]:
    """The bodies of the records for the rows of one write; raises ReplicationError if it is too
    large."""
    if len(body) > MAXIMUM_PARTS * MAXIMUM_BODY:
        raise ReplicationError(f"One write of {len(body):,} bytes is too large for the log.")
    return [body[at : at + MAXIMUM_BODY] for at in range(0, len(body), MAXIMUM_BODY)] or [b""]


# Answers of an engine


@dataclass(frozen=True, slots=True)
class Appended:
    """The record is at its place, and will stay: on the disks of a majority."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """It is uncertain whether the record is there, or will be later.

    The engine's report of another end proves nothing more: a leader that is cut off counts records
    that it could not commit (G665).
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The record is not there, and never will be: the log is full."""

    reason: str


@dataclass(frozen=True, slots=True)
class Fenced:
    """Another writer's record is at the place: the caller is no writer any more.

    `by` is that record, or empty if it is gone already.
    """

    by: bytes


@dataclass(frozen=True, slots=True)
class Present:
    """A record that a majority has: it stays."""

    octets: bytes


@dataclass(frozen=True, slots=True)
class Absent:
    """No record was seen, which proves nothing."""


@dataclass(frozen=True, slots=True)
class Trimmed:
    """The record was trimmed: the log begins behind that number."""


@dataclass(frozen=True, slots=True)
class LogBounds:
    """The numbers of the first and the last record; `last` is `first - 1` of an empty log.

    More may have come since.
    """

    first: int
    last: int
    size: int
    """Octets on the disk of one node."""


class Reading(Protocol):
    """A reading of records that goes on."""

    def stop(self) -> None:
        """Deliver nothing more."""
        ...


class ReplicatedLog(Protocol):
    """An engine that keeps a log on several machines.

    Numbers are those of the records. No outcome arrives before the method has returned. Failures
    between us and the engine become `Unknown` or `Absent` in time; the other methods fail with
    ReplicationError.
    """

    def append(self, after: int, record: bytes) -> Completion[Appended | Unknown | Refused]:
        """Append a record on condition that the last one has the number `after`."""
        ...

    def look(self, number: int) -> Completion[Present | Absent | Trimmed]:
        """The record with a number, if a majority is seen to have it."""
        ...

    def read(
        self,
        after: int,
        deliver: Callable[[bytes], None],
        failed: Callable[[ReplicationError], None],
    ) -> Reading:
        """Deliver all records behind that number, each once and in order, and later ones.

        It goes on by itself after a lost connection; `failed` is called, and nothing more happens,
        once the next record was trimmed.
        """
        ...

    def bounds(self) -> Completion[LogBounds]:
        """The bounds of the log, as far as they are visible."""
        ...

    def trim(self, before: int) -> Completion[None]:
        """Forget the records with smaller numbers."""
        ...

    def report(self, member: str, report: bytes) -> Completion[None]:
        """Replace a member's report to the others; b"" deletes it.

        Only trimming depends on it.
        """
        ...

    def reports(self) -> Completion[dict[str, bytes]]:
        """The last report of each member, as far as it is visible."""
        ...


class GroupLog(Protocol):
    """The log of a replicated store, to which its groups are appended."""

    def append(self, body: bytes) -> Completion[Place]:
        """Append the rows of a group; gives the log's end after it.

        One is outstanding at a time. The outcome never arrives before this has returned, nor while
        it is uncertain; it is an error if nothing more can be appended.
        """
        ...
