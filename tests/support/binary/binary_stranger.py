"""A stranger who has kept the rules of a session, and lies about who sends."""

import time
from typing import Any
from uuid import UUID

from rpcqm.codec.packet.base import BaseHeader, SessionHeader
from rpcqm.codec.packet.internal import SessionAckPacket
from rpcqm.codec.packet.patch import with_session_header
from rpcqm.codec.packet.types import MessageIdentifier
from tests.support.binary.stranger import Stranger

STRANGER = UUID(int=77)


class BinaryStranger(Stranger):
    """One open session with a queue manager, as the queue manager `guid`."""

    def __init__(
        self, address: tuple[str, int], guid: UUID = STRANGER, source: str = "", up: int = 0
    ) -> None:
        super().__init__(address, guid, source, up)  # "" is whatever address leads there
        self._sent = 0

    def deliver(self, name: str, number: int, body: bytes = b"forged", **more: Any) -> None:
        """Send a recoverable message and wait until the queue manager has dealt with it."""
        self.deliver_as(name, identifier=MessageIdentifier(self.guid, number), body=body, **more)

    def deliver_as(self, name: str, **more: Any) -> None:
        """The same for a message with the attributes of `more`."""
        self.send_as(name, **more)
        self._read_packet()

    def send_as(self, name: str, **more: Any) -> None:
        """The same without waiting."""
        packet = self.message(name, **{"body": b"forged", "sent_time": int(time.time())} | more)
        self._sent += 1
        header = SessionHeader(
            user_msg_sequence_number=self._sent, recoverable_msg_seq_number=self._sent
        )
        self.send_packet(with_session_header(packet, header))

    def send_together(self, name: str, count: int, **more: Any) -> None:
        """Send messages with the numbers from 1 on at once, and wait as `await_all` does."""
        packets = [
            self.message(name, identifier=MessageIdentifier(self.guid, number), **more)
            for number in range(1, count + 1)
        ]
        self._sent += count
        header = SessionHeader(
            user_msg_sequence_number=self._sent, recoverable_msg_seq_number=self._sent
        )
        packets[-1] = with_session_header(packets[-1], header)
        self.send_packet(b"".join(packets))
        self.await_all()

    def await_all(self) -> None:
        """Wait until the queue manager has dealt with everything that was sent."""
        acknowledged = 0
        while acknowledged < self._sent:
            packet = self._read_packet()
            if len(packet) == SessionAckPacket.size():
                header = SessionAckPacket.decode(packet).session_header
                acknowledged = header.ack_sequence_number

    def _read_packet(self) -> bytes:
        """The next packet of the queue manager."""
        head = self._read(BaseHeader.size())
        return head + self._read(BaseHeader.decode(head).packet_size - len(head))
