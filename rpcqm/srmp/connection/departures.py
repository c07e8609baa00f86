"""Follows messages that came by HTTP when they leave their queues ([MC-MQSRM] 3.1.7.3)."""

from collections.abc import Sequence

from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.qm.forwarded import Forwarded
from rpcqm.qm.positions import Positions
from rpcqm.srmp.connection.incoming_streams import IncomingStreams
from rpcqm.srmp.connection.owed_receipts import OwedReceipts
from rpcqm.store.transaction import StoreTransaction


class Departures:
    """Reports the fate of messages of streams to their senders, and forgets forwarded messages."""

    def __init__(
        self,
        positions: Positions,
        streams: IncomingStreams,
        owed: OwedReceipts,
        forwarded: Forwarded,
    ) -> None:
        self._positions, self._streams = positions, streams
        self._owed, self._forwarded = owed, forwarded

    def left_together(self, queue: OutgoingQueue, keys: Sequence[int]) -> None:
        """Note that messages have left an outgoing queue, as `removed` does for each."""
        self._forwarded.removed_many(queue, keys)

    def removed(
        self, change: StoreTransaction, queue: Queue, key: int, reason: MessageClass
    ) -> None:
        """Note that a message has left a queue."""
        if isinstance(queue, OutgoingQueue):
            self._forwarded.removed(queue, key)
        elif queue.main.queue_id in self._streams.fed and not queue.is_journal:
            self._owed.removed_from_stream(change, self._positions.message_at(queue, key), reason)
