"""A stranger who speaks the binary protocol to a real process, and lies about who sends."""

import socket
import time
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from rpcqm.codec.format_name import FormatName
from rpcqm.codec.message import MessageAttributes, build_user_message
from rpcqm.codec.packet_base import BaseHeader, SessionHeader
from rpcqm.codec.packet_internal import (
    ConnectionParametersHeader,
    ConnectionParametersPacket,
    EstablishConnectionHeader,
    EstablishConnectionPacket,
)
from rpcqm.codec.packet_patch import with_session_header
from rpcqm.codec.packet_types import MessageIdentifier

STRANGER = UUID(int=77)
PATIENCE = 30.0


class BinaryStranger:
    """One open session with a queue manager, as the queue manager `guid`."""

    def __init__(self, address: tuple[str, int], guid: UUID = STRANGER) -> None:
        self.plain = socket.create_connection(address, timeout=PATIENCE)
        self.guid = guid
        self._sent = 0
        for packet in (
            EstablishConnectionPacket.of(EstablishConnectionHeader(guid)),
            ConnectionParametersPacket.of(ConnectionParametersHeader(500, 20_000)),
        ):
            self.plain.sendall(packet)
            self._read()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.plain.close()

    def send(self, name: str, number: int, body: bytes = b"forged", **more: Any) -> None:
        """Send a recoverable message and wait until the queue manager has dealt with it."""
        packet = build_user_message(
            MessageAttributes(
                destination_queue_format_name=FormatName.parse(name),
                identifier=MessageIdentifier(self.guid, number),
                sent_time=int(time.time()),
                body=body,
                delivery_guarantee=1,
                **more,
            )
        )
        self._sent += 1
        header = SessionHeader(
            user_msg_sequence_number=self._sent, recoverable_msg_seq_number=self._sent
        )
        self.plain.sendall(with_session_header(packet, header))
        self._read()

    def _read(self) -> bytes:
        """The next packet of the queue manager."""
        head = self._exactly(BaseHeader.size())
        return head + self._exactly(BaseHeader.decode(head).packet_size - len(head))

    def _exactly(self, size: int) -> bytes:
        octets = b""
        while len(octets) < size:
            more = self.plain.recv(size - len(octets))
            if not more:
                raise ConnectionError("the queue manager closed the session")
            octets += more
        return octets
