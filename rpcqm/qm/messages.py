"""Sending, reading and moving messages ([MS-MQDMPR] 3.1.7.1.9 to .16, .27)."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial

from rpcqm.adm.descriptor import Cursor, OpenQueueDescriptor
from rpcqm.adm.enums import (
    MessageSeekAction,
    OperationType,
    PositionState,
    QueueType,
)
from rpcqm.adm.message import (
    Envelope,
    Message,
    MessagePosition,
)
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.transaction import Transaction, TransactionalOperation
from rpcqm.base.clock import Clock
from rpcqm.base.completion import Completion, completed
from rpcqm.base.errors import HResult, MQError, NtStatus
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.types.mqvalues import INFINITE, QueueAccessType, QueuePrivacyLevel
from rpcqm.qm import cursors
from rpcqm.qm.access import READING, RECEIVING
from rpcqm.qm.composing import Composer
from rpcqm.qm.failed_deliveries import FailedDeliveries
from rpcqm.qm.message_search import (
    locked_status,
    seek_available_message_position,
    seek_available_message_position_with_id,
)
from rpcqm.qm.positions import Positions, purge_reason
from rpcqm.qm.protection import Protection
from rpcqm.qm.protocol_records import Changes, apply_changes
from rpcqm.qm.quotas import Quotas, refuse_late
from rpcqm.qm.readers import WaitingReaders
from rpcqm.qm.reading_rules import are_related, check_cursor, check_join, key_or_wait
from rpcqm.qm.registry import QueueRegistry
from rpcqm.qm.standing_orders import Admission
from rpcqm.qm.transactions import Transactions
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction


@dataclass(eq=False, repr=False)
class MessageEvents:
    """The events that put messages into queues and get them out again.

    Timeouts are milliseconds (G15). A completion succeeds when its effect is as durable as the
    message asks for.
    """

    _store: Store
    _clock: Clock
    _registry: QueueRegistry
    _readers: WaitingReaders
    _quotas: Quotas
    _positions: Positions
    _composer: Composer
    _protection: Protection
    _transactions: Transactions
    _failed_deliveries: FailedDeliveries
    _admission: Admission

    # Sending

    def enqueue_message(
        self,
        queue: Queue,
        message: Message,
        transaction: Transaction | None = None,
        changes: Changes | None = None,
    ) -> Completion[None]:
        """Store a message in a queue ([MS-MQDMPR] 3.1.7.1.9).

        Without a transaction the completion succeeds when the message is as durable as it asks
        for, and can be read by then. `changes` of a protocol's records belong to the same commit.
        Raises EnqueueRefusedError for the statuses 1 to 3, MQ_ERROR_QUEUE_DELETED if the queue is
        gone.
        """
        envelope = self._admit(queue, message)
        if transaction is not None:
            self._transactions.stage_enqueue(transaction, queue, message, envelope)
            return completed(None)
        outcome: Completion[None] = Completion()
        with self._store.transaction("enqueue") as store_transaction:
            self._positions.arrive(store_transaction, queue, message, envelope, outcome=outcome)
            if changes:
                apply_changes(store_transaction, changes)
        return outcome

    def _admit(self, queue: Queue, message: Message) -> Envelope:
        """Check that a queue is there, has room, and that the message is not late."""
        try:
            if queue.queue_manager is None:
                raise MQError(HResult.MQ_ERROR_QUEUE_DELETED)
            self._quotas.admit(queue, message.stored_size)
            envelope = message.envelope
            if not isinstance(queue, OutgoingQueue):
                refuse_late(envelope, self._clock.now() // 1000)
        except MQError as error:
            self._watch_refused(queue, message, error)
            raise
        return envelope

    def _watch_refused(self, queue: Queue, message: Message, error: MQError) -> None:
        if self._positions.watch is not None:
            self._positions.watch.refused(queue, message, error.status.name)

    def watch_rejected(self, message: Message, reason: MessageClass) -> None:
        """Report to the watch that a message of another queue manager is refused."""
        if self._positions.watch is not None:
            self._positions.watch.rejected(message, reason)

    def watch_received(self, queue: Queue, message: Message, settles: bool) -> None:
        """Report to the watch that a message was received; it `settles` if its reader decides
        later."""
        watch = self._positions.watch
        if watch is not None:
            watch.received(queue, message, watch.now(), settles)

    def enqueue_message_to_an_open_queue(
        self,
        descriptor: OpenQueueDescriptor,
        message: Message,
        transaction: Transaction | None = None,
        *,
        moved: bool = False,
    ) -> Completion[None]:
        """Send to an open queue, or to several ([MS-MQDMPR] 3.1.7.1.27).

        With `moved` it replaces a message that leaves a local queue in the same commit. Raises
        MQ_ERROR_ACCESS_DENIED unless the queue was opened for sending, MQ_ERROR_TRANSACTION_USAGE
        if a local queue is transactional and the sending is not, or the other way round,
        MaintenanceError, and MQError as `Protection.check_sent` does. With several queues the first
        refusal ends it, and messages sent before stay sent.
        """
        if descriptor.multiple and descriptor.access_type == QueueAccessType.SEND_ACCESS:
            return self._enqueue_to_several(descriptor, message, transaction)
        queue = self._queue_for(descriptor, message, transaction is not None, moved)
        return self.enqueue_message(queue, message, transaction)

    def enqueue_in(
        self,
        change: StoreTransaction,
        descriptor: OpenQueueDescriptor,
        message: Message,
        *,
        moved: bool = False,
    ) -> None:
        """Add the sending of a message outside transactions to a commit; raises as the above."""
        if descriptor.multiple:
            for single in descriptor.open_queue_descriptor_collection:
                copy = self._composer.readdressed(message, single, descriptor)
                self.enqueue_in(change, single, copy)
            return
        queue = self._queue_for(descriptor, message, False, moved)
        envelope = self._admit(queue, message)
        self._positions.arrive(change, queue, message, envelope)

    def _queue_for(
        self, descriptor: OpenQueueDescriptor, message: Message, transactional: bool, moved: bool
    ) -> Queue:
        """The queue that was opened for sending, if it takes such a message."""
        if descriptor.access_type != QueueAccessType.SEND_ACCESS:
            raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, "not opened for sending")
        queue = descriptor.queue_reference
        if queue is None:
            raise MQError(HResult.MQ_ERROR_QUEUE_NOT_AVAILABLE)
        try:
            here = not isinstance(queue, OutgoingQueue)
            if not (moved and here):
                self._admission.check()
            if here:
                self._check_kind(queue, message, transactional)
        except MQError as error:
            self._watch_refused(queue, message, error)
            raise
        return queue

    def _check_kind(self, queue: Queue, message: Message, transactional: bool) -> None:
        """Check that a queue here takes messages like this one."""
        if queue.transactional != transactional:
            raise MQError(HResult.MQ_ERROR_TRANSACTION_USAGE)
        if (
            queue.authentication
            or queue.privacy_level is not QueuePrivacyLevel.MQ_PRIV_LEVEL_OPTIONAL
        ):
            self._protection.check_sent(queue, message)

    def _enqueue_to_several(
        self, descriptor: OpenQueueDescriptor, message: Message, transaction: Transaction | None
    ) -> Completion[None]:
        last = completed(None)
        for single in descriptor.open_queue_descriptor_collection:
            copy = self._composer.readdressed(message, single, descriptor)
            last = self.enqueue_message_to_an_open_queue(single, copy, transaction)
        return last

    # Receiving

    def dequeue_message(
        self,
        descriptor: OpenQueueDescriptor,
        timeout: int = INFINITE,
        cursor: Cursor | None = None,
        transaction: Transaction | None = None,
        tag: Hashable | None = None,
        two_phase_read: bool = False,
    ) -> Completion[Message]:
        """Receive the first message, or the one at a cursor ([MS-MQDMPR] 3.1.7.1.10).

        With a transaction, or as a two-phase read, the message is locked; else it is removed, and
        the completion succeeds once that is durable. `tag` names the wait, for cancelling it. The
        completion fails with IO_TIMEOUT, MESSAGE_NOT_FOUND and MESSAGE_ALREADY_RECEIVED of a
        cursor, QUEUE_NOT_AVAILABLE, OPERATION_CANCELLED, QUEUE_DELETED, ACCESS_DENIED,
        TRANSACTION_USAGE, TRANSACTION_SEQUENCE.
        """
        queue = self.opened(descriptor, RECEIVING)
        if transaction is not None:
            check_join(queue, transaction)
        if cursor is None:
            key = queue.message_position_list.first_available()
        else:
            check_cursor(cursor, descriptor)
            found = cursors.get_next_message_for_dequeue(cursor, queue, timeout <= 0)
            key = key_or_wait(found)
        if key is None:
            take = partial(self._take, descriptor, queue, transaction, two_phase_read)
            return self._readers.wait_for_new_message(descriptor, timeout, True, tag, cursor, take)
        return self._take(descriptor, queue, transaction, two_phase_read, key)

    def dequeue_message_begin(
        self,
        descriptor: OpenQueueDescriptor,
        timeout: int = INFINITE,
        cursor: Cursor | None = None,
        tag: Hashable | None = None,
        transaction: Transaction | None = None,
    ) -> Completion[Message]:
        """Lock a message until Dequeue Message End ([MS-MQDMPR] 3.1.7.1.11)."""
        return self.dequeue_message(descriptor, timeout, cursor, transaction, tag, True)

    def _take(
        self,
        descriptor: OpenQueueDescriptor,
        queue: Queue,
        transaction: Transaction | None,
        two_phase_read: bool,
        key: int,
    ) -> Completion[Message]:
        """Carry out the read of an available message."""
        message = self._positions.message_at(queue, key)
        if transaction is not None:
            check_join(queue, transaction)
            self._positions.lock(queue, message, transaction)
            transaction.transactional_operation_collection.append(
                TransactionalOperation(
                    OperationType.DEQUEUE,
                    queue,
                    key,
                    dequeue_reason=MessageClass.MQMSG_CLASS_ACK_RECEIVE,
                )
            )
            self.watch_received(queue, message, settles=True)
            return completed(message)
        if two_phase_read:
            self.hold(descriptor, queue, message)
            return completed(message)
        return self._delete(queue, key, MessageClass.MQMSG_CLASS_ACK_RECEIVE, message)

    def first_message(self, descriptor: OpenQueueDescriptor, *, receiving: bool) -> Message | None:
        """The message of a read without a cursor, if it needs no wait.

        Raises MQError as `dequeue_message` and `peek_message` do.
        """
        queue = self.opened(descriptor, RECEIVING if receiving else READING)
        if receiving:
            key = queue.message_position_list.first_available()
        else:
            key = seek_available_message_position(queue, None, peek_operation=True)
        return None if key is None else self._positions.message_at(queue, key)

    def hold(
        self,
        descriptor: OpenQueueDescriptor,
        queue: Queue,
        message: Message,
        settles: bool = True,
    ) -> None:
        """Lock a message until Dequeue Message End; MQ_ERROR_MESSAGE_NOT_FOUND if it has gone.

        It `settles` if its reader decides later whether it is removed.
        """
        self._positions.lock(queue, message, descriptor)
        descriptor.two_phase_reads.add(message.lookup_identifier)
        self.watch_received(queue, message, settles)

    def _delete(
        self, queue: Queue, key: int, reason: MessageClass, message: Message
    ) -> Completion[Message]:
        if isinstance(queue, OutgoingQueue):
            reason = purge_reason(queue)
        outcome: Completion[Message] = Completion()
        with self._store.transaction("dequeue") as transaction:
            self._positions.message_position_deleted(transaction, queue, key, reason)
            if self._positions.watch is not None:
                self.watch_received(queue, message, settles=False)
            transaction.call_after(partial(outcome.succeed, message))
        return outcome

    def dequeue_message_end(
        self,
        descriptor: OpenQueueDescriptor,
        position: MessagePosition,
        delete_message: bool,
        transaction: Transaction | None = None,
        delivered: bool = False,
    ) -> Completion[None]:
        """Remove a message that Dequeue Message Begin locked, or give it back.

        If it was `delivered` and comes back all the same, that counts as an abort (G180).

        A read in a `transaction` that is kept stays in it; one that is given back leaves it (G38).
        Raises MQ_ERROR_TRANSACTION_SEQUENCE if the transaction, or else the descriptor, does not
        hold the message, MQ_ERROR_MESSAGE_NOT_FOUND if it is gone. Source: [MS-MQDMPR]
        3.1.7.1.12.
        """
        queue = descriptor.queue_reference
        if queue is None:
            raise MQError(HResult.MQ_ERROR_QUEUE_NOT_AVAILABLE)
        key = position.lookup_identifier
        positions = queue.message_position_list
        state = positions.state(key)
        if state is PositionState.DELETED:
            raise MQError(HResult.MQ_ERROR_MESSAGE_NOT_FOUND)
        owner = positions.owner(key)
        if transaction is not None:
            if owner is not transaction or transaction.ended:
                raise MQError(HResult.MQ_ERROR_TRANSACTION_SEQUENCE)
            if not delete_message:
                return self._transactions.leave(transaction, queue, key, delivered)
            return completed(None)
        if owner is not descriptor or state is PositionState.LEAVING:
            raise MQError(HResult.MQ_ERROR_TRANSACTION_SEQUENCE)
        purged = state is PositionState.PURGE_PENDING
        if delivered and not delete_message:
            descriptor.two_phase_reads.discard(key)
            return self._failed_deliveries.give_back(queue, key)
        return self._end_two_phase(descriptor, queue, key, delete_message, purged)

    def end_read(
        self,
        descriptor: OpenQueueDescriptor,
        message: Message,
        delete_message: bool,
        transaction: Transaction | None = None,
    ) -> Completion[None]:
        """Remove a message that `dequeue_message_begin` has locked, or give it back."""
        queue = message.queue
        assert queue is not None
        position = MessagePosition(queue, message.lookup_identifier)
        return self.dequeue_message_end(descriptor, position, delete_message, transaction)

    def _end_two_phase(
        self,
        descriptor: OpenQueueDescriptor,
        queue: Queue,
        key: int,
        delete_message: bool,
        purged: bool,
    ) -> Completion[None]:
        descriptor.two_phase_reads.discard(key)
        if not delete_message and not purged:
            self._positions.release(queue, key)
            return completed(None)
        reason = MessageClass.MQMSG_CLASS_ACK_RECEIVE
        if purged or isinstance(queue, OutgoingQueue):
            reason = purge_reason(queue)
        outcome: Completion[None] = Completion()
        with self._store.transaction("dequeue end") as transaction:
            self._positions.message_position_deleted(transaction, queue, key, reason)
            transaction.call_after(partial(outcome.succeed, None))
        return outcome

    def read_message_by_lookup_identifier(
        self,
        descriptor: OpenQueueDescriptor,
        lookup_identifier: int,
        peek_operation: bool,
        lookup_operation: MessageSeekAction,
        transaction: Transaction | None = None,
        two_phase_read: bool = False,
    ) -> Completion[Message]:
        """Peek or receive by lookup identifier, never waiting ([MS-MQDMPR] 3.1.7.1.13).

        The identifier needs not be there, except for SEEK_CURRENT; SEEK_FIRST and SEEK_LAST
        ignore it (G34).
        """
        queue = self.opened(descriptor, READING if peek_operation else RECEIVING)
        if transaction is not None:
            if peek_operation:
                raise MQError(HResult.MQ_ERROR_TRANSACTION_USAGE)
            check_join(queue, transaction)
        key = seek_available_message_position_with_id(
            queue, lookup_identifier, peek_operation, lookup_operation
        )
        if peek_operation:
            return completed(self._positions.message_at(queue, key))
        return self._take(descriptor, queue, transaction, two_phase_read, key)

    def allow_peek(self, message: Message) -> None:
        """Let peeks find a message that a transaction has locked ([MC-MQAC] 3.11.4.1.33)."""
        queue, key = message.queue, message.lookup_identifier
        if queue is not None and queue.message_position_list.state(key) is PositionState.LOCKED:
            queue.peekable_when_locked.add(key)

    # Peeking

    def peek_message(
        self,
        descriptor: OpenQueueDescriptor,
        timeout: int = INFINITE,
        cursor: Cursor | None = None,
        tag: Hashable | None = None,
    ) -> Completion[Message]:
        """Look at the first message, or at the one at a cursor ([MS-MQDMPR] 3.1.7.1.15).

        Peeks wait under a tag too (G52).
        """
        queue = self.opened(descriptor, READING)
        if cursor is None:
            key = seek_available_message_position(queue, None, peek_operation=True)
        else:
            check_cursor(cursor, descriptor)
            key = key_or_wait(cursors.get_message_for_peek(cursor, queue))
        return self._peek(descriptor, queue, timeout, cursor, tag, key)

    def peek_next_message(
        self,
        descriptor: OpenQueueDescriptor,
        cursor: Cursor,
        timeout: int = INFINITE,
        tag: Hashable | None = None,
    ) -> Completion[Message]:
        """Step on and peek; MQ_ERROR_ILLEGAL_CURSOR_ACTION before the first read.

        Source: [MS-MQDMPR] 3.1.7.1.14.
        """
        queue = self.opened(descriptor, READING)
        check_cursor(cursor, descriptor)
        key = key_or_wait(cursors.get_next_message_for_peek(cursor, queue))
        return self._peek(descriptor, queue, timeout, cursor, tag, key)

    def _peek(
        self,
        descriptor: OpenQueueDescriptor,
        queue: Queue,
        timeout: int,
        cursor: Cursor | None,
        tag: Hashable | None,
        key: int | None,
    ) -> Completion[Message]:
        if key is None:
            take = partial(self._look, queue)
            return self._readers.wait_for_new_message(descriptor, timeout, False, tag, cursor, take)
        return self._look(queue, key)

    def _look(self, queue: Queue, key: int) -> Completion[Message]:
        return completed(self._positions.message_at(queue, key))

    # Moving

    def check_move(
        self,
        position: MessagePosition,
        target_queue: Queue,
        transactional: bool,
        holder: object = None,
    ) -> None:
        """Check the conditions of a move, in the order of [MS-MQRR] 3.1.4.10 with G36, G60 and
        G179.

        `holder` is the open queue or the transaction that may have locked the message itself.
        Raises STATUS_INVALID_PARAMETER unless the queues are related, or the target is the
        system's; MQ_ERROR_TRANSACTION_USAGE, MQ_ERROR_MESSAGE_NOT_FOUND,
        MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION.
        """
        queue = position.queue_reference
        self.check_target(queue, target_queue)
        system = target_queue.queue_type is QueueType.SYSTEM
        if transactional and (system or not target_queue.transactional):
            raise MQError(HResult.MQ_ERROR_TRANSACTION_USAGE)
        state = position.state
        if state is PositionState.LOCKED:
            key = position.lookup_identifier
            if holder is not None and queue.message_position_list.owner(key) is holder:
                return
            raise MQError(locked_status(queue, key))
        if state is not PositionState.AVAILABLE:
            raise MQError(HResult.MQ_ERROR_MESSAGE_NOT_FOUND)

    def check_target(self, queue: Queue, target_queue: Queue) -> None:
        """The part of `check_move` that depends on the queues only."""
        if queue.queue_manager is None or target_queue.queue_manager is None:
            raise MQError(HResult.MQ_ERROR_QUEUE_DELETED)
        system = target_queue.queue_type is QueueType.SYSTEM
        if not system and not are_related(queue, target_queue):
            raise MQError(NtStatus.STATUS_INVALID_PARAMETER, "the queues are not related")

    def move_message(
        self,
        position: MessagePosition,
        target_queue: Queue,
        transaction: Transaction | None = None,
        holder: OpenQueueDescriptor | None = None,
    ) -> Completion[None]:
        """Move a message to another queue, at once or with a transaction.

        `holder` may have locked the message in a two-phase read, which ends with the move; the
        transaction may have received it (G179).

        The message keeps its lookup identifier (G57), except in a queue of the system. It has
        been moved once more, and its aborts count from zero again.
        Source: [MS-MQDMPR] 3.1.7.1.16.
        """
        self.check_move(position, target_queue, transaction is not None, transaction or holder)
        queue, key = position.queue_reference, position.lookup_identifier
        if transaction is not None:
            check_join(queue, transaction)
            if not self._transactions.forget(transaction, queue, key):
                self.check_move(position, target_queue, True)
                self._positions.lock(queue, self._positions.message_at(queue, key), transaction)
            target_queue.pending_moves += 1
            transaction.transactional_operation_collection.append(
                TransactionalOperation(
                    OperationType.MOVE, queue, key, target_queue_reference=target_queue
                )
            )
            return completed(None)
        if holder is not None:
            holder.two_phase_reads.discard(key)
        return self._move_now(queue, (key,), target_queue)

    def move_together(
        self, queue: Queue, keys: Sequence[int], target_queue: Queue
    ) -> Completion[None]:
        """Move several unlocked messages in one commit (G613)."""
        for key in keys:
            self.check_move(MessagePosition(queue, key), target_queue, False)
        return self._move_now(queue, keys, target_queue)

    def _move_now(self, queue: Queue, keys: Sequence[int], target_queue: Queue) -> Completion[None]:
        outcome: Completion[None] = Completion()
        system = target_queue.queue_type is QueueType.SYSTEM
        with self._store.transaction("move") as change:
            for key in keys:
                if system:
                    self._positions.rehome(change, queue, key, target_queue)
                    self._positions.watch_moved(change, queue, key)
                else:
                    self._positions.move(change, queue, key, target_queue)
            change.call_after(partial(self._moved, target_queue, outcome))
        target_queue.pending_moves += 1
        return outcome

    def _moved(self, target: Queue, outcome: Completion[None]) -> None:
        """Note that a move is durable: it does not keep the target any longer (G58)."""
        target.pending_moves -= 1
        outcome.succeed(None)
        self._registry.drop_if_unused(target)

    def position(self, queue: Queue, lookup_identifier: int) -> MessagePosition | None:
        """The position of a message that is in the queue, whatever its state."""
        if lookup_identifier in queue.message_position_list:
            return MessagePosition(queue, lookup_identifier)
        return None

    def opened(
        self, descriptor: OpenQueueDescriptor, accesses: frozenset[QueueAccessType]
    ) -> Queue:
        """The queue of a descriptor that was opened for one of `accesses`.

        Raises MQError: MQ_ERROR_QUEUE_NOT_AVAILABLE once it is deleted, MQ_ERROR_ACCESS_DENIED.
        """
        queue = descriptor.queue_reference
        if queue is None:
            raise MQError(HResult.MQ_ERROR_QUEUE_NOT_AVAILABLE)
        if descriptor.access_type not in accesses:
            raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, "opened for something else")
        return queue
