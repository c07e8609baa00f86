"""The outgoing sequences of a queue manager that was restored from a backup (G358).

The messages sent since the backup are lost here: receivers may be far ahead in the sequences of
that time, and would take nothing of them any more. So each queue begins another sequence, and
waiting messages get their numbers when they are sent, from 1 on ([MS-MQQB] 3.1.5.8.6).
"""

from collections.abc import Callable, Iterator

from rpcqm.base.errors import DecodeError
from rpcqm.binary.connection.sequence_numbers import (
    LAST_SEQUENCE_KEY,
    SEQUENCE_PREFIX,
    STAMP_PREFIX,
    last_sequence,
    last_sequence_record,
)
from rpcqm.binary.sequence import begun_anew, identifier_in
from rpcqm.codec.packet.types import TxSequenceID
from rpcqm.qm.transfer import doubts_after_restore

LEAP = 1 << 23
"""Seconds, 97 days: by so much may the clock have gone back since the last sequence that was begun
after the backup, or that many sequences have been begun ahead of it."""
_LAST = 0xFFFF_FFFF - (1 << 20)
"""Timestamps end in 2106, and those of later queues follow."""


def begin_new_sequences(
    records: Callable[[bytes], Iterator[tuple[bytes, bytes]]], now: int
) -> dict[bytes, bytes | None]:
    """The changes of records by which every outgoing sequence begins anew.

    Messages that had arrived and await their final acknowledgement are in doubt: it may have come
    already. `now` is a time after the backup, in seconds since 1970. Each queue has its own place
    in the order of new identifiers, so that a later restore of the same backup gives it a greater
    one.
    """
    kept = dict(records(SEQUENCE_PREFIX))
    known = [last_sequence(dict(records(LAST_SEQUENCE_KEY)).get(LAST_SEQUENCE_KEY))]
    known += [found for record in kept.values() if (found := _identifier(record)) is not None]
    latest = min(max(now, *(each.timestamp for each in known)) + LEAP, _LAST - len(kept))
    changes = doubts_after_restore(records)
    changes |= {key: None for key, _ in records(STAMP_PREFIX)}
    for timestamp, (key, record) in enumerate(kept.items(), latest + 1):
        changes[key] = _renewed(record, TxSequenceID(1, timestamp))
    changes[LAST_SEQUENCE_KEY] = last_sequence_record(TxSequenceID(1, latest + len(kept)))
    return changes


def _identifier(record: bytes) -> TxSequenceID | None:
    try:
        return identifier_in(record)
    except DecodeError:  # a damaged record is forgotten
        return None


def _renewed(record: bytes, identifier: TxSequenceID) -> bytes | None:
    try:
        return begun_anew(record, identifier)
    except DecodeError:  # the queue gets a sequence when it sends
        return None
