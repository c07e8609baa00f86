"""Receiving, and reading in two phases ([MS-MQDMPR] 3.1.7.1.10 to .12)."""

from uuid import uuid4

import pytest

from rpcqm.adm.enums import PositionState
from rpcqm.adm.message import MessagePosition
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.types.mqvalues import QueueAccessType
from tests.support.queue_manager import RunningQueueManager, refusal

PEEK = QueueAccessType.PEEK_ACCESS


def state(position: MessagePosition) -> PositionState:
    return position.state


@pytest.mark.conformance(
    "MQDMPR-event-dequeue_message", "MQDMPR-event-seek_available_message_position"
)
def test_receiving_takes_the_first_available_message_and_not_the_second(
    qm: RunningQueueManager,
) -> None:
    """The seek starts before the first message (G2)."""
    queue = qm.create()
    for body in (b"a", b"b", b"c"):
        qm.send(queue, body)
    descriptor = qm.open(queue)
    qm.lock(qm.open(queue))
    assert qm.receive(descriptor) == b"b"
    assert qm.receive(descriptor) == b"c"


@pytest.mark.conformance("MQDMPR-event-dequeue_message", "MQDMPR-event-message_position_deleted")
def test_a_received_message_is_leaving_until_its_removal_is_durable(
    qm: RunningQueueManager,
) -> None:
    queue = qm.create()
    key = qm.send(queue, b"a")
    outcome = qm.engine.messages.dequeue_message(qm.open(queue), 0)
    assert not outcome.done
    assert queue.message_position_list.state(key) is PositionState.LEAVING
    assert queue.total_bytes > 0
    qm.settle()
    assert outcome.result().attributes.body == b"a"
    assert queue.message_position_list.state(key) is PositionState.DELETED
    assert queue.total_bytes == 0
    qm.restart()
    assert qm.find().message_count == 0


@pytest.mark.conformance("MQDMPR-event-message_position_deleted")
def test_deleted_hooks_hear_the_reason_inside_the_commit(qm: RunningQueueManager) -> None:
    queue = qm.create()
    key = qm.send(queue, b"a")
    heard: list[tuple[int, MessageClass]] = []
    qm.engine.positions.deleted_hooks.append(
        lambda transaction, queue, key, reason: heard.append((key, reason))
    )
    outcome = qm.engine.messages.dequeue_message(qm.open(queue), 0)
    assert heard == [(key, MessageClass.MQMSG_CLASS_ACK_RECEIVE)]
    assert not outcome.done


@pytest.mark.conformance("MQDMPR-event-dequeue_message", "MQDMPR-event-wait_for_new_message")
def test_an_empty_queue_without_waiting_is_a_timeout(qm: RunningQueueManager) -> None:
    """Failed to wait with a timeout of zero is MQ_ERROR_IO_TIMEOUT (G4)."""
    descriptor = qm.open(qm.create())
    assert refusal(qm.engine.messages.dequeue_message, descriptor, 0) == "MQ_ERROR_IO_TIMEOUT"


@pytest.mark.conformance("MQDMPR-event-dequeue_message", "MQDMPR-element-QueueAccessType")
def test_receiving_needs_receive_access(qm: RunningQueueManager) -> None:
    queue = qm.create()
    qm.send(queue, b"a")
    receive = qm.engine.messages.dequeue_message
    assert refusal(receive, qm.open(queue, PEEK), 0) == "MQ_ERROR_ACCESS_DENIED"
    sending = qm.open(queue, QueueAccessType.SEND_ACCESS)
    assert refusal(qm.engine.messages.peek_message, sending, 0) == "MQ_ERROR_ACCESS_DENIED"


def test_reading_through_a_descriptor_without_queue_is_refused(qm: RunningQueueManager) -> None:
    queue = qm.create()
    descriptor = qm.open(queue)
    cursor = qm.engine.readers.open_cursor(descriptor)
    assert cursor is not None
    qm.done(qm.engine.queues.delete_queue(queue))
    messages = qm.engine.messages
    position = MessagePosition(queue, 1)
    for refused in (
        refusal(messages.dequeue_message, descriptor, 0),
        refusal(messages.dequeue_message_begin, descriptor, 0),
        refusal(messages.dequeue_message_end, descriptor, position, True),
        refusal(messages.peek_message, descriptor, 0),
        refusal(messages.peek_next_message, descriptor, cursor, 0),
    ):
        assert refused == "MQ_ERROR_QUEUE_NOT_AVAILABLE"


# Two phases


@pytest.mark.conformance("MQDMPR-event-dequeue_message_begin")
def test_the_first_phase_locks_the_message(qm: RunningQueueManager) -> None:
    queue = qm.create()
    qm.send(queue, b"a")
    descriptor, other = qm.open(queue), qm.open(queue)
    outcome = qm.engine.messages.dequeue_message_begin(descriptor, 0)
    assert outcome.result().attributes.body == b"a"
    position = outcome.result().message_position_reference
    assert position is not None
    assert state(position) is PositionState.LOCKED
    assert refusal(qm.engine.messages.dequeue_message, other, 0) == "MQ_ERROR_IO_TIMEOUT"
    assert refusal(qm.engine.messages.peek_message, other, 0) == "MQ_ERROR_IO_TIMEOUT"


@pytest.mark.conformance("MQDMPR-event-dequeue_message_end")
@pytest.mark.parametrize("delete", [True, False])
def test_the_second_phase_removes_the_message_or_gives_it_back(
    qm: RunningQueueManager, delete: bool
) -> None:
    queue = qm.create()
    qm.send(queue, b"a")
    descriptor = qm.open(queue)
    position = qm.lock(descriptor)
    outcome = qm.engine.messages.dequeue_message_end(descriptor, position, delete)
    assert outcome.done is not delete
    qm.done(outcome)
    assert state(position) is (PositionState.DELETED if delete else PositionState.AVAILABLE)
    assert descriptor.two_phase_reads == set()


@pytest.mark.conformance("MQDMPR-event-dequeue_message_end")
def test_the_second_phase_needs_the_first(qm: RunningQueueManager) -> None:
    queue = qm.create()
    key = qm.send(queue, b"a")
    descriptor, other = qm.open(queue), qm.open(queue)
    end = qm.engine.messages.dequeue_message_end
    position = MessagePosition(queue, key)
    assert refusal(end, descriptor, position, True) == "MQ_ERROR_TRANSACTION_SEQUENCE"
    qm.lock(descriptor)
    assert refusal(end, other, position, True) == "MQ_ERROR_TRANSACTION_SEQUENCE"
    qm.done(end(descriptor, position, True))
    assert refusal(end, descriptor, position, True) == "MQ_ERROR_MESSAGE_NOT_FOUND"


def test_an_acknowledged_removal_on_its_way_cannot_be_taken_back(qm: RunningQueueManager) -> None:
    """The first event wins, whatever comes while the message is LEAVING (G61)."""
    queue = qm.create()
    qm.send(queue, b"a")
    descriptor = qm.open(queue)
    position = qm.lock(descriptor)
    acknowledged = qm.engine.messages.dequeue_message_end(descriptor, position, True)
    assert state(position) is PositionState.LEAVING
    end = qm.engine.messages.dequeue_message_end
    assert refusal(end, descriptor, position, False) == "MQ_ERROR_TRANSACTION_SEQUENCE"
    purged = qm.engine.queues.purge_queue(queue)
    qm.engine.opening.close_queue(descriptor)
    assert qm.done(purged) == 0
    assert acknowledged.done
    assert queue.message_count == 0


@pytest.mark.conformance("MQDMPR-event-dequeue_message_end", "MQDMPR-event-purge_queue")
@pytest.mark.parametrize("delete", [True, False])
def test_a_message_purged_between_the_phases_is_removed_in_any_case(
    qm: RunningQueueManager, delete: bool
) -> None:
    queue = qm.create()
    qm.send(queue, b"a")
    descriptor = qm.open(queue)
    position = qm.lock(descriptor)
    assert qm.done(qm.engine.queues.purge_queue(queue)) == 0
    assert state(position) is PositionState.PURGE_PENDING
    reasons: list[MessageClass] = []
    qm.engine.positions.deleted_hooks.append(
        lambda transaction, queue, key, reason: reasons.append(reason)
    )
    qm.done(qm.engine.messages.dequeue_message_end(descriptor, position, delete))
    assert state(position) is PositionState.DELETED
    assert reasons == [MessageClass.MQMSG_CLASS_NACK_Q_PURGED]


@pytest.mark.conformance("MQDMPR-element-MessagePosition")
def test_a_purged_message_that_nobody_ended_is_removed_at_the_next_start(
    qm: RunningQueueManager,
) -> None:
    queue = qm.create()
    qm.send(queue, b"a")
    qm.lock(qm.open(queue))
    qm.done(qm.engine.queues.purge_queue(queue))
    qm.restart()
    assert qm.find().message_count == 0


def test_a_message_locked_in_two_phases_is_available_after_a_restart(
    qm: RunningQueueManager,
) -> None:
    queue = qm.create()
    qm.send(queue, b"a")
    qm.lock(qm.open(queue))
    qm.restart()
    assert qm.receive(qm.open(qm.find())) == b"a"


# Transactional reads in two phases


def test_a_transactional_read_that_is_kept_stays_in_its_transaction(
    qm: RunningQueueManager,
) -> None:
    queue = qm.create(transactional=True)
    transaction = qm.engine.transactions.create_transaction(uuid4())
    other = qm.engine.transactions.create_transaction(uuid4())
    qm.send(queue, b"a", other)
    qm.done(qm.engine.transactions.transaction_commit(other.identifier))
    descriptor = qm.open(queue)
    message = qm.engine.messages.dequeue_message_begin(
        descriptor, 0, transaction=transaction
    ).result()
    position = message.message_position_reference
    assert position is not None
    qm.done(qm.engine.messages.dequeue_message_end(descriptor, position, True, transaction))
    assert state(position) is PositionState.LOCKED
    assert len(transaction.transactional_operation_collection) == 1


def test_a_transactional_read_that_is_refused_leaves_its_transaction(
    qm: RunningQueueManager,
) -> None:
    """NACK removes the operation and frees the message (G38)."""
    queue = qm.create(transactional=True)
    sender = qm.engine.transactions.create_transaction(uuid4())
    qm.send(queue, b"a", sender)
    qm.done(qm.engine.transactions.transaction_commit(sender.identifier))
    transaction = qm.engine.transactions.create_transaction(uuid4())
    descriptor = qm.open(queue)
    message = qm.engine.messages.dequeue_message_begin(
        descriptor, 0, transaction=transaction
    ).result()
    position = message.message_position_reference
    assert position is not None
    qm.done(qm.engine.messages.dequeue_message_end(descriptor, position, False, transaction))
    assert state(position) is PositionState.AVAILABLE
    assert transaction.transactional_operation_collection == []
    qm.done(qm.engine.transactions.transaction_commit(transaction.identifier))
    assert qm.bodies(queue) == [b"a"]


def test_a_plain_read_cannot_be_ended_as_a_transactional_one(qm: RunningQueueManager) -> None:
    queue = qm.create()
    qm.send(queue, b"a")
    descriptor = qm.open(queue)
    position = qm.lock(descriptor)
    end = qm.engine.messages.dequeue_message_end
    assert refusal(end, descriptor, position, False, True) == "MQ_ERROR_TRANSACTION_SEQUENCE"
