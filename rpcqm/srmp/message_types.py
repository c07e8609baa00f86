"""The kinds of messages ([MC-MQSRM] 3.1.5.1.5)."""

import enum

from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.internal import ORDER_ACK_LABEL
from rpcqm.srmp.elements import MSMQ_PREFIX, CommitmentReceipt, Envelope

ORDER_ACK_ACTION = MSMQ_PREFIX + ORDER_ACK_LABEL
_DECISIONS = {
    MessageClass.MQMSG_CLASS_ACK_RECEIVE: True,
    MessageClass.MQMSG_CLASS_NACK_DELETED: False,
    MessageClass.MQMSG_CLASS_NACK_Q_DELETED: False,
    MessageClass.MQMSG_CLASS_NACK_Q_PURGED: False,
    MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT: False,
}
"""Classes of commitment receipts, and whether their decision is positive."""


class MessageType(enum.Enum):
    """The five kinds of messages."""

    USER = "user message"
    DELIVERY_RECEIPT = "delivery receipt"
    STREAM_RECEIPT = "stream receipt"
    FINAL_STREAM_RECEIPT = "final stream receipt"
    COMMITMENT_RECEIPT = "commitment receipt"


def identify(envelope: Envelope) -> MessageType | None:
    """The kind of a message; None if it is of another kind, and to be ignored.

    Without <Msmq> its class is MQMSG_CLASS_NORMAL, as in the sample of [MC-MQSRM] 4.1.
    """
    message_class = 0 if envelope.msmq is None else envelope.msmq.message_class
    delivery, commitment = envelope.delivery_receipt, envelope.commitment_receipt
    if envelope.stream_receipt is not None:
        if delivery is not None or envelope.action != ORDER_ACK_ACTION:
            return None
        if commitment is None:
            is_order_ack = message_class == MessageClass.MQMSG_CLASS_ORDER_ACK
            return MessageType.STREAM_RECEIPT if is_order_ack else None
        return MessageType.FINAL_STREAM_RECEIPT if _agrees(commitment, message_class) else None
    if commitment is not None:
        is_receipt = delivery is None and _agrees(commitment, message_class)
        return MessageType.COMMITMENT_RECEIPT if is_receipt else None
    if delivery is not None:
        is_arrival = message_class == MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE
        return MessageType.DELIVERY_RECEIPT if is_arrival else None
    return MessageType.USER if message_class == MessageClass.MQMSG_CLASS_NORMAL else None


def _agrees(receipt: CommitmentReceipt, message_class: int) -> bool:
    return any(
        each == message_class and decision is receipt.positive
        for each, decision in _DECISIONS.items()
    )
