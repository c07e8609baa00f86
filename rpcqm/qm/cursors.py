"""The state machine of a cursor ([MS-MQDMPR] 3.2).

A cursor remembers an identifier, never a place in memory (G7). What the specification returns as
rStatus is here a CursorStatus together with the key found.
"""

import enum

from rpcqm.adm.descriptor import Cursor
from rpcqm.adm.enums import CursorState, PositionState
from rpcqm.adm.queue import Queue
from rpcqm.qm.message_search import seek_available_message_position


class CursorStatus(enum.Enum):
    """The results of the events of [MS-MQDMPR] 3.2.7."""

    SUCCEEDED = "Succeeded"
    ALREADY_RECEIVED = "AlreadyReceived"
    NOT_FOUND = "NotFound"
    WAITING = "Waiting"
    ILLEGAL_CURSOR_ACTION = "IllegalCursorAction"


Found = tuple[CursorStatus, int]

_SUCCEEDED = CursorStatus.SUCCEEDED
_WAITING = (CursorStatus.WAITING, 0)
_ILLEGAL = (CursorStatus.ILLEGAL_CURSOR_ACTION, 0)
_ALREADY_RECEIVED = (CursorStatus.ALREADY_RECEIVED, 0)


def initialize(cursor: Cursor) -> None:
    """Place a cursor before the first message ([MS-MQDMPR] 3.2.7.1)."""
    cursor.key = None
    cursor.cursor_state = CursorState.UNREAD


def get_message_for_peek(cursor: Cursor, queue: Queue) -> Found:
    """The current message, or the next one when it was not read yet ([MS-MQDMPR] 3.2.7.2).

    One that was locked meanwhile is still seen where peeks may see it (G294). The status is
    IllegalCursorAction if a reader waits with the cursor.
    """
    if cursor.cursor_state is CursorState.READ:
        found = _current(cursor, queue)
        if found is _ALREADY_RECEIVED and cursor.key in queue.peekable_when_locked:
            return _SUCCEEDED, cursor.key
        return found
    if cursor.cursor_state is not CursorState.UNREAD:
        return _ILLEGAL
    return _advance_for_peek(cursor, queue)


def get_next_message_for_peek(cursor: Cursor, queue: Queue) -> Found:
    """The message behind the current one; illegal before one was read ([MS-MQDMPR] 3.2.7.3)."""
    if cursor.cursor_state is not CursorState.READ:
        return _ILLEGAL
    return _advance_for_peek(cursor, queue)


def get_next_message_for_dequeue(cursor: Cursor, queue: Queue, no_wait: bool) -> Found:
    """The current message when it was read, else the next one ([MS-MQDMPR] 3.2.7.4)."""
    if cursor.cursor_state is CursorState.READ:
        found = _current(cursor, queue)
        if found[0] is _SUCCEEDED:
            cursor.cursor_state = CursorState.UNREAD
        return found
    if cursor.cursor_state is not CursorState.UNREAD:
        return _ILLEGAL
    key = seek_available_message_position(queue, cursor.key, peek_operation=False)
    if key is None:
        if no_wait:
            return CursorStatus.NOT_FOUND, 0
        return _wait(cursor, CursorState.WAIT_RECEIVE)
    cursor.key = key
    return _SUCCEEDED, key


def message_available(cursor: Cursor, key: int) -> None:
    """The message that the cursor waited for has come ([MS-MQDMPR] 3.2.7.5)."""
    if cursor.cursor_state is CursorState.WAIT_PEEK:
        cursor.cursor_state = CursorState.READ
    elif cursor.cursor_state is CursorState.WAIT_RECEIVE:
        cursor.cursor_state = CursorState.UNREAD
    cursor.key = key


def wait_time_expired(cursor: Cursor) -> None:
    """Nothing has come ([MS-MQDMPR] 3.2.7.6).

    After a receive the cursor is at End, which is remembered as the last key of the queue; after
    a peek it is as it was before (G7).
    """
    if cursor.cursor_state is CursorState.WAIT_RECEIVE:
        queue = cursor.open_queue_descriptor_reference.queue_reference
        last = queue.message_position_list.last(False) if queue is not None else None
        if last is not None and (cursor.key is None or last > cursor.key):
            cursor.key = last
        cursor.cursor_state = CursorState.UNREAD
    elif cursor.cursor_state is CursorState.WAIT_PEEK:
        cursor.cursor_state = cursor.state_before_wait


def _current(cursor: Cursor, queue: Queue) -> Found:
    key = cursor.key
    if key is not None and queue.message_position_list.state(key) is PositionState.AVAILABLE:
        return _SUCCEEDED, key
    return _ALREADY_RECEIVED


def _advance_for_peek(cursor: Cursor, queue: Queue) -> Found:
    key = seek_available_message_position(queue, cursor.key, peek_operation=True)
    if key is None:
        return _wait(cursor, CursorState.WAIT_PEEK)
    cursor.key = key
    cursor.cursor_state = CursorState.READ
    return _SUCCEEDED, key


def _wait(cursor: Cursor, state: CursorState) -> Found:
    cursor.state_before_wait = cursor.cursor_state
    cursor.cursor_state = state
    return _WAITING
