"""Two sessions of the binary protocol that talk to each other, or one and a scripted peer."""

from collections import deque
from uuid import UUID

from rpcqm.binary.session import Session
from rpcqm.binary.session_host import Identities, SessionState
from rpcqm.binary.settings import BinarySettings
from rpcqm.codec.layout import NULL_GUID
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.acknowledgement import PacketKind
from rpcqm.codec.packet.internal import InternalPacket, decode_internal_packet
from rpcqm.codec.packet.message import MessageAttributes, PacketMessage, build_user_message
from rpcqm.codec.packet.types import MessageIdentifier
from tests.support.clock import SimulatedClock

ALICE = UUID("11111111-1111-1111-1111-111111111111")
ORDERS = "DIRECT=OS:bob\\private$\\orders"
BOB = UUID("22222222-2222-2222-2222-222222222222")


class Host:
    """Records what a session wants; `persist` says whether messages reach the disk at once."""

    def __init__(
        self,
        clock: SimulatedClock,
        local: UUID,
        remote: UUID = NULL_GUID,
        settings: BinarySettings | None = None,
        direct: bool = True,
    ) -> None:
        self.sent: deque[bytes] = deque()
        self.states: list[SessionState] = []
        self.received: list[tuple[PacketKind, bytes, int | None]] = []
        self.acknowledged: list[object] = []
        self.moved = 0
        self.reason: str | None = None
        self.persist = True
        self.session = Session(
            self, Identities(local, remote), clock, clock.timers, settings, direct=direct
        )

    def transmit(self, data: bytes) -> None:
        self.sent.append(data)

    def state_changed(self, state: SessionState) -> None:
        self.states.append(state)

    def message_received(
        self, kind: PacketKind, message: PacketMessage, recoverable: int | None
    ) -> None:
        self.received.append((kind, bytes(message.buffer), recoverable))
        if recoverable is not None and self.persist:
            self.session.persisted(recoverable)

    def messages_acknowledged(self, tokens: list[object]) -> None:
        self.acknowledged += tokens

    def window_moved(self) -> None:
        self.moved += 1

    def closed(self, reason: str) -> None:
        self.reason = reason

    def packets(self) -> list[InternalPacket]:
        """The internal packets that were sent since the last look."""
        packets = [decode_internal_packet(data) for data in self.sent]
        self.sent.clear()
        return packets


class Pair:
    """An initiator and an acceptor over a perfect line; `settle` carries what waits."""

    def __init__(self, settings: BinarySettings | None = None, remote: UUID = NULL_GUID) -> None:
        self.clock = SimulatedClock()
        self.initiator = Host(self.clock, ALICE, remote, settings)
        self.acceptor = Host(self.clock, BOB, settings=settings)

    def open(self) -> "Pair":
        self.acceptor.session.start_acceptor()
        self.initiator.session.start_initiator()
        self.settle()
        return self

    def settle(self) -> None:
        while self.initiator.sent or self.acceptor.sent:
            for source, target in (
                (self.initiator, self.acceptor),
                (self.acceptor, self.initiator),
            ):
                if source.sent:
                    target.session.receive_data(source.sent.popleft())

    def advance(self, milliseconds: int) -> None:
        """Let time pass; what timers send arrives at once."""
        end = self.clock.monotonic() + milliseconds
        while (due := self.clock.timers.next_due()) is not None and due <= end:
            self.clock.advance(due - self.clock.monotonic())
            self.settle()
        self.clock.advance(end - self.clock.monotonic())


def packet(number: int = 1, recoverable: bool = False, name: str = ORDERS) -> bytes:
    """A small message from Alice."""
    attributes = MessageAttributes(
        destination_queue_format_name=FormatName.parse(name),
        identifier=MessageIdentifier(ALICE, number),
        sent_time=1_750_000_000,
        delivery_guarantee=1 if recoverable else 0,
        body=f"body {number}".encode(),
    )
    return build_user_message(attributes)
