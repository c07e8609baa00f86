"""Readers that wait ([MS-MQDMPR] 3.1.7.1.17, 3.1.7.3.1, .4 to .7, 3.1.6.3)."""

from uuid import uuid4

import pytest

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.adm.enums import PositionState
from rpcqm.adm.message import Message
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError, NtStatus
from rpcqm.codec.types.mqvalues import INFINITE
from tests.support.queue_manager import RunningQueueManager, refusal


def receive(
    qm: RunningQueueManager, descriptor: OpenQueueDescriptor, timeout: int = INFINITE, tag: int = 0
) -> Completion[Message]:
    key = (descriptor.handle, tag) if tag else None
    return qm.engine.messages.dequeue_message(descriptor, timeout, tag=key)


def body(completion: Completion[Message]) -> bytes:
    return completion.result().attributes.body


def status(completion: Completion[Message]) -> HResult | NtStatus:
    assert isinstance(completion.error, MQError)
    return completion.error.status


@pytest.mark.conformance(
    "MQDMPR-event-wait_for_new_message", "MQDMPR-event-waiting_message_read_satisfied"
)
def test_a_waiting_receive_gets_the_message_that_arrives(qm: RunningQueueManager) -> None:
    queue = qm.create()
    waiting = receive(qm, qm.open(queue))
    assert not waiting.done
    qm.send(queue, b"a")
    assert body(waiting) == b"a"
    assert queue.message_count == 0
    assert not queue.waiting_receives


@pytest.mark.conformance(
    "MQDMPR-event-waiting_message_read_timer_expired",
    "MQDMPR-event-waiting_message_read_timer_start",
    "MQDMPR-event-waiting_message_read_timer_stop",
    "MQDMPR-timer-waiting_message_read",
)
def test_a_wait_ends_after_its_milliseconds_and_not_before(qm: RunningQueueManager) -> None:
    """Timeouts are milliseconds (G15)."""
    queue = qm.create()
    waiting = receive(qm, qm.open(queue), 1_500)
    qm.advance(1_499)
    assert not waiting.done
    qm.advance(1)
    assert status(waiting) is HResult.MQ_ERROR_IO_TIMEOUT
    qm.send(queue, b"a")
    assert qm.bodies(queue) == [b"a"]


@pytest.mark.conformance(
    "MQDMPR-timer-waiting_message_read", "MQDMPR-event-waiting_message_read_timer_start"
)
def test_an_infinite_wait_never_expires(qm: RunningQueueManager) -> None:
    queue = qm.create()
    waiting = receive(qm, qm.open(queue), INFINITE)
    qm.advance(2 * INFINITE)
    assert not waiting.done


@pytest.mark.conformance(
    "MQDMPR-event-cancel_waiting_message_read_request", "MQDMPR-event-wait_for_new_message"
)
def test_cancelling_wakes_exactly_the_reader_of_that_tag(qm: RunningQueueManager) -> None:
    """The tag is (descriptor, request id): equal request ids do not collide (G12)."""
    queue = qm.create()
    first, second = qm.open(queue), qm.open(queue)
    waiting = [receive(qm, first, tag=1), receive(qm, second, tag=1), receive(qm, second, tag=2)]
    qm.engine.readers.cancel_waiting_message_read_request(queue, (second.handle, 1))
    assert [completion.done for completion in waiting] == [False, True, False]
    assert status(waiting[1]) is HResult.MQ_ERROR_OPERATION_CANCELLED
    qm.engine.readers.cancel_waiting_message_read_request(
        queue, (first.handle, 1), HResult.MQ_INFORMATION_REMOTE_CANCELED_BY_CLIENT
    )
    assert status(waiting[0]) is HResult.MQ_INFORMATION_REMOTE_CANCELED_BY_CLIENT


@pytest.mark.conformance("MQDMPR-event-cancel_waiting_message_read_request")
def test_cancelling_what_nobody_waits_for_is_not_found(qm: RunningQueueManager) -> None:
    queue = qm.create()
    descriptor = qm.open(queue)
    cancel = qm.engine.readers.cancel_waiting_message_read_request
    assert refusal(cancel, queue, (descriptor.handle, 1)) == "STATUS_NOT_FOUND"
    receive(qm, descriptor, tag=1)
    cancel(queue, (descriptor.handle, 1))
    assert refusal(cancel, queue, (descriptor.handle, 1)) == "STATUS_NOT_FOUND"


def test_a_wait_that_was_given_a_message_cannot_be_cancelled_or_time_out(
    qm: RunningQueueManager,
) -> None:
    """The first event wins: the removal is on its way to the disk (G61)."""
    queue = qm.create()
    other, descriptor = qm.open(queue), qm.open(queue)
    begun = qm.engine.messages.dequeue_message_begin(other)
    waiting = receive(qm, descriptor, 1_000, tag=1)
    qm.send(queue, b"a")
    position = begun.result().message_position_reference
    assert position is not None
    qm.engine.messages.dequeue_message_end(other, position, False)
    assert position.state is PositionState.LEAVING
    cancel = qm.engine.readers.cancel_waiting_message_read_request
    assert refusal(cancel, queue, (descriptor.handle, 1)) == "STATUS_NOT_FOUND"
    qm.clock.advance(5_000)
    assert not waiting.done
    qm.settle()
    assert body(waiting) == b"a"


@pytest.mark.conformance(
    "MQDMPR-element-WaitingMessageReadOperation", "MQDMPR-event-wait_for_new_message"
)
def test_a_request_that_waits_already_is_an_invalid_parameter(qm: RunningQueueManager) -> None:
    descriptor = qm.open(qm.create())
    first = receive(qm, descriptor, tag=7)
    assert refusal(receive, qm, descriptor, tag=7) == "MQ_ERROR_INVALID_PARAMETER"
    assert not first.done
    (operation,) = descriptor.waiting_message_read_operation_collection
    assert operation.destructive_read
    assert operation.tag == (descriptor.handle, 7)
    assert operation.cursor_reference is None


def test_readers_are_served_in_the_order_in_which_they_came(qm: RunningQueueManager) -> None:
    queue = qm.create()
    first, second = qm.open(queue), qm.open(queue)
    waiting = [receive(qm, second), receive(qm, first), receive(qm, second)]
    for number in range(3):
        qm.send(queue, b"%d" % number)
        assert [completion.done for completion in waiting] == [
            index <= number for index in range(3)
        ]
    assert [body(completion) for completion in waiting] == [b"0", b"1", b"2"]


@pytest.mark.conformance(
    "MQDMPR-event-message_position_available", "MQDMPR-event-release_next_reader"
)
def test_all_peekers_are_woken_and_then_one_receiver(qm: RunningQueueManager) -> None:
    """Whatever the order in which they wait (G6)."""
    queue = qm.create()
    peek = qm.engine.messages.peek_message
    receivers = [receive(qm, qm.open(queue)), receive(qm, qm.open(queue))]
    peekers = [peek(qm.open(queue), 10_000), peek(qm.open(queue), 10_000)]
    receivers.append(receive(qm, qm.open(queue)))
    qm.send(queue, b"a")
    assert [body(peeker) for peeker in peekers] == [b"a", b"a"]
    assert [receiver.done for receiver in receivers] == [True, False, False]


def test_waiting_peeks_can_be_cancelled_by_their_tag(qm: RunningQueueManager) -> None:
    """Peeks wait under the tag of their request too (G52)."""
    queue = qm.create()
    descriptor = qm.open(queue)
    waiting = qm.engine.messages.peek_message(descriptor, 10_000, tag=(descriptor.handle, 3))
    qm.engine.readers.cancel_waiting_message_read_request(queue, (descriptor.handle, 3))
    assert status(waiting) is HResult.MQ_ERROR_OPERATION_CANCELLED


def test_cancelled_waiters_are_skipped(qm: RunningQueueManager) -> None:
    """A message goes to the next one who still waits (G62)."""
    queue = qm.create()
    descriptor = qm.open(queue)
    gone, there = receive(qm, descriptor, tag=1), receive(qm, descriptor, tag=2)
    qm.engine.readers.cancel_waiting_message_read_request(queue, (descriptor.handle, 1))
    qm.send(queue, b"a")
    assert gone.error is not None
    assert body(there) == b"a"


def test_a_message_whose_delivery_failed_is_offered_to_the_next_reader(
    qm: RunningQueueManager,
) -> None:
    """Giving back a two-phase read wakes who waits (G62)."""
    queue = qm.create()
    first, second = qm.open(queue), qm.open(queue)
    begun = qm.engine.messages.dequeue_message_begin(first)
    waiting = receive(qm, second)
    qm.send(queue, b"a")
    position = begun.result().message_position_reference
    assert position is not None
    assert not waiting.done
    qm.done(qm.engine.messages.dequeue_message_end(first, position, False))
    assert body(waiting) == b"a"


@pytest.mark.conformance("MQDMPR-event-waiting_message_read_satisfied")
def test_a_reader_that_cannot_take_its_message_does_not_keep_the_others_waiting(
    qm: RunningQueueManager,
) -> None:
    """A transaction that ended while its reader waited (G62)."""
    queue = qm.create(transactional=True)
    transaction = qm.engine.transactions.create_transaction(uuid4())
    dead = qm.engine.messages.dequeue_message(qm.open(queue), transaction=transaction)
    waiting = receive(qm, qm.open(queue))
    qm.done(qm.engine.transactions.transaction_abort(transaction.identifier))
    sender = qm.engine.transactions.create_transaction(uuid4())
    qm.send(queue, b"a", sender)
    qm.done(qm.engine.transactions.transaction_commit(sender.identifier))
    assert status(dead) is HResult.MQ_ERROR_TRANSACTION_SEQUENCE
    assert body(waiting) == b"a"


@pytest.mark.conformance("MQDMPR-event-close_queue")
def test_closing_a_queue_ends_its_own_waits_only(qm: RunningQueueManager) -> None:
    queue = qm.create()
    closed, open_ = qm.open(queue), qm.open(queue)
    ended = [receive(qm, closed, tag=1), receive(qm, closed)]
    ended.append(qm.engine.messages.peek_message(closed, 10_000))
    waiting = receive(qm, open_)
    qm.engine.opening.close_queue(closed)
    for completion in ended:
        assert status(completion) is HResult.MQ_ERROR_OPERATION_CANCELLED
    qm.send(queue, b"a")
    assert body(waiting) == b"a"


@pytest.mark.conformance("MQDMPR-event-delete_queue")
def test_deleting_a_queue_ends_every_wait_on_it(qm: RunningQueueManager) -> None:
    """Waiting readers get 0xC00E005A (G14)."""
    queue = qm.create()
    waiting = [receive(qm, qm.open(queue)), receive(qm, qm.open(queue), tag=2)]
    qm.done(qm.engine.queues.delete_queue(queue))
    for completion in waiting:
        assert status(completion) is HResult.MQ_ERROR_QUEUE_DELETED


@pytest.mark.conformance("MQDMPR-event-queue_manager_stopped")
def test_stopping_answers_everybody_who_waits(qm: RunningQueueManager) -> None:
    queue = qm.create()
    waiting = receive(qm, qm.open(queue))
    heard: list[str] = []
    qm.engine.stopped_hooks.append(lambda: heard.append("stopped"))
    qm.engine.queue_manager_stopped()
    assert status(waiting) is HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE
    assert heard == ["stopped"]
    assert qm.engine.queue_manager.queue_manager_state.value == "Stopped"


def test_fifty_waiting_readers_get_fifty_messages_each_once(qm: RunningQueueManager) -> None:
    queue = qm.create()
    waiting = [receive(qm, qm.open(queue)) for _ in range(50)]
    for number in range(50):
        qm.enqueue(queue, b"%d" % number)
    qm.settle()
    assert sorted(int(body(completion)) for completion in waiting) == list(range(50))
    assert queue.message_count == 0
