"""The constants of packets that differ only in values that change from message to message.

A queue mostly has messages of few shapes. A result that follows from one packet without its
`Varying` parts holds for every packet of the same shape.
"""

import struct
from typing import NamedTuple

from rpcqm.codec.layout import decode_text
from rpcqm.codec.packet.base import BASE_HEADER_SIZE
from rpcqm.codec.packet.fields import CORRELATION_ID, MESSAGE_ID, PACKET_SIZE, SENT_TIME
from rpcqm.codec.packet.properties import MessagePropertiesStart, locate_properties
from rpcqm.codec.packet.transaction import TransactionFlags
from rpcqm.codec.packet.user import UserHeaderStart
from rpcqm.codec.packet.user_message import UserMessage

_LABEL_LENGTH = MessagePropertiesStart.place("label_length")
_SIZES = MessagePropertiesStart.place("message_size").start
_BEHIND_SIZES = MessagePropertiesStart.place("privacy_level").start
_EXTENSION_SIZE = MessagePropertiesStart.place("extension_size").start
_TIME_AND_NUMBER = struct.Struct("<" + UserHeaderStart.reading("sent_time", "message_id"))
_TRANSACTION = struct.Struct("<I")
_WITHOUT_NUMBER = ~TransactionFlags.ID.bits & 0xFFFF_FFFF


class Varying(NamedTuple):
    """The differences of packets of one shape, besides the number of their transaction."""

    sent_time: int
    message_id: int
    label: str
    correlation: bytes
    body: bytes
    extension: bytes


class Shape(NamedTuple):
    """Where two headers start in all packets of a shape, and the octets that they share."""

    transaction: int
    properties: int
    octets: bytes

    @classmethod
    def of(cls, message: UserMessage) -> "Shape | None":
        """The shape of a packet; None where headers follow its body. Raises DecodeError."""
        layout = message.layout
        if layout.end != layout.properties_end:
            return None
        octets = _shared(bytes(message.buffer), layout.transaction, layout.properties)
        return cls(layout.transaction, layout.properties, octets)

    def fits(self, packet: bytes) -> bool:
        """Whether a packet is of this shape."""
        return _shared(packet, self.transaction, self.properties) == self.octets

    def varying(self, packet: bytes) -> Varying:
        """The own values of a packet of this shape; raises DecodeError."""
        start = self.properties
        label, extension, body, size, _ = locate_properties(packet, start)
        text = decode_text(packet[label:extension], "label", label) if extension > label else ""
        sent_time, message_id = _TIME_AND_NUMBER.unpack_from(packet, BASE_HEADER_SIZE)
        return Varying(
            sent_time,
            message_id,
            text,
            packet[start + CORRELATION_ID.start : start + CORRELATION_ID.stop],
            packet[body : body + size],
            packet[extension:body],
        )


def _shared(packet: bytes, transaction: int, properties: int) -> bytes:
    """The octets of a packet without those of `Varying`, of sizes, and of a transaction's number.

    Too short a packet gives fewer octets than any that has both headers.
    """
    names = MESSAGE_ID.stop
    parts = [packet[: PACKET_SIZE.start], packet[PACKET_SIZE.stop : SENT_TIME.start]]
    if transaction >= 0 and len(packet) >= transaction + _TRANSACTION.size:
        (flags,) = _TRANSACTION.unpack_from(packet, transaction)
        parts += packet[names:transaction], _TRANSACTION.pack(flags & _WITHOUT_NUMBER)
        names = transaction + _TRANSACTION.size
    parts += (
        packet[names : properties + _LABEL_LENGTH.start],
        packet[properties + _LABEL_LENGTH.stop : properties + CORRELATION_ID.start],
        packet[properties + CORRELATION_ID.stop : properties + _SIZES],
        packet[properties + _BEHIND_SIZES : properties + _EXTENSION_SIZE],
    )
    return b"".join(parts)
