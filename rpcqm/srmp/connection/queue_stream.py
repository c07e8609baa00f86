"""The stream of an outgoing queue, its records, and its messages ([MC-MQSRM] 3.1.5.1.8, .9)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rpcqm.adm.enums import PositionState
from rpcqm.adm.message import FLAG_NEGATIVE_JOURNALING
from rpcqm.adm.queue import OutgoingQueue, OutgoingTransferInfo
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.clock import Clock, Timers
from rpcqm.base.completion import Completion, completed
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.qm.message_trace import MessageTrace
from rpcqm.qm.protocol_records import Changes, ProtocolRecords, apply_changes
from rpcqm.qm.transfer import SentAs, Transfer
from rpcqm.srmp.connection.outgoing_streams import OutgoingStreams
from rpcqm.srmp.connection.stream_records import StreamRecords
from rpcqm.srmp.elements import Stream, StreamId
from rpcqm.srmp.outgoing_stream import OutgoingStream
from rpcqm.srmp.settings import SrmpSettings
from rpcqm.store.transaction import StoreTransaction

_GONE = frozenset({PositionState.DELETED, PositionState.LEAVING})


@dataclass(eq=False, repr=False)
class Streaming:
    """The collaborators that the streams of all outgoing queues share."""

    clock: Clock
    timers: Timers
    settings: Callable[[], SrmpSettings]
    queue_manager: QueueManager
    transfer: Transfer
    message_trace: MessageTrace
    records: ProtocolRecords
    streams: OutgoingStreams
    receipts_url: Callable[[str], str]
    """The URL for the receipts of a stream to a URL."""


class QueueStream:
    """One stream after the other: a new one begins when no receipt of the last is outstanding.

    `resend` is called when the receipts of a stream are overdue.
    """

    def __init__(
        self, streaming: Streaming, queue: OutgoingQueue, resend: Callable[[], None]
    ) -> None:
        self._streaming = streaming
        self._queue = queue
        self._transfer, self._message_trace = streaming.transfer, streaming.message_trace
        self._resend = resend
        self._kept = StreamRecords(streaming.records, queue)
        self._sent: dict[int, None] = {}
        self._stream = self._restored()
        self._shown = self._stream

    def _new(self, identifier: int) -> OutgoingStream:
        shared = self._streaming
        return OutgoingStream(
            identifier,
            shared.clock,
            shared.timers,
            self._resend,
            lambda: shared.settings().resend_timer_table,
        )

    def _restored(self) -> OutgoingStream | None:
        data = self._kept.stream()
        if data is None:
            return None
        stream = self._new(0)
        stream.restore(data, self._kept.numbers())
        if lost := self._kept.lost(over=stream.over):
            self._streaming.records.write(lost)
        if stream.over:
            return None
        self._streaming.streams.remember(stream.identifier, self._queue)
        return stream

    # Sending

    def number(self, keys: Iterable[int]) -> Changes:
        """Give messages their numbers, in this order; returns the changes that store them."""
        changes: dict[bytes, bytes | None] = {}
        stream = self._stream or self._begin(changes)
        for key in keys:
            if stream.number_of(key) is None:
                number = stream.assign(key)
                changes.update(self._kept.numbered(key, number, stream.encode()))
        return changes

    def _begin(self, changes: dict[bytes, bytes | None]) -> OutgoingStream:
        identifier, kept = self._streaming.streams.begin(self._queue)
        changes.update(kept)
        stream = self._stream = self._shown = self._new(identifier)
        return stream

    def element(self, key: int, uri: str) -> Stream | None:
        """The <stream> element of a message; None without a number (G226)."""
        stream = self._stream
        number = None if stream is None else stream.number_of(key)
        if stream is None or number is None:
            return None
        identifier = StreamId(self._streaming.queue_manager.identifier, stream.identifier)
        previous = stream.previous_of(key)
        receipts_to = None if previous else self._streaming.receipts_url(uri)
        return Stream(identifier, number, previous, receipts_to)

    def note_posted(self, key: int) -> None:
        """Note that a message is posted."""
        if self._stream is not None:
            self._stream.note_posted(key)

    @property
    def is_under_way(self) -> bool:
        """Whether a stream has begun, and receipts are outstanding."""
        return self._stream is not None

    def transmitted(self, key: int) -> None:
        """Wait for the receipt of a message that has been accepted."""
        self._sent[key] = None
        self.wait()

    def wait(self) -> None:
        """Wait for the receipts of accepted messages."""
        if self._stream is not None and self._stream.has_unacknowledged:
            self._stream.ladder.wait()

    def awaits_receipt(self, key: int) -> bool:
        return self._stream is not None and self._stream.number_of(key) is not None

    def awaits_decision(self, key: int) -> bool:
        return self._stream is not None and self._stream.awaits_decision(key)

    def take_sent(self) -> list[int]:
        """Take the messages that await their stream receipt out of the waiting ones, to be sent
        again."""
        sent, self._sent = self._sent, {}
        return list(sent)

    @property
    def sent(self) -> Iterable[int]:
        """The messages that await their stream receipt."""
        return self._sent

    def resend_now(self) -> None:
        if self._stream is not None:
            self._stream.ladder.resend_now()

    def stop(self) -> None:
        """Stop the timers."""
        if self._stream is not None:
            self._stream.ladder.stop()

    # Receipts

    def receipt(self, named: StreamId, last_ordinal: int, owner: object) -> bool:
        """Release the messages up to a number ([MC-MQSRM] 3.1.5.1.8); False for another stream."""
        stream = self._of(named)
        if stream is None:
            return False
        arrived = stream.receipt(last_ordinal)
        for key, number in arrived.items():
            self._sent.pop(key, None)
            if self._is_decided_later(key):
                stream.await_decision(key, number)
        for key, number in arrived.items():
            self._arrived(stream, key, number, owner)
        return True

    def _is_decided_later(self, key: int) -> bool:
        """Whether a message stays until its fate is certain, because a dead letter is asked for."""
        position = self._queue.message_position_list.position(key)
        return position is not None and bool(position.flags & FLAG_NEGATIVE_JOURNALING)

    def _of(self, named: StreamId) -> OutgoingStream | None:
        stream = self._stream
        if stream is None or named.guid != self._streaming.queue_manager.identifier:
            return None
        return stream if named.ordinal == stream.identifier else None

    def _arrived(self, stream: OutgoingStream, key: int, number: int, owner: object) -> None:
        positions = self._queue.message_position_list
        if positions.state(key) in _GONE:
            return
        self._message_trace.acknowledged(self._queue, key, "in order")
        if stream.awaits_decision(key):
            positions.lock(key, owner)
            sent_as = SentAs(stream.identifier, number)
            changes = self._kept.kept(stream.encode())
            self._transfer.await_final_acknowledgement(self._queue, key, changes, sent_as)
        else:
            changes = self._kept.without(key, self._encoded_unless_over())
            self._transfer.delivered(self._queue, key, changes)

    def _encoded_unless_over(self) -> bytes | None:
        """[MC-MQSRM] 3.1.7.6."""
        stream = self._stream
        if stream is None or not stream.over:
            return None if stream is None else stream.encode()
        stream.ladder.stop()
        self._streaming.streams.forget(stream.identifier)
        self._stream = None
        return None

    def final_receipt(
        self, named: StreamId, ordinal: int, message_class: MessageClass
    ) -> Completion[bool]:
        """The fate of a message ([MC-MQSRM] 3.1.5.1.9); False when it is not here."""
        stream = self._of(named)
        key = None if stream is None else stream.find(ordinal)
        positions = self._queue.message_position_list
        if stream is None or key is None or positions.state(key) in _GONE:
            return completed(False)
        stream.forget(key)
        self._sent.pop(key, None)
        changes = self._kept.without(key, self._encoded_unless_over())
        finished = self._transfer.finished(self._queue, key, message_class, changes)
        return finished.giving(True)

    def removed(self, change: StoreTransaction, key: int) -> None:
        """Note that a message has left in another way, for example by expiry."""
        self._sent.pop(key, None)
        if self._stream is not None and self._stream.forget(key):
            apply_changes(change, self._kept.without(key, self._encoded_unless_over()))

    # Shown to administrators

    def show(self, info: OutgoingTransferInfo) -> None:
        """Fill in the stream, or the last one when no other has begun."""
        if self._shown is not None:
            self._shown.show(info)
