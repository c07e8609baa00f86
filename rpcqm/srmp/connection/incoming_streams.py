"""Incoming streams, their records, and the receipts that are due for them.

A stream belongs to the GUID of its <streamId> and to the destination as its sender writes it; its
state is in the commit of each message ([MC-MQSRM] 3.1.1.1.6, 3.1.5.1.6.3, G213).
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from rpcqm.adm.message import Message
from rpcqm.adm.queue import IncomingTransactionalTransferInfo, Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.addresses import owner_of
from rpcqm.base.clock import Clock, Timers
from rpcqm.base.errors import DecodeError
from rpcqm.base.identity import ANONYMOUS
from rpcqm.base.log import get_logger
from rpcqm.base.shares import Shares
from rpcqm.base.text import folded
from rpcqm.codec.packet.acknowledgement import final_ack, order_ack
from rpcqm.codec.packet.attributes import MessageAttributes
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.internal import FinalAckBody, OrderAckBody
from rpcqm.codec.packet.message import build_user_message
from rpcqm.codec.packet.types import MessageIdentifier, TxSequenceID
from rpcqm.qm.acknowledgements import Acknowledgements
from rpcqm.qm.arrivals import Arrivals
from rpcqm.qm.composing import Composer
from rpcqm.qm.protocol_records import ProtocolRecords
from rpcqm.srmp.elements import Envelope, Stream
from rpcqm.srmp.incoming import correlation_of, is_url, name_of
from rpcqm.srmp.settings import SrmpSettings
from rpcqm.srmp.streams import IncomingStream, ReceiptSchedule
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction

_log = get_logger("srmp")

PREFIX = b"srmp incoming:"
_REJECTED_PREFIX = b"srmp rejected:"
_REJECTED = struct.Struct("<IQ")
_GUID_SIZE = 16
STREAMS = 10_000
"""Streams of transactional messages by HTTP of which it is known how far they have come.

Whoever has begun most of them loses the oldest (G184).

Bound `srmp.streams` [streams]: of the address from which most have come, the one that was used
longest ago is forgotten.
"""
LONGEST_URL = 2_048
"""Characters of the URLs of a stream, that of its queue and that for receipts.

Bound `srmp.stream_url` [characters]: the request is answered with 400.
"""


@dataclass(eq=False, repr=False)
class ReceivingStreams:
    """The collaborators that all incoming streams share."""

    store: Store
    clock: Clock
    timers: Timers
    settings: Callable[[], SrmpSettings]
    records: ProtocolRecords
    composer: Composer
    acknowledgements: Acknowledgements


class StreamReceiver:
    """One stream, and the way back to its sender."""

    def __init__(self, shared: ReceivingStreams, guid: UUID, to: str) -> None:
        self._shared = shared
        self.guid = guid
        self.to = to
        self.key = key_of(guid, to)
        self.rejected_key = _REJECTED_PREFIX + self.key[len(PREFIX) :]
        self.has_rejected = False
        self.state = IncomingStream()
        self.peer = ""
        self.schedule = ReceiptSchedule(
            shared.clock, shared.timers, shared.settings, self.send_receipt
        )

    @property
    def _now(self) -> int:
        return self._shared.clock.now() // 1000

    def accept(self, stream: Stream, peer: str, repeated: bool) -> bool:
        """Whether a message counts; its sender gets a receipt in any case (G214).

        A `repeated` message has been taken before, whatever its number. A message of another stream
        that is not its first one does not change the address for receipts (G185).
        """
        state = self.state
        accepted = not repeated and state.accept(stream)
        if repeated:
            state.reject_count += 1
        if stream.stream_id == state.stream_id:
            self.peer = peer
            state.last_access_time = self._now
            self.schedule.message_received()
        if not accepted:
            if state.reject_count == 1:
                self._note_dropped(stream, peer, repeated)
            self._follow(stream)
            self._keep_rejected(stream)
        return accepted

    def _note_dropped(self, stream: Stream, peer: str, repeated: bool) -> None:
        """Log the first message in a row that is not the next one of its stream."""
        before = repeated or (
            stream.stream_id == self.state.stream_id and stream.current <= self.state.number
        )
        _log.info(
            "a message in a stream was dropped",
            peer=peer,
            queue=self.to,
            reason="it was taken before" if before else "messages before it are missing",
            stream=str(stream.stream_id[0]),
            number=stream.current,
            last_number=self.state.number,
        )

    def _keep_rejected(self, stream: Stream) -> None:
        """Store RejectCount; a stream that is not stored causes no writing.

        It has a record of its own, because the last message taken may not be durable yet.
        """
        if self.state.queue_id and stream.stream_id == self.state.stream_id:
            count, time = self.state.reject_count, self.state.last_access_time
            self.has_rejected = True
            changes = {self.rejected_key: _REJECTED.pack(count, time)}
            self._shared.records.write(changes)

    def restore_rejected(self) -> None:
        """Restore the record of `_keep_rejected`."""
        kept = self._shared.records.get(self.rejected_key)
        if kept is not None:
            self.has_rejected = True
            self.state.reject_count, self.state.last_access_time = _REJECTED.unpack(kept)

    def _follow(self, stream: Stream) -> None:
        """Take another address for receipts, without making an undurable number durable."""
        state = self.state
        if state.is_durable and state.follow(stream):
            self._shared.records.write({self.key: state.encode()})

    def show(self, info: IncomingTransactionalTransferInfo) -> None:
        """Fill in its progress for administrators ([MC-MQSRM] 3.1.5.1.6.4)."""
        state = self.state
        info.sequence_identifier = state.ordinal
        info.sequence_number = state.number
        info.reject_count = state.reject_count
        info.last_access_time = state.last_access_time

    # Receipts

    def send_receipt(self) -> None:
        """Acknowledge the durable messages ([MC-MQSRM] 3.1.6.3), and the others a little later."""
        if not self.state.is_durable:
            self.schedule.message_received()
        ordinal, number = self.state.durable
        if not number:
            return
        body = OrderAckBody(TxSequenceID.from_value(ordinal), number, number - 1)
        with self._shared.store.transaction("stream receipt") as change:
            self._send(change, partial(order_ack, body=body), self.peer)

    def send_final_receipt(
        self, change: StoreTransaction, envelope: Envelope, reason: MessageClass, source: str
    ) -> None:
        """Send the fate of a message, within the commit that decides it.

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
        """Put a receipt into the queue for SendReceiptsTo; drop it if strangers have too many
        there.

        The GUID of the stream is in CorrelationIdentifier, which no other receipt uses so.
        """
        uri = self.state.send_receipts_to
        destination = name_of(uri)
        if destination is None or not is_url(uri):
            return
        identifier = self._shared.composer.new_identifier()
        attributes = build(destination, identifier, self._now)
        attributes.correlation_identifier = MessageIdentifier(self.guid)
        attributes.response_queue_format_name = name_of(self.to)
        message = Message(build_user_message(attributes))
        self._shared.acknowledgements.send_if_possible(
            change, message, destination, ANONYMOUS, source, unbounded=unbounded
        )


class IncomingStreams:
    """The streams that others send here."""

    def __init__(
        self, shared: ReceivingStreams, queue_manager: QueueManager, arrivals: Arrivals
    ) -> None:
        self._shared, self._queue_manager, self._arrivals = shared, queue_manager, arrivals
        self._receivers: dict[bytes, StreamReceiver] = {}
        self._shares: Shares[bytes] = Shares()
        self.fed: set[int] = set()
        """Queues that have ever received a message of a stream."""
        for key, data in shared.records.records(PREFIX):
            self._restore(key, data)
        for receiver in sorted(self._receivers.values(), key=_last_access):
            self._shares.use(receiver.key, receiver.state.owner)

    def _restore(self, key: bytes, data: bytes) -> None:
        """Show a stream of before the restart to administrators again."""
        state = IncomingStream.decode(data)
        self.fed.add(state.queue_id)
        guid, to = _parts_of(key)
        receiver = StreamReceiver(self._shared, guid, to)
        receiver.state = state
        receiver.restore_rejected()
        self._receivers[key] = receiver
        self.show(receiver)

    def check(self, envelope: Envelope) -> None:
        """Raise DecodeError if the URLs of a message's stream are too long to be stored."""
        stream = envelope.stream
        receipts = "" if stream is None else stream.send_receipts_to or ""
        if stream is not None and max(len(envelope.to), len(receipts)) > LONGEST_URL:
            raise DecodeError(f"a stream with a URL of more than {LONGEST_URL:,} characters")

    def of(self, guid: UUID, to: str) -> StreamReceiver:
        """The stream of a sender to one destination; `took` stores a new one."""
        found = self._receivers.get(key_of(guid, to))
        return found or StreamReceiver(self._shared, guid, to)

    def took(self, receiver: StreamReceiver, queue: Queue) -> dict[bytes, bytes | None]:
        """Note the queue of a stream's message; the records that become durable with it."""
        state = receiver.state
        state.queue_id, state.owner = queue.queue_id, owner_of(receiver.peer)
        self.fed.add(queue.queue_id)
        self._receivers[receiver.key] = receiver
        self._shares.use(receiver.key, state.owner)
        self.show(receiver)
        changes: dict[bytes, bytes | None] = {receiver.key: state.encode()}
        if receiver.has_rejected:
            receiver.has_rejected = False
            changes[receiver.rejected_key] = None
        while len(self._shares) > STREAMS:
            surplus = self._shares.take_surplus()
            forgotten = self._receivers.pop(surplus)
            self._forget(forgotten)
            changes |= {surplus: None, forgotten.rejected_key: None}
        return changes

    def restore(self, receiver: StreamReceiver, before: IncomingStream) -> None:
        """Return a stream to its earlier state: its message was not stored after all."""
        before.durable = receiver.state.durable
        receiver.has_rejected = receiver.has_rejected or before.reject_count > 0
        if before.number:
            receiver.state = before
            self.show(receiver)
        elif self._receivers.pop(receiver.key, None) is not None:
            self._shares.remove(receiver.key)
            self._forget(receiver)
            receiver.state = before

    def _forget(self, receiver: StreamReceiver) -> None:
        receiver.schedule.stop()
        name, arrivals = _shown_name(receiver), self._arrivals
        arrivals.forget_transfer_info(receiver.state.queue_id, name, receiver.guid)

    def show(self, receiver: StreamReceiver) -> None:
        """Show a stream to administrators once a local queue has got a message of it."""
        queues = self._queue_manager.queue_collection
        queue = queues.get(receiver.state.queue_id)
        if queue is not None:
            name = _shown_name(receiver)
            receiver.show(self._arrivals.transfer_info(queue, name, receiver.guid))

    def stop(self) -> None:
        """Stop the timers."""
        for receiver in self._receivers.values():
            receiver.schedule.stop()


def _last_access(receiver: StreamReceiver) -> int:
    return receiver.state.last_access_time


def _shown_name(receiver: StreamReceiver) -> str:
    return f"DIRECT={receiver.to}"


def key_of(guid: UUID, to: str) -> bytes:
    """The key of a stream's record; the destination is compared without regard to case."""
    return PREFIX + guid.bytes_le + folded(to).encode("utf-8", "surrogatepass")


def _parts_of(key: bytes) -> tuple[UUID, str]:
    written = key[len(PREFIX) :]
    guid = UUID(bytes_le=written[:_GUID_SIZE])
    return guid, written[_GUID_SIZE:].decode("utf-8", "surrogatepass")
