"""Converts packets into envelopes ([MC-MQSRM] 3.1.7.2.4).

A relayed message has its envelope with it, of which only the destination changes. A receipt is an
acknowledgement: its class gives its kind, CorrelationIdentifier the message that it is about. The
receipt of a stream is an OrderAck, the final one a FinalAck; CorrelationIdentifier has the GUID of
the stream there.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import (
    AcknowledgementsRequested,
    DeliveryGuarantee,
    MessageAuthenticationLevel,
    MessageClass,
)
from rpcqm.codec.packet.internal import ORDER_ACK_LABEL, FinalAckBody, OrderAckBody
from rpcqm.codec.packet.message import MessageAttributes, PacketMessage
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.packet.user import UserFlags
from rpcqm.codec.types.mqvalues import INFINITE
from rpcqm.srmp.dates import LAST_SECOND, NEVER
from rpcqm.srmp.elements import (
    MSMQ_PREFIX,
    CommitmentReceipt,
    CommitmentReceiptRequest,
    DeliveryReceipt,
    Envelope,
    Eod,
    MessageId,
    Msmq,
    Provider,
    Reference,
    Services,
    Signature,
    Stream,
    StreamId,
    StreamReceipt,
)
from rpcqm.srmp.reading import read_envelope
from rpcqm.srmp.signature import unsigned
from rpcqm.srmp.urls import to_uri
from rpcqm.srmp.xml import SOAP, WS_ROUTING, with_content

_BY_HTTP = UserFlags.AH.bits
_POSITIVE_RECEIPTS = (
    MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE,
    MessageClass.MQMSG_CLASS_ACK_RECEIVE,
)
_FIRST_NEGATIVE = MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q

_TO = (f"{SOAP}}}Envelope", f"{SOAP}}}Header", f"{WS_ROUTING}}}path", f"{WS_ROUTING}}}to")

UrlOf = Callable[[FormatName], str]
"""The URL under which others reach an administration queue, which may be local."""


@dataclass(frozen=True, slots=True)
class Written:
    """A message as it is sent: its envelope and the attachments.

    `guid` is the name of the attachments in its signature. `text` is the envelope of a relayed
    message, in which all but the destination stays unchanged.
    """

    envelope: Envelope
    body: bytes | None = None
    extension: bytes | None = None
    guid: UUID | None = None
    text: bytes | None = None


def written(
    message: PacketMessage, destination: FormatName, url_of: UrlOf, stream: Stream | None = None
) -> Written:
    """A message of an outgoing queue in the form for its HTTP name. Raises DecodeError.

    `stream` is its place in a stream of ours. A receipt has no attachment ([MC-MQSRM] 4.3).
    """
    if is_relayed(message):
        return _relayed(message, destination)
    if is_receipt(message):
        return Written(receipt_of(message))
    envelope = envelope_of(message, url_of, stream)
    body, extension = message.body, message.extension
    if is_signed(message):
        envelope.signature = signature_of(message)
    elif not body and not extension:
        return Written(envelope)
    return Written(envelope, body, extension or None)


def is_signed(message: PacketMessage) -> bool:
    """Whether a message was signed here for HTTP."""
    return message.authentication_level == MessageAuthenticationLevel.XMLSIG


def signature_of(message: PacketMessage | MessageAttributes) -> Signature:
    """The signature of a message for HTTP, with the value that was made at its sending."""
    source = message.source_machine_identifier
    signature = unsigned(message.body, message.extension, source, message.hash_algorithm)
    signature.signature_value = message.signature
    signature.certificate = message.sender_certificate
    return signature


def is_relayed(message: PacketMessage) -> bool:
    """Whether a message came by HTTP; such a message is in no stream of ours."""
    return bool(message.user_flags & _BY_HTTP)


def _relayed(message: PacketMessage, destination: FormatName) -> Written:
    """The message with another destination; signed attachments stay, also empty ones (G222)."""
    text = with_destination(message.soap_envelope, to_uri(destination))
    envelope = read_envelope(text)
    references = envelope.signature.references if envelope.signature else ()
    signed = {reference.uri.partition("@")[0] for reference in references}
    body, extension = message.body, message.extension
    return Written(
        envelope,
        body if body or "cid:body" in signed else None,
        extension if extension or "cid:extension" in signed else None,
        _attached_by(references),
        text,
    )


def with_destination(envelope: str, to: str) -> bytes:
    """An envelope with another <to>; all other octets stay. Raises DecodeError."""
    return with_content(envelope, to, *_TO)


def _attached_by(references: tuple[Reference, ...]) -> UUID | None:
    for reference in references:
        with suppress(ValueError):  # a signature that cannot be checked must not hinder relaying
            return UUID(reference.uri.partition("@")[2])
    return None


def is_receipt(message: PacketMessage) -> bool:
    """Whether a message is one of the four receipts; an application's own class is no receipt."""
    number = message.message_class
    if number == MessageClass.MQMSG_CLASS_ORDER_ACK:
        return _is_about_stream(message, OrderAckBody.size())
    return number in _POSITIVE_RECEIPTS or number >= _FIRST_NEGATIVE


def _is_about_stream(message: PacketMessage, size: int) -> bool:
    return message.label == ORDER_ACK_LABEL and message.body_size == size


def envelope_of(message: PacketMessage, url_of: UrlOf, stream: Stream | None = None) -> Envelope:
    """The envelope of a user message. Raises DecodeError."""
    envelope = _envelope(message)
    envelope.services = _services(message, url_of)
    envelope.stream = stream
    envelope.more_header, envelope.more_body = message.soap_header, message.soap_body
    assert envelope.msmq is not None
    _add_names(envelope.msmq, message)
    return envelope


def receipt_of(message: PacketMessage) -> Envelope:
    """The envelope of one of the four receipts. Raises DecodeError.

    Source: [MC-MQSRM] 2.2.5.4 to .6, 3.1.6.3, 3.1.7.3.1, 3.1.7.3.3.
    """
    envelope = _envelope(message)
    about = message.correlation_identifier
    number, now = message.message_class, message.sent_time
    if number == MessageClass.MQMSG_CLASS_ORDER_ACK:
        order = OrderAckBody.decode(message.body)
        stream = StreamId(about.queue_manager_guid, order.tx_sequence_id.value)
        envelope.stream_receipt = StreamReceipt(stream, order.tx_sequence_number)
        return envelope
    if number == MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE:
        envelope.delivery_receipt = DeliveryReceipt(now, _message_id(about))
        return envelope
    if _is_about_stream(message, FinalAckBody.size()):
        final = FinalAckBody.decode(message.body)
        stream = StreamId(about.queue_manager_guid, final.tx_sequence_id.value)
        envelope.stream_receipt = StreamReceipt(stream, final.tx_sequence_number)
        about = MessageIdentifier(final.source_guid, final.message_id)
    positive = number == MessageClass.MQMSG_CLASS_ACK_RECEIVE
    envelope.commitment_receipt = CommitmentReceipt(now, positive, _message_id(about))
    return envelope


def _message_id(identifier: MessageIdentifier) -> MessageId:
    return MessageId(identifier.queue_manager_guid, identifier.ordinal)


def _envelope(message: PacketMessage) -> Envelope:
    """The elements of all messages; expiresAt is the time to be received, TTrq the other (G44)."""
    destination, response = (
        message.destination_queue_format_name,
        message.response_queue_format_name,
    )
    sent = message.sent_time
    return Envelope(
        action=MSMQ_PREFIX + message.label,
        to="" if destination is None else to_uri(destination),
        id=_message_id(message.identifier),
        expires_at=time_after(sent, message.time_to_be_received),
        sent_at=sent,
        via=None if response is None else to_uri(response),
        services=Services(durable=is_durable(message)),
        msmq=_msmq(message),
    )


def time_after(sent: int, seconds: int) -> int:
    """The time `seconds` after another, at most NEVER unless the present is later."""
    last = NEVER if sent < NEVER else LAST_SECOND
    return last if seconds == INFINITE else min(sent + seconds, last)


def is_durable(message: PacketMessage) -> bool:
    """Whether a message survives restarts; every transactional one does ([MC-MQSRM] 2.2.5.3)."""
    recoverable = message.delivery_guarantee == DeliveryGuarantee.RECOVERABLE
    return recoverable or message.has_transaction_header


def _services(message: PacketMessage, url_of: UrlOf) -> Services:
    services = Services(durable=is_durable(message))
    administration = message.administration_queue_format_name
    if administration is None:
        return services
    wanted = message.acknowledgements_requested
    positive = bool(wanted & AcknowledgementsRequested.ACK_POS_RECEIVE)
    negative = bool(wanted & AcknowledgementsRequested.ACK_NEG_RECEIVE)
    if wanted & AcknowledgementsRequested.ACK_POS_ARRIVAL:
        services.delivery_receipt_request = url_of(administration)
    if positive or negative:
        services.commitment_receipt_request = CommitmentReceiptRequest(
            url_of(administration), positive, negative
        )
    return services


def _msmq(message: PacketMessage) -> Msmq:
    return Msmq(
        message_class=int(message.message_class),
        priority=message.priority,
        journal=message.positive_journaling_requested,
        dead_letter=message.negative_journaling_requested,
        correlation=message.correlation_identifier.encode(),
        trace=message.tracing_requested,
        connector_type=message.connector_type_identifier,
        app=message.application_tag,
        body_type=message.body_type,
        hash_algorithm=int(message.hash_algorithm),
        eod=_eod(message),
        provider=_provider(message),
        source_qm_guid=message.source_machine_identifier,
        ttrq=time_after(message.sent_time, message.time_to_reach_queue),
    )


def _eod(message: PacketMessage) -> Eod | None:
    connector = message.connector_queue_manager_identifier
    eod = Eod(message.first_in_transaction, message.last_in_transaction, connector)
    return eod if eod != Eod() else None


def _provider(message: PacketMessage) -> Provider | None:
    kind, name = message.authentication_provider_type, message.authentication_provider_name
    return Provider(kind, name) if kind or name else None


def _add_names(msmq: Msmq, message: PacketMessage) -> None:
    """The lists of multiple-element names."""
    msmq.destination_mqf = tuple(map(to_uri, message.destination_multi_queue_format_name))
    msmq.admin_mqf = tuple(map(to_uri, message.administration_multi_queue_format_name))
    msmq.response_mqf = tuple(map(to_uri, message.response_multi_queue_format_name))
