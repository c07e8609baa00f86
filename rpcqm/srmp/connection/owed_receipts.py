"""Receipts that are owed for messages that came by HTTP ([MC-MQSRM] 3.1.5.1.6.2, 3.1.7.3).

They are acknowledgements as others are, in the commit of what they tell. What they need of the
envelope, and the packet has no room for, is read from there again.
"""

from typing import TYPE_CHECKING

from rpcqm.adm.message import Message
from rpcqm.base.errors import DecodeError
from rpcqm.base.log import get_logger
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.srmp.connection.incoming_streams import IncomingStreams
from rpcqm.srmp.elements import Envelope
from rpcqm.srmp.incoming import correlation_of, name_of
from rpcqm.srmp.reading import read_envelope
from rpcqm.store.transaction import StoreTransaction

if TYPE_CHECKING:
    from rpcqm.srmp.connection.protocol import SrmpProtocol

_TOLD_AS_EXPIRED = frozenset({MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT})
_TOLD_AS_DELETED = frozenset(
    {
        MessageClass.MQMSG_CLASS_NACK_Q_EXCEED_QUOTA,
        MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED,
        MessageClass.MQMSG_CLASS_NACK_BAD_SIGNATURE,
        MessageClass.MQMSG_CLASS_NACK_BAD_ENCRYPTION,
        MessageClass.MQMSG_CLASS_NACK_RECEIVE_REJECTED,
    }
)
"""Receipts of other classes than 3.1.5.1.5 lists would be ignored by who gets them (G218)."""

_DECIDED = frozenset(
    {
        MessageClass.MQMSG_CLASS_ACK_RECEIVE,
        MessageClass.MQMSG_CLASS_NACK_DELETED,
        MessageClass.MQMSG_CLASS_NACK_Q_DELETED,
        MessageClass.MQMSG_CLASS_NACK_Q_PURGED,
        MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT,
    }
)
"""Reasons of which a commitment or final stream receipt tells ([MC-MQSRM] 3.1.7.3.1, .3)."""

_log = get_logger("srmp")


def told_as(reason: MessageClass) -> MessageClass:
    """The class of the receipt that tells a reason."""
    if reason in _TOLD_AS_EXPIRED:
        return MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT
    return MessageClass.MQMSG_CLASS_NACK_DELETED if reason in _TOLD_AS_DELETED else reason


class OwedReceipts:
    """Where each receipt goes, and what it is about."""

    def __init__(self, protocol: "SrmpProtocol", streams: IncomingStreams) -> None:
        self._streams = streams
        protocol.acknowledgements.receipt_of = receipt_of

    def removed_from_stream(
        self, change: StoreTransaction, message: Message, reason: MessageClass
    ) -> None:
        """A message of a stream has left its queue: tell its sender if that wants to know.

        Source: [MC-MQSRM] 3.1.7.3.3.
        """
        attributes, told = message.attributes, told_as(reason)
        if not attributes.is_srmp or not attributes.has_transaction_header:
            return
        if not attributes.negative_journaling_requested or told not in _DECIDED:
            return
        envelope = envelope_in(attributes)
        if envelope is None or envelope.stream is None:
            return
        receiver = self._streams.of(envelope.stream.stream_id.guid, envelope.to)
        receiver.send_final_receipt(change, envelope, told, message.source_address)


def receipt_of(
    message: PacketMessage, reason: MessageClass
) -> tuple[MessageClass, FormatName | None, MessageIdentifier] | None:
    """The class, the destination and the correlation of a receipt; None for no receipt.

    Each goes to its own <sendTo> ([MC-MQSRM] 2.2.5.2.2, 2.2.5.2.3, G218).
    """
    envelope, told = envelope_in(message), told_as(reason)
    if envelope is None:
        return None
    services, about = envelope.services, correlation_of(envelope.id)
    if told == MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE:
        return told, name_of(services.delivery_receipt_request), about
    commitment = services.commitment_receipt_request
    if commitment is None or told not in _DECIDED:
        return None
    positive = told == MessageClass.MQMSG_CLASS_ACK_RECEIVE
    if not (commitment.positive_only if positive else commitment.negative_only):
        return None
    return told, name_of(commitment.send_to), about


def envelope_in(message: PacketMessage) -> Envelope | None:
    """The envelope of a packet; None if it has none that can be read."""
    try:
        return read_envelope(message.soap_envelope.encode("utf-8", "surrogatepass"))
    except DecodeError as error:
        _log.warning("acknowledgement not sent", reason="damaged envelope", error=str(error))
        return None
