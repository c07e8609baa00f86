"""The numbers of our transactional messages, as they are kept until their order is acknowledged.

A message in an outgoing queue has no stamp in its packet: it is written where it is sent. What
was given is a record of its own beside the sequence of the queue ([MS-MQQB] 3.1.7.1.3).
"""

import struct
from uuid import UUID

from rpcqm.adm.message import NEVER, Message
from rpcqm.adm.queue import OutgoingQueue
from rpcqm.codec.packet.user import UserFlags
from rpcqm.qm.protocol_records import ProtocolRecords

_SEQUENCE_PREFIX = b"qb sequence:"
_STAMP_PREFIX = b"qb stamp:"
_QUEUE = struct.Struct(">I")
_STAMP_KEY = struct.Struct(">IQ")
_NUMBER = struct.Struct("<I")
_HOPS = UserFlags.RC.bits


def sequence_key(queue: OutgoingQueue) -> bytes:
    """The key under which the sequence of a queue is stored."""
    return _SEQUENCE_PREFIX + _QUEUE.pack(queue.queue_id)


def stamp_key(queue: OutgoingQueue, key: int) -> bytes:
    """The key under which the number of a message is stored."""
    return _STAMP_PREFIX + _STAMP_KEY.pack(queue.queue_id, key)


def encode_number(number: int) -> bytes:
    """A number as it is stored."""
    return _NUMBER.pack(number)


def kept_number(records: ProtocolRecords, queue: OutgoingQueue, key: int) -> int:
    """The number that a message was sent with; 0 if no number is stored."""
    kept = records.get(stamp_key(queue, key))
    return 0 if kept is None else int(_NUMBER.unpack(kept)[0])


def kept_numbers(records: ProtocolRecords, queue: OutgoingQueue) -> dict[int, int]:
    """The numbers of the messages that are still in a queue, by their lookup identifiers."""
    numbers: dict[int, int] = {}
    for record, value in records.records(_STAMP_PREFIX + _QUEUE.pack(queue.queue_id)):
        key = _STAMP_KEY.unpack_from(record, len(_STAMP_PREFIX))[1]
        if key in queue.message_position_list:
            numbers[key] = _NUMBER.unpack(value)[0]
    return numbers


def is_stamped_here(message: Message, own: UUID) -> bool:
    """Whether a message is transactional and ours: only its source stamps it.

    One that has come back to us on its way has its stamp already ([MS-MQQB] 3.1.1.5).
    """
    envelope = message.envelope
    ours = envelope.source_machine == own.bytes_le and not envelope.user_flags & _HOPS
    return envelope.transactional and ours


def cannot_reach_queue(message: Message, now: int) -> bool:
    """Whether the time to reach the queue is over; `now` is seconds since 1970."""
    envelope = message.envelope
    limited = envelope.time_to_reach_queue != NEVER
    return limited and now - envelope.sent_time > envelope.time_to_reach_queue
