"""Sending messages ([MS-MQDMPR] 3.1.7.1.9, .27)."""

from uuid import uuid4

import pytest

from rpcqm.adm.enums import EnqueueStatus, PositionState
from rpcqm.adm.message import MessagePosition
from rpcqm.adm.queue import OutgoingQueue
from rpcqm.codec.packet.message import MessageAttributes
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.qm.quotas import EnqueueRefusedError
from tests.support.queue_manager import RunningQueueManager, refusal

SEND = QueueAccessType.SEND_ACCESS


@pytest.mark.conformance("MQDMPR-event-enqueue_message")
def test_a_message_is_visible_and_acknowledged_only_after_its_commit(
    qm: RunningQueueManager,
) -> None:
    queue = qm.create()
    outcome = qm.enqueue(queue, b"one")
    assert not outcome.done
    assert queue.message_count == 0
    qm.settle()
    assert outcome.done
    assert qm.bodies(queue) == [b"one"]


@pytest.mark.conformance("MQDMPR-event-enqueue_message")
def test_messages_are_ordered_by_priority_then_arrival(qm: RunningQueueManager) -> None:
    """The high byte of the lookup identifier is 7 - priority, the rest counts up (G1)."""
    queue = qm.create()
    sent = [(3, b"a"), (7, b"b"), (0, b"c"), (3, b"d"), (7, b"e")]
    identifiers = [qm.send(queue, body, priority=priority) for priority, body in sent]
    assert qm.bodies(queue) == [b"b", b"e", b"a", b"d", b"c"]
    assert [identifier >> 56 for identifier in identifiers] == [4, 0, 7, 4, 0]
    counted = [identifier & (1 << 56) - 1 for identifier in identifiers]
    assert counted == sorted(set(counted))


@pytest.mark.parametrize(
    ("delivery", "kept"), [pytest.param(1, [b"x"]), pytest.param(0, [])], ids=["rec", "express"]
)
def test_recoverable_messages_outlive_a_restart_and_express_ones_do_not(
    qm: RunningQueueManager, delivery: int, kept: list[bytes]
) -> None:
    queue = qm.create()
    qm.send(queue, b"x", delivery_guarantee=delivery)
    assert qm.bodies(queue) == [b"x"]
    qm.restart()
    assert qm.bodies(qm.find()) == kept


@pytest.mark.conformance("MQDMPR-event-enqueue_message", "MQDMPR-event-create_transaction")
def test_a_message_of_a_transaction_has_no_identifier_before_the_commit(
    qm: RunningQueueManager,
) -> None:
    """What is sent later but committed earlier must not appear behind (G54)."""
    queue = qm.create(transactional=True)
    early = qm.engine.transactions.create_transaction(uuid4())
    late = qm.engine.transactions.create_transaction(uuid4())
    assert qm.send(queue, b"early", early) == 0
    assert qm.send(queue, b"late", late) == 0
    assert queue.message_count == 0
    qm.done(qm.engine.transactions.transaction_commit(late.identifier))
    qm.done(qm.engine.transactions.transaction_commit(early.identifier))
    assert qm.bodies(queue) == [b"late", b"early"]


def test_sending_to_an_open_queue_needs_send_access(qm: RunningQueueManager) -> None:
    queue = qm.create()
    receiving = qm.open(queue)
    message = qm.compose(queue, b"x")
    send = qm.engine.messages.enqueue_message_to_an_open_queue
    assert refusal(send, receiving, message) == "MQ_ERROR_ACCESS_DENIED"


@pytest.mark.conformance("MQDMPR-event-enqueue_message_to_an_open_queue")
@pytest.mark.parametrize("transactional", [False, True])
def test_queue_and_sending_must_both_be_transactional_or_both_not(
    qm: RunningQueueManager, transactional: bool
) -> None:
    queue = qm.create(transactional=transactional)
    transaction = None if transactional else qm.engine.transactions.create_transaction(uuid4())
    descriptor = qm.open(queue, SEND)
    message = qm.compose(queue, b"x", transaction)
    send = qm.engine.messages.enqueue_message_to_an_open_queue
    assert refusal(send, descriptor, message, transaction) == "MQ_ERROR_TRANSACTION_USAGE"
    assert queue.message_count == 0


@pytest.mark.conformance("MQDMPR-event-enqueue_message_to_an_open_queue")
def test_a_message_to_several_queues_is_copied_and_readdressed(qm: RunningQueueManager) -> None:
    first, second = qm.create(r"private$\first"), qm.create(r"private$\second")
    names = f"DIRECT=OS:{first.pathname},DIRECT=OS:{second.pathname}"
    descriptor = qm.open(names, SEND)
    attributes = MessageAttributes(body=b"all", delivery_guarantee=1)
    message = qm.engine.composer.compose(descriptor, attributes, None)
    qm.done(qm.engine.messages.enqueue_message_to_an_open_queue(descriptor, message))
    for queue in (first, second):
        key = queue.message_position_list.first()
        assert key is not None
        copy = qm.engine.positions.message_at(queue, key).attributes
        assert copy.body == b"all"
        assert str(copy.destination_queue_format_name) == f"DIRECT=OS:{queue.pathname}"
        assert len(copy.destination_multi_queue_format_name) == 2


@pytest.mark.conformance("MQDMPR-event-enqueue_message")
def test_what_comes_too_late_is_refused_with_status_3(qm: RunningQueueManager) -> None:
    queue = qm.create()
    message = qm.compose(queue, b"x", time_to_reach_queue=10)
    qm.advance(10_000)
    qm.done(qm.engine.messages.enqueue_message(queue, message))
    qm.advance(1_000)
    with pytest.raises(EnqueueRefusedError) as refused:
        qm.engine.messages.enqueue_message(queue, message)
    assert refused.value.reason is EnqueueStatus.TIMED_OUT_IN_TRANSIT


def test_express_messages_queue_behind_pending_commits(qm: RunningQueueManager) -> None:
    """Every queue publishes in identifier order (G54)."""
    queue = qm.create()
    recoverable = qm.enqueue(queue, b"slow")
    express = qm.enqueue(queue, b"fast", delivery_guarantee=0)
    order: list[str] = []
    recoverable.add_done_callback(lambda _: order.append("recoverable"))
    express.add_done_callback(lambda _: order.append("express"))
    qm.settle()
    assert order == ["recoverable", "express"]
    assert qm.bodies(queue) == [b"slow", b"fast"]


@pytest.mark.conformance("MQDMPR-event-message_position_available")
def test_available_hooks_hear_of_every_message_that_can_leave(qm: RunningQueueManager) -> None:
    queue = qm.open(r"DIRECT=OS:other\q", QueueAccessType.SEND_ACCESS).queue_reference
    assert isinstance(queue, OutgoingQueue)
    heard: list[MessagePosition] = []
    qm.engine.positions.available_hooks.append(
        lambda queue, key: heard.append(MessagePosition(queue, key))
    )
    qm.send(qm.create(), b"stays here")
    key = qm.send(queue, b"x")
    assert heard == [MessagePosition(queue, key)]
    assert heard[0].state is PositionState.AVAILABLE
    assert queue.total_bytes == len(qm.compose(queue, b"x").packet)


def test_sending_to_a_deleted_queue_is_refused(qm: RunningQueueManager) -> None:
    queue = qm.create()
    message = qm.compose(queue, b"x")
    descriptor = qm.open(queue, SEND)
    qm.done(qm.engine.queues.delete_queue(queue))
    assert refusal(qm.engine.messages.enqueue_message, queue, message) == "MQ_ERROR_QUEUE_DELETED"
    send = qm.engine.messages.enqueue_message_to_an_open_queue
    assert refusal(send, descriptor, message) == "MQ_ERROR_QUEUE_NOT_AVAILABLE"
