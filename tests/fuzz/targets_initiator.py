"""Target of the binary protocol: what a queue manager is told where it has connected."""

import tempfile
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

from rpcqm.adm.directory import DirectoryContents
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.completion import Completion, completed
from rpcqm.base.resolver import OPERATOR, Senders
from rpcqm.binary.connection.peer_connection import NextHop, PeerConnection
from rpcqm.binary.session_host import SessionState
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.acknowledgement import final_ack, order_ack
from rpcqm.codec.packet.base import SessionHeader
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.internal import (
    ConnectionParametersHeader,
    ConnectionParametersPacket,
    EstablishConnectionHeader,
    EstablishConnectionPacket,
    FinalAckBody,
    OrderAckBody,
    SessionAckPacket,
)
from rpcqm.codec.packet.message import build_user_message
from rpcqm.codec.packet.types import MessageIdentifier, TxSequenceID
from tests.fuzz.target import Run, Target, Violation, without_particulars
from tests.support.binary.binary_network import Simulation
from tests.support.binary.wires import SilentWire
from tests.support.queue_manager import MEMORY

OWN, STRANGER = UUID(int=7), UUID(int=77)
ELSEWHERE = "DIRECT=OS:bob\\private$\\orders"
IN_SEQUENCE = "DIRECT=OS:bob\\private$\\stream"
WAITING = 3
RETRY = 6_000
PATIENCE = 330_000
"""Milliseconds in which even somebody who has never answered is tried again (G99)."""
_ORDER_QUEUE = FormatName.parse("DIRECT=TCP:192.0.2.1\\PRIVATE$\\order_queue$")
SEQUENCE = TxSequenceID(1, 1_750_000_000)


class _Network:
    """Connects at once, to nobody."""

    def __init__(self) -> None:
        self.connection: PeerConnection | None = None
        self.wire = SilentWire()

    def resolve(self, host: str, senders: Senders = OPERATOR) -> Completion[tuple[str, ...]]:
        return completed(("192.0.2.66",))

    def connect(self, hop: NextHop, connection: PeerConnection) -> Completion[None]:
        self.connection, self.wire = connection, SilentWire()
        connection.attach(self.wire, hop.address)
        return completed(None)


class _Initiator:
    """A queue manager with messages that wait, which connects anew for each input."""

    def __init__(self, simulation: Simulation) -> None:
        own = QueueManager(OWN, computer_name="alice")
        directory = DirectoryContents(queue_managers=[own])
        self._simulation = simulation
        self._node = simulation.node("alice", directory=directory)
        self._network = self._node.protocol.connecting.network = _Network()

    def run(self, octets: bytes) -> Hashable:
        connection, wire = self._connected()
        before = self._node.unsent
        connection.session.receive_data(octets)
        self._node.settle()
        state, reason = connection.session.state, connection.session.close_reason
        if (state is SessionState.CLOSED) != wire.closed:
            raise Violation(f"{state} and closed: {wire.closed}")
        self._end()
        self._check(octets, before)
        return state.value, without_particulars(reason), before - self._node.unsent

    def _connected(self) -> tuple[PeerConnection, SilentWire]:
        for queue in (ELSEWHERE, IN_SEQUENCE):
            found = self._node.engine.outgoing.list()
            waiting = {each.destination_format_name: each.message_count for each in found}
            for _ in range(WAITING - waiting.get(queue, 0)):
                self._node.send(queue, b"body", queue == IN_SEQUENCE)
        for _ in range(PATIENCE // RETRY):
            self._simulation.advance(RETRY)
            connection = self._network.connection
            if connection is not None and not connection.closed_already:
                return connection, self._network.wire
        raise Violation("nothing connects any more")

    def _end(self) -> None:
        for connection in list(self._node.protocol.connections):
            connection.session.close("the next one")
        self._node.settle()

    def _check(self, octets: bytes, before: int) -> None:
        """What is not acknowledged is there, and can be sent again."""
        if self._node.unsent < before and octets.count(b"LIOR") < 3:
            raise Violation(f"{before - self._node.unsent} messages are gone for nothing")
        for queue in self._node.engine.outgoing.list():
            if queue.message_position_list.available != queue.message_count:
                raise Violation(f"{queue.message_count} wait, not all can be sent")


@contextmanager
def _initiator() -> Iterator[Run]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        simulation = Simulation(Path(directory))
        yield _Initiator(simulation).run
        simulation.stop()


def _answers() -> Iterable[bytes]:
    """The other side of a session, whole and with every kind of acknowledgement."""
    yield EstablishConnectionPacket.of(EstablishConnectionHeader(OWN, STRANGER), refused=True)
    opening = EstablishConnectionPacket.of(EstablishConnectionHeader(OWN, STRANGER))
    yield opening
    opening += ConnectionParametersPacket.of(ConnectionParametersHeader(500, 20_000))
    yield opening
    yield opening + SessionAckPacket.of(SessionHeader(ack_sequence_number=1))
    header = SessionHeader(3, 1, 0b111, 0, 0)
    yield opening + SessionAckPacket.of(header)
    name, identifier = OrderAckBody(SEQUENCE, 3, 2), MessageIdentifier(STRANGER, 90)
    order = order_ack(_ORDER_QUEUE, identifier, 1_750_000_000, name)
    yield opening + build_user_message(order)
    final = FinalAckBody(SEQUENCE, 1, 0, OWN, 1)
    reason = MessageClass.MQMSG_CLASS_NACK_Q_PURGED
    told = final_ack(_ORDER_QUEUE, identifier, 1_750_000_000, final, reason)
    yield opening + build_user_message(told)


TARGETS = (Target("answers", _answers, _initiator, share=10, lifetime=1_000),)
