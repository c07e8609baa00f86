"""A queue manager that sends by HTTP to a host that answers as a test says."""

from typing import Any

from rpcqm.adm.queue import OutgoingQueue, OutgoingTransferInfo
from rpcqm.base.completion import Completion
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.types.mqvalues import ConnectionStatus
from rpcqm.srmp.elements import Stream, StreamId
from tests.support.binary.binary_pair import packets
from tests.support.srmp.http_network import Host, HttpNode, HttpSimulation

NAME = "DIRECT=HTTP://shop/msmq/private$/orders"


class Sending:
    """Alice, and a shop that is no queue manager."""

    def __init__(self, simulation: HttpSimulation) -> None:
        self.simulation = simulation
        self.alice: HttpNode = simulation.node("alice")
        self.shop: Host = simulation.host("shop")

    def send(self, body: bytes = b"content", to: str = NAME, **more: Any) -> MessageIdentifier:
        return self.alice.send(to, body, **more)

    def settle(self, seconds: float = 5) -> None:
        self.simulation.advance(int(seconds * 1000))

    @property
    def queue(self) -> OutgoingQueue:
        return self.alice.outgoing(NAME)

    @property
    def statuses(self) -> list[ConnectionStatus]:
        return [entry.status for entry in self.queue.connection_history]

    def kept(self, name: str) -> list[tuple[bytes, int]]:
        """What is in a system queue: bodies and classes."""
        queue_manager = self.alice.engine.queue_manager
        queue = getattr(queue_manager, f"system_{name}_queue")
        return [(each.body, int(each.message_class)) for each in packets(self.alice, queue)]

    # Streams

    def send_in_order(self, body: bytes = b"content", **more: Any) -> MessageIdentifier:
        """Send a transactional message."""
        return self.alice.send(NAME, body, transactional=True, **more)

    @property
    def streams(self) -> list[Stream]:
        """The <stream> elements that the shop got."""
        found = [envelope.stream for envelope in self.shop.envelopes]
        return [stream for stream in found if stream is not None]

    @property
    def numbers(self) -> list[int]:
        return [stream.current for stream in self.streams]

    def receipt(self, last_ordinal: int, stream: StreamId | None = None) -> bool:
        """The shop says how far it has come, in the stream that it has seen last."""
        said = self.alice.srmp.transfers.stream_receipt(
            stream or self.streams[-1].stream_id, last_ordinal, self.shop.address
        )
        return self._known(said)

    def final_receipt(
        self, ordinal: int, message_class: MessageClass, stream: StreamId | None = None
    ) -> bool:
        """The shop says what became of a message."""
        said = self.alice.srmp.transfers.final_stream_receipt(
            stream or self.streams[-1].stream_id, ordinal, message_class, self.shop.address
        )
        return self._known(said)

    def _known(self, said: Completion[bool]) -> bool:
        self.simulation.settle()
        return said.result()

    @property
    def info(self) -> OutgoingTransferInfo:
        return self.alice.engine.outgoing.shown_transfer(self.queue)


def send_three(sending: Sending) -> StreamId:
    """Send three messages in order; returns their stream."""
    for body in (b"1", b"2", b"3"):
        sending.send_in_order(body)
    sending.settle(1)
    return sending.streams[0].stream_id
