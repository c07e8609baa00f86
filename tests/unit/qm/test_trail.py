"""The event trail: what happened to a message can be told afterwards."""

from typing import Any
from uuid import uuid4

import pytest

from rpcqm.adm.message import Message, MessagePosition
from rpcqm.adm.queue import Queue
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.qm.trail import DAY, REMOVED_AT_ONCE, TrailEventType
from rpcqm.store.records import Family
from tests.support.qm.sending import keep_sending
from tests.support.queue_manager import RunningQueueManager

H = TrailEventType


@pytest.fixture
def queue(qm: RunningQueueManager) -> Queue:
    queue = qm.create()
    qm.engine.trail.switch(queue, True)
    return queue


def sent(qm: RunningQueueManager, queue: Queue, **more: Any) -> Message:
    message = qm.compose(queue, b"a", **more)
    qm.done(qm.engine.messages.enqueue_message(queue, message))
    return message


def happened(
    qm: RunningQueueManager, identifier: MessageIdentifier
) -> list[tuple[TrailEventType, str]]:
    qm.settle()
    return [(event.happening, event.detail) for event in qm.engine.trail.events(identifier)]


def test_what_happens_to_a_message_is_told_in_order(qm: RunningQueueManager, queue: Queue) -> None:
    message = sent(qm, queue)
    reader = qm.open(queue)
    position = qm.lock(reader)
    qm.advance(1000)
    qm.done(qm.engine.messages.dequeue_message_end(reader, position, False))
    subqueue = qm.subqueue(queue, "late")
    qm.done(qm.engine.messages.move_message(position, subqueue))
    assert qm.receive(qm.open(f"DIRECT=OS:{subqueue.pathname}")) == b"a"
    assert happened(qm, message.attributes.identifier) == [
        (H.ARRIVED, ""),
        (H.LOCKED, ""),
        (H.GIVEN_BACK, ""),
        (H.MOVED, subqueue.pathname),
        (H.RECEIVED, ""),
    ]
    events = list(qm.engine.trail.events(message.attributes.identifier))
    assert events[2].time - events[1].time == 1000
    assert {event.lookup_identifier for event in events} == {message.lookup_identifier}
    assert [event.queue for event in events[-2:]] == [queue.pathname, subqueue.pathname]


def test_a_queue_elsewhere_is_told_by_its_format_name(qm: RunningQueueManager) -> None:
    outgoing = keep_sending(qm, r"DIRECT=OS:other\private$\orders")
    qm.done(qm.engine.trail.switch(outgoing, True))
    message = sent(qm, outgoing)
    (event,) = qm.engine.trail.events(message.attributes.identifier)
    assert (event.happening, event.queue) == (H.ARRIVED, outgoing.destination_format_name)


def test_copies_in_the_journal_are_told(qm: RunningQueueManager) -> None:
    queue = qm.create(r"private$\kept", journaling=True)
    qm.engine.trail.switch(queue, True)
    message = sent(qm, queue)
    qm.receive(qm.open(queue))
    journal = f"{queue.pathname};JOURNAL"
    assert happened(qm, message.attributes.identifier)[1:] == [(H.RECEIVED, ""), (H.KEPT, journal)]


def test_why_a_message_was_removed_is_told(qm: RunningQueueManager, queue: Queue) -> None:
    expired = sent(qm, queue, time_to_be_received=1)
    qm.advance(5000)
    purged = sent(qm, queue)
    qm.done(qm.engine.queues.purge_queue(queue))
    assert happened(qm, expired.attributes.identifier)[-1] == (H.REMOVED, "NACK_RECEIVE_TIMEOUT")
    assert happened(qm, purged.attributes.identifier)[-1] == (H.REMOVED, "NACK_Q_PURGED")


def test_messages_of_a_transaction_have_their_arrival(qm: RunningQueueManager) -> None:
    queue = qm.create(r"private$\exact", transactional=True)
    qm.engine.trail.switch(queue, True)
    transaction = qm.engine.transactions.create_transaction(uuid4())
    qm.send(queue, b"a", transaction)
    qm.done(qm.engine.transactions.transaction_commit(transaction.identifier))
    (key,) = queue.message_position_list.page(None, 2)
    message = qm.engine.positions.message_at(queue, key)
    assert happened(qm, message.attributes.identifier) == [(H.ARRIVED, "")]


def test_a_queue_without_a_trail_leaves_none(qm: RunningQueueManager) -> None:
    queue = qm.create()
    message = sent(qm, queue)
    qm.receive(qm.open(queue))
    assert happened(qm, message.attributes.identifier) == []
    assert list(qm.store.records(Family.HISTORY)) == []


def test_a_trail_is_on_until_it_is_switched_off(qm: RunningQueueManager, queue: Queue) -> None:
    message = sent(qm, queue)
    qm.advance(1)
    qm.restart()
    queue = qm.find()
    assert queue.trail
    qm.done(qm.engine.messages.dequeue_message(qm.open(queue), 0))
    assert [what for what, _ in happened(qm, message.attributes.identifier)] == [
        H.ARRIVED,
        H.RECEIVED,
    ]
    qm.engine.trail.switch(queue, False)
    assert happened(qm, sent(qm, queue).attributes.identifier) == []
    qm.restart()
    assert not qm.find().trail


def test_old_records_are_removed(qm: RunningQueueManager, queue: Queue) -> None:
    qm.engine.trail.days = 2
    old = [sent(qm, queue) for _ in range(REMOVED_AT_ONCE + 10)]
    qm.advance(DAY + DAY // 2)
    young = sent(qm, queue)
    qm.advance(DAY + DAY // 2)
    qm.advance(1_000)
    assert all(happened(qm, message.attributes.identifier) == [] for message in old)
    assert happened(qm, young.attributes.identifier) == [(H.ARRIVED, "")]
    assert len(list(qm.store.records(Family.HISTORY))) == 3


def test_a_deleted_queue_leaves_no_switch(qm: RunningQueueManager, queue: Queue) -> None:
    qm.done(qm.engine.queues.delete_queue(queue))
    qm.restart()
    assert list(qm.store.records(Family.HISTORY, b"s")) == []


def test_a_position_that_is_gone_is_no_obstacle(qm: RunningQueueManager, queue: Queue) -> None:
    with qm.store.transaction("nothing") as change:
        qm.engine.trail.note_at(
            change, queue, MessagePosition(queue, 7).lookup_identifier, H.LEFT, ""
        )
    qm.settle()
    assert list(qm.store.records(Family.HISTORY, b"m")) == []
