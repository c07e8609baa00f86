"""The five kinds of messages, and posts of no kind ([MC-MQSRM] 3.1.5.1.5)."""

import pytest

from rpcqm.codec.packet.enums import MessageClass
from rpcqm.srmp.message_types import MessageType, identify
from rpcqm.srmp.reading import read_request
from tests.support.srmp.srmp_samples import minimal, msmq, posted

ID = "<id>uuid:1@00000000-0000-0000-0000-000000000000</id>"
DELIVERY = f"<deliveryReceipt><receivedAt>20070719T032454</receivedAt>{ID}</deliveryReceipt>"
STREAM = (
    "<streamReceipt><streamId>uid:2744e4e1-2b48-43e8-b441-42745f280d53\\5</streamId>"
    "<lastOrdinal>1</lastOrdinal></streamReceipt>"
)


def commitment(decision: str) -> str:
    return (
        "<commitmentReceipt><decidedAt>20070719T032721</decidedAt>"
        f"<decision>{decision}</decision>{ID}</commitmentReceipt>"
    )


POSITIVE, NEGATIVE = commitment("positive"), commitment("negative")
ORDERING = "QM Ordering Ack"
USER, ARRIVED = MessageClass.MQMSG_CLASS_NORMAL, MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE
ORDERED, TAKEN = MessageClass.MQMSG_CLASS_ORDER_ACK, MessageClass.MQMSG_CLASS_ACK_RECEIVE
LOST = (
    MessageClass.MQMSG_CLASS_NACK_DELETED,
    MessageClass.MQMSG_CLASS_NACK_Q_DELETED,
    MessageClass.MQMSG_CLASS_NACK_Q_PURGED,
    MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT,
)


def kind_of(receipts: str, message_class: int, label: str) -> MessageType | None:
    octets = minimal(receipts + msmq(message_class=message_class))
    octets = octets.replace(b"MSMQ:label", f"MSMQ:{label}".encode())
    return identify(read_request(posted(octets)).envelope)


def case(kind: MessageType, *cases: tuple[str, int, str]) -> list[object]:
    mark = pytest.mark.conformance(f"MQSRM-packet-{kind.name.lower()}", "MQSRM-rule-3.1.5.1.5")
    return [
        pytest.param(kind, *each, id=f"{kind.name}-{index}", marks=mark)
        for index, each in enumerate(cases)
    ]


@pytest.mark.parametrize(
    ("kind", "receipts", "message_class", "label"),
    [
        *case(MessageType.USER, ("", USER, "label"), ("", USER, ORDERING)),
        *case(MessageType.DELIVERY_RECEIPT, (DELIVERY, ARRIVED, "label")),
        *case(MessageType.STREAM_RECEIPT, (STREAM, ORDERED, ORDERING)),
        *case(
            MessageType.FINAL_STREAM_RECEIPT,
            (STREAM + POSITIVE, TAKEN, ORDERING),
            *((STREAM + NEGATIVE, each, ORDERING) for each in LOST),
        ),
        *case(
            MessageType.COMMITMENT_RECEIPT,
            (POSITIVE, TAKEN, "label"),
            *((NEGATIVE, each, "label") for each in LOST),
        ),
    ],
)
def test_a_message_is_of_the_kind_that_its_receipts_and_class_tell(
    kind: MessageType, receipts: str, message_class: int, label: str
) -> None:
    assert kind_of(receipts, message_class, label) is kind


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.5")
@pytest.mark.parametrize(
    ("receipts", "message_class", "label"),
    [
        ("", ARRIVED, "label"),
        ("", ORDERED, ORDERING),
        ("", 1, "label"),
        (DELIVERY, USER, "label"),
        (DELIVERY, TAKEN, "label"),
        (DELIVERY + POSITIVE, ARRIVED, "label"),
        (DELIVERY + STREAM, ORDERED, ORDERING),
        (DELIVERY + STREAM + POSITIVE, TAKEN, ORDERING),
        (STREAM, ORDERED, "label"),
        (STREAM, TAKEN, ORDERING),
        (STREAM + POSITIVE, TAKEN, "label"),
        (STREAM + POSITIVE, ORDERED, ORDERING),
        (STREAM + NEGATIVE, TAKEN, ORDERING),
        (POSITIVE, USER, "label"),
        (NEGATIVE, TAKEN, "label"),
        *((POSITIVE, each, "label") for each in LOST),
        (NEGATIVE, MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED, "label"),
    ],
)
def test_what_contradicts_itself_is_of_no_kind(
    receipts: str, message_class: int, label: str
) -> None:
    assert kind_of(receipts, message_class, label) is None


def test_a_message_without_msmq_elements_is_a_user_message() -> None:
    assert identify(read_request(posted(minimal())).envelope) is MessageType.USER
