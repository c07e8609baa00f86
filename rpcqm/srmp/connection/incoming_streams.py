"""Incoming streams, what is kept of them, and the receipts that they are owed.

A stream belongs to the GUID of its <streamId> and to the destination as its sender writes it; its
state is in the commit of each message ([MC-MQSRM] 3.1.1.1.6, 3.1.5.1.6.3, G213).
"""

from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from rpcqm.adm.message import Message
from rpcqm.adm.queue import IncomingTransactionalTransferInfo, Queue
from rpcqm.base.text import folded
from rpcqm.codec.packet.acknowledgement import final_ack, order_ack
from rpcqm.codec.packet.attributes import MessageAttributes
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.internal import FinalAckBody, OrderAckBody
from rpcqm.codec.packet.message import build_user_message
from rpcqm.codec.packet.types import MessageIdentifier, TxSequenceID
from rpcqm.srmp.elements import Envelope, Stream
from rpcqm.srmp.incoming import correlation_of, name_of
from rpcqm.srmp.streams import IncomingStream, ReceiptSchedule
from rpcqm.store.transaction import StoreTransaction

if TYPE_CHECKING:
    from rpcqm.srmp.connection.protocol import SrmpProtocol

PREFIX = b"srmp incoming:"
_GUID_SIZE = 16
_CACHED = 10_000
"""Streams in memory; others are read from the store again."""


class StreamReceiver:
    """One stream, and the way back to its sender."""

    def __init__(self, protocol: "SrmpProtocol", guid: UUID, to: str) -> None:
        self._protocol = protocol
        self.guid = guid
        self.to = to
        self.key = key_of(guid, to)
        self.state = IncomingStream()
        self.peer = ""
        self.schedule = ReceiptSchedule(
            protocol.clock, protocol.timers, lambda: protocol.settings, self.send_receipt
        )

    @property
    def _now(self) -> int:
        return self._protocol.clock.now() // 1000

    def accept(self, stream: Stream, peer: str, repeated: bool) -> bool:
        """Whether a message counts; its sender is owed a receipt in any case (G214).

        One that is `repeated` has been taken before, whatever its number says.
        """
        self.peer = peer
        self.state.last_access_time = self._now
        self.schedule.message_received()
        if repeated:
            self.state.reject_count += 1
        elif self.state.accept(stream):
            return True
        self._follow(stream)
        return False

    def _follow(self, stream: Stream) -> None:
        """What is not durable yet must not become so by this; the message comes again."""
        state = self.state
        if state.is_durable and state.follow(stream):
            self._protocol.protocol_records.write({self.key: state.encode()})

    def show(self, info: IncomingTransactionalTransferInfo) -> None:
        """Tell administrators how far it has come ([MC-MQSRM] 3.1.5.1.6.4)."""
        state = self.state
        info.sequence_identifier = state.ordinal
        info.sequence_number = state.number
        info.reject_count = state.reject_count
        info.last_access_time = state.last_access_time

    # Receipts

    def send_receipt(self) -> None:
        """Acknowledge what is durable ([MC-MQSRM] 3.1.6.3); what is not yet, a little later."""
        if not self.state.is_durable:
            self.schedule.message_received()
        ordinal, number = self.state.durable
        if not number:
            return
        body = OrderAckBody(TxSequenceID.from_value(ordinal), number, number - 1)
        with self._protocol.store.transaction("stream receipt") as change:
            self._send(change, partial(order_ack, body=body), self.peer)

    def send_final_receipt(
        self, change: StoreTransaction, envelope: Envelope, reason: MessageClass, source: str
    ) -> None:
        """Tell the sender what became of a message, within the commit that decides it.

        Source: [MC-MQSRM] 3.1.7.3.3.
        """
        assert envelope.stream is not None
        stream, original = envelope.stream, correlation_of(envelope.id)
        body = FinalAckBody(
            TxSequenceID.from_value(stream.stream_id.ordinal),
            stream.current,
            stream.previous,
            original.queue_manager_guid,
            original.ordinal,
        )
        built = partial(final_ack, body=body, message_class=reason)
        self._send(change, built, source, unbounded=True)

    def _send(
        self,
        change: StoreTransaction,
        build: "partial[MessageAttributes]",
        source: str,
        *,
        unbounded: bool = False,
    ) -> None:
        """Put a receipt into the queue to SendReceiptsTo, or drop it if strangers have too many.

        The GUID of the stream is in CorrelationIdentifier, where no receipt has anything else.
        """
        destination = name_of(self.state.send_receipts_to)
        if destination is None:
            return
        identifier = self._protocol.composer.new_identifier()
        attributes = build(destination, identifier, self._now)
        attributes.correlation_identifier = MessageIdentifier(self.guid)
        attributes.response_queue_format_name = name_of(self.to)
        message = Message(build_user_message(attributes))
        self._protocol.acknowledgements.send_if_possible(
            change, message, destination, source, unbounded=unbounded
        )


class IncomingStreams:
    """The streams that others send here."""

    def __init__(self, protocol: "SrmpProtocol") -> None:
        self._protocol = protocol
        self._cache: OrderedDict[bytes, StreamReceiver] = OrderedDict()
        self.fed: set[int] = set()
        """Queues that have ever received a message of a stream."""
        for key, data in protocol.protocol_records.records(PREFIX):
            self._restore(key, data)

    def _restore(self, key: bytes, data: bytes) -> None:
        """After a restart, show administrators again what they were shown of a stream."""
        state = IncomingStream.decode(data)
        self.fed.add(state.queue_id)
        guid, to = _parts_of(key)
        receiver = StreamReceiver(self._protocol, guid, to)
        receiver.state = state
        self.show(receiver)

    def of(self, guid: UUID, to: str) -> StreamReceiver:
        """The stream of a sender to one destination."""
        key = key_of(guid, to)
        found = self._cache.get(key)
        if found is not None:
            self._cache.move_to_end(key)
            return found
        receiver = StreamReceiver(self._protocol, guid, to)
        data = self._protocol.protocol_records.get(key)
        if data is not None:
            receiver.state = IncomingStream.decode(data)
        self._cache[key] = receiver
        while len(self._cache) > _CACHED:
            self._cache.popitem(last=False)[1].schedule.stop()
        return receiver

    def took(self, receiver: StreamReceiver, queue: Queue) -> bytes:
        """Note where a message of a stream goes; what has to be durable with it."""
        receiver.state.queue_id = queue.queue_id
        self.fed.add(queue.queue_id)
        self.show(receiver)
        return receiver.state.encode()

    def show(self, receiver: StreamReceiver) -> None:
        """Show a stream to administrators, once a message of it has been for a queue here."""
        queues = self._protocol.queue_manager.queue_collection
        queue = queues.get(receiver.state.queue_id)
        if queue is not None:
            name = f"DIRECT={receiver.to}"
            receiver.show(self._protocol.arrivals.transfer_info(queue, name, receiver.guid))

    def stop(self) -> None:
        """Stop the timers."""
        for receiver in self._cache.values():
            receiver.schedule.stop()


def key_of(guid: UUID, to: str) -> bytes:
    """The key of a stream's record; letters of the destination are compared without their case."""
    return PREFIX + guid.bytes_le + folded(to).encode("utf-8", "surrogatepass")


def _parts_of(key: bytes) -> tuple[UUID, str]:
    written = key[len(PREFIX) :]
    guid = UUID(bytes_le=written[:_GUID_SIZE])
    return guid, written[_GUID_SIZE:].decode("utf-8", "surrogatepass")
