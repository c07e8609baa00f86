"""The transfers of all outgoing queues that the binary protocol serves."""

from collections.abc import Mapping, Sequence
from functools import partial

from rpcqm.adm.message import MessagePosition
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.binary.connection.outgoing_route import Connecting
from rpcqm.binary.connection.outgoing_transfer import OutgoingTransfer, Sending
from rpcqm.binary.connection.peer_connection import PeerConnection
from rpcqm.binary.connection.remembered_peer import peer_key
from rpcqm.binary.connection.sequence_numbers import sequence_key
from rpcqm.binary.connection.session_reuse import claims
from rpcqm.codec.names.format_name import FormatName, PrivateQueueFormatName
from rpcqm.qm.outgoing import Outgoing
from rpcqm.qm.queue_transfers import QueueTransfers
from rpcqm.store.transaction import StoreTransaction


class OutgoingTransfers(QueueTransfers[OutgoingTransfer]):
    """The transfers of [MS-MQQB], with their routes and sequences."""

    def __init__(self, sending: Sending, connecting: Connecting, outgoing: Outgoing) -> None:
        make = partial(OutgoingTransfer, sending, connecting)
        super().__init__(outgoing, sending.dispatcher, make, carries)
        self._sending, self._connecting, self._records = sending, connecting, sending.records

    def _forget(self, gone: Mapping[OutgoingQueue, OutgoingTransfer]) -> None:
        """Forget a queue's transfer and its stored records."""
        for transfer in gone.values():
            if transfer.sequence is not None:
                self._sending.sequences.forget(transfer.sequence.identifier)
        keys = [key(queue) for queue in gone for key in (sequence_key, peer_key)]
        self._records.write(dict.fromkeys(keys))

    def _has_sequence(self, queue: OutgoingQueue) -> bool:
        return self._records.get(sequence_key(queue)) is not None

    # Start and end

    def start(self) -> None:
        """[MS-MQQB] 3.1.4.1: connect for every queue that has messages."""
        super().start()
        self._dispatcher.send_by_binary = self.send_user_message_wrapper
        for queue in self._outgoing.list():
            if carries(queue) and (queue.message_count or self._has_sequence(queue)):
                transfer = self.of(queue)
                transfer.finish_acknowledgement()
                transfer.wake()

    def stop(self) -> None:
        """[MS-MQQB] 3.1.4.2."""
        self._connecting.stopping = True
        super().stop()

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
        """Try the failed routes again."""
        with self._dispatcher.gathering:
            for transfer in self:
                transfer.route.try_now()

    def try_all(self) -> None:
        """Try every route again: sending is allowed again."""
        with self._dispatcher.gathering:
            for queue in self._outgoing.list():
                if carries(queue) and queue.message_count:
                    self.of(queue).route.try_now()

    # Queues and messages

    def send_user_message_wrapper(self, data: object, position: MessagePosition) -> None:
        """Let a transfer send, and report the end of its turn to the dispatcher.

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
        """Note that a message has left its queue in any way."""
        if queue in self._by_queue or self._has_sequence(queue):
            self.of(queue).removed(change, key)

    def left_together(
        self, change: StoreTransaction, queue: OutgoingQueue, keys: Sequence[int]
    ) -> None:
        """Note the same for several messages."""
        if queue in self._by_queue or self._has_sequence(queue):
            self.of(queue).left_together(change, keys)

    def _hold(self, queue: OutgoingQueue) -> None:
        transfer = self._by_queue.get(queue)
        if transfer is not None:
            transfer.route.hold()

    def _resume(self, queue: OutgoingQueue) -> None:
        self.of(queue).route.resume()


def carries(queue: Queue) -> bool:
    """Whether the binary protocol sends the messages of a queue."""
    if not isinstance(queue, OutgoingQueue) or queue.multicast:
        return False
    return not FormatName.parse(queue.destination_format_name).is_http


def _leads_to(name: FormatName, connection: PeerConnection) -> bool:
    value = name.value
    return isinstance(value, PrivateQueueFormatName) and claims(
        connection, value.source_queue_manager
    )
