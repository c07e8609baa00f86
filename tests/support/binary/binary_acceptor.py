"""A peer that a queue manager of a simulation connects to, and that a script answers for."""

from uuid import UUID

from rpcqm.base.completion import Completion, completed
from rpcqm.binary.connection.peer_connection import NextHop, PeerConnection
from rpcqm.binary.framing import PacketBuffer
from rpcqm.binary.session import Session
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.acknowledgement import order_ack
from rpcqm.codec.packet.base import MAXIMUM_FRAME_SIZE, SessionHeader
from rpcqm.codec.packet.fields import DELIVERY_MODE, INTERNAL
from rpcqm.codec.packet.internal import (
    ORDER_QUEUE_IDENTIFIER,
    ConnectionParametersHeader,
    ConnectionParametersPacket,
    EstablishConnectionHeader,
    EstablishConnectionPacket,
    OrderAckBody,
    SessionAckPacket,
)
from rpcqm.codec.packet.message import PacketMessage, build_user_message
from rpcqm.codec.packet.patch import without_session_header
from rpcqm.codec.packet.types import MessageIdentifier
from tests.support.binary.binary_network import Node

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
        self._counted = self._persisted = self._sent = 0
        node.connect = self.connect  # type: ignore[method-assign]

    def connect(self, hop: NextHop, connection: PeerConnection) -> Completion[None]:
        self.connection, self._buffer = connection, PacketBuffer()
        self.messages, self._counted, self._persisted, self._sent = [], 0, 0, 0
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
            user_msg_sequence_number=self._sent,
        )
        self._persisted += newly
        session.receive_data(SessionAckPacket.of(header))

    def acknowledge_order(self, all_but: int) -> None:
        """Acknowledge the order of all transactional messages that have come, but so many."""
        session = self._session
        stamps = [PacketMessage(without_session_header(packet)) for packet in self.messages]
        stamps = [each for each in stamps if each.has_transaction_header]
        if session is None or not session.is_open or len(stamps) <= all_but:
            return
        last = stamps[-1 - all_but]
        sequence = last.transactional_message_sequence_identifier
        assert sequence is not None
        number = last.transaction_sequence_number
        body = OrderAckBody(sequence, number, number - 1)
        queue = FormatName.private(last.source_machine_identifier, ORDER_QUEUE_IDENTIFIER)
        self._sent += 1
        now = self.node.simulation.clock.now() // 1000
        made = order_ack(queue, MessageIdentifier(PEER, self._sent), now, body)
        session.receive_data(build_user_message(made))

    def disconnect(self) -> None:
        if self._session is not None:
            self._session.disconnected()

    @property
    def _session(self) -> Session | None:
        return None if self.connection is None else self.connection.session
