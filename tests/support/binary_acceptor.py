"""A peer that a queue manager of a simulation connects to, and that a script answers for."""

from uuid import UUID

from rpcqm.base.completion import Completion, completed
from rpcqm.binary.connection.peer_connection import NextHop, PeerConnection
from rpcqm.binary.framing import PacketBuffer
from rpcqm.binary.session import Session
from rpcqm.codec.packet.base import MAXIMUM_FRAME_SIZE, SessionHeader
from rpcqm.codec.packet.fields import DELIVERY_MODE, INTERNAL
from rpcqm.codec.packet.internal import (
    ConnectionParametersHeader,
    ConnectionParametersPacket,
    EstablishConnectionHeader,
    EstablishConnectionPacket,
    SessionAckPacket,
)
from tests.support.binary_network import Node

PEER = UUID(int=0xACCE)


class ScriptedAcceptor:
    """Takes the connections of a queue manager one after the other.

    `messages` are the packets of messages that have come over the present one.
    """

    def __init__(self, node: Node) -> None:
        self.node = node
        self.messages: list[bytes] = []
        self.connection: PeerConnection | None = None
        self._buffer = PacketBuffer()
        self._counted = self._persisted = 0
        node.connect = self.connect  # type: ignore[method-assign]

    def connect(self, hop: NextHop, connection: PeerConnection) -> Completion[None]:
        self.connection, self._buffer = connection, PacketBuffer()
        self.messages, self._counted, self._persisted = [], 0, 0
        connection.attach(self, hop.address)
        return completed(None)

    def write(self, data: bytes) -> None:
        self._buffer.add(data)
        while (packet := self._buffer.next(MAXIMUM_FRAME_SIZE)) is not None:
            if not packet[INTERNAL[0]] & INTERNAL[1]:
                self.messages.append(packet)

    def close(self) -> None:
        self.connection = None

    def pause(self, paused: bool) -> None:
        """It is never too slow."""

    def open(self) -> None:
        """Answer what asks for a session."""
        session = self._session
        if session is None or session.is_open:
            return
        header = EstablishConnectionHeader(session.local_guid, PEER)
        session.receive_data(EstablishConnectionPacket.of(header))
        parameters = ConnectionParametersHeader(500, 20_000, window_size=64)
        session.receive_data(ConnectionParametersPacket.of(parameters))

    def acknowledge(self, count: int, persisted: int) -> None:
        """Acknowledge so many more messages, and so many more recoverable ones as durable."""
        session = self._session
        if session is None or not session.is_open:
            return
        at, mask = DELIVERY_MODE
        recoverable = sum(bool(packet[at] & mask) for packet in self.messages)
        self._counted = min(self._counted + count, len(self.messages))
        newly = min(persisted, recoverable - self._persisted, 32)
        header = SessionHeader(
            ack_sequence_number=self._counted & 0xFFFF,
            recoverable_msg_ack_seq_number=(self._persisted + 1) & 0xFFFF if newly else 0,
            recoverable_msg_ack_flags=(1 << newly) - 1,
        )
        self._persisted += newly
        session.receive_data(SessionAckPacket.of(header))

    def disconnect(self) -> None:
        if self._session is not None:
            self._session.disconnected()

    @property
    def _session(self) -> Session | None:
        return None if self.connection is None else self.connection.session
