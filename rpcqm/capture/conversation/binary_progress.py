"""How far a session of the binary protocol has come, as its server's packets tell."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from rpcqm.base.errors import DecodeError
from rpcqm.capture.conversation.binary import BinaryPacket
from rpcqm.codec.packet.acknowledgement import PacketKind, identify_packet
from rpcqm.codec.packet.base import SESSION_HEADER_SIZE, SessionHeader
from rpcqm.codec.packet.fields import SESSION_HEADER
from rpcqm.codec.packet.internal import FinalAckBody, OrderAckBody
from rpcqm.codec.packet.message import PacketMessage

_MODULUS, _HALF = 1 << 16, 1 << 15
_SESSION_HEADER_AT, _SESSION_HEADER = SESSION_HEADER


def kind_of(packet: BinaryPacket) -> PacketKind | None:
    """The kind of a packet; None if it cannot be read."""
    try:
        return identify_packet(packet.octets)
    except DecodeError:
        return None


def session_header(packet: BinaryPacket) -> SessionHeader | None:
    """The acknowledgements in a packet, a SessionAck or one on which they ride."""
    octets = packet.octets
    if not octets[_SESSION_HEADER_AT] & _SESSION_HEADER or len(octets) < SESSION_HEADER_SIZE:
        return None
    return SessionHeader.decode(octets, len(octets) - SESSION_HEADER_SIZE)


def order_ack_of(packet: BinaryPacket) -> OrderAckBody | None:
    """What an OrderAck acknowledges; None for any other packet."""
    if kind_of(packet) is not PacketKind.ORDER_ACK:
        return None
    return OrderAckBody.decode(PacketMessage(packet.octets).body)


def final_ack_of(packet: BinaryPacket) -> FinalAckBody | None:
    """What a FinalAck acknowledges; None for any other packet."""
    if kind_of(packet) is not PacketKind.FINAL_ACK:
        return None
    return FinalAckBody.decode(PacketMessage(packet.octets).body)


@dataclass(slots=True)
class SessionProgress:
    """What a server has acknowledged and sent; numbers count on beyond 2**16.

    `acknowledged` messages have arrived, recoverable ones up to `recoverable` are on the disk,
    `orders` is the last number of each sequence that has an OrderAck, `messages` counts what the
    server sent besides OrderAcks.
    """

    acknowledged: int = 0
    recoverable: int = 0
    messages: int = 0
    window_size: int = 0
    orders: dict[int, int] = field(default_factory=dict)

    def take_acknowledgements(self, packet: BinaryPacket) -> None:
        """What the next packet of a session acknowledges."""
        header = session_header(packet)
        if header is not None:
            self._header(header)

    def take_message(self, packet: BinaryPacket) -> None:
        """Count the next packet of a server, if it is a message."""
        kind, order = kind_of(packet), order_ack_of(packet)
        if order is not None:
            sequence = order.tx_sequence_id.value
            self.orders[sequence] = max(self.orders.get(sequence, 0), order.tx_sequence_number)
        elif kind in (PacketKind.USER_MESSAGE, PacketKind.FINAL_ACK):
            self.messages += 1

    def _header(self, header: SessionHeader) -> None:
        self.acknowledged = _unwrapped(header.ack_sequence_number, self.acknowledged)
        self.window_size = header.window_size
        first, flags = header.recoverable_msg_ack_seq_number, header.recoverable_msg_ack_flags
        if flags:
            last = _unwrapped(first, self.recoverable) + flags.bit_length() - 1
            self.recoverable = max(self.recoverable, last)

    def reaches(self, other: "SessionProgress") -> bool:
        """Whether this is as far as another one, or further."""
        return (
            self.acknowledged >= other.acknowledged
            and self.recoverable >= other.recoverable
            and self.messages >= other.messages
            and all(self.orders.get(each, 0) >= number for each, number in other.orders.items())
        )

    def copy(self) -> "SessionProgress":
        return replace(self, orders=dict(self.orders))


def _unwrapped(number: int, near: int) -> int:
    """The number beyond 2**16 that is nearest to another one."""
    return near + (number - near + _HALF) % _MODULUS - _HALF


Milestones = list[tuple[int, SessionProgress]]
"""How far a server had come, with the times."""


def milestones(
    packets: Iterable[BinaryPacket], take: Callable[[SessionProgress, BinaryPacket], None]
) -> Milestones:
    """How far a server had come at each of its packets."""
    progress, found = SessionProgress(), []
    for packet in packets:
        take(progress, packet)
        found.append((packet.time, progress.copy()))
    return found


def at(found: Milestones, moment: int | None) -> SessionProgress:
    """How far a server had come by a moment; at the end if the moment is None."""
    reached = [each for time, each in found if moment is None or time <= moment]
    return reached[-1] if reached else SessionProgress()
