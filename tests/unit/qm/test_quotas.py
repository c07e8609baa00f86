"""Admission ([MS-MQDMPR] 3.1.7.1.9, 3.1.7.2.5, .6)."""

from uuid import uuid4

import pytest

from rpcqm.adm.enums import EnqueueStatus
from rpcqm.adm.message import MessagePosition
from rpcqm.adm.queue import Queue
from rpcqm.qm.quotas import EnqueueRefusedError
from rpcqm.qm.settings import QueueManagerSettings
from tests.support.queue_manager import SETTINGS, RunningQueueManager, refusal

BODY = bytes(1024 - 300)
"""With its headers a little less than a kilobyte."""


def refused(qm: RunningQueueManager, queue: Queue) -> EnqueueStatus | None:
    try:
        qm.enqueue(queue, BODY)
    except EnqueueRefusedError as error:
        return error.reason
    return None


@pytest.mark.conformance("MQDMPR-event-enqueue_message")
def test_a_full_queue_refuses_with_status_1(qm: RunningQueueManager) -> None:
    """Quotas are kilobytes (G3)."""
    queue = qm.create(quota=2)
    assert [refused(qm, queue) for _ in range(4)] == [
        None,
        None,
        EnqueueStatus.QUEUE_QUOTA_EXCEEDED,
        EnqueueStatus.QUEUE_QUOTA_EXCEEDED,
    ]
    assert refusal(qm.enqueue, queue, BODY) == "MQ_ERROR_INSUFFICIENT_RESOURCES"
    qm.settle()
    assert queue.message_count == 2


@pytest.mark.conformance("MQDMPR-event-enqueue_message")
@pytest.mark.parametrize(("more", "expected"), [(0, None), (1, EnqueueStatus.QUEUE_QUOTA_EXCEEDED)])
def test_a_quota_is_exceeded_by_the_first_byte_too_many(
    qm: RunningQueueManager, more: int, expected: EnqueueStatus | None
) -> None:
    queue = qm.create(quota=1)
    headers = len(qm.compose(queue, b"").packet)
    message = qm.compose(queue, bytes(1024 - headers + 4 * more))
    assert len(message.packet) == 1024 + 4 * more
    enqueue = qm.engine.messages.enqueue_message
    if expected is None:
        qm.done(enqueue(queue, message))
        assert queue.total_bytes == 1024
    else:
        with pytest.raises(EnqueueRefusedError) as caught:
            enqueue(queue, message)
        assert caught.value.reason is expected


@pytest.mark.conformance("MQDMPR-event-enqueue_message")
def test_a_full_queue_manager_refuses_with_status_2(qm: RunningQueueManager) -> None:
    """Before the queue's own quota is looked at; KB as well (G3)."""
    qm.restart(QueueManagerSettings(SETTINGS.computer_name, queue_manager_quota=2))
    first, second = qm.create(r"private$\first", quota=1), qm.create(r"private$\second")
    outcomes = [refused(qm, first), refused(qm, second), refused(qm, first)]
    assert outcomes == [None, None, EnqueueStatus.QUEUE_MANAGER_QUOTA_EXCEEDED]


def test_under_flow_control_nothing_new_is_taken(qm: RunningQueueManager) -> None:
    queue = qm.create()
    qm.engine.begin_flow_control()
    assert qm.engine.queue_manager.throttled
    assert refused(qm, queue) is EnqueueStatus.QUEUE_MANAGER_QUOTA_EXCEEDED
    qm.engine.end_flow_control()
    assert not qm.engine.queue_manager.throttled
    assert refused(qm, queue) is None


def test_what_is_pending_or_staged_counts(qm: RunningQueueManager) -> None:
    """Quota is reserved at admission (G56)."""
    queue = qm.create(quota=2, transactional=True)
    transaction = qm.engine.transactions.create_transaction(uuid4())
    qm.send(queue, BODY, transaction)
    qm.send(queue, BODY, transaction)
    message = qm.compose(queue, BODY, transaction)
    enqueue = qm.engine.messages.enqueue_message
    assert refusal(enqueue, queue, message, transaction) == "MQ_ERROR_INSUFFICIENT_RESOURCES"
    qm.done(qm.engine.transactions.transaction_abort(transaction.identifier))
    other = qm.engine.transactions.create_transaction(uuid4())
    qm.send(queue, BODY, other)
    qm.done(qm.engine.transactions.transaction_commit(other.identifier))
    assert queue.message_count == 1


def test_a_removal_frees_its_room_once_it_is_durable(qm: RunningQueueManager) -> None:
    """Released after a durable removal (G56)."""
    queue = qm.create(quota=1)
    qm.send(queue, BODY)
    removed = qm.engine.messages.dequeue_message(qm.open(queue), 0)
    assert refused(qm, queue) is EnqueueStatus.QUEUE_QUOTA_EXCEEDED
    qm.done(removed)
    assert refused(qm, queue) is None


def test_a_subqueue_charges_its_parent(qm: RunningQueueManager) -> None:
    """G56, also after a restart."""
    queue = qm.create(quota=1)
    subqueue = qm.subqueue(queue, "sub")
    key = qm.send(queue, BODY)
    qm.done(qm.engine.messages.move_message(MessagePosition(queue, key), subqueue))
    assert refused(qm, queue) is EnqueueStatus.QUEUE_QUOTA_EXCEEDED
    qm.restart()
    again = qm.find()
    assert refused(qm, again) is EnqueueStatus.QUEUE_QUOTA_EXCEEDED
    qm.receive(qm.open(f"DIRECT=OS:{again.pathname};sub"))
    assert refused(qm, again) is None


def test_aborts_and_locks_do_not_change_what_a_queue_holds(qm: RunningQueueManager) -> None:
    """Bytes are counted when a message is inserted and when it is unlinked only (G5)."""
    queue = qm.create(transactional=True)
    sender = qm.engine.transactions.create_transaction(uuid4())
    qm.send(queue, BODY, sender)
    qm.done(qm.engine.transactions.transaction_commit(sender.identifier))
    size = queue.total_bytes
    for _ in range(3):
        reader = qm.engine.transactions.create_transaction(uuid4())
        qm.done(qm.engine.messages.dequeue_message(qm.open(queue), 0, transaction=reader))
        assert queue.total_bytes == size
        qm.done(qm.engine.transactions.transaction_abort(reader.identifier))
    assert queue.total_bytes == size == qm.store.total.bytes


def test_a_full_disk_refuses_new_messages_and_lets_old_ones_go(qm: RunningQueueManager) -> None:
    queue = qm.create()
    qm.send(queue, b"old")
    qm.free = 0
    qm.advance(2_000)
    assert refusal(qm.enqueue, queue, bytes(8192)) == "MQ_ERROR_INSUFFICIENT_RESOURCES"
    assert refusal(qm.enqueue, queue, b"x") == "MQ_ERROR_INSUFFICIENT_RESOURCES"
    assert qm.receive(qm.open(queue)) == b"old"
    qm.free = 1 << 40
    qm.advance(2_000)
    qm.send(queue, b"new")
    assert qm.bodies(queue) == [b"new"]
