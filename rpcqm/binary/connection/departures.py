"""Removals of messages that came by the binary protocol: their sources get acknowledgements."""

from collections.abc import Sequence

from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.binary.connection.incoming_transfers import IncomingTransfers, transaction_header_of
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.user import UserFlags
from rpcqm.qm.forwarded import Forwarded
from rpcqm.qm.positions import Positions
from rpcqm.store.transaction import StoreTransaction

_JOURNALING = UserFlags.JN.bits | UserFlags.JP.bits


class Departures:
    """Acknowledges messages to their sources, and forgets forwarded ones."""

    def __init__(
        self,
        queue_manager: QueueManager,
        positions: Positions,
        incoming_transfers: IncomingTransfers,
        forwarded: Forwarded,
    ) -> None:
        self._queue_manager, self._positions = queue_manager, positions
        self._incoming_transfers, self._forwarded = incoming_transfers, forwarded

    def left_together(self, queue: OutgoingQueue, keys: Sequence[int]) -> None:
        """Note that messages have left an outgoing queue, as `removed` does for each."""
        self._forwarded.removed_many(queue, keys)

    def removed(
        self, change: StoreTransaction, queue: Queue, key: int, reason: MessageClass
    ) -> None:
        """Acknowledge a removed message to its source, if the message asks for that.

        Source: [MS-MQQB] 3.1.7.2.2.
        """
        if isinstance(queue, OutgoingQueue):
            self._forwarded.removed(queue, key)
            return
        transfers = self._incoming_transfers
        if queue.main.queue_id not in transfers.fed or queue.is_journal:
            return
        message = self._positions.message_at(queue, key)
        envelope = message.envelope
        own = self._queue_manager.identifier.bytes_le
        if not envelope.transactional or envelope.source_machine == own:
            return
        if message.attributes.is_srmp:
            return
        header = transaction_header_of(message)
        if envelope.user_flags & _JOURNALING or header.flags.FA:
            transfers.of(message).send_final_ack(change, message, reason)
