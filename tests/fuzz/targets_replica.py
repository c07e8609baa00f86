"""Targets of the replicated log: what an engine delivers may be anything."""

from collections.abc import Hashable, Iterator

from google_crc32c import value as crc32c

from rpcqm.store.errors import ReplicationError
from rpcqm.store.replication import LogRecord, RecordKind, read_rows
from tests.fuzz.target import Target, Violation
from tests.fuzz.targets_codec import fed_by

_ROWS = b"\0\3\0\5\0\0\0keyvalue\x83\2\0\0\0\0\0ab\2\0\0\1\0\0\0x"


def _seeds() -> Iterator[bytes]:
    """Without the checksum, which no mutation would keep right."""
    for kind in RecordKind:
        record = LogRecord(kind, bytes(16), 2, 5, b"8 octets", 2, 1_000, _ROWS)
        yield record.encode()[4:]
    yield LogRecord(RecordKind.ROWS, bytes(16), 2, 5, bytes(8), 2, 0, _ROWS, 3, 4).encode()[4:]


def _read_record(octets: bytes) -> Hashable:
    """What is read is what is written, and rows are no more octets than the record."""
    sealed = crc32c(octets).to_bytes(4, "little") + octets
    record = LogRecord.decode(sealed)
    again = record.encode()
    if LogRecord.decode(again) != record:
        raise Violation("a record is not what is written of it")
    rows = list(read_rows(record.body))
    if sum(len(key) + len(value or b"") for _, key, value in rows) > len(octets):
        raise Violation("rows are longer than their record")
    return record.kind, record.parts > 1, len(rows), {row[0] for row in rows} == set()


TARGETS = (Target("log-record", _seeds, fed_by(_read_record), (ReplicationError,), share=4),)
