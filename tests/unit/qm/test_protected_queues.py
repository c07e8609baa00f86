"""Queues that take signed messages only, or private ones, from senders here (G72)."""

from typing import Any

import pytest

from rpcqm.base.errors import MQError
from rpcqm.codec.packet.enums import SenderIdentifierType
from rpcqm.codec.types.mqvalues import QueueAccessType, QueuePrivacyLevel
from tests.support.queue_manager import RunningQueueManager

SIGNED: dict[str, Any] = {
    "signature": b"signature",
    "sender_certificate": b"certificate",
    "sender_identifier_type": SenderIdentifierType.SID,
}
BODY, CLEAR = QueuePrivacyLevel.MQ_PRIV_LEVEL_BODY, QueuePrivacyLevel.MQ_PRIV_LEVEL_NONE
OK = "MQ_OK"


def sent(qm: RunningQueueManager, **message: Any) -> str:
    """What a sender is told; the queue has the message if and only if that is MQ_OK."""
    queue = qm.find()
    composed = qm.compose(queue, b"x", **message)
    descriptor = qm.open(queue, QueueAccessType.SEND_ACCESS)
    send = qm.engine.messages.enqueue_message_to_an_open_queue
    before = queue.message_count
    try:
        qm.done(send(descriptor, composed))
    except MQError as error:
        assert queue.message_count == before
        return error.status.name
    assert queue.message_count == before + 1
    return OK


@pytest.mark.parametrize(
    ("good", "message", "status"),
    [
        (None, {}, "MQ_ERROR_MESSAGE_NOT_AUTHENTICATED"),
        (True, SIGNED, OK),
        (False, SIGNED, "MQ_ERROR_FAIL_VERIFY_SIGNATURE_EX"),
        (None, SIGNED, "MQ_ERROR_FAIL_VERIFY_SIGNATURE_EX"),
        (False, {}, "MQ_ERROR_MESSAGE_NOT_AUTHENTICATED"),
    ],
)
def test_a_queue_can_take_signed_messages_only(
    qm: RunningQueueManager, good: bool | None, message: dict[str, Any], status: str
) -> None:
    """Without anybody who can tell, no signature is good."""
    qm.create(authentication=True)
    qm.engine.protection.verify = None if good is None else lambda _: bool(good)
    assert sent(qm, **message) == status


@pytest.mark.parametrize(
    ("level", "message", "status"),
    [
        (BODY, {}, "MQ_ERROR_INSUFFICIENT_PROPERTIES"),
        (BODY, {"privacy_level": 1}, OK),
        (CLEAR, {}, OK),
        (CLEAR, {"privacy_level": 1}, "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"),
        (QueuePrivacyLevel.MQ_PRIV_LEVEL_OPTIONAL, {}, OK),
        (QueuePrivacyLevel.MQ_PRIV_LEVEL_OPTIONAL, {"privacy_level": 1}, OK),
    ],
)
def test_a_queue_can_take_private_or_clear_bodies_only(
    qm: RunningQueueManager, level: QueuePrivacyLevel, message: dict[str, Any], status: str
) -> None:
    qm.create(privacy_level=level)
    assert sent(qm, **message) == status


def test_an_unprotected_queue_takes_everything(qm: RunningQueueManager) -> None:
    qm.create()
    assert [sent(qm), sent(qm, **SIGNED)] == [OK, OK]
