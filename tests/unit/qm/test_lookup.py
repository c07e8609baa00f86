"""Reading by lookup identifier ([MS-MQDMPR] 3.1.7.1.13, 3.1.7.3.3)."""

from uuid import uuid4

import pytest

from rpcqm.adm.enums import MessageSeekAction, PositionState
from rpcqm.adm.message import MessagePosition
from rpcqm.adm.queue import Queue
from tests.support.queue_manager import RunningQueueManager, refusal

FIRST, PREVIOUS, CURRENT, NEXT, LAST = (
    MessageSeekAction.SEEK_FIRST,
    MessageSeekAction.SEEK_PREVIOUS,
    MessageSeekAction.SEEK_CURRENT,
    MessageSeekAction.SEEK_NEXT,
    MessageSeekAction.SEEK_LAST,
)


@pytest.fixture
def queue(qm: RunningQueueManager) -> Queue:
    return qm.create()


@pytest.fixture
def keys(qm: RunningQueueManager, queue: Queue) -> list[int]:
    return [qm.send(queue, body) for body in (b"a", b"b", b"c", b"d")]


def read(
    qm: RunningQueueManager, queue: Queue, key: int, action: MessageSeekAction, peek: bool
) -> bytes:
    descriptor = qm.open(queue)
    lookup = qm.engine.messages.read_message_by_lookup_identifier
    return qm.done(lookup(descriptor, key, peek, action)).attributes.body


@pytest.mark.conformance(
    "MQDMPR-event-read_message_by_lookup_identifier",
    "MQDMPR-event-seek_available_message_position_with_id",
    "MQDMPR-element-MessageSeekAction",
    "MQDMPR-event-seek_available_message_position",
)
@pytest.mark.parametrize("peek", [True, False])
@pytest.mark.parametrize(
    ("action", "expected"),
    [(FIRST, b"a"), (PREVIOUS, b"a"), (CURRENT, b"b"), (NEXT, b"c"), (LAST, b"d")],
)
def test_each_direction_finds_its_message(
    qm: RunningQueueManager,
    queue: Queue,
    keys: list[int],
    action: MessageSeekAction,
    expected: bytes,
    peek: bool,
) -> None:
    assert read(qm, queue, keys[1], action, peek) == expected
    assert (expected in qm.bodies(queue)) is peek


@pytest.mark.parametrize(("action", "expected"), [(PREVIOUS, b"a"), (NEXT, b"c")])
def test_neighbours_are_found_by_order_though_the_message_itself_is_gone(
    qm: RunningQueueManager,
    queue: Queue,
    keys: list[int],
    action: MessageSeekAction,
    expected: bytes,
) -> None:
    """Order comparison, not presence (G34)."""
    read(qm, queue, keys[1], CURRENT, False)
    assert read(qm, queue, keys[1], action, True) == expected


@pytest.mark.parametrize("action", [PREVIOUS, NEXT])
def test_locked_neighbours_are_skipped(
    qm: RunningQueueManager, queue: Queue, keys: list[int], action: MessageSeekAction
) -> None:
    holder = qm.open(queue)
    lookup = qm.engine.messages.read_message_by_lookup_identifier
    qm.done(lookup(holder, keys[1], False, CURRENT, two_phase_read=True))
    qm.done(lookup(holder, keys[2], False, CURRENT, two_phase_read=True))
    start, expected = (keys[3], b"a") if action is PREVIOUS else (keys[0], b"d")
    assert read(qm, queue, start, action, True) == expected


@pytest.mark.parametrize(
    ("action", "position"), [(PREVIOUS, 0), (NEXT, 3)], ids=["before first", "after last"]
)
def test_beyond_the_ends_there_is_nothing(
    qm: RunningQueueManager,
    queue: Queue,
    keys: list[int],
    action: MessageSeekAction,
    position: int,
) -> None:
    """Nothing found is 0xC00E0088, never End with success (G34)."""
    lookup = qm.engine.messages.read_message_by_lookup_identifier
    descriptor = qm.open(queue)
    refused = refusal(lookup, descriptor, keys[position], True, action)
    assert refused == "MQ_ERROR_MESSAGE_NOT_FOUND"


@pytest.mark.parametrize("action", list(MessageSeekAction))
def test_an_empty_queue_has_no_message_in_any_direction(
    qm: RunningQueueManager, queue: Queue, action: MessageSeekAction
) -> None:
    lookup = qm.engine.messages.read_message_by_lookup_identifier
    refused = refusal(lookup, qm.open(queue), 1, True, action)
    assert refused == "MQ_ERROR_MESSAGE_NOT_FOUND"


def test_a_lookup_can_lock_for_two_phases(
    qm: RunningQueueManager, queue: Queue, keys: list[int]
) -> None:
    descriptor = qm.open(queue)
    lookup = qm.engine.messages.read_message_by_lookup_identifier
    message = qm.done(lookup(descriptor, keys[2], False, CURRENT, two_phase_read=True))
    position = message.message_position_reference
    assert position == MessagePosition(queue, keys[2])
    assert position.state is PositionState.LOCKED
    qm.done(qm.engine.messages.dequeue_message_end(descriptor, position, True))
    assert qm.bodies(queue) == [b"a", b"b", b"d"]


def test_a_message_locked_by_a_two_phase_read_is_not_found_by_a_receive(
    qm: RunningQueueManager, queue: Queue, keys: list[int]
) -> None:
    """0xC00E0088 unless a transaction holds it (G34); a peek is told TRANSACTION_USAGE."""
    qm.lock(qm.open(queue))
    lookup = qm.engine.messages.read_message_by_lookup_identifier
    descriptor = qm.open(queue)
    received = refusal(lookup, descriptor, keys[0], False, CURRENT)
    assert received == "MQ_ERROR_MESSAGE_NOT_FOUND"
    peeked = refusal(lookup, descriptor, keys[0], True, CURRENT)
    assert peeked == "MQ_ERROR_TRANSACTION_USAGE"


def test_a_message_that_a_transaction_holds_is_locked_under_it(qm: RunningQueueManager) -> None:
    """0xC00E009C (G34)."""
    queue = qm.create(r"private$\exact", transactional=True)
    transactions = qm.engine.transactions
    sender = transactions.create_transaction(uuid4())
    qm.send(queue, b"a", sender)
    qm.done(transactions.transaction_commit(sender.identifier))
    key = queue.message_position_list.first()
    assert key is not None
    holder = transactions.create_transaction(uuid4())
    qm.done(qm.engine.messages.dequeue_message(qm.open(queue), 0, transaction=holder))
    lookup = qm.engine.messages.read_message_by_lookup_identifier
    refused = refusal(lookup, qm.open(queue), key, False, CURRENT)
    assert refused == "MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION"


def test_a_transactional_lookup_locks_under_its_transaction(qm: RunningQueueManager) -> None:
    queue = qm.create(r"private$\exact", transactional=True)
    transactions = qm.engine.transactions
    sender = transactions.create_transaction(uuid4())
    for body in (b"a", b"b"):
        qm.send(queue, body, sender)
    qm.done(transactions.transaction_commit(sender.identifier))
    reader = transactions.create_transaction(uuid4())
    lookup = qm.engine.messages.read_message_by_lookup_identifier
    message = qm.done(lookup(qm.open(queue), 0, False, LAST, transaction=reader))
    assert message.attributes.body == b"b"
    assert qm.bodies(queue) == [b"a"]
    qm.done(transactions.transaction_abort(reader.identifier))
    assert qm.bodies(queue) == [b"a", b"b"]


@pytest.mark.conformance("MQDMPR-event-read_message_by_lookup_identifier")
def test_a_peek_has_no_transaction(qm: RunningQueueManager) -> None:
    queue = qm.create(r"private$\exact", transactional=True)
    transactions = qm.engine.transactions
    sender = transactions.create_transaction(uuid4())
    qm.send(queue, b"a", sender)
    qm.done(transactions.transaction_commit(sender.identifier))
    transaction = transactions.create_transaction(uuid4())
    lookup = qm.engine.messages.read_message_by_lookup_identifier
    refused = refusal(lookup, qm.open(queue), 0, True, FIRST, transaction)
    assert refused == "MQ_ERROR_TRANSACTION_USAGE"
    assert qm.bodies(queue) == [b"a"]
