"""Packets that are taken together beside the same packets taken one by one, compared for tests.

Each of them goes the careful way up to its commit, which is taken back: over a copy of the session,
and with whatever else it changes kept as it was (docs/request-templates.md).
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import NamedTuple, NoReturn

from rpcqm.adm.message import Message
from rpcqm.adm.queue import Queue
from rpcqm.base.completion import Completion
from rpcqm.binary.connection.incoming_transfers import IncomingTransfer
from rpcqm.binary.connection.peer_connection import PeerConnection, PeerTransport
from rpcqm.binary.connection.protocol import BinaryProtocol
from rpcqm.binary.connection.receiving import Receiver
from rpcqm.binary.session import Session
from rpcqm.binary.session_host import SessionState
from rpcqm.codec.packet.acknowledgement import PacketKind
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.fields import PACKET_SIZE
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.fast.doors.session_arrival import Batch
from rpcqm.fast.observer import Observer
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.message_trace import MessageTrace
from rpcqm.store.transaction import StoreTransaction
from tests.support.shadow.kept import (
    apart,
    copied_trace,
    history_kept,
    shown,
    told_of_history,
    told_of_transfer,
    transfers_kept,
)
from tests.support.shadow.session_copy import copied, told

_COUNTER = 0xFFFF
"""Sessions count modulo 2**16."""


class UnlikeError(Exception):
    """The careful path does something that nothing is taken together for."""


class Tap:
    """Stands for a transport, and keeps what is told it; without one that is all it does."""

    def __init__(self, wire: PeerTransport | None = None) -> None:
        self._wire = wire
        self.octets = b""
        self.pauses: list[bool] = []

    def write(self, data: bytes) -> None:
        self.octets += data
        if self._wire is not None:
            self._wire.write(data)

    def close(self) -> None:
        if self._wire is not None:
            self._wire.close()

    def pause(self, paused: bool) -> None:
        self.pauses.append(paused)
        if self._wire is not None:
            self._wire.pause(paused)


class Stage:
    """The host of a session that is rehearsed."""

    def __init__(self, receiver: Receiver | None, connection: PeerConnection, tap: Tap) -> None:
        self._receiver, self._connection, self._tap = receiver, connection, tap
        self.numbers: list[int] = []
        """Those of recoverable messages that will be told to be persisted."""

    def transmit(self, data: bytes) -> None:
        self._tap.write(data)

    def message_received(
        self, kind: PacketKind, message: PacketMessage, recoverable: int | None
    ) -> None:
        if self._receiver is None:
            raise UnlikeError("a message arrives")
        if recoverable is not None:
            self.numbers.append(recoverable)
        self._receiver.message_received(self._connection, kind, message, recoverable)

    def state_changed(self, state: SessionState) -> None:
        raise UnlikeError(f"the session becomes {state.value}")

    def closed(self, reason: str) -> None:
        raise UnlikeError(f"the session is closed: {reason}")

    def messages_acknowledged(self, tokens: list[object]) -> None:
        raise UnlikeError("messages are acknowledged")

    def window_moved(self) -> None:
        raise UnlikeError("the window moves")


class RehearsingReceiver(Receiver):
    """Takes messages as a receiver does, but for refusing any."""

    trace: MessageTrace

    @classmethod
    def of(cls, receiver: Receiver) -> "RehearsingReceiver":
        """One like another."""
        made = cls.__new__(cls)
        vars(made).update(vars(receiver))
        made.trace = made._message_trace = copied_trace(made._message_trace)
        return made

    def _refuse(
        self,
        connection: PeerConnection,
        message: Message,
        reason: MessageClass,
        changes: dict[bytes, bytes | None],
        transfer: IncomingTransfer | None,
    ) -> Completion[None]:
        return _unlike(f"{reason.name} for {message.attributes.identifier}")


def _unlike(reason: str) -> NoReturn:
    raise UnlikeError(reason)


class _Step:
    """One packet that arrives."""

    def __init__(self, session: Session, packet: bytes) -> None:
        self._session, self._packet = session, packet

    def rehearse(self) -> bytes:
        """Take it; what it is answered with is the tap's."""
        self._session._receive_packet(self._packet)
        return b""


class CarefulArrivals(NamedTuple):
    """What becomes of packets that come one by one."""

    rehearsal: object
    inside: dict[str, object]
    outside: dict[str, object]


class ArrivalShadow:
    """Compares a batch with its packets."""

    def __init__(
        self, engine: QueueManagerEngine, protocol: BinaryProtocol, shadow: Observer
    ) -> None:
        self._engine, self._protocol, self._shadow = engine, protocol, shadow
        self.at_one_time = shadow.at_one_time

    def rehearse(self, connection: PeerConnection, batch: Batch, octets: bytes) -> CarefulArrivals:
        """Take packets one by one, and take it back."""
        protocol, packets = self._protocol, list(_packets(octets))
        self._engine.store.carry_out_first()
        receiver, tap = RehearsingReceiver.of(protocol.receiver), Tap()
        stage = Stage(receiver, connection, tap)
        before = connection.session, connection.pending, connection._wire
        with ExitStack() as stack:
            stack.enter_context(history_kept(protocol.history))
            places = _places(batch)
            stack.enter_context(transfers_kept(protocol.incoming_transfers, places))
            session = connection.session = copied(connection.session, stage)
            connection._wire = tap
            try:
                rehearsal = self._shadow.rehearse(self._steps(session, batch, packets))
                inside = self._inside(batch)
                outside = _outside(connection, tap, stage.numbers, receiver.trace.told())
            finally:
                connection.session, connection.pending, connection._wire = before
        return CarefulArrivals(rehearsal, inside, outside)

    def _steps(self, session: Session, batch: Batch, packets: list[bytes]) -> Iterator[_Step]:
        """Each takes the numbers that it gets in the order of the runs, where there are several."""
        counters = self._engine.store.counters
        numbers = counters.serial, counters.lookup_identifier
        first = [number.next for number in numbers]
        order = batch.order if len(batch.runs) > 1 and not batch.each else []
        starts, taken = {}, 0
        for run in batch.runs.values():
            starts[run.queue.queue_id] = taken
            taken += len(run.stored)
        for place, packet in enumerate(packets):
            if order:
                queue_id = order[place].queue.queue_id
                for number, begin in zip(numbers, first, strict=True):
                    number.next = begin + starts[queue_id]
                starts[queue_id] += 1
            yield _Step(session, packet)
        if order:
            for number, begin in zip(numbers, first, strict=True):
                number.next = begin + len(packets)

    def compare_commit(
        self, careful: CarefulArrivals, batch: Batch, change: StoreTransaction
    ) -> None:
        """Compare what a batch is about to commit, and what is known beside the store by then."""
        answers = [b""] * batch.count
        alone = partial(apart, self._protocol.history)
        self._shadow.compare(careful.rehearsal, change, answers, together=True, apart=alone)
        self._compare(careful.inside, self._inside(batch))

    @contextmanager
    def comparing_session(
        self, careful: CarefulArrivals, connection: PeerConnection, batch: Batch
    ) -> Iterator[None]:
        """Compare what the session counts and sends within the block."""
        first = connection.session.recoverable_message_received_count + 1
        with tapped(connection) as tap:
            yield
            numbers = range(first, first + batch.recoverable)
            persisted = [number & _COUNTER for number in numbers]
            known = self._engine.message_trace.told()
            self._compare(careful.outside, _outside(connection, tap, persisted, known))

    def _inside(self, batch: Batch) -> dict[str, object]:
        transfers = self._protocol.incoming_transfers
        found: dict[str, object] = {"history": told_of_history(self._protocol.history)}
        for number, sequence in enumerate(batch.moved):
            for name, value in told_of_transfer(sequence.transfer).items():
                found[f"{name} of sequence {number}"] = value
            found[f"what is shown of sequence {number}"] = shown(transfers, sequence.transfer)
            found["fed"] = set(transfers.fed)
        return found

    def _compare(self, careful: dict[str, object], templated: dict[str, object]) -> None:
        for name in careful.keys() | templated.keys():
            self._shadow.equal(name, careful.get(name), templated.get(name))


@contextmanager
def tapped(connection: PeerConnection) -> Iterator[Tap]:
    """Keep what is told to a connection's transport within the block."""
    wire = connection._wire
    made = connection._wire = Tap(wire)
    try:
        yield made
    finally:
        if connection._wire is made:  # else the connection has ended meanwhile
            connection._wire = wire


def _places(batch: Batch) -> list[tuple[IncomingTransfer, Queue]]:
    return [(each.transfer, batch.runs[each.queue_id].queue) for each in batch.moved]


def _outside(
    connection: PeerConnection, tap: Tap, numbers: list[int], known: object
) -> dict[str, object]:
    of_session = {f"session: {name}": value for name, value in told(connection.session).items()}
    return of_session | {
        "sent": tap.octets,
        "pauses": tap.pauses,
        "pending": connection.pending,
        "persisted later": numbers,
        "told of others": known,
    }


def _packets(octets: bytes) -> Iterator[bytes]:
    """Whole packets, one behind the other."""
    start = 0
    while start < len(octets):
        place = slice(start + PACKET_SIZE.start, start + PACKET_SIZE.stop)
        end = start + int.from_bytes(octets[place], "little")
        yield octets[start:end]
        start = end
