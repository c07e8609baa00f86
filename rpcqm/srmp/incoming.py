"""Converts requests into attributes of messages ([MC-MQSRM] 3.1.5.1.1).

A packet has room for one administration queue and for identifiers of 32 bits, an envelope for more.
The packet keeps the envelope, where the rest can be read.
"""

from uuid import UUID

from rpcqm.base.errors import DecodeError, MQError
from rpcqm.codec.layout import NULL_GUID
from rpcqm.codec.names.format_name import FormatName, to_destination
from rpcqm.codec.packet.base import LARGEST_BODY_BY_HTTP
from rpcqm.codec.packet.enums import (
    AcknowledgementsRequested,
    DeliveryGuarantee,
    SenderIdentifierType,
)
from rpcqm.codec.packet.message import MessageAttributes
from rpcqm.codec.packet.types import NULL_IDENTIFIER, MessageIdentifier, TxSequenceID
from rpcqm.codec.types.mqvalues import INFINITE
from rpcqm.srmp.dates import NEVER
from rpcqm.srmp.elements import (
    MSMQ_PREFIX,
    Envelope,
    MessageId,
    Msmq,
    Services,
    SrmpRequest,
    Stream,
)

_WEB = ("http://", "https://")
_LOW_HALF = 0xFFFF_FFFF
_HIGHEST_PRIORITY = 7
_IDENTIFIER_SIZE = 20


def attributes_of(request: SrmpRequest, arrived: int, destination: FormatName) -> MessageAttributes:
    """The attributes of a request's message; `arrived` is seconds since 1970. Raises DecodeError.

    `destination` is the name for <to>, not the target of the request (G212, G215).
    """
    envelope = request.envelope
    _check_size(request)
    msmq = envelope.msmq or Msmq()
    sent, to_reach_queue, to_be_received = times_of(envelope, arrived)
    attributes = MessageAttributes(
        destination_queue_format_name=destination,
        identifier=packet_identifier(envelope),
        body=request.body or b"",
        extension=request.extension or b"",
        label=label_of(envelope.action),
        message_class=msmq.message_class,
        delivery_guarantee=_delivery_guarantee(envelope),
        sent_time=sent,
        time_to_reach_queue=to_reach_queue,
        time_to_be_received=to_be_received,
        response_queue_format_name=_writable(name_of(envelope.via)),
        hash_algorithm=msmq.hash_algorithm,
        sender_identifier_type=SenderIdentifierType.NONE,
        soap_envelope=request.envelope_text,
        soap_compound_message=request.compound,
    )
    _add_receipts(attributes, envelope.services)
    attributes.final_ack_required = envelope.services.commitment_receipt_request is not None
    _add_msmq(attributes, msmq)
    about = envelope.delivery_receipt or envelope.commitment_receipt
    if about is not None and attributes.correlation_identifier == NULL_IDENTIFIER:
        attributes.correlation_identifier = correlation_of(about.id)
    if envelope.stream is not None:
        _add_stream(attributes, envelope.stream, msmq)
    return attributes


def _check_size(request: SrmpRequest) -> None:
    """Raise unless others could send a message of that size, whatever the request takes (G235)."""
    size = len(request.body or b"") + len(request.extension or b"")
    if size > LARGEST_BODY_BY_HTTP:
        raise DecodeError(f"a message of {size} bytes")


def destination_of(to: str) -> FormatName:
    """The queue that <to> names. Raises DecodeError."""
    name = name_of(to)
    if name is None:
        raise DecodeError(f"{to!r} is no URL of a queue")
    return name


def name_of(uri: str | None) -> FormatName | None:
    """The format name of a URI; None without a URI, or if it names no queue.

    Source: [MC-MQSRM] 2.2.4.2, 2.2.4.4.
    """
    if not uri:
        return None
    try:
        if is_url(uri):
            return FormatName.direct(uri)
        if uri[: len(MSMQ_PREFIX)].upper() == MSMQ_PREFIX:
            return FormatName.parse(uri[len(MSMQ_PREFIX) :])
    except MQError:  # an application's own text: a request for no answer needs no name
        return None
    return None


def is_url(uri: str) -> bool:
    """Whether a URI is the URL of a queue, and no other form of its name."""
    return uri.lower().startswith(_WEB)


def label_of(action: str) -> str:
    """The label in <action>."""
    return action[len(MSMQ_PREFIX) :] if action.startswith(MSMQ_PREFIX) else ""


def packet_identifier(envelope: Envelope) -> MessageIdentifier:
    """OBJECTID of a message: SourceQmGuid counts where <id> has another GUID (G212)."""
    guid, ordinal = identity_of(envelope)
    return MessageIdentifier(guid, ordinal & _LOW_HALF)


def identity_of(envelope: Envelope) -> MessageId:
    """The identity of a message ([MC-MQSRM] 3.1.5.1.1, <7>); 1@NULL without <Msmq>."""
    msmq = envelope.msmq
    if msmq is None:
        return MessageId()
    source = msmq.source_qm_guid
    return MessageId(envelope.id.guid if source == NULL_GUID else source, envelope.id.ordinal)


def is_exempt(identity: MessageId) -> bool:
    """Whether repetitions cannot be told from new messages ([MC-MQSRM] 3.1.5.1.11)."""
    return identity == MessageId()


def expires_at(envelope: Envelope) -> int:
    """The time from which on a message is refused, in seconds since 1970 (G44, G45)."""
    return min(_time_to_reach_queue(envelope), _time_to_be_received(envelope))


def _delivery_guarantee(envelope: Envelope) -> DeliveryGuarantee:
    """A message of a stream survives restarts without <durable/> as well (G212)."""
    durable = envelope.services.durable or envelope.stream is not None
    return DeliveryGuarantee.RECOVERABLE if durable else DeliveryGuarantee.EXPRESS


def times_of(envelope: Envelope, arrived: int) -> tuple[int, int, int]:
    """When a message was sent, and its seconds from then on to reach its queue and to be received.

    `arrived` counts where the envelope does not say when it was sent.
    """
    sent = arrived if envelope.sent_at is None else envelope.sent_at
    return (
        sent,
        _seconds_until(_time_to_reach_queue(envelope), sent),
        _seconds_until(_time_to_be_received(envelope), sent),
    )


def _time_to_reach_queue(envelope: Envelope) -> int:
    """<TTrq> takes precedence over <expiresAt> ([MC-MQSRM] 3.1.5.1.4)."""
    ttrq = None if envelope.msmq is None else envelope.msmq.ttrq
    return envelope.expires_at if ttrq is None else ttrq


def _time_to_be_received(envelope: Envelope) -> int:
    """Without <Msmq>, <expiresAt> ends with the arrival (G44)."""
    return NEVER if envelope.msmq is None else envelope.expires_at


def _seconds_until(moment: int, sent: int) -> int:
    return INFINITE if moment >= NEVER else max(moment - sent, 0)


def _add_receipts(attributes: MessageAttributes, services: Services) -> None:
    """Add the queues for receipts; of two the packet has that of the delivery receipt."""
    commitment, delivery = services.commitment_receipt_request, services.delivery_receipt_request
    wanted, send_to = AcknowledgementsRequested.NONE, delivery
    if delivery is not None:
        wanted |= AcknowledgementsRequested.ACK_POS_ARRIVAL
    if commitment is not None:
        send_to = delivery or commitment.send_to
        if commitment.positive_only:
            wanted |= AcknowledgementsRequested.ACK_POS_RECEIVE
        if commitment.negative_only:
            wanted |= AcknowledgementsRequested.ACK_NEG_RECEIVE
    attributes.acknowledgements_requested = wanted
    if send_to:
        attributes.administration_queue_format_name = _writable(name_of(send_to))


def _add_msmq(attributes: MessageAttributes, msmq: Msmq) -> None:
    if not 0 <= msmq.priority <= _HIGHEST_PRIORITY:
        raise DecodeError(f"<Priority> of {msmq.priority}")
    attributes.priority = msmq.priority
    attributes.positive_journaling_requested = msmq.journal
    attributes.negative_journaling_requested = msmq.dead_letter
    attributes.correlation_identifier = _correlation(msmq.correlation)
    attributes.tracing_requested = msmq.trace
    attributes.connector_type_identifier = msmq.connector_type
    attributes.application_tag = msmq.app
    attributes.body_type = msmq.body_type
    if msmq.provider is not None:
        attributes.authentication_provider_type = msmq.provider.type
        attributes.authentication_provider_name = msmq.provider.name
    attributes.destination_multi_queue_format_name = _names(msmq.destination_mqf)
    attributes.administration_multi_queue_format_name = _names(msmq.admin_mqf)
    attributes.response_multi_queue_format_name = _names(msmq.response_mqf)


def _correlation(octets: bytes | None) -> MessageIdentifier:
    if octets is None or not any(octets):
        return NULL_IDENTIFIER
    return MessageIdentifier.decode(octets.ljust(_IDENTIFIER_SIZE, b"\0"))


def correlation_of(identifier: MessageId) -> MessageIdentifier:
    """The correlation of a receipt about a message, as its <id> is written."""
    return MessageIdentifier(identifier.guid, identifier.ordinal & _LOW_HALF)


def _names(texts: tuple[str, ...]) -> tuple[FormatName, ...]:
    """Those of the names that a packet can hold."""
    names = (_writable(name_of(text)) for text in texts)
    return tuple(name for name in names if name is not None)


def _writable(name: FormatName | None) -> FormatName | None:
    """A name of a kind that a packet can hold; None for others."""
    if name is None:
        return None
    try:
        to_destination(name)
    except MQError:  # the sender should have resolved it
        return None
    return name


def _add_stream(attributes: MessageAttributes, stream: Stream, msmq: Msmq) -> None:
    attributes.transaction_identifier = 0
    attributes.priority = 0
    sequence = TxSequenceID.from_value(stream.stream_id.ordinal)
    attributes.transactional_message_sequence_identifier = sequence
    attributes.transaction_sequence_number = stream.current
    attributes.transaction_previous_sequence_number = stream.previous
    if msmq.eod is not None:
        attributes.first_in_transaction = msmq.eod.first
        attributes.last_in_transaction = msmq.eod.last
        attributes.connector_queue_manager_identifier = _given(msmq.eod.connector_id)


def _given(guid: UUID | None) -> UUID | None:
    return None if guid == NULL_GUID else guid
