"""What a prepared transaction needs to survive a restart."""

import struct
from typing import TYPE_CHECKING
from uuid import UUID

from rpcqm.adm.enums import OperationType, PositionState
from rpcqm.adm.message import (
    FLAG_ALLOW_PEEK_WHEN_LOCKED,
    FLAG_APPLICATION_DEADLETTER,
    Message,
)
from rpcqm.adm.queue import Queue
from rpcqm.adm.transaction import Transaction, TransactionalOperation
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.store.staged import StagedOperation, StagedTransaction
from rpcqm.store.store import Store
from rpcqm.store.transaction import Transaction as StoreTransaction

if TYPE_CHECKING:
    from rpcqm.qm.engine import QueueManagerEngine

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
    staged = store.staged[transaction.identifier.bytes_le].operations[operation.staged_number]
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


def recover(engine: "QueueManagerEngine") -> None:
    """Bring back the transactions that were prepared, with their messages locked again."""
    for staged in engine.store.staged.values():
        identifier = UUID(bytes_le=staged.transaction_id)
        transaction = Transaction(identifier, single_phase=False, prepared=True)
        engine.queue_manager.transaction_collection[identifier] = transaction
        _recover_operations(engine, staged, transaction)
        engine.transactions.mark_batches(transaction)


def _recover_operations(
    engine: "QueueManagerEngine", staged: StagedTransaction, transaction: Transaction
) -> None:
    for operation in staged.operations.values():
        recovered = _recover(engine, operation, transaction)
        if recovered is not None:
            transaction.transactional_operation_collection.append(recovered)


def _recover(
    engine: "QueueManagerEngine", operation: StagedOperation, transaction: Transaction
) -> TransactionalOperation | None:
    if operation.serial is not None:
        queue = engine.queues.by_id.get(operation.queue_id) or Queue(queue_id=operation.queue_id)
        return TransactionalOperation(OperationType.ENQUEUE, queue, staged_number=operation.number)
    return _dequeue_or_move(engine, operation, transaction)


def _dequeue_or_move(
    engine: "QueueManagerEngine", operation: StagedOperation, transaction: Transaction
) -> TransactionalOperation | None:
    kind, queue_id, key, target_id = _OPERATION.unpack_from(operation.data)
    queue = engine.queues.by_id.get(queue_id)
    if queue is None:
        return None
    positions = queue.message_position_list
    if positions.state(key) is PositionState.AVAILABLE:
        message = engine.positions.message_at(queue, key)
        engine.positions.lock(queue, message, transaction)
    if kind == _DEQUEUE:
        reason = _reason(operation.data)
        return TransactionalOperation(OperationType.DEQUEUE, queue, key, dequeue_reason=reason)
    target = engine.queues.by_id.get(target_id)
    if target is None:
        return None
    target.pending_moves += 1
    return TransactionalOperation(OperationType.MOVE, queue, key, target_queue_reference=target)


def _reason(data: bytes) -> MessageClass:
    """Whether a message was received or rejected; earlier versions did not keep that."""
    if len(data) == _OPERATION.size:
        return MessageClass.MQMSG_CLASS_ACK_RECEIVE
    return MessageClass(_REASON.unpack_from(data, _OPERATION.size)[0])
