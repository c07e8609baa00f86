"""How the naive queue manager is read: receiving, peeking, waiting, cursors."""

from dataclasses import replace
from functools import partial
from typing import Any

from tests.model.elements import (
    AVAILABLE,
    LEAVING,
    LOCKED,
    PURGE_PENDING,
    REACHED,
    RECEIVED,
    Effect,
    Key,
    MCursor,
    MDescriptor,
    MMessage,
    MQueue,
    MTransaction,
    MWait,
    Outcome,
    Refused,
    Step,
    in_order,
    nothing,
)


class NaiveReaders:
    """Commits, removals, and everything that reads."""

    def __init__(self, now: int) -> None:
        self.now = now
        self.queues: dict[str, MQueue] = {}
        self.pending: list[Effect] = []
        self.sequence = 0
        self.total = 0
        self.known: dict[bytes, Key] = {}
        self.transactions: list[MTransaction] = []
        self.system = {
            name: MQueue(f"system$;{name}", is_journal=True)
            for name in ("deadletter", "deadxact", "journal")
        }
        self.acknowledgements: list[tuple[str, bytes, bool]] = []
        self.throttled = False

    # Commits

    def settle(self) -> None:
        while self.pending:
            effects, self.pending = self.pending, []
            for effect in effects:
                effect()

    def _key(self, priority: int) -> Key:
        self.sequence += 1
        return 7 - priority, self.sequence

    def _charge(self, queue: MQueue, size: int) -> None:
        queue.account().charged += size
        self.total += size

    def _expect(self, queue: MQueue, message: MMessage) -> None:
        """A message is on its way: purges and reads that do not wait come behind it (G379)."""
        queue.arriving[message.key] = message

    def _publish(self, queue: MQueue, message: MMessage) -> None:
        del queue.arriving[message.key]
        message.state, message.owner = AVAILABLE, None
        queue.messages[message.key] = message

    def _announce(self, queue: MQueue, message: MMessage) -> None:
        """A message is there: it is over already, or somebody waits for it."""
        if message.expiry is not None and message.expiry <= self.now:
            if message.state == AVAILABLE:
                self._remove(queue, [message], reason="RECEIVE_TIMEOUT")
            return
        if queue.deleted:
            return
        for wait in [wait for wait in queue.waiting if not wait.destructive]:
            if _matches(wait, message):
                self._satisfy(wait, message)
        while message.state == AVAILABLE:
            ready = [w for w in queue.waiting if w.destructive and _matches(w, message)]
            if not ready or self._satisfy(ready[0], message):
                return

    def _satisfy(self, wait: MWait, message: MMessage) -> bool:
        self._drop_wait(wait)
        if wait.cursor is not None:
            wait.cursor.state = "Read" if wait.cursor.state == "WaitPeek" else "Unread"
            wait.cursor.key = message.key
        try:
            wait.take(message)
        except Refused as refusal:
            wait.outcome.value = str(refusal)
            return False
        return True

    # Removing and giving back

    def _remove(
        self,
        queue: MQueue,
        messages: list[MMessage],
        then: Effect | None = None,
        reason: str = "Q_PURGED",
    ) -> None:
        """One commit that removes messages."""
        effects = [self._removing(queue, message, reason) for message in messages]
        self.pending.append(in_order(effects, then))

    def _removing(self, queue: MQueue, message: MMessage, reason: str) -> Step:
        """A removal, with what follows from it."""
        message.state = LEAVING
        told = self._acknowledging(message, reason)
        journalled = self._journalled_at_source(queue, message, reason)
        kept = self._kept_in(queue, message, reason)
        copy = message.copy((0, 0))
        if kept is not None:
            copy.key = self._key(7 - message.key[0])
            self._charge(kept, copy.size)
            self._expect(kept, copy)

        def apply() -> None:
            journalled[0]()
            told()
            self._gone(queue, message)
            if kept is not None:
                self._publish(kept, copy)

        def tell() -> None:
            journalled[1]()
            if kept is not None:
                self._announce(kept, copy)

        return apply, tell

    def _journalled_at_source(self, queue: MQueue, message: MMessage, reason: str) -> Step:
        """A transactional message that its queue journals is copied to the source's journal."""
        journal = self.system["journal"]
        wanted = message.source_journal and message.transactional and reason == RECEIVED
        if not wanted or queue.is_journal or not queue.main.journaling:
            return nothing, nothing
        copy = replace(message.copy(self._key(7 - message.key[0])), aborts=0, moves=0, moved_at=0)
        copy.kept_aborts = 0
        self._charge(journal, copy.size)
        self._expect(journal, copy)
        return lambda: self._publish(journal, copy), lambda: self._announce(journal, copy)

    def _kept_in(self, queue: MQueue, message: MMessage, reason: str) -> MQueue | None:
        """Where a removed message is kept."""
        if queue.is_journal:
            return None
        if reason == RECEIVED:
            if queue.main.journaling:
                journal = queue.main.journal
                return journal if journal is not None and journal.has_room(message.size) else None
            wanted = message.source_journal and message.transactional
            return self.system["journal"] if wanted else None
        return self._deadletters(message, reason)

    def _deadletters(self, message: MMessage, reason: str) -> MQueue | None:
        if not message.dead_letter:
            return None
        if message.transactional:
            return self.system["deadxact"]
        return self.system["deadletter"] if reason != "RECEIVE_REJECTED" else None

    def _acknowledging(self, message: MMessage, reason: str) -> Effect:
        """What the administration queue is told, once the commit is there."""
        asked = {REACHED: "PA", RECEIVED: "PR"}.get(reason, "NR")
        if asked not in message.acknowledge or self.throttled:
            return nothing
        entry = (reason, message.body, message.express)
        return lambda: self.acknowledgements.append(entry)

    def _arriving(self, queue: MQueue, message: MMessage) -> Step:
        """A message gets into its queue; one that is not transactional is journaled then."""
        told = self._acknowledging(message, REACHED)
        copy: MMessage | None = None
        journal = self.system["journal"]
        self._expect(queue, message)
        if message.source_journal and not message.transactional:
            copy = message.copy(self._key(7 - message.key[0]))
            self._charge(journal, copy.size)
            self._expect(journal, copy)

        def apply() -> None:
            told()
            self._publish(queue, message)
            if copy is not None:
                self._publish(journal, copy)

        def tell() -> None:
            if copy is not None:
                self._announce(journal, copy)
            self._announce(queue, message)

        return apply, tell

    def _gone(self, queue: MQueue, message: MMessage) -> None:
        if queue.messages.pop(message.key, None) is not None:
            self._charge(queue, -message.size)

    def _release(self, queue: MQueue, message: MMessage) -> None:
        if message.state == LOCKED:
            message.state, message.owner = AVAILABLE, None
            self._announce(queue, message)
        elif message.state == PURGE_PENDING:
            self._remove(queue, [message])

    # Reading

    def _check_join(self, queue: MQueue, transaction: MTransaction) -> None:
        if transaction.ended or transaction.prepared:
            raise Refused("MQ_ERROR_TRANSACTION_SEQUENCE")
        if not queue.main.transactional:
            raise Refused("MQ_ERROR_TRANSACTION_USAGE")

    def _queue_of(self, descriptor: MDescriptor, accesses: str) -> MQueue:
        if descriptor.queue is None:
            raise Refused("MQ_ERROR_QUEUE_NOT_AVAILABLE")
        if descriptor.access not in accesses.split():
            raise Refused("MQ_ERROR_ACCESS_DENIED")
        return descriptor.queue

    def receive(
        self,
        descriptor: MDescriptor,
        timeout: int | None,
        cursor: MCursor | None = None,
        transaction: MTransaction | None = None,
        tag: object = None,
        two_phase: bool = False,
    ) -> Outcome:
        queue = self._queue_of(descriptor, "receive")
        if transaction is not None:
            self._check_join(queue, transaction)
        outcome = Outcome()
        message = self._first(queue, None, False)
        if cursor is not None:
            message = self._cursor_for_receive(queue, cursor, timeout == 0)

        def take(message: MMessage) -> None:
            self._take(descriptor, queue, message, transaction, two_phase, outcome)

        if message is None:
            self._wait(queue, MWait(descriptor, True, cursor, tag, timeout, outcome, take))
        else:
            take(message)
        return outcome

    def _take(
        self,
        descriptor: MDescriptor,
        queue: MQueue,
        message: MMessage,
        transaction: MTransaction | None,
        two_phase: bool,
        outcome: Outcome,
    ) -> None:
        seen = seen_message(queue, message)
        if transaction is not None:
            self._check_join(queue, transaction)
            message.state, message.owner = LOCKED, transaction
            transaction.operations.append(("receive", queue, message))
            outcome.value = seen
        elif two_phase:
            message.state, message.owner = LOCKED, descriptor
            descriptor.reads.add(message.body)
            outcome.value = seen
        else:
            self._remove(queue, [message], lambda: setattr(outcome, "value", seen), RECEIVED)

    def end(self, descriptor: MDescriptor, body: bytes, delete: bool) -> Outcome:
        if descriptor.queue is None:
            raise Refused("MQ_ERROR_QUEUE_NOT_AVAILABLE")
        queue = descriptor.queue
        message = next((m for m in queue.ordered() if m.body == body), None)
        if message is None:
            raise Refused("MQ_ERROR_MESSAGE_NOT_FOUND")
        if message.owner is not descriptor or message.state == LEAVING:
            raise Refused("MQ_ERROR_TRANSACTION_SEQUENCE")
        descriptor.reads.discard(body)
        if not delete and message.state == LOCKED:
            self._release(queue, message)
            return Outcome("ok")
        outcome = Outcome()
        reason = RECEIVED if message.state == LOCKED else "Q_PURGED"
        self._remove(queue, [message], lambda: setattr(outcome, "value", "ok"), reason)
        return outcome

    def end_transactional(self, descriptor: MDescriptor, body: bytes, delete: bool) -> None:
        """A received message stays in its transaction, or leaves it and is given back."""
        if descriptor.queue is None:
            raise Refused("MQ_ERROR_QUEUE_NOT_AVAILABLE")
        queue = descriptor.queue
        message = next((m for m in queue.ordered() if m.body == body), None)
        if message is None:
            raise Refused("MQ_ERROR_MESSAGE_NOT_FOUND")
        transaction = message.owner
        if not isinstance(transaction, MTransaction) or transaction.ended:
            raise Refused("MQ_ERROR_TRANSACTION_SEQUENCE")
        if delete:
            return
        received = ("receive", queue, message)
        if transaction.prepared or received not in transaction.operations:
            raise Refused("MQ_ERROR_TRANSACTION_SEQUENCE")
        transaction.operations.remove(received)
        transaction.rejected.discard(body)
        if message.state == LOCKED:  # it was delivered in vain
            message.aborts += 1
            self.pending.append(partial(setattr, message, "kept_aborts", message.aborts))
        self._release(queue, message)

    def peek(
        self,
        descriptor: MDescriptor,
        timeout: int | None,
        cursor: MCursor | None,
        tag: object,
        following: bool = False,
    ) -> Outcome:
        queue = self._queue_of(descriptor, "receive peek")
        outcome = Outcome()
        message = self._first(queue, None, True)
        if cursor is not None:
            message = self._cursor_for_peek(queue, cursor, following)

        def look(message: MMessage) -> None:
            outcome.value = seen_message(queue, message)

        if message is None:
            self._wait(queue, MWait(descriptor, False, cursor, tag, timeout, outcome, look))
        else:
            look(message)
        return outcome

    def lookup(
        self,
        descriptor: MDescriptor,
        body: bytes,
        action: str,
        peek: bool,
        transaction: MTransaction | None,
        two_phase: bool,
    ) -> Outcome:
        queue = self._queue_of(descriptor, "receive peek" if peek else "receive")
        if transaction is not None:
            self._check_join(queue, transaction)
        message = self._find(queue, self.known[body], action, peek)
        outcome = Outcome()
        if peek:
            outcome.value = seen_message(queue, message)
        else:
            self._take(descriptor, queue, message, transaction, two_phase, outcome)
        return outcome

    def _find(self, queue: MQueue, key: Key, action: str, peek: bool) -> MMessage:
        if action == "CURRENT":
            return self._find_current(queue, key, peek)
        found = {
            "FIRST": lambda: self._first(queue, None, peek),
            "NEXT": lambda: self._first(queue, key, peek),
            "PREVIOUS": lambda: self._last(queue, key, peek),
            "LAST": lambda: self._last(queue, None, peek),
        }[action]()
        if found is None:
            raise Refused("MQ_ERROR_MESSAGE_NOT_FOUND")
        return found

    def _find_current(self, queue: MQueue, key: Key, peek: bool) -> MMessage:
        message = queue.messages.get(key)
        if message is None or message.state in (LEAVING, PURGE_PENDING):
            raise Refused("MQ_ERROR_MESSAGE_NOT_FOUND")
        if message.state == LOCKED and not (peek and message.open_when_locked):
            if peek:
                raise Refused("MQ_ERROR_TRANSACTION_USAGE")
            if isinstance(message.owner, MTransaction):
                raise Refused("MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION")
            raise Refused("MQ_ERROR_MESSAGE_NOT_FOUND")
        return message

    def _readable(self, queue: MQueue, peek: bool) -> list[MMessage]:
        return [
            message
            for message in queue.ordered()
            if message.state == AVAILABLE
            or (peek and message.state == LOCKED and message.open_when_locked)
        ]

    def _first(self, queue: MQueue, after: Key | None, peek: bool) -> MMessage | None:
        found = [m for m in self._readable(queue, peek) if after is None or m.key > after]
        return found[0] if found else None

    def _last(self, queue: MQueue, before: Key | None, peek: bool) -> MMessage | None:
        found = [m for m in self._readable(queue, peek) if before is None or m.key < before]
        return found[-1] if found else None

    # Waiting

    def _wait(self, queue: MQueue, wait: MWait) -> None:
        taken = wait.tag is not None and any(other.tag == wait.tag for other in queue.waiting)
        behind = wait.due == 0 and wait.cursor is None and bool(queue.arriving)
        over = wait.due == 0 and not behind
        if over or taken:
            _stop(wait.cursor, queue)
            raise Refused("MQ_ERROR_IO_TIMEOUT" if over else "MQ_ERROR_INVALID_PARAMETER")
        if behind:
            wait.due = None
            self.pending.append(partial(self._end_behind_arrivals, queue, wait))
        elif wait.due is not None:
            wait.due += self.now
        queue.waiting.append(wait)

    def _end_behind_arrivals(self, queue: MQueue, wait: MWait) -> None:
        if wait in queue.waiting:
            self._end_wait(wait, "MQ_ERROR_IO_TIMEOUT")

    def _drop_wait(self, wait: MWait) -> None:
        assert wait.descriptor.queue is not None
        wait.descriptor.queue.waiting.remove(wait)

    def _end_wait(self, wait: MWait, status: str) -> None:
        queue = wait.descriptor.queue
        assert queue is not None
        self._drop_wait(wait)
        _stop(wait.cursor, queue)
        wait.outcome.value = status

    def cancel(self, queue: MQueue, tag: object) -> None:
        for wait in queue.waiting:
            if wait.tag == tag:
                self._end_wait(wait, "MQ_ERROR_OPERATION_CANCELLED")
                return
        raise Refused("STATUS_NOT_FOUND")

    # Cursors

    def open_cursor(self, descriptor: MDescriptor) -> MCursor | None:
        if descriptor.queue is None:
            return None
        cursor = MCursor(descriptor)
        descriptor.cursors.append(cursor)
        return cursor

    def close_cursor(self, cursor: MCursor) -> None:
        cursor.closed = True
        queue = cursor.descriptor.queue
        for wait in [] if queue is None else list(queue.waiting):
            if wait.cursor is cursor:
                self._end_wait(wait, "MQ_ERROR_OPERATION_CANCELLED")

    def _check_cursor(self, cursor: MCursor) -> None:
        if cursor.closed:
            raise Refused("MQ_ERROR_INVALID_HANDLE")

    def _current(self, queue: MQueue, cursor: MCursor) -> MMessage:
        message = None if cursor.key is None else queue.messages.get(cursor.key)
        if message is None or message.state != AVAILABLE:
            raise Refused("MQ_ERROR_MESSAGE_ALREADY_RECEIVED")
        return message

    def _cursor_for_receive(self, queue: MQueue, cursor: MCursor, no_wait: bool) -> MMessage | None:
        self._check_cursor(cursor)
        if cursor.state == "Read":
            message: MMessage | None = self._current(queue, cursor)
            cursor.state = "Unread"
            return message
        if cursor.state != "Unread":
            raise Refused("MQ_ERROR_ILLEGAL_CURSOR_ACTION")
        message = self._first(queue, cursor.key, False)
        if message is not None:
            cursor.key = message.key
        elif no_wait:
            raise Refused("MQ_ERROR_MESSAGE_NOT_FOUND")
        else:
            cursor.before, cursor.state = cursor.state, "WaitReceive"
        return message

    def _cursor_for_peek(self, queue: MQueue, cursor: MCursor, following: bool) -> MMessage | None:
        self._check_cursor(cursor)
        if cursor.state == "Read" and not following:
            return self._current(queue, cursor)
        if cursor.state != ("Read" if following else "Unread"):
            raise Refused("MQ_ERROR_ILLEGAL_CURSOR_ACTION")
        message = self._first(queue, cursor.key, True)
        if message is None:
            cursor.before, cursor.state = cursor.state, "WaitPeek"
        else:
            cursor.key, cursor.state = message.key, "Read"
        return message


def seen_message(queue: MQueue, message: MMessage) -> tuple[Any, ...]:
    """What a reader sees of a message."""
    subqueue = queue.name.partition(";")[2] if queue.parent and not queue.is_journal else ""
    return message.body, message.aborts, message.moves, message.moved_at, subqueue


def _matches(wait: MWait, message: MMessage) -> bool:
    return wait.cursor is None or wait.cursor.key is None or message.key > wait.cursor.key


def _stop(cursor: MCursor | None, queue: MQueue) -> None:
    if cursor is None:
        return
    if cursor.state == "WaitReceive":
        if queue.messages:
            last = max(queue.messages)
            cursor.key = last if cursor.key is None else max(cursor.key, last)
        cursor.state = "Unread"
    elif cursor.state == "WaitPeek":
        cursor.state = cursor.before
