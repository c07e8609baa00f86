"""What reads, moves and cursors have to fulfil."""

from rpcqm.adm.descriptor import Cursor, OpenQueueDescriptor
from rpcqm.adm.queue import Queue
from rpcqm.adm.transaction import Transaction
from rpcqm.base.errors import HResult, MQError
from rpcqm.qm.cursors import CursorStatus

_CURSOR_STATUS = {
    CursorStatus.ALREADY_RECEIVED: HResult.MQ_ERROR_MESSAGE_ALREADY_RECEIVED,
    CursorStatus.NOT_FOUND: HResult.MQ_ERROR_MESSAGE_NOT_FOUND,
    CursorStatus.ILLEGAL_CURSOR_ACTION: HResult.MQ_ERROR_ILLEGAL_CURSOR_ACTION,
}


def are_related(source: Queue, target: Queue) -> bool:
    """Whether messages can be moved: a queue and its subqueue, or two subqueues (G36)."""
    if source is target or source.is_journal or target.is_journal:
        return False
    return source.main is target.main


def check_join(queue: Queue, transaction: Transaction) -> None:
    """Check what joining a transaction needs: that it is open, and the queue transactional."""
    if transaction.ended or transaction.prepared:
        raise MQError(HResult.MQ_ERROR_TRANSACTION_SEQUENCE)
    if not queue.main.transactional:
        raise MQError(HResult.MQ_ERROR_TRANSACTION_USAGE)


def check_cursor(cursor: Cursor, descriptor: OpenQueueDescriptor) -> None:
    """Check that a cursor belongs to an open queue, and is not closed."""
    if cursor.handle not in descriptor.cursor_collection:
        raise MQError(HResult.MQ_ERROR_INVALID_HANDLE, "a cursor of another handle, or closed")


def key_or_wait(found: tuple[CursorStatus, int]) -> int | None:
    """The key that a cursor has found, None to wait; raises MQError for what it refuses."""
    status, key = found
    if status is CursorStatus.SUCCEEDED:
        return key
    if status is CursorStatus.WAITING:
        return None
    raise MQError(_CURSOR_STATUS[status])
