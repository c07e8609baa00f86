"""What a prepared transaction needs to survive a restart."""

import struct
from collections.abc import Iterator, Mapping
from uuid import UUID

from rpcqm.adm.enums import OperationType, PositionState
from rpcqm.adm.message import (
    FLAG_ALLOW_PEEK_WHEN_LOCKED,
    FLAG_APPLICATION_DEADLETTER,
    Message,
)
from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.adm.transaction import Transaction, TransactionalOperation
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.qm.positions import Positions
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction
from rpcqm.store.uncommitted import UncommittedOperation

Queues = Mapping[int, Queue]

RECORD = b"\x01"
"""Version of the records here."""

_FLAGS = FLAG_ALLOW_PEEK_WHEN_LOCKED | FLAG_APPLICATION_DEADLETTER

_OPERATION = struct.Struct("<BIQI")
_REASON = struct.Struct("<H")
"""The class with which a received message goes, behind the operation."""
_DEQUEUE, _MOVE = 1, 2


def message_data(message: Message) -> bytes:
    """What a staged message needs besides what is stored of it: bits of its position."""
    return bytes((message.position_flags(message.envelope) & _FLAGS,))


def message_of(
    store: Store, transaction: Transaction, operation: TransactionalOperation
) -> Message:
    """The message that an operation sends, from memory or from where it is staged."""
    if operation.message is not None:
        return operation.message
    staged = store.uncommitted[transaction.identifier.bytes_le].operations[operation.staged_number]
    assert staged.serial is not None
    flags = int.from_bytes(staged.data, "little") & _FLAGS
    message = Message.restored(store.read_packet(staged.serial), flags)
    message.allow_peek_when_locked = bool(flags & FLAG_ALLOW_PEEK_WHEN_LOCKED)
    return message


def prepare(change: StoreTransaction, transaction: Transaction) -> None:
    """Stage receives and moves, which are in memory only until now, and the decision itself."""
    identifier = transaction.identifier.bytes_le
    for operation in transaction.transactional_operation_collection:
        if operation.operation_type is not OperationType.ENQUEUE:
            target = operation.target_queue_reference
            data = _OPERATION.pack(
                _DEQUEUE if target is None else _MOVE,
                operation.queue.queue_id,
                operation.lookup_identifier,
                0 if target is None else target.queue_id,
            )
            if target is None:
                data += _REASON.pack(operation.dequeue_reason)
            change.stage(identifier, data)
    change.prepare(identifier, RECORD)


def recover(
    store: Store, queue_manager: QueueManager, positions: Positions
) -> Iterator[Transaction]:
    """Bring back the transactions that were prepared, with their messages locked again."""
    queues = queue_manager.queue_collection
    for staged in store.uncommitted.values():
        identifier = UUID(bytes_le=staged.transaction_id)
        transaction = Transaction(identifier, single_phase=False, prepared=True)
        queue_manager.transaction_collection[identifier] = transaction
        for operation in staged.operations.values():
            recovered = _recover(queues, positions, operation, transaction)
            if recovered is not None:
                transaction.transactional_operation_collection.append(recovered)
        yield transaction


def _recover(
    queues: Queues, positions: Positions, operation: UncommittedOperation, transaction: Transaction
) -> TransactionalOperation | None:
    if operation.serial is not None:
        queue = queues.get(operation.queue_id) or Queue(queue_id=operation.queue_id)
        return TransactionalOperation(OperationType.ENQUEUE, queue, staged_number=operation.number)
    return _dequeue_or_move(queues, positions, operation, transaction)


def _dequeue_or_move(
    queues: Queues, positions: Positions, operation: UncommittedOperation, transaction: Transaction
) -> TransactionalOperation | None:
    kind, queue_id, key, target_id = _OPERATION.unpack_from(operation.data)
    queue = queues.get(queue_id)
    if queue is None:
        return None
    if queue.message_position_list.state(key) is PositionState.AVAILABLE:
        message = positions.message_at(queue, key)
        positions.lock(queue, message, transaction)
    if kind == _DEQUEUE:
        reason = _reason(operation.data)
        return TransactionalOperation(OperationType.DEQUEUE, queue, key, dequeue_reason=reason)
    target = queues.get(target_id)
    if target is None:
        return None
    target.pending_moves += 1
    return TransactionalOperation(OperationType.MOVE, queue, key, target_queue_reference=target)


def _reason(data: bytes) -> MessageClass:
    """Whether a message was received or rejected; earlier versions did not keep that."""
    if len(data) == _OPERATION.size:
        return MessageClass.MQMSG_CLASS_ACK_RECEIVE
    return MessageClass(_REASON.unpack_from(data, _OPERATION.size)[0])
