"""Order and final acknowledgements of our own transactional messages ([MS-MQQB] 3.1.5.6, .7)."""

from collections.abc import Callable

from rpcqm.adm.message import Message
from rpcqm.base.clock import Clock
from rpcqm.base.log import get_logger
from rpcqm.binary.connection.acknowledgement_authors import AcknowledgementAuthors
from rpcqm.binary.connection.outgoing_sequences import OutgoingSequences
from rpcqm.binary.connection.outgoing_transfer import OutgoingTransfer
from rpcqm.binary.connection.outgoing_transfers import OutgoingTransfers
from rpcqm.binary.connection.peer_connection import PeerConnection
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.internal import FinalAckBody, OrderAckBody
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.qm.protocol_records import ProtocolRecords
from rpcqm.qm.transfer import SentAs, Transfer

_log = get_logger("binary")

_TOLD_AGAIN = 60_000

_SAID_BY_ROUTERS = frozenset(
    {
        MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q,
        MessageClass.MQMSG_CLASS_NACK_HOP_COUNT_EXCEEDED,
        MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT,
        MessageClass.MQMSG_CLASS_NACK_Q_EXCEED_QUOTA,
    }
)
"""The reasons of routers: a message does not reach its destination."""


class ArrivingAcknowledgements:
    """Accepts acknowledgements of destinations, and passes them to the transfers."""

    def __init__(
        self,
        clock: Clock,
        records: ProtocolRecords,
        sending: Transfer,
        transfers: OutgoingTransfers,
        sequences: OutgoingSequences[OutgoingTransfer],
        authors: AcknowledgementAuthors,
    ) -> None:
        self._clock, self._records, self._sending = clock, records, sending
        self._transfers, self._sequences, self._authors = transfers, sequences, authors
        self._disbelieved = 0
        self._told: int | None = None

    def order_ack(
        self, connection: PeerConnection, message: Message, done: Callable[..., None]
    ) -> None:
        """Take an order acknowledgement: messages have arrived in order."""
        body = OrderAckBody.decode(message.attributes.body)
        transfer = self._sequences.owner(body.tx_sequence_id)
        if transfer is not None and self._is_believed(transfer, connection, message):
            transfer.order_ack(body.tx_sequence_id, body.tx_sequence_number)
        done()

    def final_ack(
        self, connection: PeerConnection, message: Message, done: Callable[..., None]
    ) -> None:
        """Take a final acknowledgement; `done` is called when its effect is durable."""
        final = FinalAckBody.decode(message.attributes.body)
        reason = _class_of(message)
        transfer = self._transfer_of(final)
        arrived = self._sending.queue_awaiting(*_decided_about(final)) is not None
        of_routers = reason in _SAID_BY_ROUTERS and not arrived
        if transfer is not None and self._is_believed(transfer, connection, message, of_routers):
            self._decided(transfer, final, reason)
        written = self._records.write({})
        written.add_done_callback(done)

    def decided_here(self, final: FinalAckBody, reason: MessageClass) -> None:
        """End a message of our own that has come back and goes no further."""
        transfer = self._transfer_of(final)
        if transfer is not None:
            self._decided(transfer, final, reason)

    def _transfer_of(self, final: FinalAckBody) -> OutgoingTransfer | None:
        """The transfer of the message that a final acknowledgement is about."""
        queue = self._sending.queue_awaiting(*_decided_about(final))
        if queue is not None:
            return self._transfers.of(queue)
        return self._sequences.owner(final.tx_sequence_id)

    def _decided(
        self, transfer: OutgoingTransfer, final: FinalAckBody, reason: MessageClass
    ) -> None:
        identifier, sent_as = _decided_about(final)
        if self._sending.queue_awaiting(identifier, sent_as) is not None:
            self._sending.final_acknowledgement(identifier, reason, sent_as=sent_as)
        else:
            transfer.final_ack(final.tx_sequence_id, final.tx_sequence_number, reason)

    def _is_believed(
        self,
        transfer: OutgoingTransfer,
        connection: PeerConnection,
        message: Message,
        of_routers: bool = False,
    ) -> bool:
        """Whether an acknowledgement is the destination's; others are logged once a minute.

        Routers may report that a message has gone no further (G112), unless its arrival is certain:
        then it was a repetition that they had (G160).
        """
        source = message.attributes.identifier.queue_manager_guid
        if self._authors.is_destination(transfer, connection, source):
            return True
        if of_routers and self._authors.is_router(transfer, source):
            return True
        self._disbelieved += 1
        now = self._clock.monotonic()
        if self._told is None or now - self._told >= _TOLD_AGAIN:
            self._told = now
            _log.warning(
                "acknowledgement of somebody else; binary.peers may name all addresses of a host",
                queue=str(transfer.name),
                peer=connection.address,
                count=self._disbelieved,
            )
        return False


def _decided_about(final: FinalAckBody) -> tuple[MessageIdentifier, SentAs]:
    """Identifier and sequence number of the message that a final acknowledgement is about."""
    identifier = MessageIdentifier(final.source_guid, final.message_id)
    return identifier, SentAs(final.tx_sequence_id.value, final.tx_sequence_number)


def _class_of(message: Message) -> MessageClass:
    """The class of a final acknowledgement; a number that has no name is a rejection (G551)."""
    try:
        return MessageClass(message.attributes.message_class)
    except ValueError:
        return MessageClass.MQMSG_CLASS_NACK_RECEIVE_REJECTED
