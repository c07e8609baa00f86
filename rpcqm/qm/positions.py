"""Messages that become available or are removed, and the consequences.

Message Position Deleted and Message Position Available ([MS-MQDMPR] 3.1.7.2.1, 3.1.7.2.2) are
raised from everywhere. Other rooms listen through `deleted_hooks` and `available_hooks`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

from rpcqm.adm.enums import PositionState
from rpcqm.adm.message import (
    CONSEQUENCES,
    FLAG_ALLOW_PEEK_WHEN_LOCKED,
    KEPT_FLAGS,
    ON_ARRIVAL,
    Envelope,
    Message,
)
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.base.clock import Clock
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.types import SEQUENTIAL_BITS
from rpcqm.qm.message_counts import (
    ARRIVED,
    DEAD_LETTERS,
    LEFT,
    MOVED,
    RECEIVED,
    counter_of,
    why_dead,
)
from rpcqm.qm.readers import WaitingReaders
from rpcqm.qm.registry import QueueRegistry
from rpcqm.qm.stored_messages import message_at
from rpcqm.qm.timers import TimeToBeReceivedTimer
from rpcqm.qm.trail import Trail, TrailEventType
from rpcqm.qm.watching import MessageWatch
from rpcqm.store.errors import PositionStateError
from rpcqm.store.records import NEVER, Moves
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction

_NEGATIVE = MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q
"""The first of the classes that say why a message is dead."""

DeletedHook = Callable[[StoreTransaction, Queue, int, MessageClass], None]
LeftTogether = Callable[[StoreTransaction, OutgoingQueue, Sequence[int]], None]
DeadLetterHook = Callable[[Queue, MessageClass], None]
"""Called with the queue that keeps a dead letter, and the reason."""
AvailableHook = Callable[[OutgoingQueue, int], None]
"""Called for messages that can leave: those of outgoing queues."""


class UncommittedMessage(NamedTuple):
    """A message that waits for the commit of its transaction, and whether it has `changed`."""

    transaction: bytes
    number: int
    changed: bool

    def insert(
        self,
        change: StoreTransaction,
        message: Message,
        key: int,
        arrival: int,
        expiry: int,
        flags: int,
    ) -> None:
        """Put the message into its queue; its packet is written again only if it has changed."""
        change.insert_staged(
            self.transaction,
            self.number,
            key,
            arrival=arrival,
            expiry=expiry,
            flags=flags,
            packet=message.stored if self.changed else None,
        )


class PositionConsequences(Protocol):
    """The consequences of an arrival or a removal, in the commit that causes it."""

    def message_arrived(
        self, transaction: StoreTransaction, queue: Queue, message: Message, flags: int
    ) -> None:
        """A message has been stored: acknowledge it, and journal it."""

    def acknowledgement_needs_no_new_queue(
        self, administration: FormatName | None, sender: Identity
    ) -> bool:
        """Whether a sender's acknowledgements can go to a queue without making one."""

    def message_removed(
        self,
        transaction: StoreTransaction,
        queue: Queue,
        key: int,
        reason: MessageClass,
        flags: int,
    ) -> None:
        """Acknowledge a removal, when the message asks for it."""

    def keeping_queue(
        self, queue: Queue, key: int, reason: MessageClass, flags: int, size: int
    ) -> Queue | None:
        """The queue that keeps a removed message; None if no queue keeps it."""


@dataclass(eq=False, repr=False)
class Positions:
    """The two central events, and the release of locked messages."""

    _store: Store
    _clock: Clock
    _registry: QueueRegistry
    _readers: WaitingReaders
    _expiry: TimeToBeReceivedTimer
    _trail: Trail

    def __post_init__(self) -> None:
        self.message_at: Callable[[Queue, int], Message] = partial(message_at, self._store)
        """The message at a position, with its packet. Raises MQ_ERROR_MESSAGE_NOT_FOUND."""
        self.consequences: PositionConsequences
        """The consequences of arrivals and removals; the acknowledgements set this."""
        self._expiry.message_position_deleted = self.message_position_deleted
        self.deleted_hooks: list[DeletedHook] = []
        self.journal_grew: Callable[[Queue], None] = lambda _: None
        """Called with a journal that has got one more copy, if their number is bounded."""
        self.left_together: dict[DeletedHook, LeftTogether] = {}
        """By hook: takes many messages that have left an outgoing queue in one call, instead of
        that one of the `deleted_hooks`."""
        self.available_hooks: list[AvailableHook] = []
        self.dead_letter_hooks: list[DeadLetterHook] = []
        self.watch: MessageWatch | None = None

    def arrive(
        self,
        transaction: StoreTransaction,
        queue: Queue,
        message: Message,
        envelope: Envelope,
        *,
        staged: UncommittedMessage | None = None,
        kept_flags: int | None = None,
        imported: bool = False,
        outcome: Completion[None] | None = None,
        dead_letter_class: int = 0,
    ) -> int:
        """Put a message at the end of its priority; returns its lookup identifier.

        It can be read, and `outcome` succeeds, when the transaction is committed. The packet of a
        `staged` one is on the disk already. One with `kept_flags` follows from another message:
        it does not expire, nothing follows from its arrival, and `message` stays as it is. The
        arrival of one that is `imported` is not acknowledged. `dead_letter_class` is the reason of
        a dead letter, 0 for any other message.
        """
        key = self._store.counters.next_lookup_identifier(envelope.priority)
        arrival = self._clock.now()
        if kept_flags is None:
            flags = message.position_flags(envelope)
            expiry = self._expiry.expiry_of(envelope, queue)
            message.queue, message.lookup_identifier, message.arrival_time = queue, key, arrival
        else:
            flags, expiry = kept_flags, NEVER
        if staged is not None:
            staged.insert(transaction, message, key, arrival, expiry, flags)
        else:
            transaction.insert(
                queue.queue_id,
                key,
                message.stored,
                arrival=arrival,
                expiry=expiry,
                flags=flags,
                durable=envelope.recoverable,
                consequence=kept_flags is not None,
                dead_letter_class=dead_letter_class,
            )
        self._store.metrics.count(ARRIVED)
        if kept_flags is None and (flags & ON_ARRIVAL or queue.trail):
            self._follow_arrival(transaction, queue, message, flags, imported)
        if self.watch is not None and kept_flags is None and not imported:
            begun = self.watch.now()
            transaction.call_after(partial(self.watch.arrived, queue, message, begun))
        transaction.call_after(partial(self.published, queue, key, expiry, outcome))
        return key

    def _follow_arrival(
        self,
        transaction: StoreTransaction,
        queue: Queue,
        message: Message,
        flags: int,
        imported: bool,
    ) -> None:
        if flags & ON_ARRIVAL and not imported:
            self.consequences.message_arrived(transaction, queue, message, flags)
        if queue.trail:
            detail = "imported" if imported else ""
            self._trail.note(transaction, queue, message, TrailEventType.ARRIVED, detail)

    def message_position_deleted(
        self, transaction: StoreTransaction, queue: Queue, key: int, reason: MessageClass
    ) -> None:
        """Remove a message, or move it to where the reason sends it ([MS-MQDMPR] 3.1.7.2.1).

        Its journal copy, dead-letter copy and acknowledgement belong to the same commit. The
        position is LEAVING at once and gone after it.
        """
        position = self._store.index(queue.queue_id).position(key)
        if position is None:
            raise PositionStateError(f"there is no message {key:#x}")
        flags = position.flags
        self._store.metrics.count(counter_of(reason))
        main = queue.parent or queue
        if main.trail:
            self._trail.removed(transaction, queue, key, reason)
        if flags & CONSEQUENCES or main.journaling:
            self._delete_with_consequences(transaction, queue, key, reason, flags, position.size)
        else:
            transaction.remove(queue.queue_id, key)
        if queue.peekable_when_locked:
            queue.peekable_when_locked.discard(key)
        if queue.parent is not None:
            transaction.call_after(partial(self._registry.drop_if_unused, queue))
        for hook in self.deleted_hooks:
            hook(transaction, queue, key, reason)

    def read_many(self, transaction: StoreTransaction, queue: Queue, keys: Sequence[int]) -> None:
        """Remove messages that were read, whose removal has no consequences."""
        transaction.remove_many(queue.queue_id, keys)
        self._store.metrics.count(RECEIVED, len(keys))
        for key in keys:
            queue.peekable_when_locked.discard(key)
            for hook in self.deleted_hooks:
                hook(transaction, queue, key, MessageClass.MQMSG_CLASS_ACK_RECEIVE)

    def _delete_with_consequences(
        self,
        transaction: StoreTransaction,
        queue: Queue,
        key: int,
        reason: MessageClass,
        flags: int,
        size: int,
    ) -> None:
        self.consequences.message_removed(transaction, queue, key, reason, flags)
        target = self.consequences.keeping_queue(queue, key, reason, flags, size)
        if target is None:
            transaction.remove(queue.queue_id, key)
        else:
            self.rehome(transaction, queue, key, target, reason)

    def rehome(
        self,
        transaction: StoreTransaction,
        queue: Queue,
        key: int,
        target: Queue,
        reason: MessageClass = MessageClass.MQMSG_CLASS_ACK_RECEIVE,
    ) -> None:
        """Move a message to a journal or a dead-letter queue, at the end of its priority.

        It does not expire there and has no further consequences; no byte is copied. A dead letter
        has its `reason` as class from then on.
        """
        if (queue.parent or queue).trail:
            self._trail.note_at(transaction, queue, key, TrailEventType.KEPT, target.pathname)
        counters = self._store.counters
        new_key = counters.next_lookup_identifier(7 - (key >> SEQUENTIAL_BITS))
        index = self._store.index(queue.queue_id)
        flags, moves = index.expected(key).flags, index.moves(key)
        if reason >= _NEGATIVE:
            moves = moves._replace(message_class=int(reason))
            transaction.call_after(partial(self.became_dead_letter, target, reason))
            self._store.metrics.count(DEAD_LETTERS + why_dead(reason))
        transaction.rehome(
            queue.queue_id,
            key,
            target.queue_id,
            new_key,
            arrival=self._clock.now(),
            expiry=NEVER,
            flags=flags & KEPT_FLAGS,
            moves=moves,
        )
        transaction.call_after(partial(self.message_position_available, target, new_key))
        if target.parent is not None and target.parent.journal_max_messages:
            transaction.call_after(partial(self.journal_grew, target))

    def copy_removed(self, transaction: StoreTransaction, journal: Queue, key: int) -> None:
        """Remove a copy that a journal does not keep any more; that has no effects (G657)."""
        if journal.parent is not None and journal.parent.trail:
            reason = MessageClass.MQMSG_CLASS_NACK_Q_PURGED
            self._trail.removed(transaction, journal, key, reason)
        transaction.remove(journal.queue_id, key)
        for hook in self.deleted_hooks:
            hook(transaction, journal, key, MessageClass.MQMSG_CLASS_ACK_RECEIVE)

    def became_dead_letter(self, target: Queue, reason: MessageClass) -> None:
        """Call the `dead_letter_hooks` for a message that is kept in `target` from now on."""
        for hook in self.dead_letter_hooks:
            hook(target, reason)

    def transferred(
        self,
        transaction: StoreTransaction,
        queue: OutgoingQueue,
        key: int,
        target: Queue | None,
        reason: MessageClass = MessageClass.MQMSG_CLASS_ACK_RECEIVE,
        sync: bool = True,
    ) -> None:
        """Note that a message has left an outgoing queue: keep it in `target` for `reason`, or
        remove it.

        A removal without `sync` may be undone by a crash. The `deleted_hooks` learn that it has
        reached its queue; no acknowledgement is sent.
        """
        if queue.trail:
            self._trail.note_at(transaction, queue, key, TrailEventType.LEFT, "")
        self._store.metrics.count(LEFT if reason < _NEGATIVE else counter_of(reason))
        if target is None:
            transaction.remove(queue.queue_id, key, sync=sync)
        else:
            self.rehome(transaction, queue, key, target, reason)
        queue.peekable_when_locked.discard(key)
        for hook in self.deleted_hooks:
            hook(transaction, queue, key, MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE)

    def transferred_together(
        self, transaction: StoreTransaction, queue: OutgoingQueue, keys: Sequence[int]
    ) -> None:
        """Note that messages have left an outgoing queue without a trail, as `transferred` does.

        The transaction has removed them already.
        """
        if queue.peekable_when_locked:
            queue.peekable_when_locked.difference_update(keys)
        self._store.metrics.count(LEFT, len(keys))
        for hook in self.deleted_hooks:
            if (together := self.left_together.get(hook)) is not None:
                together(transaction, queue, keys)
                continue
            for key in keys:
                hook(transaction, queue, key, MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE)

    def move(self, transaction: StoreTransaction, queue: Queue, key: int, target: Queue) -> None:
        """Move a message to a related queue, where it has the same identifier (G57).

        The caller sees to it that the target is not dropped meanwhile (G58).
        """
        if (queue.parent or queue).trail:
            self._trail.note_at(transaction, queue, key, TrailEventType.MOVED, target.pathname)
        index = self._store.index(queue.queue_id)
        expiry = index.expected(key).expiry
        before = index.moves(key)
        moves = Moves(0, before.move_count + 1, self._clock.now(), before.message_class)
        transaction.rehome(queue.queue_id, key, target.queue_id, key, moves=moves)
        self._store.metrics.count(MOVED)
        self.watch_moved(transaction, queue, key)
        queue.peekable_when_locked.discard(key)
        transaction.call_after(partial(self.published, target, key, expiry))
        if queue.parent is not None:
            transaction.call_after(partial(self._registry.drop_if_unused, queue))

    def sent_on(self, transaction: StoreTransaction, queue: Queue, key: int, target: str) -> None:
        """Remove a message that a new one to `target` replaces, in the same commit.

        Nobody has received it, so that it is neither acknowledged nor kept in a journal; its
        watchers elsewhere learn that it was taken from its queue (G614). One that leaves an
        outgoing queue so has not been delivered, which may make it a dead letter.
        """
        if isinstance(queue, OutgoingQueue):
            self.message_position_deleted(transaction, queue, key, purge_reason(queue))
            return
        if (queue.parent or queue).trail:
            self._trail.note_at(transaction, queue, key, TrailEventType.MOVED, target)
        self._store.metrics.count(MOVED)
        self.watch_moved(transaction, queue, key)
        transaction.remove(queue.queue_id, key)
        queue.peekable_when_locked.discard(key)
        if queue.parent is not None:
            transaction.call_after(partial(self._registry.drop_if_unused, queue))
        for hook in self.deleted_hooks:
            hook(transaction, queue, key, MessageClass.MQMSG_CLASS_ACK_RECEIVE)

    def watch_moved(self, transaction: StoreTransaction, queue: Queue, key: int) -> None:
        """Tell who watches of a move, when it is durable."""
        if self.watch is not None:
            transaction.call_after(partial(self.watch.moved, queue, key))

    def published(
        self, queue: Queue, key: int, expiry: int, outcome: Completion[None] | None = None
    ) -> None:
        """Offer a message that has become visible, or remove it if it has expired already."""
        if expiry != NEVER and self._expiry.is_due(expiry):
            self._expiry.time_to_be_received_timer_expired(queue, [key])
        else:
            if expiry != NEVER:
                self._expiry.arm(expiry)
            self.message_position_available(queue, key)
        if outcome is not None:
            outcome.succeed(None)

    def published_many(self, queue: Queue, keys: Sequence[int], expiries: Sequence[int]) -> None:
        """Offer messages that have become visible, in this order."""
        if (
            queue.waiting_peeks
            or queue.waiting_receives
            or isinstance(queue, OutgoingQueue)
            or expiries.count(NEVER) < len(expiries)
        ):
            for key, expiry in zip(keys, expiries, strict=True):
                self.published(queue, key, expiry)

    def message_position_available(self, queue: Queue, key: int) -> None:
        """Wake the readers of a message that has become available ([MS-MQDMPR] 3.1.7.2.2)."""
        if queue.waiting_peeks or queue.waiting_receives:
            self._readers.offer(queue, key)
        if isinstance(queue, OutgoingQueue):
            for hook in self.available_hooks:
                hook(queue, key)

    def lock(self, queue: Queue, message: Message, owner: object) -> None:
        """Lock a message that was read; raises MQ_ERROR_MESSAGE_NOT_FOUND if it has gone."""
        key = message.lookup_identifier
        if not queue.message_position_list.lock(key, owner):
            raise MQError(HResult.MQ_ERROR_MESSAGE_NOT_FOUND)
        if message.kept_flags & FLAG_ALLOW_PEEK_WHEN_LOCKED:
            queue.peekable_when_locked.add(key)
        if (queue.parent or queue).trail:
            self._trail.note_alone(queue, key, TrailEventType.LOCKED)

    def release(self, queue: Queue, key: int) -> None:
        """Give back a locked message: it is available again, or removed when it has expired or
        was purged meanwhile (G13). A message that is leaving is left alone (G61).
        """
        positions = queue.message_position_list
        if positions.unlock(key):
            queue.peekable_when_locked.discard(key)
            if (queue.parent or queue).trail:
                self._trail.note_alone(queue, key, TrailEventType.GIVEN_BACK)
            if self.watch is not None:
                self.watch.released(queue, key)
            position = positions.position(key)
            if position is not None:
                self.published(queue, key, position.expiry)
        elif positions.state(key) is PositionState.PURGE_PENDING:
            with self._store.transaction("purged while locked") as transaction:
                self.message_position_deleted(transaction, queue, key, purge_reason(queue))


def purge_reason(queue: Queue) -> MessageClass:
    """The reason of a purge's removals: in an outgoing queue messages have not arrived yet."""
    if isinstance(queue, OutgoingQueue):
        return MessageClass.MQMSG_CLASS_NACK_DELETED
    return MessageClass.MQMSG_CLASS_NACK_Q_PURGED


def only_leaves(queue: Queue) -> bool:
    """Whether reading messages of a queue is reported to no queue, trail or other machine.

    What the message itself asks for is in its flags (CONSEQUENCES).
    """
    return not (
        queue.queue_manager is None
        or queue.parent is not None
        or isinstance(queue, OutgoingQueue)
        or queue.trail
        or queue.journaling
    )
