"""Records of the numbers of our transactional messages, until their order is acknowledged.

A message in an outgoing queue has no stamp in its packet: the stamp is written when it is sent. The
given numbers are records of their own beside the queue's sequence ([MS-MQQB] 3.1.7.1.3).
"""

import struct
from collections.abc import Iterable

from rpcqm.adm.queue import OutgoingQueue
from rpcqm.binary.sequence import sequence_of
from rpcqm.codec.packet.types import TxSequenceID
from rpcqm.qm.protocol_records import Changes, ProtocolRecords
from rpcqm.store.records import Family
from rpcqm.store.transaction import StoreTransaction

SEQUENCE_PREFIX = b"qb sequence:"
STAMP_PREFIX = b"qb stamp:"
LAST_SEQUENCE_KEY = b"qb last sequence"
_SEQUENCE_SIZE = 8
_QUEUE = struct.Struct(">I")
_STAMP_KEY = struct.Struct(">IQ")
_NUMBER = struct.Struct("<I")


def sequence_key(queue: OutgoingQueue) -> bytes:
    """The key under which the sequence of a queue is stored."""
    return SEQUENCE_PREFIX + _QUEUE.pack(queue.queue_id)


def last_sequence(kept: bytes | None) -> TxSequenceID:
    """The last identifier that a queue has begun with, from its record; zero without one."""
    return sequence_of(int.from_bytes((kept or b"")[:_SEQUENCE_SIZE], "little"))


def last_sequence_record(identifier: TxSequenceID) -> bytes:
    """The record of the last identifier that a queue has begun with."""
    return identifier.value.to_bytes(_SEQUENCE_SIZE, "little")


class SequenceRecords:
    """The records of one outgoing queue's sequence, and of the numbers in it."""

    def __init__(self, records: ProtocolRecords, queue: OutgoingQueue) -> None:
        self._records = records
        self._queue = queue
        self._sequence_key = sequence_key(queue)

    def _number_key(self, key: int) -> bytes:
        return STAMP_PREFIX + _STAMP_KEY.pack(self._queue.queue_id, key)

    def sequence(self) -> bytes | None:
        """The encoded sequence; None for a queue that has never had one."""
        return self._records.get(self._sequence_key)

    def numbers(self) -> dict[int, int]:
        """The numbers of the messages that are still in the queue, by lookup identifiers."""
        numbers: dict[int, int] = {}
        prefix = STAMP_PREFIX + _QUEUE.pack(self._queue.queue_id)
        for record, value in self._records.records(prefix):
            key = _STAMP_KEY.unpack_from(record, len(STAMP_PREFIX))[1]
            if key in self._queue.message_position_list:
                numbers[key] = _NUMBER.unpack(value)[0]
        return numbers

    def number(self, key: int) -> int:
        """The number that a message was sent with; 0 without a record."""
        kept = self._records.get(self._number_key(key))
        return 0 if kept is None else int(_NUMBER.unpack(kept)[0])

    def numbered(self, key: int, number: int, sequence: bytes) -> Changes:
        """The changes that store a message's number, and the sequence after it."""
        return {self._number_key(key): _NUMBER.pack(number), self._sequence_key: sequence}

    def without(self, key: int, sequence: bytes) -> Changes:
        """The changes that delete a message's number, and store the sequence."""
        return {self._number_key(key): None, self._sequence_key: sequence}

    def without_all(self, keys: Iterable[int], sequence: bytes) -> Changes:
        """The changes that delete the numbers of messages, and store the sequence."""
        changes: dict[bytes, bytes | None] = dict.fromkeys(map(self._number_key, keys))
        return changes | {self._sequence_key: sequence}

    def forget(self, change: StoreTransaction, key: int) -> None:
        """Delete the number of a message in the commit that removes the message."""
        change.delete(Family.STREAM, self._number_key(key))
