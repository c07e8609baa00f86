"""Reads the message to be sent from a CACTransferBufferV2 ([MS-MQMP] 3.1.1.11, 3.1.5.2)."""

from typing import NamedTuple, TypeVar
from uuid import UUID

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.adm.queue import OutgoingQueue
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.text import wide_length
from rpcqm.codec.interface import NULL, NullPointer
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.queue_format import format_name_of
from rpcqm.codec.packet.base import DEFAULT_PRIORITY
from rpcqm.codec.packet.enums import CUSTOM_CLASS_MASK, PrivacyLevel, SenderIdentifierType
from rpcqm.codec.packet.message import MessageAttributes, MessageIdentifier
from rpcqm.codec.packet.properties import MAXIMUM_LABEL_LENGTH
from rpcqm.codec.packet.types import NULL_IDENTIFIER
from rpcqm.codec.types.mqmq import QUEUE_FORMAT
from rpcqm.codec.types.mqvalues import INFINITE, MQMSG_DEADLETTER, MQMSG_JOURNAL
from rpcqm.codec.types.qmcomm import (
    CACTransferBufferV1,
    CACTransferBufferV1_Send,
    CACTransferBufferV2,
)
from rpcqm.interfaces._wide_text import fitted, until_null
from rpcqm.qm.arrivals import Decrypt
from rpcqm.qm.privacy import body_in_clear, check_privacy

PROV_RSA_FULL = 1

_LATEST_DURATION = 1_000_000_000
"""Seconds, 31 years: a larger time to reach the queue is a time since 1970."""

MAXIMUM_PRIORITY, _MAXIMUM_DELIVERY, _MAXIMUM_AUDITING, _MAXIMUM_TRACE = 7, 1, 3, 1
_ACKNOWLEDGEMENTS = 0x0F
"""The largest values, and the bits, that [MS-MQMP] 2.2.3.2 defines; others are refused."""
_PRIVACY = {0: 0, 1: 1, 2: PrivacyLevel.ENHANCED, 3: PrivacyLevel.ENHANCED, 5: 5}
"""Privacy levels by pulPrivLevel; its 2 is 3 in packets (G43)."""

T = TypeVar("T")


class _Signature(NamedTuple):
    octets: bytes = b""
    provider_type: int = 0
    provider_name: str = ""


_UNSIGNED = _Signature()


def message_attributes(
    buffer: CACTransferBufferV2,
    descriptor: OpenQueueDescriptor,
    queue_manager: UUID,
    now: int,
    decrypt: Decrypt | None,
) -> MessageAttributes:
    """The attributes of a message that is to be sent to an open queue.

    `queue_manager` is the identifier of this one, `now` is in seconds since 1970, `decrypt` is
    for bodies that are encrypted for this queue manager. Who the sender is comes from the
    caller's identity, never from the buffer. Raises MQError if the buffer breaks a rule, mostly
    MQ_ERROR_INVALID_PARAMETER.
    """
    old = buffer.old
    send = old.u.value
    if send.__class__ is not CACTransferBufferV1_Send:
        raise _invalid("uTransferType")
    _check_numbers(old)
    body, auditing = old.ppBody, old.pAuditing or 0
    attributes = MessageAttributes(
        body=body if body and body is not NULL else b"",
        message_class=(old.pClass or 0) & CUSTOM_CLASS_MASK,
        delivery_guarantee=old.pDelivery or 0,
        priority=DEFAULT_PRIORITY if old.pPriority is None else old.pPriority,
        time_to_reach_queue=time_to_reach_queue(old.ulAbsoluteTimeToQueue, now),
        time_to_be_received=old.ulRelativeTimeToLive,
        body_type=old.pulBodyType or 0,
        application_tag=old.pApplicationTag or 0,
        acknowledgements_requested=old.pAcknowledge or 0,
        positive_journaling_requested=auditing & MQMSG_JOURNAL != 0,
        negative_journaling_requested=auditing & MQMSG_DEADLETTER != 0,
        hash_algorithm=old.pulHashAlg or 0,
        encryption_algorithm=old.pulEncryptAlg or 0,
        tracing_requested=bool(old.pTrace),
    )
    if old.ppTitle or old.ppCorrelationID or old.ppMsgExtension or old.ppConnectorType:
        _add_texts(attributes, old)
    if send.pAdminQueueFormat is not None or send.pResponseQueueFormat is not None:
        attributes.administration_queue_format_name = _format_name(send.pAdminQueueFormat)
        attributes.response_queue_format_name = _format_name(send.pResponseQueueFormat)
    if old.pulPrivLevel or old.bEncrypted or old.ulSymmKeysSize:
        _add_privacy(attributes, old, descriptor, decrypt)
    if old.pulSenderIDType is not None or old.uSenderIDLen:
        _add_sender(attributes, old, queue_manager)
    if old.ulSignatureSize or old.ulSenderCertLen:
        _add_signature(attributes, old)
    return attributes


def _add_texts(attributes: MessageAttributes, old: CACTransferBufferV1) -> None:
    """Add the names and texts that stand behind a pointer to a pointer, and are mostly absent."""
    attributes.label = _label(old)
    attributes.correlation_identifier = _correlation(old)
    attributes.extension = _there(old.ppMsgExtension) or b""
    attributes.connector_type_identifier = _there(old.ppConnectorType)


def _there(pointer: T | NullPointer | None) -> T | None:
    """The value behind a pointer to a pointer; None if either pointer is NULL."""
    return None if isinstance(pointer, NullPointer) else pointer


def _invalid(field: str) -> MQError:
    return MQError(HResult.MQ_ERROR_INVALID_PARAMETER, field)


def _check_numbers(old: CACTransferBufferV1) -> None:
    if (
        (old.pPriority or 0) > MAXIMUM_PRIORITY
        or (old.pDelivery or 0) > _MAXIMUM_DELIVERY
        or (old.pAuditing or 0) > _MAXIMUM_AUDITING
        or (old.pTrace or 0) > _MAXIMUM_TRACE
        or (old.pAcknowledge or 0) & ~_ACKNOWLEDGEMENTS
    ):
        raise _invalid("priority, delivery, auditing, trace or acknowledgement")


def _label(old: CACTransferBufferV1) -> str:
    """The title up to its null character, 250 characters at most."""
    title = _there(old.ppTitle)
    if not title:
        return ""
    title = until_null(title)
    if wide_length(title) <= MAXIMUM_LABEL_LENGTH:
        return title
    return until_null(fitted(title, MAXIMUM_LABEL_LENGTH))


def time_to_reach_queue(value: int, now: int) -> int:
    """Seconds in which the message has to arrive; 0 in the buffer means for ever.

    [MS-MQMP] 2.2.3.2 has a duration in a field that is called absolute: a value too large for a
    duration is a time (G69).
    """
    if value in (0, INFINITE):
        return INFINITE
    return value if value < _LATEST_DURATION else max(0, value - now)


def _correlation(old: CACTransferBufferV1) -> MessageIdentifier:
    octets = _there(old.ppCorrelationID)
    if octets is None or not any(octets):
        return NULL_IDENTIFIER
    return MessageIdentifier.decode(octets)


def _format_name(structure: QUEUE_FORMAT | None) -> FormatName | None:
    return None if structure is None else format_name_of(structure)


def _add_privacy(
    attributes: MessageAttributes,
    old: CACTransferBufferV1,
    descriptor: OpenQueueDescriptor,
    decrypt: Decrypt | None,
) -> None:
    """Add the wanted privacy of the body, or how it was encrypted.

    A body encrypted for a local queue is decrypted ([MS-MQMP] 3.1.5.2); its key is useless then
    (G126).
    """
    level = _PRIVACY.get(old.pulPrivLevel or 0)
    if level is None:
        raise _invalid("pulPrivLevel")
    check_privacy(descriptor, bool(level or old.bEncrypted))
    key = _there(old.ppSymmKeys) or b""
    if old.ulSymmKeysSize and not key:
        raise _invalid("ppSymmKeys")
    attributes.privacy_level = level
    if old.bEncrypted and key and not isinstance(descriptor.queue_reference, OutgoingQueue):
        attributes.body = body_in_clear(attributes, key, decrypt)
    elif old.bEncrypted:
        attributes.symmetric_key = key


def _add_sender(
    attributes: MessageAttributes, old: CACTransferBufferV1, queue_manager: UUID
) -> None:
    kind = old.pulSenderIDType
    if kind is None or kind > SenderIdentifierType.QUEUE_MANAGER_IDENTIFIER:
        raise _invalid("pulSenderIDType")
    attributes.sender_identifier_type = kind
    if kind == SenderIdentifierType.QUEUE_MANAGER_IDENTIFIER:
        attributes.sender_identifier = queue_manager.bytes_le


def _add_signature(attributes: MessageAttributes, old: CACTransferBufferV1) -> None:
    certificate = _there(old.ppSenderCert) or b""
    if old.ulSenderCertLen and not certificate:
        raise _invalid("ppSenderCert")
    attributes.sender_certificate = certificate[: old.ulSenderCertLen]
    signature = _signature(old) if old.ulSignatureSize else _UNSIGNED
    attributes.signature = signature.octets
    attributes.authentication_provider_type = signature.provider_type
    attributes.authentication_provider_name = signature.provider_name


def _signature(old: CACTransferBufferV1) -> _Signature:
    """The digital signature; of two the last one counts."""
    octets = _there(old.ppSignature)
    if octets is None or old.pulHashAlg is None:
        raise _invalid("ppSignature or pulHashAlg")
    if old.pulAuthProvNameLenProp is not None:
        second = old.pulAuthProvNameLenProp - old.ulProvNameLen
        if not 0 < second <= old.ulSignatureSize:
            raise _invalid("pulAuthProvNameLenProp")
        octets = octets[old.ulSignatureSize - second :]
    if old.fDefaultProvider:
        if old.pulProvType != PROV_RSA_FULL:
            raise _invalid("pulProvType")
        return _Signature(octets, PROV_RSA_FULL)
    name = _there(old.ppwcsProvName)
    if name is None:
        raise _invalid("ppwcsProvName")
    return _Signature(octets, old.pulProvType or 0, until_null(name))
