"""Records of the streams of outgoing queues, until all receipts have come.

A number is a record of its own beside the stream of its queue, so that it is durable before the
message that carries it leaves (G47, G55).
"""

import struct
from collections.abc import Container, Iterator

from rpcqm.adm.queue import OutgoingQueue
from rpcqm.qm.protocol_records import Changes, ProtocolRecords

_STREAM_PREFIX = b"srmp sent stream:"
_NUMBER_PREFIX = b"srmp sent number:"
_LAST_STREAM = b"srmp last stream"
_QUEUE = struct.Struct(">I")
_NUMBER_KEY = struct.Struct(">IQ")
_NUMBER = struct.Struct("<I")
_STREAM_SIZE = 8


def last_stream(records: ProtocolRecords) -> int:
    """The number of the last stream that was begun, 0 before the first."""
    return int.from_bytes(records.get(_LAST_STREAM) or b"", "little")


def as_last_stream(identifier: int) -> Changes:
    """The change that stores it."""
    return {_LAST_STREAM: identifier.to_bytes(_STREAM_SIZE, "little")}


def queues_with_streams(records: ProtocolRecords) -> Iterator[int]:
    """The identifiers of queues whose receipts are outstanding."""
    for record, _ in records.records(_STREAM_PREFIX):
        yield _QUEUE.unpack_from(record, len(_STREAM_PREFIX))[0]


def without_queues(records: ProtocolRecords, kept: Container[int]) -> Changes:
    """The changes that delete the streams of all queues but these."""
    return {
        record: None
        for prefix in (_STREAM_PREFIX, _NUMBER_PREFIX)
        for record, _ in records.records(prefix)
        if _QUEUE.unpack_from(record, len(prefix))[0] not in kept
    }


class StreamRecords:
    """The records of one outgoing queue's stream, and of the numbers in it."""

    def __init__(self, records: ProtocolRecords, queue: OutgoingQueue) -> None:
        self._records = records
        self._queue = queue
        self._stream_key = _STREAM_PREFIX + _QUEUE.pack(queue.queue_id)

    def _number_key(self, key: int) -> bytes:
        return _NUMBER_PREFIX + _NUMBER_KEY.pack(self._queue.queue_id, key)

    def stream(self) -> bytes | None:
        """The encoded stream; None when none is begun."""
        return self._records.get(self._stream_key)

    def numbers(self) -> dict[int, int]:
        """The numbers of the messages that are still in the queue, by lookup identifiers."""
        positions = self._queue.message_position_list
        return {key: number for key, number in self._all_numbers() if key in positions}

    def _all_numbers(self) -> Iterator[tuple[int, int]]:
        prefix = _NUMBER_PREFIX + _QUEUE.pack(self._queue.queue_id)
        for record, value in self._records.records(prefix):
            key = _NUMBER_KEY.unpack_from(record, len(_NUMBER_PREFIX))[1]
            yield key, _NUMBER.unpack(value)[0]

    def lost(self, *, over: bool) -> Changes:
        """The changes that delete numbers of messages that left while this was off, and the stream
        if `over`."""
        positions = self._queue.message_position_list
        gone: dict[bytes, bytes | None] = {
            self._number_key(key): None for key, _ in self._all_numbers() if key not in positions
        }
        return gone | {self._stream_key: None} if over else gone

    def numbered(self, key: int, number: int, stream: bytes) -> Changes:
        """The changes that store the number of a message, and the stream after it."""
        return {self._number_key(key): _NUMBER.pack(number), self._stream_key: stream}

    def kept(self, stream: bytes | None) -> Changes:
        """The change that stores the stream, or deletes it when it is over."""
        return {self._stream_key: stream}

    def without(self, key: int, stream: bytes | None) -> Changes:
        """The same, and the number of a message is deleted."""
        return {self._number_key(key): None, self._stream_key: stream}
