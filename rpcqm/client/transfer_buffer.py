"""Messages to send as CACTransferBufferV2 structures ([MS-MQMP] 2.2.3.3, 3.1.5.2)."""

from uuid import UUID

from rpcqm.base.errors import HResult, MQError
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.queue_format import queue_format_of
from rpcqm.codec.packet.base import MAXIMUM_PACKET_SIZE
from rpcqm.codec.packet.enums import EncryptionAlgorithm, PrivacyLevel
from rpcqm.codec.packet.properties import MAXIMUM_LABEL_LENGTH
from rpcqm.codec.packet.types import NULL_IDENTIFIER
from rpcqm.codec.types.mqmq import QUEUE_FORMAT, XACTUOW
from rpcqm.codec.types.mqvalues import INFINITE, MQMSG_DEADLETTER, MQMSG_JOURNAL
from rpcqm.codec.types.qmcomm import (
    CACTB_SEND,
    CACTransferBufferV1,
    CACTransferBufferV1_Send,
    CACTransferBufferV1_u,
    CACTransferBufferV2,
)


def transfer_buffer_of(
    message: OutgoingMessage, now: int, transaction: UUID | None = None
) -> CACTransferBufferV2:
    """The buffer for rpc_ACSendMessageEx; `now` is in seconds since 1970.

    Raises MQError(MQ_ERROR_INSUFFICIENT_RESOURCES) if body and extension are too large for a
    message, MQError(MQ_ERROR_LABEL_TOO_LONG) if a server would cut the label.
    """
    extension = message.sent_extension
    if len(message.body) + len(extension) > MAXIMUM_PACKET_SIZE:
        raise MQError(
            HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
            f"and a message has room for {MAXIMUM_PACKET_SIZE:,} bytes with its headers",
        )
    send = CACTransferBufferV1_Send(
        pAdminQueueFormat=_queue_format(message.administration_queue),
        pResponseQueueFormat=_queue_format(message.response_queue),
    )
    old = CACTransferBufferV1(
        uTransferType=CACTB_SEND,
        u=CACTransferBufferV1_u(CACTB_SEND, send),
        pPriority=message.priority,
        pDelivery=int(message.recoverable),
        pAuditing=_auditing(message),
        pAcknowledge=int(message.acknowledgements),
        pApplicationTag=message.application_tag,
        ulAbsoluteTimeToQueue=_absolute(message.time_to_reach_queue, now),
        ulRelativeTimeToLive=message.time_to_be_received,
        pulBodyType=message.body_type,
        pulPrivLevel=int(message.privacy),
        pulEncryptAlg=_encryption_algorithm(message.privacy),
        ppConnectorType=message.connector_type,
        pUow=None if transaction is None else XACTUOW(rgb=transaction.bytes_le),
    )
    _add_texts(old, message)
    return CACTransferBufferV2(old=old)


def _add_texts(old: CACTransferBufferV1, message: OutgoingMessage) -> None:
    """Add the fields that have a length; an empty field is not sent."""
    if message.body:
        old.ppBody = message.body
        old.ulBodyBufferSizeInBytes = old.ulAllocBodyBufferInBytes = len(message.body)
    if message.label:
        old.ppTitle = message.label
        old.ulTitleBufferSizeInWCHARs = _label_length(message.label)
    if extension := message.sent_extension:
        old.ppMsgExtension = extension
        old.ulMsgExtensionBufferInBytes = len(extension)
    if message.correlation_identifier != NULL_IDENTIFIER:
        old.ppCorrelationID = message.correlation_identifier.encode()


def _label_length(label: str) -> int:
    length = len(label.encode("utf-16-le", "surrogatepass")) // 2
    if length > MAXIMUM_LABEL_LENGTH:
        raise MQError(HResult.MQ_ERROR_LABEL_TOO_LONG, f"{length} characters")
    return length


def _encryption_algorithm(privacy: PrivacyLevel) -> int | None:
    """The algorithm of a level of privacy ([MS-MQMP] 3.1.5.2, pulEncryptAlg)."""
    if privacy is PrivacyLevel.NONE:
        return None
    advanced = privacy is PrivacyLevel.ADVANCED
    return EncryptionAlgorithm.AES256 if advanced else EncryptionAlgorithm.RC4


def _auditing(message: OutgoingMessage) -> int:
    wants_dead_letter = message.dead_letter or message.dead_letter_queue is not None
    return int(wants_dead_letter) * MQMSG_DEADLETTER | int(message.journal) * MQMSG_JOURNAL


def _queue_format(name: FormatName | None) -> QUEUE_FORMAT | None:
    return None if name is None else queue_format_of(name)


def _absolute(seconds: int, now: int) -> int:
    return min(now + seconds, INFINITE - 1) if seconds != INFINITE else INFINITE
