"""OrderAck and FinalAck, messages with which queue managers confirm transactional messages.

They are UserMessage packets to the order queue of the sender ([MS-MQQB] 2.2.4, 2.2.5), told
apart from others by what [MS-MQQB] 3.1.5.1.1 lists.
"""

import enum

from rpcqm.base.errors import DecodeError
from rpcqm.codec.layout import Buffer
from rpcqm.codec.names.format_name import FormatName, PrivateQueueFormatName
from rpcqm.codec.packet.attributes import MessageAttributes
from rpcqm.codec.packet.base import BaseFlags, BaseHeader
from rpcqm.codec.packet.enums import DeliveryGuarantee, MessageClass, SenderIdentifierType
from rpcqm.codec.packet.internal import (
    ORDER_ACK_LABEL,
    ORDER_QUEUE_IDENTIFIER,
    FinalAckBody,
    InternalHeader,
    OrderAckBody,
    PacketType,
)
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.types.mqvalues import INFINITE

_ORDER_QUEUE = "\\PRIVATE$\\ORDER_QUEUE$"
_SESSION_HEADER_FLAG = BaseFlags.SH.bits
_FINAL_ACK_FROM = int(MessageClass.MQMSG_CLASS_ACK_RECEIVE)


class PacketKind(enum.Enum):
    """The purposes that a packet of a session may have."""

    SESSION_ACK = PacketType.SESSION_ACK
    ESTABLISH_CONNECTION = PacketType.ESTABLISH_CONNECTION
    CONNECTION_PARAMETERS = PacketType.CONNECTION_PARAMETERS
    USER_MESSAGE = "UserMessage"
    ORDER_ACK = "OrderAck"
    FINAL_ACK = "FinalAck"


def order_ack(
    destination: FormatName, identifier: MessageIdentifier, sent_time: int, body: OrderAckBody
) -> MessageAttributes:
    """The message that confirms arrival in order; an express one (G24)."""
    return _acknowledgement(
        destination,
        identifier,
        sent_time,
        body.encode(),
        MessageClass.MQMSG_CLASS_ORDER_ACK,
        DeliveryGuarantee.EXPRESS,
    )


def final_ack(
    destination: FormatName,
    identifier: MessageIdentifier,
    sent_time: int,
    body: FinalAckBody,
    message_class: int,
) -> MessageAttributes:
    """The message that tells the outcome of a transactional message; it never expires."""
    acknowledgement = _acknowledgement(
        destination,
        identifier,
        sent_time,
        body.encode(),
        message_class,
        DeliveryGuarantee.RECOVERABLE,
    )
    acknowledgement.time_to_reach_queue = INFINITE
    return acknowledgement


def _acknowledgement(
    destination: FormatName,
    identifier: MessageIdentifier,
    sent_time: int,
    body: bytes,
    message_class: int,
    delivery_guarantee: DeliveryGuarantee,
) -> MessageAttributes:
    return MessageAttributes(
        destination_queue_format_name=destination,
        identifier=identifier,
        sent_time=sent_time,
        body=body,
        label=ORDER_ACK_LABEL,
        message_class=message_class,
        delivery_guarantee=delivery_guarantee,
        priority=0,
        sender_identifier_type=SenderIdentifierType.NONE,
    )


def identify_packet(buffer: Buffer) -> PacketKind:
    """The kind of a packet; raises DecodeError if the bytes are not a packet.

    Whatever is neither internal nor one of the two acknowledgements is a user message, and a
    piggybacked SessionHeader makes no difference (G28).
    """
    base = BaseHeader.decode(buffer)
    base.validate()
    if base.flags.IN:
        return _identify_internal(buffer)
    return identify_message(PacketMessage(buffer))


def identify_message(message: PacketMessage) -> PacketKind:
    """The kind of a packet that is not internal; its class, which decides most, comes first."""
    kind = PacketKind.FINAL_ACK
    if message.message_class == MessageClass.MQMSG_CLASS_ORDER_ACK:
        kind = PacketKind.ORDER_ACK
    elif message.message_class < _FINAL_ACK_FROM:
        return PacketKind.USER_MESSAGE
    if message.base_flags & ~_SESSION_HEADER_FLAG or not goes_to_order_queue(message):
        return PacketKind.USER_MESSAGE
    if message.label != ORDER_ACK_LABEL or message.body_size != OrderAckBody.size():
        return PacketKind.USER_MESSAGE
    return kind


def _identify_internal(buffer: Buffer) -> PacketKind:
    number = InternalHeader.decode(buffer, BaseHeader.size()).flags.PT
    try:
        return PacketKind(PacketType(number))
    except ValueError as error:
        raise DecodeError(f"internal packet of type {number}") from error


def goes_to_order_queue(message: PacketMessage) -> bool:
    """Whether a message goes to the queue where queue managers look for acknowledgements."""
    name = message.destination_queue_format_name
    if name is None:
        return False
    if isinstance(name.value, PrivateQueueFormatName):
        return name.value.private_queue_identifier == ORDER_QUEUE_IDENTIFIER
    return isinstance(name.value, str) and name.value.upper().endswith(_ORDER_QUEUE)
