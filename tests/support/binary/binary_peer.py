"""A queue manager of a simulation whose peer is a script: octets go in, and come out."""

from collections.abc import Sequence
from uuid import UUID

from rpcqm.binary.connection.peer_connection import PeerConnection
from rpcqm.codec.packet.base import SessionHeader
from rpcqm.codec.packet.internal import (
    ConnectionParametersHeader,
    ConnectionParametersPacket,
    EstablishConnectionHeader,
    EstablishConnectionPacket,
)
from rpcqm.codec.packet.patch import with_session_header
from tests.support.binary.binary_network import Node

PEER = UUID(int=0x7357)
ADDRESS = "192.0.2.99"


class ScriptedPeer:
    """A session that a peer has opened; `answers` is what came back since the last look."""

    def __init__(self, node: Node, guid: UUID = PEER, address: str = ADDRESS) -> None:
        self.node = node
        self.sent = self.sent_recoverable = 0
        self.answers: list[bytes] = []
        self.closed = False
        self.paused = False
        self.connection: PeerConnection = node.protocol.accept()
        self.connection.attach(self, address)
        parameters = ConnectionParametersHeader(500, 20_000, window_size=64)
        self.feed(EstablishConnectionPacket.of(EstablishConnectionHeader(guid)))
        self.feed(ConnectionParametersPacket.of(parameters))
        self.answers.clear()

    def feed(self, data: bytes) -> None:
        """Octets arrive in one read, unless the connection is closed."""
        if not self.closed:
            self.connection.session.receive_data(data)

    def counting(self, packets: Sequence[tuple[bytes, bool]], header: bool = False) -> bytes:
        """Packets one behind the other, each with whether it is recoverable.

        The last one ends with a SessionHeader if there is to be one.
        """
        self.sent += len(packets)
        self.sent_recoverable += sum(recoverable for _, recoverable in packets)
        octets = [packet for packet, _ in packets]
        if header and octets:
            counts = SessionHeader(
                user_msg_sequence_number=self.sent & 0xFFFF,
                recoverable_msg_seq_number=self.sent_recoverable & 0xFFFF,
            )
            octets[-1] = with_session_header(octets[-1], counts)
        return b"".join(octets)

    # What the connection wants of its transport

    def write(self, data: bytes) -> None:
        self.answers.append(data)

    def close(self) -> None:
        self.closed = True

    def pause(self, paused: bool) -> None:
        self.paused = paused
