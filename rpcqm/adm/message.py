"""Messages and their places ([MS-MQDMPR] 3.1.1.11, 3.1.1.12)."""

import struct
from typing import TYPE_CHECKING, NamedTuple

from rpcqm.adm.enums import PositionState
from rpcqm.base.errors import DecodeError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.base import BaseFlags, BaseHeader
from rpcqm.codec.packet.fields import head_reader
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.codec.packet.user import UserFlags
from rpcqm.codec.types.mqvalues import INFINITE

if TYPE_CHECKING:
    from rpcqm.adm.queue import Queue

NEVER = INFINITE
"""A time-to-reach-queue or time-to-be-received that never ends, in seconds."""

_LENGTH = struct.Struct("<I")
_PACKET_SIZE = struct.Struct("<" + BaseHeader.reading("packet_size"))
_ENVELOPE = head_reader(
    ("flags", "packet_size", "time_to_reach_queue"),
    ("source_queue_manager", "time_to_be_received", "sent_time", "message_id", "flags"),
)

_PRIORITY = BaseFlags.PR.bits
_RECOVERABLE = UserFlags.DM.bits | UserFlags.TH.bits
_JOURNALING = UserFlags.JN.bits | UserFlags.JP.bits
_ADMINISTRATION_QUEUE = UserFlags.AQ.bits
_TRANSACTION_HEADER = UserFlags.TH.bits

FLAG_TRANSACTIONAL = 0x01
FLAG_NEGATIVE_JOURNALING = 0x02
FLAG_POSITIVE_JOURNALING = 0x04
FLAG_ADMINISTRATION_QUEUE = 0x08
FLAG_ALLOW_PEEK_WHEN_LOCKED = 0x10
FLAG_APPLICATION_DEADLETTER = 0x20
"""Bits that a position keeps of its message, so that a removal need not read the packet."""
_TRANSACTIONAL_SHIFT = UserFlags.TH.offset
_JOURNALING_SHIFT = UserFlags.JN.offset - 1
"""Shifts the bits of UserHeader.Flags to those of FLAG_..."""

ON_ARRIVAL = FLAG_POSITIVE_JOURNALING | FLAG_ADMINISTRATION_QUEUE
KEPT_FLAGS = FLAG_TRANSACTIONAL | FLAG_APPLICATION_DEADLETTER
"""The bits that stay in a journal or a dead-letter queue."""
CONSEQUENCES = FLAG_NEGATIVE_JOURNALING | FLAG_POSITIVE_JOURNALING | FLAG_ADMINISTRATION_QUEUE


class Envelope(NamedTuple):
    """The fixed fields of a packet's BaseHeader and UserHeader; times are seconds."""

    base_flags: int
    packet_size: int
    time_to_reach_queue: int
    source_machine: bytes
    time_to_be_received: int
    sent_time: int
    message_id: int
    user_flags: int

    @property
    def priority(self) -> int:
        """The effective priority: 0 for a transactional message (G1)."""
        return 0 if self.user_flags & _TRANSACTION_HEADER else self.base_flags & _PRIORITY

    @property
    def recoverable(self) -> bool:
        return bool(self.user_flags & _RECOVERABLE)

    @property
    def transactional(self) -> bool:
        return bool(self.user_flags & _TRANSACTION_HEADER)

    @property
    def flags(self) -> int:
        """The FLAG_… bits of a position."""
        user_flags = self.user_flags
        return (
            (user_flags & _TRANSACTION_HEADER) >> _TRANSACTIONAL_SHIFT
            | (user_flags & _JOURNALING) >> _JOURNALING_SHIFT
            | (FLAG_ADMINISTRATION_QUEUE if user_flags & _ADMINISTRATION_QUEUE else 0)
        )


_SID = b"S-"
"""The beginning of a SID, which no address has: the text behind a packet is one of the two."""
_BEHIND_SENDER = "\0"
"""Separates a SID from a path name; no path name contains it."""


def split_stored(stored: bytes) -> tuple[bytes, str]:
    """The packet of a message without a name behind it, and the address that it came from."""
    (end,) = _PACKET_SIZE.unpack_from(stored)
    if 0 < end < len(stored):
        beside = stored[end:]
        return stored[:end], "" if beside.startswith(_SID) else beside.decode("ascii", "replace")
    return stored, ""


class Message:
    """A message is its UserMessage packet; attributes are decoded on demand.

    Values that are not in the packet are kept beside it: `lookup_identifier` (0 before it has one),
    `arrival_time` and `last_move_time` in milliseconds since 1970, counts, the queue where it was
    read, and the FLAG_... bits of its position. `source_address` is the address that it arrived
    from, "" when it was sent here (G125).

    `application_deadletter_queue` is a path name, or ""; only messages sent here have one. `sender`
    is the SID of the caller who has sent the message here. It is kept if the packet does not
    contain it and the message names queues that the queue manager writes to; an imported message
    has Anonymous's, all others "". No header carries these values, so they lie behind the packet in
    the store.

    `xml_signature` is for the copies of a message to several queues that travel by HTTP, until they
    are made.
    """

    __slots__ = (
        "_attributes",
        "_envelope",
        "_enveloped",
        "abort_count",
        "allow_peek_when_locked",
        "application_deadletter_queue",
        "arrival_time",
        "kept_flags",
        "last_move_time",
        "lookup_identifier",
        "move_count",
        "packet",
        "queue",
        "sender",
        "source_address",
        "target_subqueue_name",
        "transaction_status_queue_format_name",
        "xml_signature",
    )

    def __init__(self, packet: bytes, *, allow_peek_when_locked: bool = False) -> None:
        self.packet = packet
        self._attributes: PacketMessage | None = None
        self._envelope: Envelope
        self._enveloped: bytes | None = None
        self.allow_peek_when_locked = allow_peek_when_locked
        self.application_deadletter_queue = ""
        self.transaction_status_queue_format_name: FormatName | None = None
        self.kept_flags = 0
        self.lookup_identifier = 0
        self.arrival_time = 0
        self.abort_count = 0
        self.move_count = 0
        self.last_move_time = 0
        self.queue: Queue | None = None
        self.source_address = self.sender = ""
        self.target_subqueue_name = ""
        self.xml_signature = b""

    @classmethod
    def restored(cls, stored: bytes, flags: int) -> "Message":
        """A message as it was `stored`, under the FLAG_... bits of its position."""
        if not flags & FLAG_APPLICATION_DEADLETTER:
            packet, source = split_stored(stored)
            message = cls(packet)
            message.source_address = source
            if not source and len(packet) < len(stored):
                message.sender = stored[len(packet) :].decode("ascii", "replace")
        else:
            (length,) = _LENGTH.unpack_from(stored, len(stored) - _LENGTH.size)
            end = len(stored) - _LENGTH.size - length
            message = cls(stored[:end])
            name = stored[end : end + length].decode("utf-8", "surrogatepass")
            message.sender, _, message.application_deadletter_queue = name.rpartition(
                _BEHIND_SENDER
            )
        message.kept_flags = flags
        return message

    @property
    def stored(self) -> bytes:
        """The stored octets: the packet, and the values that no header carries."""
        if not self.application_deadletter_queue:
            return self.packet + (self.source_address or self.sender).encode()
        name = self.application_deadletter_queue.encode("utf-8", "surrogatepass")
        if self.sender:
            name = f"{self.sender}{_BEHIND_SENDER}".encode() + name
        return self.packet + name + _LENGTH.pack(len(name))

    @property
    def stored_size(self) -> int:
        """The octets of `stored`, which quotas count (G164)."""
        if not self.application_deadletter_queue:
            return len(self.packet) + len(self.source_address or self.sender)
        return len(self.stored)

    @classmethod
    def of(cls, attributes: PacketMessage) -> "Message":
        """The message with attributes whose packet has been decoded already."""
        message = cls(bytes(attributes.buffer))
        if attributes.buffer is message.packet:
            message._attributes = attributes
        return message

    @property
    def attributes(self) -> PacketMessage:
        """The ADM attributes in the packet, each decoded on demand."""
        attributes = self._attributes
        if attributes is None or attributes.buffer is not self.packet:
            attributes = self._attributes = PacketMessage(self.packet)
        return attributes

    @property
    def subqueue_name(self) -> str:
        return "" if self.queue is None else self.queue.subqueue_name

    @property
    def message_position_reference(self) -> "MessagePosition | None":
        if self.queue is None:
            return None
        return MessagePosition(self.queue, self.lookup_identifier)

    def position_flags(self, envelope: Envelope) -> int:
        """The FLAG_... bits that the message's position keeps."""
        flags = envelope.flags
        if self.application_deadletter_queue:
            flags |= FLAG_APPLICATION_DEADLETTER
        return flags | FLAG_ALLOW_PEEK_WHEN_LOCKED if self.allow_peek_when_locked else flags

    @property
    def envelope(self) -> Envelope:
        """The fixed fields; DecodeError when the packet is too short to have them."""
        packet = self.packet
        if self._enveloped is not packet:
            try:
                self._envelope = Envelope(*_ENVELOPE.unpack_from(packet))
            except struct.error:
                raise DecodeError("packet shorter than its headers", len(packet)) from None
            self._enveloped = packet
        return self._envelope


class MessagePosition:
    """A place in a queue: the queue and the lookup identifier of the message there.

    `state` is the present one; DELETED if the message is no longer in the queue.
    """

    __slots__ = ("lookup_identifier", "queue_reference")

    def __init__(self, queue: "Queue", lookup_identifier: int) -> None:
        self.queue_reference = queue
        self.lookup_identifier = lookup_identifier

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, MessagePosition)
            and self.lookup_identifier == other.lookup_identifier
            and self.queue_reference is other.queue_reference
        )

    def __hash__(self) -> int:
        return hash((id(self.queue_reference), self.lookup_identifier))

    @property
    def state(self) -> PositionState:
        return self.queue_reference.message_position_list.state(self.lookup_identifier)

    @property
    def next(self) -> "MessagePosition | None":
        """The next position in any state; None at the end of the queue."""
        queue = self.queue_reference
        key = queue.message_position_list.next(self.lookup_identifier, False)
        return None if key is None else MessagePosition(queue, key)

    @property
    def previous(self) -> "MessagePosition | None":
        """The previous position in any state; None at the head of the queue."""
        queue = self.queue_reference
        key = queue.message_position_list.previous(self.lookup_identifier, False)
        return None if key is None else MessagePosition(queue, key)
