"""The transfers of all outgoing queues that the binary protocol sends from."""

from collections.abc import Iterator, Sequence

from rpcqm.adm.enums import OutgoingQueueState
from rpcqm.adm.message import MessagePosition
from rpcqm.adm.queue import OutgoingQueue, OutgoingTransferInfo, Queue
from rpcqm.binary.connection.outgoing_route import Connecting
from rpcqm.binary.connection.outgoing_transfer import OutgoingTransfer, Sending
from rpcqm.binary.connection.peer_connection import PeerConnection
from rpcqm.binary.connection.remembered_peer import peer_key
from rpcqm.binary.connection.sequence_numbers import sequence_key
from rpcqm.binary.connection.session_reuse import claims
from rpcqm.codec.names.format_name import FormatName, PrivateQueueFormatName
from rpcqm.qm.outgoing import Outgoing
from rpcqm.store.transaction import StoreTransaction

_TIDY_AT_LEAST = 64


class OutgoingTransfers:
    """Makes each transfer when it is first needed, and tells it what becomes of its queue."""

    def __init__(self, sending: Sending, connecting: Connecting, outgoing: Outgoing) -> None:
        self._sending, self._connecting, self._outgoing = sending, connecting, outgoing
        self._dispatcher, self._records = sending.dispatcher, sending.records
        self._by_queue: dict[OutgoingQueue, OutgoingTransfer] = {}
        self._tidy_at = _TIDY_AT_LEAST

    def __len__(self) -> int:
        return len(self._by_queue)

    def __iter__(self) -> Iterator[OutgoingTransfer]:
        """Those of this moment; others may be made meanwhile."""
        return iter(list(self._by_queue.values()))

    def of(self, queue: OutgoingQueue) -> OutgoingTransfer:
        """The transfer of a queue, made when it is first needed."""
        transfer = self._by_queue.get(queue)
        if transfer is None:
            if len(self._by_queue) >= self._tidy_at:
                self._tidy()
            transfer = OutgoingTransfer(self._sending, self._connecting, queue)
            self._by_queue[queue] = transfer
        return transfer

    def _tidy(self) -> None:
        """Forget the transfers of queues that are deleted, and what is stored of them."""
        gone = [queue for queue in self._by_queue if queue.deleted]
        for queue in gone:
            transfer = self._by_queue.pop(queue)
            if transfer.sequence is not None:
                self._sending.sequences.forget(transfer.sequence.identifier)
        keys = [key(queue) for queue in gone for key in (sequence_key, peer_key)]
        self._records.write(dict.fromkeys(keys))
        self._tidy_at = max(_TIDY_AT_LEAST, 2 * len(self._by_queue))

    def _has_sequence(self, queue: OutgoingQueue) -> bool:
        return self._records.get(sequence_key(queue)) is not None

    # Start and end

    def start(self) -> None:
        """[MS-MQQB] 3.1.4.1: connect for every queue that has messages."""
        self._outgoing.state_hooks.append(self._state_changed)
        self._outgoing.resend_hooks.append(self._resend)
        self._outgoing.transfer_hooks.append(self._show_transfer)
        self._dispatcher.send_by_binary = self.send_user_message_wrapper
        for queue in self._outgoing.list():
            if carries(queue) and (queue.message_count or self._has_sequence(queue)):
                transfer = self.of(queue)
                transfer.finish_acknowledgement()
                transfer.wake()

    def stop(self) -> None:
        """[MS-MQQB] 3.1.4.2."""
        self._connecting.stopping = True
        for transfer in self:
            transfer.stop()

    # Routes

    def disconnect(self, reason: str) -> None:
        """End the sessions, and every attempt to open one."""
        for transfer in self:
            transfer.route.disconnect(reason)

    def connection_opened(self, connection: PeerConnection) -> None:
        """Let transfers that wait for a queue manager use the connection that it has made."""
        with self._dispatcher.gathering:
            for transfer in self:
                route = transfer.route
                if route.connection is None and _leads_to(transfer.name, connection):
                    route.connection_available()

    def places_changed(self) -> None:
        """Try what did not work."""
        with self._dispatcher.gathering:
            for transfer in self:
                transfer.route.try_now()

    def try_all(self) -> None:
        """Nothing stands in the way of sending any more."""
        with self._dispatcher.gathering:
            for queue in self._outgoing.list():
                if carries(queue) and queue.message_count:
                    self.of(queue).route.try_now()

    # What becomes of queues and messages

    def message_position_available(self, queue: OutgoingQueue, key: int) -> None:
        """[MS-MQQB] 3.1.7.12."""
        if not self._connecting.stopping and carries(queue):
            self.of(queue).wake()

    def send_user_message_wrapper(self, data: object, position: MessagePosition) -> None:
        """Let a transfer send; the dispatcher is told when its turn is over.

        Source: [MS-MQQB] 3.1.7.16.
        """
        assert isinstance(data, OutgoingTransfer)
        try:
            is_over = data.send()
        finally:
            self._dispatcher.remove_message_from_dispatch_collection(position)
        if not is_over:
            data.pump()

    def removed(self, change: StoreTransaction, queue: OutgoingQueue, key: int) -> None:
        """A message has left its queue, in whatever way."""
        if queue in self._by_queue or self._has_sequence(queue):
            self.of(queue).removed(change, key)

    def left_together(
        self, change: StoreTransaction, queue: OutgoingQueue, keys: Sequence[int]
    ) -> None:
        """`removed` of each."""
        if queue in self._by_queue or self._has_sequence(queue):
            self.of(queue).left_together(change, keys)

    def _state_changed(self, queue: OutgoingQueue) -> None:
        """[MS-MQQB] 3.1.7.13, 3.1.7.14."""
        transfer = self._by_queue.get(queue)
        if queue.state is OutgoingQueueState.ON_HOLD:
            self._dispatcher.remove_messages_from_dispatch_collection_by_queue(queue)
            if transfer is not None:
                transfer.route.hold()
        elif queue.state is OutgoingQueueState.INACTIVE and carries(queue):
            self.of(queue).route.resume()

    def _resend(self, queue: OutgoingQueue) -> None:
        transfer = self._by_queue.get(queue)
        if transfer is not None:
            transfer.resend_now()

    def _show_transfer(self, info: OutgoingTransferInfo) -> None:
        transfer = self._by_queue.get(info.outgoing_queue_reference)
        if transfer is not None and transfer.sequence is not None:
            transfer.sequence.show(info)


def carries(queue: Queue) -> bool:
    """Whether the binary protocol is the one that sends from a queue."""
    if not isinstance(queue, OutgoingQueue) or queue.multicast:
        return False
    return not FormatName.parse(queue.destination_format_name).is_http


def _leads_to(name: FormatName, connection: PeerConnection) -> bool:
    value = name.value
    return isinstance(value, PrivateQueueFormatName) and claims(
        connection, value.source_queue_manager
    )
