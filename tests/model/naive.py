"""A queue manager as simple as it can be: dictionaries, lists, and a list of pending commits.

It does in the plainest way what the decisions say, and knows nothing of the real one. Messages
are known by their bodies, which are unique. What is durable later is a function in `pending`;
`settle` runs them in order. Times are milliseconds.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from tests.model.elements import (
    AVAILABLE,
    LEAVING,
    LOCKED,
    PURGE_PENDING,
    Effect,
    MDescriptor,
    MMessage,
    MQueue,
    MTransaction,
    Outcome,
    Refused,
    Step,
    in_order,
    is_held,
    nothing,
)
from tests.model.naive_readers import NaiveReaders


class NaiveQueueManager(NaiveReaders):
    """The events, in the plainest way."""

    # Queues

    def create(self, name: str, transactional: bool, journaling: bool, quota: int | None) -> None:
        queue = MQueue(name, transactional, journaling=journaling, quota=quota)
        queue.journal = MQueue(f"{name};journal", parent=queue, is_journal=True)
        self.queues[name] = queue

    def subqueue(self, queue: MQueue, name: str) -> MQueue:
        if name not in queue.subqueues:
            queue.subqueues[name] = MQueue(
                f"{queue.name};{name}", queue.transactional, parent=queue
            )
        return queue.subqueues[name]

    def all_queues(self) -> list[MQueue]:
        found = []
        for queue in self.queues.values():
            found += [queue, *queue.subqueues.values()]
            if queue.journal is not None:
                found.append(queue.journal)
        return [*found, *self.system.values()]

    def delete(self, name: str) -> Outcome:
        queue = self.queues.pop(name)
        parts = [*queue.subqueues.values(), queue, *([queue.journal] if queue.journal else [])]
        for part in parts:
            for wait in list(part.waiting):
                self._end_wait(wait, "MQ_ERROR_QUEUE_DELETED")
            for descriptor in part.descriptors:
                descriptor.queue = None
                descriptor.reads.clear()
            part.descriptors.clear()
            part.deleted = True
        outcome = Outcome()
        if any(part.arriving for part in parts):
            self.pending.append(lambda: self._deleted(parts, outcome))
        else:
            self._deleted(parts, outcome)
        return outcome

    def _deleted(self, parts: list[MQueue], outcome: Outcome) -> None:
        steps = [
            self._removing(part, message, "Q_DELETED")
            for part in parts
            for message in list(part.messages.values())
            if message.state != LEAVING
        ]
        self.pending.append(in_order(steps, lambda: setattr(outcome, "value", "ok")))

    def open(self, queue: MQueue, access: str, deny: bool) -> MDescriptor:
        existing = queue.descriptors
        if any(other.deny and other.access == "receive" for other in existing):
            refused = deny or access == "receive"
        elif any(other.deny and other.access == "peek" for other in existing):
            refused = access == "receive"
        else:
            refused = deny and any(other.access == "receive" for other in existing)
        if refused:
            raise Refused("MQ_ERROR_SHARING_VIOLATION")
        descriptor = MDescriptor(queue, access, deny)
        existing.append(descriptor)
        return descriptor

    def close(self, descriptor: MDescriptor) -> None:
        queue = descriptor.queue
        descriptor.closed = True
        for cursor in descriptor.cursors:
            cursor.closed = True
        if queue is None:
            return
        for wait in [wait for wait in queue.waiting if wait.descriptor is descriptor]:
            self._end_wait(wait, "MQ_ERROR_OPERATION_CANCELLED")
        queue.descriptors.remove(descriptor)
        reads = [message for message in queue.ordered() if message.body in descriptor.reads]
        descriptor.reads.clear()
        descriptor.queue = None
        for message in reads:
            if message.owner is descriptor:
                self._release(queue, message)

    def purge(self, queue: MQueue) -> Outcome:
        outcome, counts = Outcome(), list[int]()
        arriving = list(queue.arriving.values())
        parts = bool(queue.messages) + bool(arriving)
        if not parts:
            outcome.value = 0

        def counted(count: int) -> None:
            counts.append(count)
            if len(counts) == parts:
                outcome.value = sum(counts)

        def behind() -> None:
            if queue.deleted:
                counted(0)
            else:
                here = [m for m in arriving if queue.messages.get(m.key) is m]
                self._purge(queue, here, counted)

        if arriving:
            self.pending.append(behind)
        if queue.messages:
            self._purge(queue, queue.ordered(), counted)
        return outcome

    def _purge(
        self, queue: MQueue, messages: list[MMessage], counted: Callable[[int], None]
    ) -> None:
        removed = [message for message in messages if message.state == AVAILABLE]
        for message in messages:
            if message.state == LOCKED:
                message.state = PURGE_PENDING
        held = [message for message in messages if message.state == PURGE_PENDING]

        def done() -> None:
            for message in held:
                message.kept_purge = True
            counted(len(removed))

        self._remove(queue, removed, done)

    # Sending

    def enqueue(
        self,
        queue: MQueue,
        message: MMessage,
        priority: int,
        transaction: MTransaction | None,
    ) -> Outcome:
        main = queue.main
        if self.throttled:
            raise Refused("MQ_ERROR_INSUFFICIENT_RESOURCES")
        if not main.has_room(message.size):
            raise Refused("MQ_ERROR_INSUFFICIENT_RESOURCES")
        if transaction is not None:
            if transaction.ended or transaction.prepared:
                raise Refused("MQ_ERROR_TRANSACTION_SEQUENCE")
            self._charge(queue, message.size)
            transaction.operations.append(("send", queue, message))
            return Outcome("ok")
        self._charge(queue, message.size)
        message.key = self.known[message.body] = self._key(priority)
        outcome = Outcome()
        step = self._arriving(queue, message)
        self.pending.append(in_order([step], lambda: setattr(outcome, "value", "ok")))
        return outcome

    # Moving

    def move(
        self, queue: MQueue, body: bytes, target: MQueue, transaction: MTransaction | None
    ) -> Outcome:
        related = queue.main is target.main and queue is not target
        if not related or queue.is_journal or target.is_journal:
            raise Refused("STATUS_INVALID_PARAMETER")
        if transaction is not None and not target.main.transactional:
            raise Refused("MQ_ERROR_TRANSACTION_USAGE")
        message = queue.messages.get(self.known[body])
        own = (
            transaction is not None
            and message is not None
            and message.state == LOCKED
            and message.owner is transaction
        )
        if message is None or (message.state != AVAILABLE and not own):
            held = (
                message is not None
                and message.state == LOCKED
                and isinstance(message.owner, MTransaction)
            )
            raise Refused(
                "MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION"
                if held
                else "MQ_ERROR_MESSAGE_NOT_FOUND"
            )
        if transaction is not None:
            self._check_join(queue, transaction)
            received = ("receive", queue, message)
            if received in transaction.operations:
                transaction.operations.remove(received)
                transaction.rejected.discard(body)
            elif own:
                raise Refused("MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION")
            message.state, message.owner = LOCKED, transaction
            transaction.operations.append(("move", queue, message, target))
            return Outcome("ok")
        outcome = Outcome()
        step = self._moving(queue, message, target)
        self.pending.append(in_order([step], lambda: setattr(outcome, "value", "ok")))
        return outcome

    def _moving(self, queue: MQueue, message: MMessage, target: MQueue) -> Step:
        message.state = LEAVING
        self._charge(target, message.size)
        moved = replace(
            message,
            state=AVAILABLE,
            owner=None,
            aborts=0,
            moves=message.moves + 1,
            moved_at=self.now,
            kept_aborts=0,
            kept_purge=False,
        )
        self._expect(target, moved)

        def apply() -> None:
            self._gone(queue, message)
            self._publish(target, moved)

        return apply, lambda: self._announce(target, moved)

    # Transactions

    def begin(self) -> MTransaction:
        transaction = MTransaction()
        self.transactions.append(transaction)
        return transaction

    def _open_transaction(self, transaction: MTransaction) -> None:
        if transaction.ended:
            raise Refused("MQ_ERROR_TRANSACTION_SEQUENCE")

    def prepare(self, transaction: MTransaction) -> Outcome:
        self._open_transaction(transaction)
        if transaction.prepared:
            raise Refused("MQ_ERROR_TRANSACTION_SEQUENCE")
        transaction.prepared = True
        return Outcome("ok")

    def commit(self, transaction: MTransaction) -> Outcome:
        self._open_transaction(transaction)
        transaction.ended = True
        steps = [self._committing(transaction, *op) for op in transaction.operations]
        return self._finish(transaction, steps)

    def _finish(self, transaction: MTransaction, steps: list[Step]) -> Outcome:
        outcome = Outcome()

        def done() -> None:
            transaction.gone, outcome.value = True, "ok"

        self.pending.append(in_order(steps, done))
        return outcome

    def _committing(
        self, transaction: MTransaction, kind: str, queue: MQueue, message: MMessage, *rest: Any
    ) -> Step:
        if kind == "send":
            return self._committing_send(queue, message)
        if not is_held(queue, message, transaction) or (rest and rest[0].deleted):
            return nothing, nothing
        if kind == "move":
            return self._moving(queue, message, rest[0])
        return self._removing(queue, message, transaction.reason(message))

    def _committing_send(self, queue: MQueue, message: MMessage) -> Step:
        if queue.deleted:
            return self._losing(queue, message)
        message.key = self.known[message.body] = self._key(0)
        return self._arriving(queue, message)

    def _losing(self, queue: MQueue, message: MMessage) -> Step:
        """Its queue was deleted before it got there."""
        told = self._acknowledging(message, "Q_DELETED")
        target = self._deadletters(message, "Q_DELETED")
        copy = message.copy(self._key(0))
        if target is not None:
            self._charge(target, copy.size)
            self._expect(target, copy)

        def apply() -> None:
            told()
            self._charge(queue, -message.size)
            if target is not None:
                self._publish(target, copy)

        return apply, lambda: None if target is None else self._announce(target, copy)

    def abort(self, transaction: MTransaction) -> Outcome:
        self._open_transaction(transaction)
        transaction.ended = True
        steps: list[Step] = []
        for kind, queue, message, *_ in transaction.operations:
            if kind == "send":
                steps.append((partial(self._charge, queue, -message.size), nothing))
            elif is_held(queue, message, transaction):
                if message.state == PURGE_PENDING:
                    steps.append(self._removing(queue, message, "Q_PURGED"))
                else:
                    steps.append((nothing, self._giving_back(queue, message)))
        return self._finish(transaction, steps)

    def _giving_back(self, queue: MQueue, message: MMessage) -> Effect:
        message.aborts += 1

        def effect() -> None:
            message.kept_aborts = message.aborts
            if not queue.deleted:
                self._release(queue, message)

        return effect

    # Time and restarts

    def advance(self, milliseconds: int) -> None:
        end = self.now + milliseconds
        while (due := self._next_due()) is not None and due <= end:
            self.now = max(due, self.now)
            self._run_due()
        self.now = end
        self.settle()

    def _next_due(self) -> int | None:
        waits = [wait.due for queue in self.all_queues() for wait in queue.waiting]
        expiries = [
            message.expiry
            for queue in self.all_queues()
            for message in queue.messages.values()
            if message.state == AVAILABLE
        ]
        return min((due for due in waits + expiries if due is not None), default=None)

    def _run_due(self) -> None:
        for queue in self.all_queues():
            for wait in list(queue.waiting):
                if wait.due is not None and wait.due <= self.now:
                    self._end_wait(wait, "MQ_ERROR_IO_TIMEOUT")
            over = [
                message
                for message in queue.ordered()
                if message.state == AVAILABLE
                and message.expiry is not None
                and message.expiry <= self.now
            ]
            if over:
                self._remove(queue, over, reason="RECEIVE_TIMEOUT")

    def restart(self) -> None:
        """What is durable stays; locks, waits, handles and express messages do not."""
        for queue in self.all_queues():
            for wait in list(queue.waiting):
                self._end_wait(wait, "MQ_ERROR_SERVICE_NOT_AVAILABLE")
        self.settle()
        self._start_again()

    def crash(self) -> None:
        """The same, and what was pending has never been: nobody is answered."""
        self.pending.clear()
        for queue in self.all_queues():
            queue.waiting.clear()
            queue.arriving.clear()
            for message in queue.ordered():
                message.aborts = message.kept_aborts
                if message.state == LEAVING:
                    message.state = LOCKED
                if message.state != AVAILABLE:
                    message.state = PURGE_PENDING if message.kept_purge else LOCKED
        for transaction in self.transactions:
            if not transaction.gone:
                transaction.ended = False
        self._start_again()
        self._count_again()

    def _count_again(self) -> None:
        self.total = 0
        for queue in self.all_queues():
            queue.charged = 0
        for queue in self.all_queues():
            for message in queue.messages.values():
                self._charge(queue, message.size)
        for transaction in self.transactions:
            if not transaction.ended:
                for kind, queue, message, *_ in transaction.operations:
                    if kind == "send":
                        self._charge(queue, message.size)

    def _start_again(self) -> None:
        self.throttled = False
        self.acknowledgements = [ack for ack in self.acknowledgements if not ack[2]]
        for queue in self.all_queues():
            for descriptor in queue.descriptors:
                descriptor.queue = None
            queue.descriptors.clear()
        for transaction in self.transactions:
            self._forget(transaction)
        for queue in self.all_queues():
            for message in queue.ordered():
                self._restart_message(queue, message)
        self.advance(0)

    def _forget(self, transaction: MTransaction) -> None:
        if not transaction.ended:
            for kind, queue, message, *_ in transaction.operations:
                if kind == "send":
                    self._charge(queue, -message.size)
        transaction.ended = True

    def _restart_message(self, queue: MQueue, message: MMessage) -> None:
        owner = message.owner
        if message.express:
            self._gone(queue, message)
        elif isinstance(owner, MTransaction) and not owner.ended:
            return
        elif message.state == PURGE_PENDING:
            self._remove(queue, [message])
        else:
            message.state, message.owner = AVAILABLE, None
