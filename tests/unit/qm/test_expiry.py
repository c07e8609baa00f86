"""The time to be received ([MS-MQDMPR] 3.1.2.4, 3.1.7.2.7)."""

from typing import Any
from uuid import uuid4

import pytest

from rpcqm.adm.enums import PositionState
from rpcqm.adm.message import Message
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.message import build_user_message, read_attributes
from rpcqm.codec.types.mqvalues import QueueAccessType
from tests.support.queue_manager import RunningQueueManager


@pytest.mark.conformance(
    "MQDMPR-timer-time_to_be_received", "MQDMPR-event-time_to_be_received_timer_expired"
)
def test_a_message_is_removed_when_its_time_is_over(qm: RunningQueueManager) -> None:
    queue = qm.create()
    reasons: list[MessageClass] = []
    qm.engine.positions.deleted_hooks.append(
        lambda transaction, queue, key, reason: reasons.append(reason)
    )
    qm.send(queue, b"short", time_to_be_received=10)
    qm.send(queue, b"long", time_to_be_received=20)
    qm.send(queue, b"ever")
    qm.advance(9_999)
    assert qm.bodies(queue) == [b"short", b"long", b"ever"]
    qm.advance(1)
    assert qm.bodies(queue) == [b"long", b"ever"]
    qm.advance(10_000)
    assert qm.bodies(queue) == [b"ever"]
    qm.advance(1 << 40)
    assert qm.bodies(queue) == [b"ever"]
    assert reasons == [MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT] * 2


@pytest.mark.conformance("MQDMPR-timer-time_to_be_received")
def test_a_time_of_zero_is_over_at_once(qm: RunningQueueManager) -> None:
    queue = qm.create()
    waiting = qm.engine.messages.dequeue_message(qm.open(queue))
    qm.send(queue, b"x", time_to_be_received=0)
    assert queue.message_count == 0
    assert not waiting.done


def test_a_look_that_fails_is_not_the_last_one(
    qm: RunningQueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = qm.create()
    qm.send(queue, b"short", time_to_be_received=10)
    qm.send(queue, b"long", time_to_be_received=20)
    with monkeypatch.context() as patch:
        patch.setattr(qm.engine.store, "expire", lambda now, most: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            qm.advance(10_000)
    qm.advance(59_999)
    assert qm.bodies(queue) == [b"short", b"long"]
    qm.advance(1)
    assert qm.bodies(queue) == []


def test_time_is_counted_from_the_sending(qm: RunningQueueManager) -> None:
    queue = qm.create()
    message = qm.compose(queue, b"x", time_to_be_received=10)
    qm.advance(6_000)
    qm.done(qm.engine.messages.enqueue_message(queue, message))
    qm.advance(3_999)
    assert qm.bodies(queue) == [b"x"]
    qm.advance(1)
    assert qm.bodies(queue) == []


@pytest.mark.conformance("MQDMPR-event-time_to_be_received_timer_expired")
def test_a_locked_message_expires_when_it_is_given_back(qm: RunningQueueManager) -> None:
    """Deferred while Locked (G13); nobody who waits gets it."""
    queue = qm.create()
    qm.send(queue, b"x", time_to_be_received=10)
    descriptor = qm.open(queue)
    position = qm.lock(descriptor)
    waiting = qm.engine.messages.dequeue_message(qm.open(queue))
    qm.advance(10_000)
    assert position.state is PositionState.LOCKED
    qm.done(qm.engine.messages.dequeue_message_end(descriptor, position, False))
    assert queue.message_count == 0
    assert not waiting.done


def test_a_locked_message_that_is_acknowledged_late_was_received(
    qm: RunningQueueManager,
) -> None:
    queue = qm.create()
    qm.send(queue, b"x", time_to_be_received=10)
    descriptor = qm.open(queue)
    position = qm.lock(descriptor)
    qm.advance(20_000)
    reasons: list[MessageClass] = []
    qm.engine.positions.deleted_hooks.append(
        lambda transaction, queue, key, reason: reasons.append(reason)
    )
    qm.done(qm.engine.messages.dequeue_message_end(descriptor, position, True))
    assert reasons == [MessageClass.MQMSG_CLASS_ACK_RECEIVE]


def test_a_message_given_back_before_its_time_still_expires(qm: RunningQueueManager) -> None:
    queue = qm.create()
    qm.send(queue, b"x", time_to_be_received=10)
    descriptor = qm.open(queue)
    position = qm.lock(descriptor)
    qm.advance(5_000)
    qm.done(qm.engine.messages.dequeue_message_end(descriptor, position, False))
    qm.advance(4_999)
    assert qm.bodies(queue) == [b"x"]
    qm.advance(1)
    assert qm.bodies(queue) == []


def test_a_message_under_a_transaction_expires_with_its_abort(qm: RunningQueueManager) -> None:
    """No operation is added to a transaction that has ended (G13)."""
    queue = qm.create(transactional=True)
    transactions = qm.engine.transactions
    sender = transactions.create_transaction(uuid4())
    qm.send(queue, b"x", sender, time_to_be_received=10)
    qm.done(transactions.transaction_commit(sender.identifier))
    reader = transactions.create_transaction(uuid4())
    qm.done(qm.engine.messages.dequeue_message(qm.open(queue), 0, transaction=reader))
    qm.advance(10_000)
    assert queue.message_count == 1
    qm.done(transactions.transaction_abort(reader.identifier))
    assert queue.message_count == 0


def test_an_expired_message_that_is_leaving_is_left_alone(qm: RunningQueueManager) -> None:
    """G61."""
    queue = qm.create()
    qm.send(queue, b"x", time_to_be_received=10)
    received = qm.engine.messages.dequeue_message(qm.open(queue), 0)
    qm.clock.advance(10_000)
    qm.settle()
    assert received.result().attributes.body == b"x"


def test_expiry_goes_on_after_a_restart_and_after_a_move(qm: RunningQueueManager) -> None:
    queue = qm.create()
    subqueue = qm.subqueue(queue, "sub")
    key = qm.send(queue, b"x", time_to_be_received=10)
    qm.send(queue, b"y", time_to_be_received=30)
    position = qm.engine.messages.position(queue, key)
    assert position is not None
    qm.done(qm.engine.messages.move_message(position, subqueue))
    qm.restart()
    again = qm.find()
    assert qm.bodies(again.subqueue_collection["sub"]) == [b"x"]
    qm.advance(10_000)
    assert again.subqueue_collection == {}
    qm.advance(20_000)
    assert qm.bodies(again) == []


@pytest.mark.conformance("MQDMPR-timer-time_to_be_received")
def test_what_expired_while_stopped_is_removed_at_the_start(qm: RunningQueueManager) -> None:
    queue = qm.create()
    qm.send(queue, b"x", time_to_be_received=10)
    qm.engine.expiry.stop()
    qm.clock.advance(60_000)
    qm.restart()
    assert qm.bodies(qm.find()) == []


def test_thousands_of_messages_expire_together(qm: RunningQueueManager) -> None:
    queue = qm.create()
    for number in range(2_500):
        qm.enqueue(queue, b"%d" % number, time_to_be_received=10)
    qm.settle()
    qm.advance(10_000)
    assert queue.message_count == 0


@pytest.mark.parametrize(
    ("times", "reason"),
    [
        (
            {"time_to_reach_queue": 10},
            MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT,
        ),
        (
            {"time_to_reach_queue": 20, "time_to_be_received": 10},
            MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT_AT_SENDER,
        ),
    ],
)
def test_a_message_that_cannot_leave_in_time_is_a_dead_letter_here(
    qm: RunningQueueManager, times: dict[str, Any], reason: MessageClass
) -> None:
    descriptor = qm.open(r"DIRECT=OS:other\q", QueueAccessType.SEND_ACCESS)
    queue = descriptor.queue_reference
    assert queue is not None
    reasons: list[MessageClass] = []
    qm.engine.positions.deleted_hooks.append(
        lambda transaction, queue, key, reason: reasons.append(reason)
    )
    qm.send(queue, b"x", negative_journaling_requested=True, **times)
    qm.advance(10_000)
    assert reasons == [reason]
    assert qm.bodies(qm.engine.queue_manager.system_deadletter_queue) == [b"x"]


def test_messages_of_a_queue_that_is_being_deleted_do_not_keep_the_timer_busy(
    qm: RunningQueueManager,
) -> None:
    queue = qm.create()
    qm.send(queue, b"due", time_to_be_received=10)
    qm.enqueue(queue, b"on its way")
    deleted = qm.engine.queues.delete_queue(queue)
    qm.clock.advance(10_000)
    assert not deleted.done
    qm.settle()
    assert deleted.done
    assert qm.store.total.count == 0


def test_a_clock_that_is_set_back_only_delays_expiry(qm: RunningQueueManager) -> None:
    """The timer looks at least once a minute."""
    queue = qm.create()
    qm.send(queue, b"x", time_to_be_received=3_600)
    qm.clock._now += 3_600_000
    qm.advance(60_000)
    assert queue.message_count == 0


@pytest.mark.conformance("MQDMPR-timer-time_to_be_received")
@pytest.mark.parametrize(("seconds", "over"), [(0, 0), (10, 10_000)])
def test_a_clock_that_is_ahead_gives_no_message_more_time(
    qm: RunningQueueManager, seconds: int, over: int
) -> None:
    """From the arrival, where the sender's clock is an hour ahead (G136)."""
    queue = qm.create()
    message = qm.compose(queue, b"x", time_to_be_received=seconds)
    attributes = read_attributes(message.packet)
    attributes.sent_time += 3600
    early = Message(build_user_message(attributes))
    qm.done(qm.engine.messages.enqueue_message(queue, early))
    if over:
        qm.advance(over - 1)
        assert qm.bodies(queue) == [b"x"]
    qm.advance(1)
    assert qm.bodies(queue) == []
