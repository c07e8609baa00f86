"""Receipts that are owed, and receipts that come ([MC-MQSRM] 3.1.5.1.6.2, .7 to .10, 3.1.7.3)."""

from typing import Any
from uuid import UUID

import pytest

from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.srmp.elements import MessageId
from tests.support.srmp.srmp_door import HERE, NOW, ORDERS, PEER, RECEIPTS, SENDER, Door, msmq
from tests.support.srmp.srmp_text import NULL, durable

DONE = f"http://{PEER}/msmq/private$/done"
DELIVERY = f"<deliveryReceiptRequest><sendTo>{RECEIPTS}</sendTo></deliveryReceiptRequest>"
RECEIVED_AT = "<deliveryReceipt><receivedAt>20260601T120000</receivedAt>{id}</deliveryReceipt>"
DECIDED_AT = (
    "<commitmentReceipt><decidedAt>20260601T120000</decidedAt><decision>{decision}</decision>"
    "{id}</commitmentReceipt>"
)
ABOUT = f"<id>uuid:77@{SENDER}</id>"


def commitment(*decisions: str) -> str:
    wanted = "".join(f"<{decision}Only/>" for decision in decisions)
    return f"<commitmentReceiptRequest><sendTo>{DONE}</sendTo>{wanted}</commitmentReceiptRequest>"


def ask(door: Door, *services: str, more: str = "", **elements: Any) -> None:
    """Send a durable message that asks for receipts."""
    elements.setdefault("ordinal", 7)
    asked = door.send(
        guid=SENDER, label="a label", services=durable(*services), msmq=msmq(more), **elements
    )
    assert asked == 200
    door.settle()


def read(door: Door) -> None:
    door.receive(door.open(door.queue()))
    door.settle()


def told(door: Door) -> list[tuple[str, int]]:
    """Where receipts have gone, and their classes."""
    return [(each.to, each.msmq.message_class) for each in door.receipts if each.msmq is not None]


@pytest.mark.conformance(
    "MQSRM-rule-3.1.5.1.6.2",
    "MQSRM-element-deliveryReceiptRequest",
    "MQSRM-element-deliveryReceipt",
)
def test_a_delivery_receipt_tells_that_a_message_has_arrived(door: Door) -> None:
    ask(door, DELIVERY)
    (receipt,) = door.receipts
    assert told(door) == [(RECEIPTS, 2)]
    assert receipt.action == "MSMQ:a label"
    assert receipt.via == ORDERS
    assert receipt.delivery_receipt is not None
    assert receipt.delivery_receipt.id == MessageId(UUID(SENDER), 7)
    assert receipt.delivery_receipt.received_at == NOW
    assert door.peers.posted[0].request.body.startswith(b"<se:Envelope")


def test_nobody_who_asks_for_nothing_gets_a_receipt(door: Door) -> None:
    ask(door)
    read(door)
    assert door.peers.posted == []


def test_receipts_tell_of_a_message_what_its_id_says(door: Door) -> None:
    assert door.send(ordinal=9, guid=SENDER, services=durable(DELIVERY)) == 200
    door.settle()
    (receipt,) = door.receipts
    assert receipt.delivery_receipt is not None
    assert receipt.delivery_receipt.id == MessageId(UUID(NULL), 1)


def test_the_receipt_of_a_message_is_lost_with_it_or_not_at_all(door: Door) -> None:
    """It is in the commit of the message (G58)."""
    door.peers.status = 500
    ask(door, DELIVERY)
    door.crash()
    door.peers.posted.clear()
    door.peers.status = 200
    door.advance(door.srmp.retry)
    assert told(door) == [(RECEIPTS, 2)]


@pytest.mark.conformance(
    "MQSRM-rule-3.1.7.3.1",
    "MQSRM-element-commitmentReceiptRequest",
    "MQSRM-element-commitmentReceipt",
    "MQSRM-event-message_position_deleted",
)
def test_each_receipt_goes_to_its_own_place(door: Door) -> None:
    ask(door, DELIVERY, commitment("positive", "negative"))
    read(door)
    assert told(door) == [(RECEIPTS, 2), (DONE, 0x4000)]
    receipt = door.receipts[-1]
    assert receipt.action == "MSMQ:a label"
    assert receipt.via == ORDERS
    assert receipt.commitment_receipt is not None
    assert receipt.commitment_receipt.id == MessageId(UUID(SENDER), 7)
    assert (receipt.commitment_receipt.positive, receipt.commitment_receipt.decided_at) == (
        True,
        NOW,
    )


@pytest.mark.conformance("MQSRM-rule-3.1.7.3.1")
@pytest.mark.parametrize(
    ("decisions", "received", "lost"),
    [
        ((), [], []),
        (("positive",), [0x4000], []),
        (("negative",), [], [0xC001]),
        (("positive", "negative"), [0x4000], [0xC001]),
    ],
)
def test_a_commitment_receipt_tells_the_decisions_that_are_asked_for(
    door: Door, decisions: tuple[str, ...], received: list[int], lost: list[int]
) -> None:
    ask(door, commitment(*decisions))
    read(door)
    assert [number for _, number in told(door)] == received
    door.peers.posted.clear()
    ask(door, commitment(*decisions), ordinal=8)
    door.done(door.engine.queues.purge_queue(door.queue()))
    door.settle()
    assert [number for _, number in told(door)] == lost


@pytest.mark.conformance("MQSRM-rule-3.1.7.3.1")
@pytest.mark.parametrize("how", ["delete", "expire"])
def test_a_negative_receipt_tells_of_deletion_and_expiry(door: Door, how: str) -> None:
    expires = "20260601T120010" if how == "expire" else "20370101T000000"
    ask(door, commitment("negative"), expires=expires)
    if how == "delete":
        door.done(door.engine.queues.delete_queue(door.queue()))
    door.advance(11_000)
    assert told(door) == [(DONE, {"delete": 0xC000, "expire": 0xC002}[how])]


@pytest.mark.conformance("MQSRM-rule-3.1.7.3.2", "MQSRM-element-DeadLetter")
@pytest.mark.parametrize("how", ["purge", "expire", "receive"])
def test_what_expires_or_is_purged_is_a_dead_letter_where_it_asks(door: Door, how: str) -> None:
    ask(door, more="<DeadLetter/>", expires="20260601T120010")
    ask(door, ordinal=8, expires="20260601T120010")
    if how == "purge":
        door.done(door.engine.queues.purge_queue(door.queue()))
    elif how == "expire":
        door.advance(11_000)
    else:
        read(door)
        read(door)
    door.settle()
    dead = door.bodies(door.engine.queue_manager.system_deadletter_queue)
    assert dead == ([] if how == "receive" else [b"content"])


# Receipts for applications here


@pytest.fixture
def administration(door: Door) -> str:
    door.create(r"private$\receipts")
    return f"{HERE}/receipts"


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.7", "MQSRM-packet-delivery_receipt")
def test_a_delivery_receipt_is_put_into_its_queue(door: Door, administration: str) -> None:
    receipt = RECEIVED_AT.format(id=ABOUT)
    elements: dict[str, Any] = {"receipt": receipt, "msmq": msmq(number=2), "ordinal": 4}
    for _ in range(2):
        assert door.send_receipt(administration, label="a label", **elements) == 200
    (got,) = door.messages("receipts")
    assert (got.message_class, got.label) == (2, "a label")
    assert got.correlation_identifier == MessageIdentifier(UUID(SENDER), 77)


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.10", "MQSRM-packet-commitment_receipt")
@pytest.mark.parametrize(
    ("decision", "number"),
    [("positive", 0x4000), ("negative", 0x8001), ("negative", 0xC000), ("negative", 0xC001)],
)
def test_a_commitment_receipt_is_put_into_its_queue(
    door: Door, administration: str, decision: str, number: int
) -> None:
    receipt = DECIDED_AT.format(decision=decision, id=ABOUT)
    elements: dict[str, Any] = {"receipt": receipt, "msmq": msmq(number=number), "ordinal": 4}
    for _ in range(2):
        assert door.send_receipt(administration, **elements) == 200
    (got,) = door.messages("receipts")
    assert got.message_class == number
    assert got.correlation_identifier == MessageIdentifier(UUID(SENDER), 77)


def test_no_message_but_receipts_are_taken_during_maintenance(
    door: Door, administration: str
) -> None:
    """The answer is one after which senders try again (G221, G631)."""
    door.engine.begin_maintenance("alice", "a new disk")
    assert door.send(ORDERS) == 503
    receipt = RECEIVED_AT.format(id=ABOUT)
    elements: dict[str, Any] = {"receipt": receipt, "msmq": msmq(number=2)}
    assert door.send_receipt(administration, **elements) == 200
    assert (len(door.messages("receipts")), door.contents()) == (1, [])
    door.engine.end_maintenance()
    assert door.send(ORDERS) == 200
    assert door.contents() == [b"content"]


def test_a_receipt_whose_class_denies_it_is_ignored(door: Door, administration: str) -> None:
    receipt = DECIDED_AT.format(decision="positive", id=ABOUT)
    assert door.send_receipt(administration, receipt=receipt, msmq=msmq(number=0xC000)) == 200
    assert door.messages("receipts") == []


def test_a_receipt_for_a_queue_that_is_not_here_is_refused(door: Door) -> None:
    receipt = RECEIVED_AT.format(id=ABOUT)
    assert door.send_receipt(f"{HERE}/nowhere", receipt=receipt, msmq=msmq(number=2)) == 400


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.3")
@pytest.mark.parametrize("to", [f"{HERE}/nope", f"{HERE}/stream"])
@pytest.mark.parametrize("decided", ["", DECIDED_AT.format(decision="negative", id=ABOUT)])
def test_a_stream_receipt_to_no_queue_for_it_is_refused(door: Door, to: str, decided: str) -> None:
    """A receipt is no message of a stream itself, so that a transactional queue is none for it."""
    stream = f"<streamId>uid:{SENDER}\\7</streamId><lastOrdinal>3</lastOrdinal>"
    receipt = f"<streamReceipt>{stream}</streamReceipt>{decided}"
    more: dict[str, Any] = {"label": "QM Ordering Ack", "receipt": receipt}
    number = 0xC001 if decided else 0xFF
    assert door.send_receipt(to, msmq=msmq(number=number), **more) == 400


def test_a_receipt_of_a_stream_that_is_not_sent_from_here_is_dropped(door: Door) -> None:
    stream = f"<streamId>uid:{SENDER}\\7</streamId><lastOrdinal>3</lastOrdinal>"
    receipt = f"<streamReceipt>{stream}</streamReceipt>"
    to = f"{HERE}/order_queue$"
    more: dict[str, Any] = {"label": "QM Ordering Ack", "receipt": receipt}
    assert door.send_receipt(to, msmq=msmq(number=0xFF), **more) == 200
    more["receipt"] += DECIDED_AT.format(decision="negative", id=ABOUT)
    assert door.send_receipt(to, msmq=msmq(number=0xC001), **more) == 200
