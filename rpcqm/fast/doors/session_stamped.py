"""Transactional messages of our own that get their stamps together ([MS-MQQB] 3.1.7.1.3).

They are recognised by the shapes of their packets (`outgoing_runs`), locked in one step, and leave
once their stamps are durable. Without one of these two they go the careful way, as all others do.
"""

import struct
from collections.abc import Container
from typing import TYPE_CHECKING, NamedTuple

from rpcqm.adm.message import Message
from rpcqm.binary.connection.peer_connection import PeerConnection
from rpcqm.binary.sequence import OutgoingSequence, Stamp
from rpcqm.codec.packet.patch import set_sequence
from rpcqm.fast.doors.session_shapes import Shape

if TYPE_CHECKING:
    from rpcqm.binary.connection.outgoing_transfer import OutgoingTransfer
    from rpcqm.binary.connection.protocol import BinaryProtocol

_FLAGS_SIZE = 4
"""What a TransactionHeader begins with, before the stamp."""
_STAMP = struct.Struct("<QII")


class Recognised(NamedTuple):
    """A message that leaves as it is kept, but for its stamp.

    `identifier` are the octets of its identifier, `latest` when it may leave (seconds since 1970).
    """

    lookup_identifier: int
    identifier: bytes
    packet: bytes
    shape: Shape
    latest: int

    def stamped(self, stamp: Stamp) -> bytes:
        """Its packet with a stamp."""
        at = self.shape.form.transaction + _FLAGS_SIZE
        octets = _STAMP.pack(stamp.sequence.value, stamp.number, stamp.previous)
        return b"".join((self.packet[:at], octets, self.packet[at + _STAMP.size :]))


Stamped = list[Message | Recognised]
"""Messages that leave once their stamps are durable."""


class LeavingStamped:
    """What leaves over one connection now that its stamps are durable."""

    def __init__(
        self, protocol: "BinaryProtocol", transfer: "OutgoingTransfer", connection: PeerConnection
    ) -> None:
        self._protocol, self._transfer, self._connection = protocol, transfer, connection
        self._runs, self._queue = protocol.runs, transfer.queue
        self._now = protocol.clock.now() // 1000
        self._asked: dict[Shape, bool] = {}
        self._told: list[Recognised] = []

    def packets(
        self, messages: Stamped, sequence: OutgoingSequence, in_flight: Container[int]
    ) -> list[bytes]:
        """The packets to send, in the order of the numbers, of what is not gone by now."""
        packets: list[bytes | None] = []
        for message in messages:
            key = message.lookup_identifier
            if key not in in_flight or sequence.number_of(key) is None:
                continue
            if isinstance(message, Recognised):
                if self._is_as_it_was(message):
                    packets.append(self._recognised(message, sequence.stamp_of(key)))
                    continue
                message = self._protocol.positions.message_at(self._queue, key)
            packets.append(self._careful(message, sequence))
        self._tell()
        return [packet for packet in packets if packet is not None]

    def _is_as_it_was(self, message: Recognised) -> bool:
        """Whether a message is in time, and those of its shape still leave as they are kept."""
        shape = message.shape
        if message.latest < self._now:
            return False
        if shape not in self._asked:
            name = self._transfer.name
            self._asked[shape] = self._runs.leaves_unchanged(name, message.packet)
        return self._asked[shape]

    def _recognised(self, message: Recognised, stamp: Stamp) -> bytes:
        packet = message.stamped(stamp)
        if self._runs.shadow is not None:
            key = message.lookup_identifier
            self._runs.shadow.compare_stamped(self._transfer, key, stamp, packet)
        self._told.append(message)
        return packet

    def _careful(self, message: Message, sequence: OutgoingSequence) -> bytes | None:
        """None if it does not leave after all."""
        plain = self._transfer.packet_of(message)
        if plain is None:
            return None
        stamp = sequence.stamp_of(message.lookup_identifier)
        packet = bytearray(plain)
        set_sequence(packet, stamp.sequence, stamp.number, stamp.previous)
        self._transfer.note_sent(message, self._connection)
        return bytes(packet)

    def _tell(self) -> None:
        """Note that what was recognised goes out."""
        if self._told:
            keys, identifiers, packets, *_ = zip(*self._told, strict=True)
            trace, address = self._protocol.message_trace, self._connection.address
            trace.sent_together(self._queue, keys, identifiers, packets, address)
            self._runs.count_sent(len(keys))
