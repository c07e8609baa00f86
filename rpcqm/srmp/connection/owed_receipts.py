"""Receipts for messages that came by HTTP ([MC-MQSRM] 3.1.5.1.6.2, 3.1.7.3).

These are delivery receipts and commitment receipts. `qm.acknowledgements` sends them as it sends
other acknowledgements, in the commit of the event. Values that the packet has no room for are read
from the envelope again.
"""

from rpcqm.adm.message import Message
from rpcqm.adm.queue import OutgoingQueue
from rpcqm.base.errors import DecodeError
from rpcqm.base.log import get_logger
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.qm.acknowledgements import Acknowledgements
from rpcqm.srmp.connection.incoming_streams import IncomingStreams
from rpcqm.srmp.connection.stranger_urls import StrangerUrls
from rpcqm.srmp.elements import Envelope, Services
from rpcqm.srmp.incoming import correlation_of, is_url, name_of
from rpcqm.srmp.reading import read_envelope
from rpcqm.store.transaction import StoreTransaction

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
"""Peers ignore receipts of classes that 3.1.5.1.5 does not list (G218)."""

_DECIDED = frozenset(
    {
        MessageClass.MQMSG_CLASS_ACK_RECEIVE,
        MessageClass.MQMSG_CLASS_NACK_DELETED,
        MessageClass.MQMSG_CLASS_NACK_Q_DELETED,
        MessageClass.MQMSG_CLASS_NACK_Q_PURGED,
        MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT,
    }
)
"""Reasons that commitment and final stream receipts report ([MC-MQSRM] 3.1.7.3.1, .3)."""

_log = get_logger("srmp")


def told_as(reason: MessageClass) -> MessageClass:
    """The class of the receipt for a reason."""
    if reason in _TOLD_AS_EXPIRED:
        return MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT
    return MessageClass.MQMSG_CLASS_NACK_DELETED if reason in _TOLD_AS_DELETED else reason


class OwedReceipts:
    """Gives the class, destination and correlation of each receipt."""

    def __init__(
        self,
        streams: IncomingStreams,
        stranger_urls: StrangerUrls,
        acknowledgements: Acknowledgements,
    ) -> None:
        self._streams, self._stranger_urls = streams, stranger_urls
        acknowledgements.receipt_of = self.receipt_of

    def removed_from_stream(
        self, change: StoreTransaction, message: Message, reason: MessageClass
    ) -> None:
        """Report a message of a stream that has left its queue, if its sender asks for that.

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
        self, message: Message, reason: MessageClass
    ) -> tuple[MessageClass, FormatName | None, MessageIdentifier] | None:
        """The class, the destination and the correlation of a receipt; None for no receipt.

        Each goes to its own <sendTo> ([MC-MQSRM] 2.2.5.2.2, 2.2.5.2.3, G218). A message that ends
        in an outgoing queue was only relayed: its destination answers for it (3.1.7.3, G216).
        """
        if isinstance(message.queue, OutgoingQueue):
            return None
        envelope, told = envelope_in(message.attributes), told_as(reason)
        if envelope is None:
            return None
        send_to = _send_to(envelope.services, told)
        return told, self._place(send_to, message.source_address), correlation_of(envelope.id)

    def _place(self, uri: str | None, source: str) -> FormatName | None:
        """The name in a stranger's URI, unless it may not be used (G166)."""
        name = name_of(uri)
        if uri is None or name is None or is_url(uri):
            return name
        return name if self._stranger_urls.may_name_other(name, source) else None


def _send_to(services: Services, told: MessageClass) -> str | None:
    """The <sendTo> for receipts of a class; None if the message wants no such receipt."""
    if told == MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE:
        return services.delivery_receipt_request
    commitment = services.commitment_receipt_request
    if commitment is None or told not in _DECIDED:
        return None
    positive = told == MessageClass.MQMSG_CLASS_ACK_RECEIVE
    wanted = commitment.positive_only if positive else commitment.negative_only
    return commitment.send_to if wanted else None


def envelope_in(message: PacketMessage) -> Envelope | None:
    """The envelope of a packet; None if it has no readable one."""
    try:
        return read_envelope(message.soap_envelope.encode("utf-8", "surrogatepass"))
    except DecodeError as error:
        _log.warning("acknowledgement not sent", reason="damaged envelope", error=str(error))
        return None
