"""Writes UserMessage packets from message attributes ([MS-MQDMPR] 3.1.7.1.30, .32).

The first function is the way of every message that is sent, hence its plainness.
"""

import struct
from functools import lru_cache
from uuid import UUID

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.layout import NULL_GUID, encode_text, padded
from rpcqm.codec.names.format_name import to_destination, to_other_queue
from rpcqm.codec.packet.attributes import MessageAttributes
from rpcqm.codec.packet.base import (
    LARGEST_KEPT_PACKET,
    MAXIMUM_PACKET_SIZE,
    SIGNATURE,
    VERSION,
    BaseFlags,
    PacketTooLargeError,
)
from rpcqm.codec.packet.enums import DeliveryGuarantee, SenderIdentifierType
from rpcqm.codec.packet.fields import (
    ADMINISTRATION_TYPE,
    DESTINATION_TYPE,
    NAMES_OFFSET,
    RESPONSE_TYPE,
    head_reader,
)
from rpcqm.codec.packet.multi_queue import MultiQueueFormatHeader
from rpcqm.codec.packet.properties import (
    MAXIMUM_LABEL_LENGTH,
    PROPERTIES_HEADER_SIZE,
    PROPERTIES_START,
    DebugHeader,
)
from rpcqm.codec.packet.security import ProviderInfo, SecurityFlags, SecurityHeader
from rpcqm.codec.packet.soap import SoapHeader
from rpcqm.codec.packet.srmp import encode_compound, encode_envelope
from rpcqm.codec.packet.transaction import (
    FIRST_NUMBER,
    NO_SEQUENCE,
    TransactionFlags,
    TransactionHeader,
)
from rpcqm.codec.packet.types import NULL_IDENTIFIER
from rpcqm.codec.packet.user import UserFlags, encode_queue_name

_HEAD = head_reader()
_DELIVERY_MODE = UserFlags.DM.offset
_RECOVERABLE = DeliveryGuarantee.RECOVERABLE << _DELIVERY_MODE
_JN, _JP, _SH = UserFlags.JN.bits, UserFlags.JP.bits, UserFlags.SH.bits
_TH, _MP, _CQ = UserFlags.TH.bits, UserFlags.MP.bits, UserFlags.CQ.bits
_MQ, _AH, _HH = UserFlags.MQ.bits, UserFlags.AH.bits, UserFlags.HH.bits
_BASE_DH, _BASE_TR = BaseFlags.DH.bits, BaseFlags.TR.bits
_PADDING = (b"", b"\0\0\0", b"\0\0", b"\0")
_NO_CORRELATION = bytes(20)
_NO_ADDRESS = bytes(16)
_FIXED = NAMES_OFFSET + PROPERTIES_HEADER_SIZE


def build_user_message(message: MessageAttributes, soap_body_offset: int = -1) -> bytes:
    """The packet of a message, without SessionHeader.

    A transactional message is recoverable and has priority 0. Headers are there when one of
    their attributes is set. Raises MQError: MQ_ERROR_LABEL_TOO_LONG,
    MQ_ERROR_INSUFFICIENT_RESOURCES for a packet over 4 MiB (that came by HTTP: G235),
    MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION for destinations that no packet can have,
    MQ_ERROR_ILLEGAL_PROPERTY_VALUE for any other value that does not fit its field.
    """
    try:
        return _build(message, soap_body_offset)
    except (struct.error, ValueError, OverflowError) as error:
        raise MQError(HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE, str(error)) from error


def _build(message: MessageAttributes, soap_body_offset: int) -> bytes:
    body, extension = message.body, message.extension
    place = _place_of_body(message, soap_body_offset)
    if place >= 0:
        body = b""  # a body is in a packet once (G210)
    label = _encode_label(message.label) if message.label else b""
    user_flags, address, names = _queue_names(message)
    user_flags |= _MP | message.delivery_guarantee << _DELIVERY_MODE
    if message.positive_journaling_requested:
        user_flags |= _JP
    if message.negative_journaling_requested:
        user_flags |= _JN
    base_flags = message.priority
    more_flags, before = _headers_before(message)
    if more_flags & _TH:
        base_flags, user_flags = 0, user_flags | _RECOVERABLE
    trailer_base_flags, trailer_flags, behind = _headers_behind(message, place)
    padding = _PADDING[len(label) + len(extension) + len(body) & 3]
    size = _FIXED + len(names) + len(before) + len(label) + len(extension) + len(body)
    size += len(padding) + len(behind)
    if size > (LARGEST_KEPT_PACKET if trailer_flags & _AH else MAXIMUM_PACKET_SIZE):
        raise PacketTooLargeError(size)
    head = _pack_head(
        message,
        base_flags | trailer_base_flags,
        user_flags | more_flags | trailer_flags,
        size,
        address,
    )
    properties = _pack_properties(message, len(label) >> 1, len(body), len(extension))
    return b"".join((head, names, before, properties, label, extension, body, padding, behind))


def _place_of_body(message: MessageAttributes, place: int) -> int:
    """Where in the request that is kept the body is; -1 if it is in none.

    It is looked for from the start: that takes no longer than the request is long.
    """
    data, body = message.soap_compound_message, message.body
    if not data or not body or not message.soap_envelope:
        return -1
    return place if place >= 0 and data.startswith(body, place) else data.find(body)


def _pack_head(
    message: MessageAttributes, base_flags: int, user_flags: int, size: int, address: UUID
) -> bytes:
    identifier = message.identifier
    return _HEAD.pack(
        VERSION,
        0,
        base_flags,
        SIGNATURE,
        size,
        message.time_to_reach_queue,
        _little_endian(identifier.queue_manager_guid.int),
        _NO_ADDRESS if address is NULL_GUID else address.bytes_le,
        message.time_to_be_received,
        message.sent_time,
        identifier.ordinal,
        user_flags,
    )


@lru_cache(maxsize=64)
def _little_endian(guid: int) -> bytes:
    """The bytes of a queue manager's identifier, which is the same in most messages."""
    return UUID(int=guid).bytes_le


def _pack_properties(message: MessageAttributes, label: int, body: int, extension: int) -> bytes:
    correlation = message.correlation_identifier
    return PROPERTIES_START.pack(
        message.acknowledgements_requested,
        label,
        message.message_class,
        _NO_CORRELATION if correlation is NULL_IDENTIFIER else correlation.encode(),
        message.body_type,
        message.application_tag,
        body,
        body,
        message.privacy_level,
        message.hash_algorithm,
        message.encryption_algorithm,
        extension,
    )


def _encode_label(label: str) -> bytes:
    if "\0" in label:
        raise ValueError("a label has no null characters")  # no reader takes such a packet
    raw = encode_text(label)
    if len(raw) > 2 * MAXIMUM_LABEL_LENGTH + 2:
        raise MQError(HResult.MQ_ERROR_LABEL_TOO_LONG)
    return raw


def _queue_names(message: MessageAttributes) -> tuple[int, UUID, bytes]:
    """The flags for the queue names, the destination's queue manager, and the names."""
    flags, names, address = 0, b"", message.destination_queue_manager_identifier
    if message.destination_queue_format_name is not None:
        kind, wire, owner = to_destination(message.destination_queue_format_name)
        address = address if owner is None else owner
        flags, names = kind << DESTINATION_TYPE, encode_queue_name(wire, kind)
    administration = message.administration_queue_format_name
    response = message.response_queue_format_name
    if administration is None and response is None:
        return flags, address, names
    source = message.identifier.queue_manager_guid
    admin_kind, admin_wire = to_other_queue(administration, source, address)
    kind, wire = to_other_queue(response, source, address, administration)
    flags |= admin_kind << ADMINISTRATION_TYPE | kind << RESPONSE_TYPE
    names += encode_queue_name(admin_wire, admin_kind) + encode_queue_name(wire, kind)
    return flags, address, names


def _headers_before(message: MessageAttributes) -> tuple[int, bytes]:
    """ConnectorType, TransactionHeader and SecurityHeader, and the flags they need."""
    flags, headers = 0, b""
    if message.connector_type_identifier is not None:
        flags, headers = _CQ, message.connector_type_identifier.bytes_le
    if message.transaction_identifier is not None:
        flags, headers = flags | _TH, headers + _transaction_header(message)
    if (
        message.signature
        or message.symmetric_key
        or message.sender_certificate
        or message.authentication_provider_name
        or (message.privacy_level and message.sender_identifier)
    ):
        flags, headers = flags | _SH, headers + _security_header(message)
    elif message.sender_identifier:
        sender = _sender_alone(message.sender_identifier_type, message.sender_identifier)
        flags, headers = flags | _SH, headers + sender
    return flags, headers


@lru_cache(maxsize=1024)
def _sender_alone(kind: int, identifier: bytes) -> bytes:
    """The SecurityHeader of most messages, which tells nothing but the sender."""
    flags = SecurityFlags.of(ST=kind or SenderIdentifierType.NONE)
    return SecurityHeader(flags, identifier).encode()


def _transaction_header(message: MessageAttributes) -> bytes:
    connector = message.connector_queue_manager_identifier
    flags = TransactionFlags.of(
        CG=connector is not None,
        FA=message.final_ack_required,
        FM=message.first_in_transaction,
        LM=message.last_in_transaction,
        ID=message.transaction_identifier or 0,
    )
    return TransactionHeader(
        flags,
        message.transactional_message_sequence_identifier or NO_SEQUENCE,
        message.transaction_sequence_number or FIRST_NUMBER,
        message.transaction_previous_sequence_number,
        connector,
    ).encode()


def _security_header(message: MessageAttributes) -> bytes:
    """Flags.AI stays clear as in the example of [MS-MQQB] 4.1.7 (G20), AU and AS by rule.

    A body is encrypted where there is a key to decrypt it with, whatever level was asked for.
    """
    name, provider = message.authentication_provider_name, b""
    if name:
        provider = ProviderInfo(message.authentication_provider_type, name).encode()
    kind = message.sender_identifier_type if message.sender_identifier else 0
    flags = SecurityFlags.of(
        ST=kind or SenderIdentifierType.NONE,
        EB=bool(message.symmetric_key),
        DE=bool(message.signature) and not provider,
    )
    return SecurityHeader(
        flags,
        message.sender_identifier,
        message.symmetric_key,
        message.signature,
        message.sender_certificate,
        provider,
    ).encode()


def _headers_behind(message: MessageAttributes, place: int) -> tuple[int, int, bytes]:
    """What follows the body, each header at a multiple of four, and the flags it needs."""
    base_flags, flags, parts = 0, 0, b""
    if message.tracing_requested or message.tracing_queue_identifier is not None:
        base_flags = _BASE_DH | (_BASE_TR if message.tracing_requested else 0)
        parts = DebugHeader(message.tracing_queue_identifier).encode()
    if message.soap_envelope and message.soap_compound_message:
        flags, parts = _AH, parts + _srmp_headers(message, place)
    if message.soap_header or message.soap_body:
        flags |= _HH
        parts += padded(SoapHeader(message.soap_header, message.soap_body).encode())
    if message.destination_multi_queue_format_name:
        flags, parts = flags | _MQ, parts + padded(_multi_queue_header(message))
    return base_flags, flags, parts


def _srmp_headers(message: MessageAttributes, place: int) -> bytes:
    data, size = message.soap_compound_message, len(message.body)
    compound = encode_compound(data, size, place) if place >= 0 else encode_compound(data)
    return padded(encode_envelope(message.soap_envelope)) + padded(compound)


def _multi_queue_header(message: MessageAttributes) -> bytes:
    header = MultiQueueFormatHeader(
        message.destination_multi_queue_format_name,
        message.administration_multi_queue_format_name,
        message.response_multi_queue_format_name,
        message.multiple_destination_signature,
    )
    try:
        return header.encode()
    except ValueError as error:
        raise MQError(HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION, str(error)) from error
