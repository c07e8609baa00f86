"""Units of work ([MS-MQDMPR] 3.1.4.3 to .5, 3.1.7.1.8)."""

from collections.abc import Callable
from functools import partial
from uuid import UUID

from rpcqm.adm.enums import OperationType, PositionState
from rpcqm.adm.message import (
    FLAG_ALLOW_PEEK_WHEN_LOCKED,
    FLAG_APPLICATION_DEADLETTER,
    Envelope,
    Message,
)
from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.adm.transaction import Transaction, TransactionalOperation
from rpcqm.base.clock import Clock
from rpcqm.base.completion import Completion, completed
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.origin import ORIGIN
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.qm.acknowledgements import Acknowledgements
from rpcqm.qm.composing import Composer
from rpcqm.qm.failed_deliveries import FailedDeliveries
from rpcqm.qm.positions import Positions, UncommittedMessage, purge_reason
from rpcqm.qm.registry import QueueRegistry
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction

_STAGED_FLAGS = FLAG_ALLOW_PEEK_WHEN_LOCKED | FLAG_APPLICATION_DEADLETTER
"""What a staged message needs besides what is stored of it: bits of its position."""


class Transactions:
    """Transactions that are open, and their ends.

    Everything that a transaction does reaches the disk, and becomes visible, as one.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        queue_manager: QueueManager,
        registry: QueueRegistry,
        positions: Positions,
        composer: Composer,
        acknowledgements: Acknowledgements,
        failed_deliveries: FailedDeliveries,
    ) -> None:
        self._store = store
        self._clock = clock
        self._registry = registry
        self._positions = positions
        self._composer = composer
        self._acknowledgements = acknowledgements
        self._failed_deliveries = failed_deliveries
        self._collection = queue_manager.transaction_collection

    def create_transaction(self, identifier: UUID, owner: str | None = None) -> Transaction:
        """Begin a unit of work ([MS-MQDMPR] 3.1.7.1.8), which its `owner` alone may join (G87).

        Raises MQ_ERROR_TRANSACTION_SEQUENCE if there is one of that identifier already.
        """
        if identifier in self._collection:
            raise MQError(HResult.MQ_ERROR_TRANSACTION_SEQUENCE, "the transaction exists already")
        begun, origin = self._clock.now(), ORIGIN.get()
        transaction = Transaction(identifier, owner=owner, begun=begun, origin=origin)
        self._collection[identifier] = transaction
        return transaction

    def find(self, identifier: UUID, caller: str | None = None) -> Transaction:
        """An open transaction; raises MQ_ERROR_TRANSACTION_SEQUENCE if it is unknown (G39).

        For a `caller`, by its SID, those of others are unknown (G87); the queue manager itself
        finds all of them.
        """
        transaction = self._collection.get(identifier)
        if transaction is None or caller not in (None, transaction.owner):
            raise MQError(HResult.MQ_ERROR_TRANSACTION_SEQUENCE, "unknown transaction")
        return transaction

    def has(self, identifier: UUID, caller: str) -> bool:
        """Whether a caller, by its SID, has such a transaction open."""
        transaction = self._collection.get(identifier)
        return transaction is not None and transaction.owner == caller

    # Joining and leaving

    def stage_enqueue(
        self, transaction: Transaction, queue: Queue, message: Message, envelope: Envelope
    ) -> None:
        """Keep a message until the commit; its quota is reserved now (G56).

        It has no lookup identifier before the commit (G54). Raises MQ_ERROR_TRANSACTION_SEQUENCE if
        the transaction has ended, MQ_ERROR_TRANSACTION_USAGE for a message that is not
        transactional itself.
        """
        if transaction.ended or transaction.prepared:
            raise MQError(HResult.MQ_ERROR_TRANSACTION_SEQUENCE)
        if not envelope.transactional:
            raise MQError(HResult.MQ_ERROR_TRANSACTION_USAGE, "the message has no transaction")
        key = transaction.identifier.bytes_le
        operation = TransactionalOperation(OperationType.ENQUEUE, queue, message=message)
        with self._store.transaction("stage") as change:
            data = bytes((message.position_flags(message.envelope) & _STAGED_FLAGS,))
            operation.staged_number = change.stage_message(
                key, queue.queue_id, message.stored, data
            )
            change.call_after(partial(_written, operation))
        transaction.transactional_operation_collection.append(operation)

    def leave(
        self, transaction: Transaction, queue: Queue, key: int, delivered: bool
    ) -> Completion[None]:
        """Take a received message out of its transaction, and give it back (G38).

        That counts as an abort if it was `delivered` (G180). Raises MQ_ERROR_TRANSACTION_SEQUENCE
        if it was not received there, or the transaction is prepared (G73).
        """
        if transaction.prepared or not self.forget(transaction, queue, key):
            raise MQError(HResult.MQ_ERROR_TRANSACTION_SEQUENCE)
        if delivered:
            return self._failed_deliveries.give_back(queue, key)
        self._positions.release(queue, key)
        return completed(None)

    def forget(self, transaction: Transaction, queue: Queue, key: int) -> bool:
        """Strike out that a transaction has received a message, which stays locked.

        Returns False if it has not.
        """
        operations = transaction.transactional_operation_collection
        for operation in operations:
            if (
                operation.operation_type is OperationType.DEQUEUE
                and operation.queue is queue
                and operation.lookup_identifier == key
            ):
                operations.remove(operation)
                return True
        return False

    # Ends

    def transaction_prepare(self, identifier: UUID) -> None:
        """Mark the first and the last message for each destination ([MS-MQDMPR] 3.1.4.3, G8).

        Both are counted over what goes to one queue, not over all operations. A commit begins
        with it (G144). Raises MQ_ERROR_TRANSACTION_SEQUENCE if it is prepared already.
        """
        transaction = self.find(identifier)
        if transaction.prepared:
            raise MQError(HResult.MQ_ERROR_TRANSACTION_SEQUENCE, "prepared already")
        transaction.prepared = True
        batches: dict[int, list[TransactionalOperation]] = {}
        for operation in transaction.transactional_operation_collection:
            if operation.operation_type is OperationType.ENQUEUE:
                batches.setdefault(operation.queue.queue_id, []).append(operation)
        for batch in batches.values():
            for operation in (batch[0], batch[-1]):
                first, last = operation is batch[0], operation is batch[-1]
                message = self._message_of(transaction, operation)
                if self._composer.mark_in_transaction(message, first, last):
                    operation.message, operation.marked = message, True

    def _message_of(self, transaction: Transaction, operation: TransactionalOperation) -> Message:
        """The message that an operation sends, from memory or from where it is staged."""
        if operation.message is not None:
            return operation.message
        staged = self._store.uncommitted[transaction.identifier.bytes_le]
        stored = staged.operations[operation.staged_number]
        assert stored.serial is not None
        flags = int.from_bytes(stored.data, "little")
        message = Message.restored(self._store.read_packet(stored.serial), flags)
        message.allow_peek_when_locked = bool(flags & FLAG_ALLOW_PEEK_WHEN_LOCKED)
        return message

    def transaction_commit(
        self, identifier: UUID, also: Callable[[StoreTransaction], None] | None = None
    ) -> Completion[None]:
        """Make everything that a transaction did happen ([MS-MQDMPR] 3.1.4.4).

        The completion succeeds when it is durable and visible. `also` adds to the commit what is
        in no transaction of messages; what it raises leaves the transaction prepared.
        """
        transaction = self.find(identifier)
        if not transaction.prepared:
            self.transaction_prepare(identifier)
        with self._store.transaction("commit") as change:
            for operation in transaction.transactional_operation_collection:
                self._commit(change, transaction, operation)
            if also is not None:
                also(change)
            change.unstage(identifier.bytes_le)
            change.call_after(partial(self._ended, transaction))
        self._close(transaction)
        return change.committed

    def _commit(
        self,
        change: StoreTransaction,
        transaction: Transaction,
        operation: TransactionalOperation,
    ) -> None:
        if operation.operation_type is OperationType.ENQUEUE:
            self._commit_enqueue(change, transaction, operation)
            return
        queue, key = operation.queue, operation.lookup_identifier
        if not _is_held(queue, key, transaction):
            return
        target = operation.target_queue_reference
        if target is None:
            reason = MessageClass(operation.dequeue_reason)
            self._positions.message_position_deleted(change, queue, key, reason)
        elif target.queue_manager is not None:
            self._positions.move(change, queue, key, target)
        else:  # the target has been deleted: the message stays where it is
            change.call_after(partial(self._positions.release, queue, key))

    def _commit_enqueue(
        self,
        change: StoreTransaction,
        transaction: Transaction,
        operation: TransactionalOperation,
    ) -> None:
        """Give the message its identifier and its place (G54).

        One whose queue has been deleted meanwhile is treated as those that were in it.
        """
        queue = operation.queue
        message = self._message_of(transaction, operation)
        if queue.queue_manager is None:
            deleted = MessageClass.MQMSG_CLASS_NACK_Q_DELETED
            self._acknowledgements.message_lost(change, message, deleted)
            return
        place = UncommittedMessage(
            transaction.identifier.bytes_le, operation.staged_number, operation.marked
        )
        self._positions.arrive(change, queue, message, message.envelope, staged=place)

    def transaction_abort(self, identifier: UUID) -> Completion[None]:
        """Undo everything that a transaction did ([MS-MQDMPR] 3.1.4.5).

        What it received or moved is available again, with one abort more, when the completion
        succeeds; or removed, when its queue was purged meanwhile; or put aside, when it was
        received once too often.
        """
        transaction = self.find(identifier)
        undone = [
            (operation, self._place_after(transaction, operation))
            for operation in transaction.transactional_operation_collection
            if operation.operation_type is not OperationType.ENQUEUE
        ]
        with self._store.transaction("abort") as change:
            for operation, place in undone:
                self._undo(change, transaction, operation, place)
            change.unstage(identifier.bytes_le)
            change.call_after(partial(self._ended, transaction))
        self._close(transaction)
        return change.committed

    def abort_all(self, owner: str) -> None:
        """Abort what an account has begun and not ended."""
        for transaction in list(self._collection.values()):
            if transaction.owner == owner and not transaction.prepared:
                self.transaction_abort(transaction.identifier)

    def _place_after(
        self, transaction: Transaction, operation: TransactionalOperation
    ) -> Queue | None:
        """The subqueue that an abort puts a message aside in; None if it stays."""
        queue, key = operation.queue, operation.lookup_identifier
        purged = queue.message_position_list.state(key) is PositionState.PURGE_PENDING
        if purged or not _is_held(queue, key, transaction):
            return None
        return self._failed_deliveries.next_place(queue, key)

    def _undo(
        self,
        change: StoreTransaction,
        transaction: Transaction,
        operation: TransactionalOperation,
        place: Queue | None,
    ) -> None:
        queue, key = operation.queue, operation.lookup_identifier
        if not _is_held(queue, key, transaction):
            return
        if queue.message_position_list.state(key) is PositionState.PURGE_PENDING:
            # A message that nobody has received was purged, as after a restart (G465).
            self._positions.message_position_deleted(change, queue, key, purge_reason(queue))
            return
        self._failed_deliveries.count(change, queue, key, place)
        if place is None:
            change.call_after(partial(self._positions.release, queue, key))

    def _close(self, transaction: Transaction) -> None:
        """End a transaction: nothing joins it any more, and its identifier is unknown."""
        transaction.ended = True
        del self._collection[transaction.identifier]

    def _ended(self, transaction: Transaction) -> None:
        """Drop the subqueues that only its moves kept, once its end is durable (G58)."""
        for operation in transaction.transactional_operation_collection:
            target = operation.target_queue_reference
            if target is not None:
                target.pending_moves -= 1
                self._registry.drop_if_unused(target)


def _written(operation: TransactionalOperation) -> None:
    """Forget a message that is on the disk: a transaction may be larger than the memory."""
    if not operation.marked:
        operation.message = None


def _is_held(queue: Queue, key: int, transaction: Transaction) -> bool:
    """Whether the transaction still holds the message: its queue may have been deleted."""
    positions = queue.message_position_list
    held = positions.state(key) in (PositionState.LOCKED, PositionState.PURGE_PENDING)
    return queue.queue_manager is not None and held and positions.owner(key) is transaction
