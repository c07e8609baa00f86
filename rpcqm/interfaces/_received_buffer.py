"""Puts a message into the CACTransferBufferV2 of its receiver ([MS-MQMP] 3.1.1.11, 3.1.5.3).

A field that the client gave as NULL stays NULL; a buffer is filled as far as the text or octets of
the message go.
"""

from collections.abc import Callable

from rpcqm.adm.message import Message
from rpcqm.base.errors import HResult
from rpcqm.base.text import wide_length
from rpcqm.codec.interface import NullPointer, Value
from rpcqm.codec.layout import NULL_GUID
from rpcqm.codec.names.format_name import FormatName, format_names
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.codec.types.mqmq import OBJECTID
from rpcqm.codec.types.mqvalues import INFINITE, MQMSG_DEADLETTER, MQMSG_JOURNAL
from rpcqm.codec.types.qmcomm import (
    CACTransferBufferV1,
    CACTransferBufferV1_Receive,
    CACTransferBufferV2,
)
from rpcqm.interfaces._wide_text import fitted

PACKET_VERSION = 0x10
"""pulVersion: FALCON_PACKET_VERSION."""

_OK = HResult.MQ_OK


def fill(buffer: CACTransferBufferV2, message: Message, now: int) -> HResult:
    """Put a message into the buffer; MQ_OK, or the code of the first buffer that is too small.

    Even then the lengths are set, so that a client can come back with buffers that fit. `now` is in
    seconds since 1970. Raises DecodeError for a damaged packet.
    """
    packet = message.attributes
    statuses = [
        *_fill_names(buffer.old.u.value, packet),
        *_fill_body(buffer.old, packet),
        *_fill_security(buffer.old, packet),
    ]
    _fill_numbers(buffer, message, packet, now)
    _fill_identifiers(buffer, packet)
    return next((status for status in statuses if status is not _OK), _OK)


def _is_there(pointer: object) -> bool:
    return pointer is not None and not isinstance(pointer, NullPointer)


# Texts and octets

_NAMES = ("Response", "Admin", "Dest", "Ordering")


def _fill_names(receive: object, packet: PacketMessage) -> list[HResult]:
    assert isinstance(receive, CACTransferBufferV1_Receive)
    multiple = packet.destination_multi_queue_format_name
    names: tuple[FormatName | tuple[FormatName, ...] | None, ...] = (
        packet.response_multi_queue_format_name or packet.response_queue_format_name,
        packet.administration_multi_queue_format_name or packet.administration_queue_format_name,
        multiple or packet.destination_queue_format_name,
        None,
    )
    return [
        _fill_name(
            receive,
            f"pp{kind}FormatName",
            f"ul{kind}FormatNameLen",
            f"pul{kind}FormatNameLenProp",
            _text(name),
            HResult.MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL,
        )
        for kind, name in zip(_NAMES, names, strict=True)
    ]


def _text(name: FormatName | tuple[FormatName, ...] | None) -> str:
    if name is None:
        return ""
    return format_names((name,) if isinstance(name, FormatName) else name)


def _fill_name(
    structure: Value, pointer: str, size: str, length: str, text: str, error: HResult
) -> HResult:
    """Write a text: `length` describes its buffer, `size` says how much of it travels.

    So a text that fits its buffer, but not `size`, arrives cut ([MS-MQMP] 3.1.5.3).
    """
    told: int | None = getattr(structure, length)
    capacity: int = getattr(structure, size) if told is None else told
    return _fill_text(structure, pointer, size, length, text, error, capacity)


def _fill_text(
    structure: Value,
    pointer: str,
    size: str,
    length: str,
    text: str,
    error: HResult,
    capacity: int,
) -> HResult:
    """Write a text and its null character; an empty text needs no character."""
    needed = wide_length(text) + 1 if text else 0
    fits = _fits(structure, pointer, length, capacity, needed)
    if fits:
        given = min(getattr(structure, size), needed)
        setattr(structure, size, given)
        setattr(structure, pointer, fitted(text, given))
    return error if fits is False else _OK


def _fill_octets(
    structure: Value, pointer: str, size: str, length: str, octets: bytes, error: HResult
) -> HResult:
    """Write octets into a buffer of `size`; `length` gets their full length."""
    fits = _fits(structure, pointer, length, getattr(structure, size), len(octets))
    if fits:
        setattr(structure, size, len(octets))
        setattr(structure, pointer, octets)
    return error if fits is False else _OK


def _fits(structure: Value, pointer: str, length: str, capacity: int, needed: int) -> bool | None:
    """Whether a buffer is large enough; None if there is no buffer. Writes the full length."""
    if getattr(structure, length) is not None:
        setattr(structure, length, needed)
    if not _is_there(getattr(structure, pointer)):
        return None
    return needed <= capacity


def _fill_body(old: CACTransferBufferV1, packet: PacketMessage) -> list[HResult]:
    """Write body and extension; their lengths stay ([MS-MQMP] 3.1.5.3)."""
    body_fits = extension_fits = True
    if old.pBodySize is not None:
        old.pBodySize = packet.body_size
    if _is_there(old.ppBody):
        size = old.ulBodyBufferSizeInBytes
        body_fits = packet.body_size <= size
        if body_fits:
            old.ppBody = packet.body.ljust(size, b"\0")
    extension = packet.extension
    if old.pMsgExtensionSize is not None:
        old.pMsgExtensionSize = len(extension)
    if _is_there(old.ppMsgExtension):
        size = old.ulMsgExtensionBufferInBytes
        extension_fits = len(extension) <= size
        if extension_fits:
            old.ppMsgExtension = extension.ljust(size, b"\0")
    title = _fill_name(
        old,
        "ppTitle",
        "ulTitleBufferSizeInWCHARs",
        "pulTitleBufferSizeInWCHARs",
        packet.label,
        HResult.MQ_ERROR_LABEL_BUFFER_TOO_SMALL,
    )
    overflow = HResult.MQ_ERROR_BUFFER_OVERFLOW
    return [_OK if body_fits else overflow, _OK if extension_fits else overflow, title]


def _fill_security(old: CACTransferBufferV1, packet: PacketMessage) -> list[HResult]:
    octets = (
        (
            "ppSenderID",
            "uSenderIDLen",
            "pulSenderIDLenProp",
            packet.sender_identifier,
            HResult.MQ_ERROR_SENDERID_BUFFER_TOO_SMALL,
        ),
        (
            "ppSenderCert",
            "ulSenderCertLen",
            "pulSenderCertLenProp",
            packet.sender_certificate,
            HResult.MQ_ERROR_SENDER_CERT_BUFFER_TOO_SMALL,
        ),
        (
            "ppSymmKeys",
            "ulSymmKeysSize",
            "pulSymmKeysSizeProp",
            packet.symmetric_key,
            HResult.MQ_ERROR_SYMM_KEY_BUFFER_TOO_SMALL,
        ),
        (
            "ppSignature",
            "ulSignatureSize",
            "pulSignatureSizeProp",
            packet.signature,
            HResult.MQ_ERROR_SIGNATURE_BUFFER_TOO_SMALL,
        ),
    )
    provider = _fill_text(
        old,
        "ppwcsProvName",
        "ulProvNameLen",
        "pulAuthProvNameLenProp",
        packet.authentication_provider_name,
        HResult.MQ_ERROR_PROV_NAME_BUFFER_TOO_SMALL,
        old.ulProvNameLen,
    )
    return [*(_fill_octets(old, *each) for each in octets), provider]


# Numbers

_NUMBERS: dict[str, Callable[[PacketMessage], int]] = {
    "pClass": lambda packet: packet.message_class,
    "pSentTime": lambda packet: packet.sent_time,
    "pPriority": lambda packet: packet.priority,
    "pDelivery": lambda packet: packet.delivery_guarantee,
    "pAcknowledge": lambda packet: packet.acknowledgements_requested,
    "pApplicationTag": lambda packet: packet.application_tag,
    "pulRelativeTimeToQueue": lambda packet: packet.time_to_reach_queue,
    "pTrace": lambda packet: int(packet.tracing_requested),
    "pulSenderIDType": lambda packet: packet.sender_identifier_type,
    "pulPrivLevel": lambda packet: packet.privacy_level,
    "pAuthenticated": lambda packet: packet.authentication_level,
    "pulHashAlg": lambda packet: packet.hash_algorithm,
    "pulEncryptAlg": lambda packet: packet.encryption_algorithm,
    "pulProvType": lambda packet: packet.authentication_provider_type,
    "pulBodyType": lambda packet: packet.body_type,
    "pulVersion": lambda packet: PACKET_VERSION,
    "pAuditing": lambda packet: (
        (MQMSG_JOURNAL if packet.positive_journaling_requested else 0)
        | (MQMSG_DEADLETTER if packet.negative_journaling_requested else 0)
    ),
}


def _fill_numbers(
    buffer: CACTransferBufferV2, message: Message, packet: PacketMessage, now: int
) -> None:
    old = buffer.old
    for field, read in _NUMBERS.items():
        if getattr(old, field) is not None:
            setattr(old, field, int(read(packet)))
    if old.pArrivedTime is not None:
        old.pArrivedTime = message.arrival_time // 1000
    if old.pulRelativeTimeToLive is not None:
        old.pulRelativeTimeToLive = _time_left(packet, now)
    if buffer.pbFirstInXact is not None:
        buffer.pbFirstInXact = int(packet.first_in_transaction)
    if buffer.pbLastInXact is not None:
        buffer.pbLastInXact = int(packet.last_in_transaction)


def _time_left(packet: PacketMessage, now: int) -> int:
    """Seconds before the message is discarded."""
    limit = packet.time_to_be_received
    return limit if limit == INFINITE else max(0, packet.sent_time + limit - now)


def _fill_identifiers(buffer: CACTransferBufferV2, packet: PacketMessage) -> None:
    old = buffer.old
    source = packet.source_machine_identifier
    if _is_there(old.ppMessageID):
        old.ppMessageID = OBJECTID(Lineage=source, Uniquifier=packet.identifier.ordinal)
    if _is_there(old.ppCorrelationID):
        old.ppCorrelationID = packet.correlation_identifier.encode()
    if _is_there(old.ppSrcQMID):
        old.ppSrcQMID = source
    if _is_there(old.ppConnectorType):
        old.ppConnectorType = packet.connector_type_identifier or NULL_GUID
    if _is_there(buffer.ppXactID):
        number = packet.transaction_identifier
        lineage = NULL_GUID if number is None else source
        buffer.ppXactID = OBJECTID(Lineage=lineage, Uniquifier=number or 0)
