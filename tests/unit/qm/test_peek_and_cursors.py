"""Looking without taking, and cursors ([MS-MQDMPR] 3.1.7.1.1, .2, .14, .15, 3.2)."""

import pytest

from rpcqm.adm.descriptor import Cursor, OpenQueueDescriptor
from rpcqm.adm.enums import CursorState
from rpcqm.adm.message import Message
from rpcqm.adm.queue import Queue
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from tests.support.queue_manager import RunningQueueManager, refusal


class Reader:
    """A cursor and what can be done with it, without waiting."""

    def __init__(self, qm: RunningQueueManager, queue: Queue) -> None:
        self.qm = qm
        self.descriptor = qm.open(queue)
        cursor = qm.engine.readers.open_cursor(self.descriptor)
        assert cursor is not None
        self.cursor: Cursor = cursor

    def peek(self, timeout: int = 0) -> Completion[Message]:
        return self.qm.engine.messages.peek_message(self.descriptor, timeout, self.cursor)

    def peek_next(self, timeout: int = 0) -> Completion[Message]:
        return self.qm.engine.messages.peek_next_message(self.descriptor, self.cursor, timeout)

    def receive(self, timeout: int = 0) -> Completion[Message]:
        return self.qm.engine.messages.dequeue_message(self.descriptor, timeout, self.cursor)

    def state(self) -> CursorState:
        return self.cursor.cursor_state


@pytest.fixture
def queue(qm: RunningQueueManager) -> Queue:
    queue = qm.create()
    for body in (b"a", b"b", b"c"):
        qm.send(queue, body)
    return queue


def body(qm: RunningQueueManager, completion: Completion[Message]) -> bytes:
    return qm.done(completion).attributes.body


def status(completion: Completion[Message]) -> object:
    assert isinstance(completion.error, MQError)
    return completion.error.status


@pytest.mark.conformance("MQDMPR-event-peek_message")
def test_peeking_leaves_the_message(qm: RunningQueueManager, queue: Queue) -> None:
    descriptor = qm.open(queue)
    for _ in range(2):
        assert body(qm, qm.engine.messages.peek_message(descriptor, 0)) == b"a"
    assert queue.message_count == 3


@pytest.mark.conformance("MQDMPR-event-peek_message")
def test_peeking_an_empty_queue_waits_or_times_out(qm: RunningQueueManager) -> None:
    queue = qm.create()
    descriptor = qm.open(queue)
    assert refusal(qm.engine.messages.peek_message, descriptor, 0) == "MQ_ERROR_IO_TIMEOUT"
    waiting = qm.engine.messages.peek_message(descriptor, 1_000)
    qm.send(queue, b"x")
    assert body(qm, waiting) == b"x"
    assert queue.message_count == 1


@pytest.mark.conformance(
    "MQDMPR-event-open_cursor", "MQDMPR-event-cursor_initialize", "MQDMPR-element-Cursor"
)
def test_a_new_cursor_is_unread_at_the_start(qm: RunningQueueManager, queue: Queue) -> None:
    reader, other = Reader(qm, queue), Reader(qm, queue)
    assert reader.state() is CursorState.UNREAD
    assert reader.cursor.key is None
    assert reader.cursor.handle != other.cursor.handle
    assert reader.cursor.open_queue_descriptor_reference is reader.descriptor
    assert reader.descriptor.cursor_collection == {reader.cursor.handle: reader.cursor}


@pytest.mark.conformance("MQDMPR-event-open_cursor")
def test_there_is_no_cursor_without_a_queue(qm: RunningQueueManager, queue: Queue) -> None:
    descriptor = qm.open(queue)
    qm.done(qm.engine.queues.delete_queue(queue))
    assert qm.engine.readers.open_cursor(descriptor) is None


@pytest.mark.conformance("MQDMPR-event-cursor_get_message_for_peek")
def test_peeking_at_a_cursor_stays_at_its_message(qm: RunningQueueManager, queue: Queue) -> None:
    reader = Reader(qm, queue)
    assert body(qm, reader.peek()) == b"a"
    assert reader.state() is CursorState.READ
    assert body(qm, reader.peek()) == b"a"


@pytest.mark.conformance("MQDMPR-event-cursor_get_message_for_peek")
def test_a_current_message_that_somebody_took_was_received_already(
    qm: RunningQueueManager, queue: Queue
) -> None:
    reader = Reader(qm, queue)
    body(qm, reader.peek())
    assert qm.receive(qm.open(queue)) == b"a"
    assert refusal(reader.peek) == "MQ_ERROR_MESSAGE_ALREADY_RECEIVED"
    assert refusal(reader.receive) == "MQ_ERROR_MESSAGE_ALREADY_RECEIVED"
    assert reader.state() is CursorState.READ
    assert body(qm, reader.peek_next()) == b"b"


@pytest.mark.conformance(
    "MQDMPR-event-cursor_get_next_message_for_peek",
    "MQDMPR-event-peek_next_message",
    "MQDMPR-event-cursor_message_available",
)
def test_peeking_on_walks_through_the_queue_and_waits_at_its_end(
    qm: RunningQueueManager, queue: Queue
) -> None:
    reader = Reader(qm, queue)
    body(qm, reader.peek())
    assert [body(qm, reader.peek_next()), body(qm, reader.peek_next())] == [b"b", b"c"]
    waiting = reader.peek_next(10_000)
    assert reader.state() is CursorState.WAIT_PEEK
    qm.send(queue, b"d")
    assert body(qm, waiting) == b"d"
    assert reader.state() is CursorState.READ
    assert queue.message_count == 4


@pytest.mark.conformance(
    "MQDMPR-event-cursor_get_next_message_for_peek", "MQDMPR-event-peek_next_message"
)
def test_peeking_on_before_anything_was_read_is_illegal(
    qm: RunningQueueManager, queue: Queue
) -> None:
    assert refusal(Reader(qm, queue).peek_next) == "MQ_ERROR_ILLEGAL_CURSOR_ACTION"


@pytest.mark.conformance("MQDMPR-event-cursor_get_next_message_for_dequeue")
def test_receiving_at_a_cursor_takes_the_current_message_then_the_following_one(
    qm: RunningQueueManager, queue: Queue
) -> None:
    reader = Reader(qm, queue)
    body(qm, reader.peek())
    body(qm, reader.peek_next())
    assert body(qm, reader.receive()) == b"b"
    assert reader.state() is CursorState.UNREAD
    assert body(qm, reader.receive()) == b"c"
    assert qm.bodies(queue) == [b"a"]


@pytest.mark.conformance("MQDMPR-event-cursor_get_next_message_for_dequeue")
def test_a_cursor_at_the_end_finds_nothing_without_waiting(
    qm: RunningQueueManager, queue: Queue
) -> None:
    reader = Reader(qm, queue)
    for _ in range(3):
        body(qm, reader.receive())
    assert refusal(reader.receive) == "MQ_ERROR_MESSAGE_NOT_FOUND"
    assert reader.state() is CursorState.UNREAD


@pytest.mark.conformance(
    "MQDMPR-event-cursor_message_available", "MQDMPR-event-waiting_message_read_satisfied"
)
def test_a_waiting_cursor_moves_onto_the_message_that_arrives(
    qm: RunningQueueManager,
) -> None:
    queue = qm.create()
    reader = Reader(qm, queue)
    waiting = reader.receive(10_000)
    assert reader.state() is CursorState.WAIT_RECEIVE
    key = qm.send(queue, b"x")
    assert body(qm, waiting) == b"x"
    assert reader.state() is CursorState.UNREAD
    assert reader.cursor.key == key


def test_a_waiting_cursor_is_woken_by_messages_behind_it_only(
    qm: RunningQueueManager, queue: Queue
) -> None:
    """Matching cursors are woken as well (G62)."""
    reader = Reader(qm, queue)
    body(qm, reader.peek())
    body(qm, reader.peek_next())
    body(qm, reader.peek_next())
    waiting = reader.peek_next(10_000)
    qm.send(queue, b"urgent", priority=7)
    assert not waiting.done
    qm.send(queue, b"d")
    assert body(qm, waiting) == b"d"


@pytest.mark.conformance(
    "MQDMPR-event-cursor_wait_time_expired", "MQDMPR-event-waiting_message_read_timer_stop"
)
def test_after_a_peek_timed_out_the_cursor_is_as_before(
    qm: RunningQueueManager, queue: Queue
) -> None:
    """Back to the previous state (G7)."""
    reader = Reader(qm, queue)
    body(qm, reader.peek())
    body(qm, reader.peek_next())
    body(qm, reader.peek_next())
    waiting = reader.peek_next(1_000)
    qm.advance(1_000)
    assert status(waiting) is HResult.MQ_ERROR_IO_TIMEOUT
    assert reader.state() is CursorState.READ
    assert body(qm, reader.peek()) == b"c"
    unread = Reader(qm, qm.create(r"private$\empty"))
    waiting = unread.peek(1_000)
    qm.advance(1_000)
    assert unread.state() is CursorState.UNREAD


@pytest.mark.conformance(
    "MQDMPR-event-cursor_wait_time_expired", "MQDMPR-event-waiting_message_read_timer_stop"
)
def test_after_a_receive_timed_out_only_later_arrivals_match(qm: RunningQueueManager) -> None:
    """End is remembered as the last position (G7)."""
    queue = qm.create()
    qm.send(queue, b"locked")
    holder = qm.open(queue)
    position = qm.lock(holder)
    reader = Reader(qm, queue)
    waiting = reader.receive(1_000)
    qm.advance(1_000)
    assert status(waiting) is HResult.MQ_ERROR_IO_TIMEOUT
    assert reader.state() is CursorState.UNREAD
    qm.done(qm.engine.messages.dequeue_message_end(holder, position, False))
    assert refusal(reader.receive) == "MQ_ERROR_MESSAGE_NOT_FOUND"
    qm.send(queue, b"later")
    assert body(qm, reader.receive()) == b"later"
    assert qm.bodies(queue) == [b"locked"]


def test_a_peek_without_waiting_at_the_end_changes_nothing(
    qm: RunningQueueManager, queue: Queue
) -> None:
    reader = Reader(qm, queue)
    for step in (reader.peek, reader.peek_next, reader.peek_next):
        body(qm, step())
    assert refusal(reader.peek_next) == "MQ_ERROR_IO_TIMEOUT"
    assert reader.state() is CursorState.READ


def test_somebody_who_waits_with_a_cursor_has_it_alone(qm: RunningQueueManager) -> None:
    reader = Reader(qm, qm.create())
    waiting = reader.peek(10_000)
    for step in (reader.peek, reader.peek_next, reader.receive):
        assert refusal(step) == "MQ_ERROR_ILLEGAL_CURSOR_ACTION"
    assert not waiting.done


@pytest.mark.conformance("MQDMPR-event-close_cursor")
def test_closing_a_cursor_ends_its_waits_and_no_others(qm: RunningQueueManager) -> None:
    queue = qm.create()
    reader = Reader(qm, queue)
    other = qm.engine.readers.open_cursor(reader.descriptor)
    waiting = reader.receive(10_000)
    kept = qm.engine.messages.dequeue_message(reader.descriptor, 10_000, other)
    qm.engine.readers.close_cursor(reader.cursor)
    assert status(waiting) is HResult.MQ_ERROR_OPERATION_CANCELLED
    assert not kept.done
    assert reader.cursor.handle not in qm.engine.readers.cursors
    assert refusal(reader.peek) == "MQ_ERROR_INVALID_HANDLE"


def test_a_cursor_belongs_to_its_descriptor(qm: RunningQueueManager, queue: Queue) -> None:
    reader = Reader(qm, queue)
    another: OpenQueueDescriptor = qm.open(queue)
    peek = qm.engine.messages.peek_message
    assert refusal(peek, another, 0, reader.cursor) == "MQ_ERROR_INVALID_HANDLE"


def test_a_cursor_survives_the_removal_of_its_message(
    qm: RunningQueueManager, queue: Queue
) -> None:
    """A cursor is an identifier, not a place (G7)."""
    reader = Reader(qm, queue)
    body(qm, reader.peek())
    qm.done(qm.engine.queues.purge_queue(queue))
    qm.send(queue, b"d")
    assert refusal(reader.peek) == "MQ_ERROR_MESSAGE_ALREADY_RECEIVED"
    assert body(qm, reader.peek_next()) == b"d"


@pytest.mark.conformance("MQDMPR-event-seek_available_message_position")
def test_locked_messages_can_be_peeked_when_they_allow_it(qm: RunningQueueManager) -> None:
    queue = qm.create()
    key = qm.send(queue, b"open", allow_peek_when_locked=True)
    qm.send(queue, b"next")
    holder, other = qm.open(queue), qm.open(queue)
    position = qm.lock(holder)
    assert position.lookup_identifier == key
    peek = qm.engine.messages.peek_message
    assert body(qm, peek(other, 0)) == b"open"
    assert qm.receive(other) == b"next"
    qm.done(qm.engine.messages.dequeue_message_end(holder, position, True))
    assert refusal(peek, other, 0) == "MQ_ERROR_IO_TIMEOUT"
