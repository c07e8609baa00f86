"""The transfers of all outgoing queues whose messages travel by HTTP."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from rpcqm.adm.message import MessagePosition
from rpcqm.adm.queue import OutgoingQueue
from rpcqm.base.completion import Completion, completed
from rpcqm.base.log import get_logger
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.qm.queue_transfers import QueueTransfers
from rpcqm.qm.sessions import SessionView
from rpcqm.srmp.connection.outgoing_transfer import OutgoingTransfer, Posting
from rpcqm.srmp.connection.queue_stream import Streaming
from rpcqm.srmp.connection.stream_records import queues_with_streams, without_queues
from rpcqm.srmp.elements import StreamId
from rpcqm.store.transaction import StoreTransaction

_log = get_logger("srmp")


class OutgoingTransfers(QueueTransfers[OutgoingTransfer]):
    """The transfers of [MC-MQSRM], with their streams."""

    def __init__(self, posting: Posting, streaming: Streaming) -> None:
        make = partial(OutgoingTransfer, posting, streaming)
        super().__init__(posting.outgoing, posting.dispatcher, make, carries)
        self._posting, self._streaming, self._records = posting, streaming, posting.records

    def _forget(self, gone: Mapping[OutgoingQueue, OutgoingTransfer]) -> None:
        for transfer in gone.values():
            transfer.stop()

    # Start and end

    def start(self) -> None:
        """[MC-MQSRM] 3.1.3.1, 3.1.4.1: send what waits."""
        super().start()
        self._dispatcher.send_by_srmp = self.send_user_message_wrapper
        unusable = self._posting.queue_manager.unusable_queues.keys()
        self._forget_streams({queue.queue_id for queue in self._outgoing.list()} | unusable)
        streaming = set(queues_with_streams(self._records))
        for queue in self._outgoing.list():
            if carries(queue) and (queue.message_count or queue.queue_id in streaming):
                self.of(queue).wake()

    def _forget_streams(self, queues: set[int]) -> None:
        """Forget the streams of queues that were deleted while messages over HTTP were off."""
        if gone := without_queues(self._records, queues):
            self._records.write(gone)

    def stop(self) -> None:
        """Send nothing more."""
        self._posting.stopping = True
        super().stop()

    def online_changed(self, active: bool) -> None:
        """Begin or stop sending: the queue manager may use the network again, or not any more."""
        for transfer in self:
            if active:
                transfer.try_now()
            else:
                transfer.disconnect()

    # Receipts

    def stream_receipt(self, stream: StreamId, last_ordinal: int, peer: str) -> Completion[bool]:
        """Take a receipt for all messages of a stream up to a number ([MC-MQSRM] 3.1.5.1.8).

        False when no such stream leaves here. `peer` has sent the receipt.
        """
        queue = self._streaming.streams.queue(stream.ordinal)
        known = queue is not None and self.of(queue).stream_receipt(stream, last_ordinal)
        if not known:
            _log.debug("receipt of another stream", peer=peer, stream=stream.ordinal)
        return completed(known)

    def final_stream_receipt(
        self, stream: StreamId, ordinal: int, message_class: MessageClass, peer: str
    ) -> Completion[bool]:
        """Take the fate of a message of a stream ([MC-MQSRM] 3.1.5.1.9).

        False when no such message waits here. `peer` has sent the receipt.
        """
        queue = self._streaming.streams.queue(stream.ordinal)
        if queue is None:
            _log.debug("final receipt of another stream", peer=peer, stream=stream.ordinal)
            return completed(False)
        return self.of(queue).stream.final_receipt(stream, ordinal, message_class)

    # Queues and messages

    def send_user_message_wrapper(self, data: object, position: MessagePosition) -> None:
        """[MC-MQSRM] 3.1.7.8."""
        queue = position.queue_reference
        assert isinstance(queue, OutgoingQueue)
        try:
            self.of(queue).send()
        finally:
            self._dispatcher.remove_message_from_dispatch_collection(position)

    def removed(self, change: StoreTransaction, queue: OutgoingQueue, keys: Sequence[int]) -> None:
        """Note that messages have left their queue in any way."""
        transfer = self._by_queue.get(queue)
        if transfer is not None:
            for key in keys:
                transfer.removed(change, key)

    def _hold(self, queue: OutgoingQueue) -> None:
        self.of(queue).hold()

    def _resume(self, queue: OutgoingQueue) -> None:
        self.of(queue).resume()

    # Shown to administrators

    def sessions(self) -> Iterator[SessionView]:
        """The connections that were opened here."""
        shown = (transfer.session() for transfer in self)
        return (each for each in shown if each is not None)


def carries(queue: OutgoingQueue) -> bool:
    """Whether messages of a queue travel by HTTP."""
    return FormatName.parse(queue.destination_format_name).is_http
