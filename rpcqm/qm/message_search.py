"""Finding messages in a queue ([MS-MQDMPR] 3.1.7.3.2, 3.1.7.3.3).

Positions are lookup identifiers; Start is None, and None is also the End that is returned.
"""

from rpcqm.adm.enums import MessageSeekAction, PositionState, SeekDirection
from rpcqm.adm.queue import Queue
from rpcqm.adm.transaction import Transaction
from rpcqm.base.errors import HResult, MQError

_AVAILABLE = PositionState.AVAILABLE


def seek_available_message_position(
    queue: Queue,
    initial_position: int | None,
    peek_operation: bool,
    seek_direction: SeekDirection = SeekDirection.FORWARD,
) -> int | None:
    """The next message that can be read from a position on; None for End (G2).

    `initial_position` need not exist. Start (None) is before everything when seeking forward, End
    (None) behind everything when seeking backward. A peek also finds locked messages that allow it.
    [MS-MQDMPR] 3.1.7.3.2.
    """
    positions = queue.message_position_list
    if seek_direction is SeekDirection.FORWARD:
        if initial_position is None:
            found = positions.first_available()
        else:
            found = positions.next(initial_position)
        if peek_operation and queue.peekable_when_locked:
            return _nearer_peek(queue, initial_position, found)
        return found
    found = positions.last() if initial_position is None else positions.previous(initial_position)
    if peek_operation and queue.peekable_when_locked:
        return _nearer_peek_back(queue, initial_position, found)
    return found


def _nearer_peek(queue: Queue, start: int | None, found: int | None) -> int | None:
    """The first of `found` and the locked messages behind `start` that may be peeked."""
    keys = [
        key
        for key in queue.peekable_when_locked
        if (start is None or key > start) and _is_locked(queue, key)
    ]
    return min(keys if found is None else [*keys, found], default=None)


def _nearer_peek_back(queue: Queue, start: int | None, found: int | None) -> int | None:
    keys = [
        key
        for key in queue.peekable_when_locked
        if (start is None or key < start) and _is_locked(queue, key)
    ]
    return max(keys if found is None else [*keys, found], default=None)


def _is_locked(queue: Queue, key: int) -> bool:
    return queue.message_position_list.state(key) is PositionState.LOCKED


def seek_available_message_position_with_id(
    queue: Queue, lookup_identifier: int, peek_operation: bool, lookup_action: MessageSeekAction
) -> int:
    """The message of a lookup ([MS-MQDMPR] 3.1.7.3.3, by order and not by presence: G34).

    Raises MQ_ERROR_MESSAGE_NOT_FOUND if there is no such message. A locked message asked for by its
    own identifier is MQ_ERROR_TRANSACTION_USAGE to a peek, and to a receive
    MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION when a transaction holds it.
    """
    if lookup_action is MessageSeekAction.SEEK_CURRENT:
        return _seek_current(queue, lookup_identifier, peek_operation)
    start, direction = _SEEKS[lookup_action]
    initial_position = lookup_identifier if start else None
    found = seek_available_message_position(queue, initial_position, peek_operation, direction)
    if found is None:
        raise MQError(HResult.MQ_ERROR_MESSAGE_NOT_FOUND)
    return found


_SEEKS = {
    MessageSeekAction.SEEK_FIRST: (False, SeekDirection.FORWARD),
    MessageSeekAction.SEEK_NEXT: (True, SeekDirection.FORWARD),
    MessageSeekAction.SEEK_PREVIOUS: (True, SeekDirection.BACKWARD),
    MessageSeekAction.SEEK_LAST: (False, SeekDirection.BACKWARD),
}


def _seek_current(queue: Queue, key: int, peek_operation: bool) -> int:
    positions = queue.message_position_list
    state = positions.state(key)
    if state is _AVAILABLE:
        return key
    if state is PositionState.LOCKED:
        if peek_operation:
            if key in queue.peekable_when_locked:
                return key
            raise MQError(HResult.MQ_ERROR_TRANSACTION_USAGE)
        raise MQError(locked_status(queue, key))
    raise MQError(HResult.MQ_ERROR_MESSAGE_NOT_FOUND)


def locked_status(queue: Queue, key: int) -> HResult:
    """The status that another reader gets for a locked message (G34, G60)."""
    if isinstance(queue.message_position_list.owner(key), Transaction):
        return HResult.MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION
    return HResult.MQ_ERROR_MESSAGE_NOT_FOUND
