"""Targets of the binary protocol: sessions of a queue manager that keeps what it takes."""

import tempfile
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

from rpcqm.binary.ping import answer_ping
from rpcqm.binary.session_host import SessionState
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.acknowledgement import final_ack, order_ack
from rpcqm.codec.packet.base import SessionHeader
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.internal import (
    PING_SIGNATURE,
    ConnectionParametersHeader,
    ConnectionParametersPacket,
    EstablishConnectionHeader,
    EstablishConnectionPacket,
    FinalAckBody,
    OrderAckBody,
    PingFlags,
    PingPacket,
    SessionAckPacket,
)
from rpcqm.codec.packet.message import MessageAttributes, build_user_message
from rpcqm.codec.packet.patch import with_session_header
from rpcqm.codec.packet.types import MessageIdentifier, TxSequenceID
from tests.fuzz.target import Run, Target, Violation, without_particulars
from tests.support.binary.binary_network import Node, Simulation
from tests.support.binary.wires import SilentWire
from tests.support.queue_manager import MEMORY

STRANGER = UUID(int=77)
ORDER_QUEUE = FormatName.parse("DIRECT=TCP:192.0.2.1\\PRIVATE$\\order_queue$")
SEQUENCE = TxSequenceID(1, 1_750_000_000)
STORED_AT_MOST = 2_000


class _Acceptor:
    """A queue manager that strangers connect to, a new session for each input."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def run(self, octets: bytes) -> Hashable:
        node = self._node
        connection = node.protocol.accept()
        wire = SilentWire()
        connection.attach(wire, "192.0.2.66")
        before = node.store.total.count
        connection.session.receive_data(octets)
        node.settle()
        state = connection.session.state
        if (state is SessionState.CLOSED) != wire.closed:
            raise Violation(f"{state} and closed: {wire.closed}")
        self._end()
        stored = node.store.total.count - before
        if stored > octets.count(b"LIOR"):
            raise Violation(f"{stored} messages from {octets.count(b'LIOR')} packets")
        if node.store.total.count > STORED_AT_MOST:
            self._empty()
        return state.value, without_particulars(connection.session.close_reason), min(stored, 2)

    def _end(self) -> None:
        for connection in list(self._node.protocol.connections):
            connection.session.close("the next one")
        self._node.settle()

    def _empty(self) -> None:
        for queue in list(self._node.engine.queue_manager.queue_collection.values()):
            self._node.engine.queues.purge_queue(queue)
        self._node.settle()


@contextmanager
def _acceptor() -> Iterator[Run]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        simulation = Simulation(Path(directory))
        node = simulation.node("bob")
        node.create("orders")
        node.create("stream", transactional=True)
        yield _Acceptor(node).run
        simulation.stop()


def _message(number: int, name: str, **more: object) -> bytes:
    attributes = MessageAttributes(
        destination_queue_format_name=FormatName.parse(f"DIRECT=OS:bob\\private$\\{name}"),
        identifier=MessageIdentifier(STRANGER, number),
        sent_time=1_750_000_000,
        body=b"body",
        delivery_guarantee=number & 1,
    )
    for attribute, value in more.items():
        setattr(attributes, attribute, value)
    return build_user_message(attributes)


def _in_sequence(number: int) -> bytes:
    return _message(
        2 * number + 1,
        "stream",
        transaction_identifier=number,
        transactional_message_sequence_identifier=SEQUENCE,
        transaction_sequence_number=number,
        transaction_previous_sequence_number=number - 1,
    )


def _messages() -> Iterator[bytes]:
    yield _message(1, "orders") + _message(2, "orders")
    yield _in_sequence(1) + _in_sequence(2) + _in_sequence(2)
    yield _message(3, "nowhere", acknowledgements_requested=0x0F)
    yield with_session_header(
        _message(5, "orders"),
        SessionHeader(user_msg_sequence_number=1, recoverable_msg_seq_number=1),
    )
    several = ("DIRECT=OS:bob\\private$\\orders", "DIRECT=OS:bob\\private$\\stream")
    names = tuple(map(FormatName.parse, several))
    yield _message(7, "orders", destination_multi_queue_format_name=names, label="label")
    yield _message(9, "orders", signature=b"s" * 64, sender_certificate=b"c" * 64)
    yield _message(11, "orders", privacy_level=5, symmetric_key=b"k" * 76)
    yield _message(13, "orders", tracing_requested=True, tracing_queue_identifier=STRANGER)
    yield _message(15, "orders", soap_header="<a/>", soap_body="<b/>")
    yield _message(19, "orders", connector_type_identifier=STRANGER)
    admin = FormatName.parse("DIRECT=OS:elsewhere\\private$\\acks")
    yield _message(17, "orders", administration_queue_format_name=admin, extension=b"more")
    identifier = MessageIdentifier(STRANGER, 90)
    order = OrderAckBody(SEQUENCE, 3, 2)
    yield build_user_message(order_ack(ORDER_QUEUE, identifier, 1_750_000_000, order))
    final = FinalAckBody(SEQUENCE, 3, 2, STRANGER, 7)
    reason = MessageClass.MQMSG_CLASS_ACK_RECEIVE
    yield build_user_message(final_ack(ORDER_QUEUE, identifier, 1_750_000_000, final, reason))


def _conversations() -> Iterable[bytes]:
    opening = EstablishConnectionPacket.of(EstablishConnectionHeader(STRANGER))
    opening += ConnectionParametersPacket.of(ConnectionParametersHeader(500, 20_000))
    yield opening
    yield opening + SessionAckPacket.of(SessionHeader())
    for messages in _messages():
        yield opening + messages


@contextmanager
def _pings() -> Iterator[Run]:
    def run(octets: bytes) -> Hashable:
        answer = answer_ping(octets, STRANGER, refused=False)
        if answer is not None and octets[2:4] != PING_SIGNATURE.to_bytes(2, "little"):
            raise Violation("something else than a ping is answered")
        return answer is None

    yield run


def _ping_seeds() -> Iterable[bytes]:
    yield PingPacket.of(STRANGER, 4, PingFlags.of(RC=1))


TARGETS = (
    Target("session", _conversations, _acceptor, share=30, lifetime=4_000),
    Target("ping", _ping_seeds, _pings, share=1),
)
