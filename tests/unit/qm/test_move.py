"""Moving messages ([MS-MQDMPR] 3.1.7.1.16)."""

from types import SimpleNamespace
from uuid import uuid4

import pytest

from rpcqm.adm.enums import PositionState
from rpcqm.adm.message import MessagePosition
from rpcqm.adm.queue import Queue
from rpcqm.otel.spans import MessageSpans, Span
from tests.support.queue_manager import RunningQueueManager, refusal


@pytest.fixture
def queue(qm: RunningQueueManager) -> Queue:
    return qm.create()


def position(queue: Queue, key: int) -> MessagePosition:
    return MessagePosition(queue, key)


@pytest.mark.conformance("MQDMPR-event-move_message")
def test_a_message_moves_to_a_subqueue_and_back(qm: RunningQueueManager, queue: Queue) -> None:
    """It keeps its lookup identifier (G57), and one commit moves it."""
    subqueue = qm.subqueue(queue, "sub")
    key = qm.send(queue, b"a")
    moved = qm.engine.messages.move_message(position(queue, key), subqueue)
    assert not moved.done
    assert position(queue, key).state is PositionState.LEAVING
    qm.done(moved)
    assert (qm.bodies(queue), qm.bodies(subqueue)) == ([], [b"a"])
    assert subqueue.message_position_list.first() == key
    qm.done(qm.engine.messages.move_message(position(subqueue, key), queue))
    assert qm.bodies(queue) == [b"a"]
    assert queue.message_position_list.first() == key


def test_the_target_is_ordered_by_identifier(qm: RunningQueueManager, queue: Queue) -> None:
    """Whatever the order of the moves (G57)."""
    subqueue = qm.subqueue(queue, "sub")
    keys = [qm.send(queue, body) for body in (b"a", b"b", b"c")]
    for key in (keys[2], keys[0], keys[1]):
        qm.done(qm.engine.messages.move_message(position(queue, key), subqueue))
    assert qm.bodies(subqueue) == [b"a", b"b", b"c"]


@pytest.mark.conformance("MQDMPR-event-move_message")
def test_moves_are_counted_and_dated_and_end_the_count_of_aborts(
    qm: RunningQueueManager,
) -> None:
    queue = qm.create(r"private$\exact", transactional=True)
    subqueue = qm.subqueue(queue, "sub")
    transactions = qm.engine.transactions
    sender = transactions.create_transaction(uuid4())
    qm.send(queue, b"a", sender)
    qm.done(transactions.transaction_commit(sender.identifier))
    reader = transactions.create_transaction(uuid4())
    qm.done(qm.engine.messages.dequeue_message(qm.open(queue), 0, transaction=reader))
    qm.done(transactions.transaction_abort(reader.identifier))
    key = queue.message_position_list.first()
    assert key is not None
    assert qm.engine.positions.message_at(queue, key).abort_count == 1
    qm.advance(60_000)
    qm.done(qm.engine.messages.move_message(position(queue, key), subqueue))
    qm.done(qm.engine.messages.move_message(position(subqueue, key), queue))
    qm.restart()
    message = qm.engine.positions.message_at(qm.find(r"private$\exact"), key)
    assert (message.abort_count, message.move_count) == (0, 2)
    assert message.last_move_time == qm.clock.now()


def test_a_moved_message_wakes_who_waits_at_its_target(
    qm: RunningQueueManager, queue: Queue
) -> None:
    descriptor = qm.open(f"DIRECT=OS:{queue.pathname};sub")
    waiting = qm.engine.messages.dequeue_message(descriptor)
    key = qm.send(queue, b"a")
    target = descriptor.queue_reference
    assert target is not None
    qm.done(qm.engine.messages.move_message(position(queue, key), target))
    assert waiting.result().attributes.body == b"a"
    assert waiting.result().subqueue_name == "sub"


@pytest.mark.conformance("MQDMPR-event-move_message")
def test_only_related_queues_exchange_messages(qm: RunningQueueManager, queue: Queue) -> None:
    """Queues are compared, and the same queue is no target (G36)."""
    other = qm.create(r"private$\other")
    foreign = qm.subqueue(other, "sub")
    one, two = qm.subqueue(queue, "one"), qm.subqueue(queue, "two")
    journal = queue.journal_queue_reference
    assert journal is not None
    key = qm.send(queue, b"a")
    move = qm.engine.messages.move_message
    for target in (queue, other, foreign, journal):
        assert refusal(move, position(queue, key), target) == "STATUS_INVALID_PARAMETER"
    qm.done(move(position(queue, key), one))
    qm.done(move(position(one, key), two))
    assert qm.bodies(two) == [b"a"]


def test_a_message_that_is_not_there_cannot_be_moved(qm: RunningQueueManager, queue: Queue) -> None:
    subqueue = qm.subqueue(queue, "sub")
    move = qm.engine.messages.move_message
    refused = refusal(move, position(queue, 4711), subqueue)
    assert refused == "MQ_ERROR_MESSAGE_NOT_FOUND"


def test_a_message_locked_in_two_phases_or_leaving_is_not_found(
    qm: RunningQueueManager, queue: Queue
) -> None:
    """0xC00E0088 (G60)."""
    subqueue = qm.subqueue(queue, "sub")
    qm.send(queue, b"a")
    descriptor = qm.open(queue)
    locked = qm.lock(descriptor)
    move = qm.engine.messages.move_message
    assert refusal(move, locked, subqueue) == "MQ_ERROR_MESSAGE_NOT_FOUND"
    removal = qm.engine.messages.dequeue_message_end(descriptor, locked, True)
    assert refusal(move, locked, subqueue) == "MQ_ERROR_MESSAGE_NOT_FOUND"
    qm.done(removal)
    assert qm.bodies(subqueue) == []


def test_a_message_held_by_a_transaction_is_locked_under_it(qm: RunningQueueManager) -> None:
    """0xC00E009C (G60), which comes before the transaction of the move itself."""
    queue = qm.create(r"private$\exact", transactional=True)
    subqueue = qm.subqueue(queue, "sub")
    transactions = qm.engine.transactions
    sender = transactions.create_transaction(uuid4())
    qm.send(queue, b"a", sender)
    qm.done(transactions.transaction_commit(sender.identifier))
    holder = transactions.create_transaction(uuid4())
    message = qm.done(qm.engine.messages.dequeue_message(qm.open(queue), 0, transaction=holder))
    held = position(queue, message.lookup_identifier)
    for transactional in (True, False):
        check = qm.engine.messages.check_move
        refused = refusal(check, held, subqueue, transactional)
        assert refused == "MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION"


@pytest.mark.conformance("MQDMPR-event-move_message")
def test_a_transactional_move_needs_a_transactional_target(
    qm: RunningQueueManager, queue: Queue
) -> None:
    """0xC00E0050 (G36), also for a target of the system."""
    subqueue = qm.subqueue(queue, "sub")
    key = qm.send(queue, b"a")
    transaction = qm.engine.transactions.create_transaction(uuid4())
    move = qm.engine.messages.move_message
    deadletter = qm.engine.queue_manager.system_deadletter_queue
    for target in (subqueue, deadletter):
        refused = refusal(move, position(queue, key), target, transaction)
        assert refused == "MQ_ERROR_TRANSACTION_USAGE"


@pytest.mark.conformance("MQDMPR-event-move_message")
def test_a_message_moves_to_a_queue_of_the_system(qm: RunningQueueManager, queue: Queue) -> None:
    deadletter = qm.engine.queue_manager.system_deadletter_queue
    assert deadletter is not None
    key = qm.send(queue, b"a", time_to_be_received=5)
    qm.done(qm.engine.messages.move_message(position(queue, key), deadletter))
    qm.advance(10_000)
    assert qm.bodies(deadletter) == [b"a"]
    assert qm.bodies(queue) == []


@pytest.mark.parametrize("system", [True, False])
def test_who_watches_is_told_of_a_move(qm: RunningQueueManager, queue: Queue, system: bool) -> None:
    """It ends what a reader had locked, wherever the message goes."""
    told: list[Span] = []
    sink = SimpleNamespace(take=told.append)
    machine = qm.engine.queue_manager
    qm.engine.watch_messages(MessageSpans(sink, machine.identifier, 1000))
    target = machine.system_deadletter_queue if system else qm.subqueue(queue, "sub")
    assert target is not None
    key = qm.send(queue, b"a")
    descriptor = qm.open(queue)
    qm.done(qm.engine.messages.dequeue_message(descriptor, 0, two_phase_read=True))
    move = qm.engine.messages.move_message
    qm.done(move(position(queue, key), target, None, descriptor))
    _, receive, settle = told
    assert settle.parent == receive.span
    assert settle.attributes["rpcqm.outcome"] == "move"


def test_a_subqueue_stays_while_a_move_into_it_is_on_its_way(
    qm: RunningQueueManager, queue: Queue
) -> None:
    """Pending (G58)."""
    key = qm.send(queue, b"a")
    descriptor = qm.open(f"DIRECT=OS:{queue.pathname};sub")
    target = descriptor.queue_reference
    assert target is not None
    moved = qm.engine.messages.move_message(position(queue, key), target)
    qm.engine.opening.close_queue(descriptor)
    qm.done(moved)
    assert qm.bodies(queue.subqueue_collection["sub"]) == [b"a"]


@pytest.mark.parametrize("outcome", ["commit", "abort"])
def test_a_subqueue_stays_while_a_move_into_it_is_staged(
    qm: RunningQueueManager, outcome: str
) -> None:
    """Staged (G58); after an abort nothing needs it any more."""
    queue = qm.create(r"private$\exact", transactional=True)
    transactions = qm.engine.transactions
    sender = transactions.create_transaction(uuid4())
    qm.send(queue, b"a", sender)
    qm.done(transactions.transaction_commit(sender.identifier))
    key = queue.message_position_list.first()
    assert key is not None
    descriptor = qm.open(f"DIRECT=OS:{queue.pathname};sub")
    target = descriptor.queue_reference
    assert target is not None
    mover = transactions.create_transaction(uuid4())
    qm.done(qm.engine.messages.move_message(position(queue, key), target, mover))
    qm.engine.opening.close_queue(descriptor)
    qm.settle()
    assert "sub" in queue.subqueue_collection
    if outcome == "commit":
        qm.done(transactions.transaction_commit(mover.identifier))
        assert qm.bodies(queue.subqueue_collection["sub"]) == [b"a"]
    else:
        qm.done(transactions.transaction_abort(mover.identifier))
        assert queue.subqueue_collection == {}
        assert qm.bodies(queue) == [b"a"]


def test_a_subqueue_emptied_by_a_move_and_closed_is_dropped(
    qm: RunningQueueManager, queue: Queue
) -> None:
    descriptor = qm.open(f"DIRECT=OS:{queue.pathname};sub")
    target = descriptor.queue_reference
    assert target is not None
    key = qm.send(queue, b"a")
    qm.done(qm.engine.messages.move_message(position(queue, key), target))
    qm.engine.opening.close_queue(descriptor)
    assert "sub" in queue.subqueue_collection
    qm.done(qm.engine.messages.move_message(position(target, key), queue))
    assert queue.subqueue_collection == {}


@pytest.mark.conformance("MQDMPR-event-transaction_commit")
def test_a_message_stays_when_the_target_of_its_move_was_deleted(
    qm: RunningQueueManager,
) -> None:
    queue = qm.create(r"private$\exact", transactional=True)
    subqueue = qm.subqueue(queue, "sub")
    transactions = qm.engine.transactions
    sender = transactions.create_transaction(uuid4())
    qm.send(queue, b"a", sender)
    qm.done(transactions.transaction_commit(sender.identifier))
    key = queue.message_position_list.first()
    assert key is not None
    mover = transactions.create_transaction(uuid4())
    qm.done(qm.engine.messages.move_message(position(queue, key), subqueue, mover))
    qm.done(qm.engine.queues.delete_queue(subqueue))
    qm.done(transactions.transaction_commit(mover.identifier))
    assert qm.bodies(queue) == [b"a"]
    assert (
        refusal(qm.engine.messages.move_message, position(queue, key), subqueue)
        == "MQ_ERROR_QUEUE_DELETED"
    )
