"""Messages on their way to other queue managers: taking, delivering, giving up.

What the sending side of [MS-MQQB] (3.1.5.5 to 3.1.5.7) and [MC-MQSRM] needs of the core. A
message that is being sent is locked by whoever sends it, so that neither expiry nor a purge
removes it meanwhile; both happen when it is given back.
"""

import struct
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import NamedTuple
from uuid import UUID

from rpcqm.adm.enums import PositionState
from rpcqm.adm.message import (
    FLAG_ALLOW_PEEK_WHEN_LOCKED,
    FLAG_APPLICATION_DEADLETTER,
    FLAG_POSITIVE_JOURNALING,
    NEVER,
    Message,
)
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.completion import Completion, completed
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.packet.user import UserFlags
from rpcqm.qm.acknowledgements import Acknowledgements
from rpcqm.qm.message_trace import MessageTrace
from rpcqm.qm.outgoing import Outgoing
from rpcqm.qm.positions import Positions
from rpcqm.qm.protocol_records import Changes, ProtocolRecords, apply_changes
from rpcqm.store.errors import PositionStateError
from rpcqm.store.records import Family, PositionRecord
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction

AWAITING_PREFIX = b"await final:"
IN_DOUBT_PREFIX = b"final in doubt:"
_AWAITING_KEY = struct.Struct(">IQ")

RESENT_AT_MOST = 1_000
"""Messages that the next hop has, and that may be sent to it again after a crash."""


READ_AT_MOST = 1 << 20
"""Octets of messages that are read to be sent together, besides the last one."""


class SentAs(NamedTuple):
    """The identifier of a sequence and a number in it; zero when that is not known."""

    sequence: int = 0
    number: int = 0


class WaitingRun(NamedTuple):
    """Messages of a queue: their keys, and their octets as they are kept."""

    keys: list[int]
    stored: list[bytes]


UNKNOWN = SentAs()
_SENT_AS = struct.Struct("<QI")
_HOPS = UserFlags.RC.bits
_JOURNALED = FLAG_POSITIVE_JOURNALING
"""Messages with this flag are kept once they have arrived."""
_UNUSUAL = FLAG_ALLOW_PEEK_WHEN_LOCKED | FLAG_APPLICATION_DEADLETTER
"""Messages with these flags are locked, or kept, unlike others."""
_IS_UNUSUAL = bytes(bool(flags & _UNUSUAL) for flags in range(256))


class _Waiting(NamedTuple):
    """A message that waits for its final acknowledgement, and how it was sent."""

    queue: OutgoingQueue
    key: int
    sent_as: SentAs


@dataclass(eq=False, repr=False)
class Transfer:
    """The sending side's hold on the messages of outgoing queues."""

    _store: Store
    _queue_manager: QueueManager
    _records: ProtocolRecords
    _positions: Positions
    _outgoing: Outgoing
    _acknowledgements: Acknowledgements
    _message_trace: MessageTrace

    def __post_init__(self) -> None:
        self._awaiting: dict[MessageIdentifier, list[_Waiting]] = {}
        self._in_doubt: set[tuple[int, int]] = set()
        """Of these, those whose end may have been told after the backup that is here now."""
        self.unsynced = 0
        """Messages whose removal no later sync has made durable yet."""

    # Taking

    def lock_next(
        self, queue: OutgoingQueue, owner: object, after: int | None = None
    ) -> Message | None:
        """The next message to send, locked by `owner`; None when there is none behind `after`."""
        positions = queue.message_position_list
        key = positions.first_available() if after is None else positions.next(after)
        if key is None:
            return None
        message = self._positions.message_at(queue, key)
        self._positions.lock(queue, message, owner)
        return message

    def next_run(self, queue: OutgoingQueue, limit: int) -> WaitingRun:
        """The next messages to send, of one priority, up to `limit`; nobody has locked them yet.

        Each could be locked and sent as any other, with nothing to be noted.
        """
        found = self._store.index(queue.queue_id).first_available_run(limit)
        if queue.trail or found is None:
            return WaitingRun([], [])
        unusual = found.flags.translate(_IS_UNUSUAL).find(1)
        count = len(found.keys) if unusual < 0 else unusual
        enough = bisect_left(list(accumulate(found.sizes[:count])), READ_AT_MOST)
        several = min(count, enough + 1)
        packets = self._store.read_packets(found.serials[:several])
        return WaitingRun(found.keys[:several].tolist(), packets)

    def lock_run(self, queue: OutgoingQueue, keys: Sequence[int], owner: object) -> bool:
        """Lock messages of a run for `owner`; False, and nothing done, when one is not there."""
        return self._store.index(queue.queue_id).lock_many(keys, owner)

    def release(self, queue: OutgoingQueue, key: int) -> None:
        """Give back a message that was not sent; it can be sent again unless it has expired."""
        self._positions.release(queue, key)

    # Outcomes

    def delivered(
        self, queue: OutgoingQueue, key: int, changes: Changes | None = None
    ) -> Completion[None]:
        """The next hop has it: remove it here, in one commit with `changes` of the records.

        A message that is not transactional goes to the system journal if it asks for that
        ([MS-MQQB] 3.1.5.5). MQ_ERROR_MESSAGE_NOT_FOUND when it is not there any more.

        Without changes a crash may bring the message back, and some before it: then they are sent
        again, and the next hop remembers that it has them.
        """
        position = self._held(queue, key)
        source = self._acknowledgements
        with self._store.transaction("delivered") as change:
            target = source.queue_after_transfer(queue, key, None, position.flags, position.size)
            sync = bool(changes) or self._must_sync()
            self._positions.transferred(change, queue, key, target, sync=sync)
            apply_changes(change, changes)
            return change.committed

    def delivered_together(
        self,
        queue: OutgoingQueue,
        keys: Sequence[int],
        changes: Changes | None = None,
        look: Callable[[StoreTransaction], None] | None = None,
    ) -> bool:
        """The next hop has these: remove them as `delivered` does each, in one commit.

        False, and nothing has happened, where anything else is to be done with one of them. `look`
        is shown what is about to be committed.
        """
        if queue.trail:
            return False
        unsynced = self.unsynced + (0 if changes else len(keys))
        try:
            with self._store.transaction("delivered") as change:
                sync = bool(changes) or unsynced >= RESENT_AT_MOST
                change.remove_many(queue.queue_id, keys, sync=sync, unwanted=_JOURNALED)
                self._positions.transferred_together(change, queue, keys)
                apply_changes(change, changes)
                if look is not None:
                    look(change)
        except PositionStateError:  # one is journaled, or an administrator has removed it
            return False
        self.unsynced = unsynced % RESENT_AT_MOST
        return True

    def _must_sync(self) -> bool:
        """Whether more could come back than the next hop remembers, which is ten times as much."""
        self.unsynced = (self.unsynced + 1) % RESENT_AT_MOST
        return not self.unsynced

    def failed(
        self,
        queue: OutgoingQueue,
        key: int,
        reason: MessageClass,
        changes: Changes | None = None,
    ) -> Completion[None]:
        """It will never be sent: acknowledge that, keep a dead letter, remove it.

        MQ_ERROR_MESSAGE_NOT_FOUND when it is not there any more.
        """
        self._held(queue, key)
        with self._store.transaction("failed") as change:
            self._positions.message_position_deleted(change, queue, key, reason)
            apply_changes(change, changes)
            return change.committed

    def _held(self, queue: OutgoingQueue, key: int) -> PositionRecord:
        index = self._store.index(queue.queue_id)
        position = index.position(key)
        if position is None or index.state(key) is PositionState.LEAVING:
            raise MQError(HResult.MQ_ERROR_MESSAGE_NOT_FOUND)
        return position

    # Final acknowledgements

    def await_final_acknowledgement(
        self,
        queue: OutgoingQueue,
        key: int,
        changes: Changes | None = None,
        sent_as: SentAs = UNKNOWN,
    ) -> Completion[None]:
        """The destination has it in order, but has not decided: keep it, and send it no more.

        It stays locked, over restarts too ([MS-MQQB] 3.1.5.6, AwaitingFinalACKTable). `sent_as`
        tells it from the copies of the same message in other queues (G111).
        MQ_ERROR_MESSAGE_NOT_FOUND when it is not there, or nobody holds it for sending.
        """
        self._held(queue, key)
        if queue.message_position_list.state(key) is PositionState.AVAILABLE:
            raise MQError(HResult.MQ_ERROR_MESSAGE_NOT_FOUND, "nobody is sending it")
        identifier = self._positions.message_at(queue, key).attributes.identifier
        with self._store.transaction("await final acknowledgement") as change:
            change.put(Family.STREAM, _awaiting_key(queue, key), _SENT_AS.pack(*sent_as))
            apply_changes(change, changes)
            committed = change.committed
        self._await(_Waiting(queue, key, sent_as), identifier)
        return committed

    def _await(self, waiting: _Waiting, identifier: MessageIdentifier) -> None:
        copies = self._awaiting.setdefault(identifier, [])
        if self._place_of(waiting.queue, waiting.key, copies) is None:
            copies.append(waiting)
            info = self._outgoing.transfer_info(waiting.queue)
            info.eod_no_read_count += 1
            info.last_arrived = waiting.key

    def _place_of(self, queue: Queue, key: int, copies: list[_Waiting]) -> int | None:
        places = (n for n, each in enumerate(copies) if each.queue is queue and each.key == key)
        return next(places, None)

    def _find(self, identifier: MessageIdentifier, sent_as: SentAs) -> _Waiting | None:
        """The copy that was sent so; what an older version has kept does not say how."""
        copies = self._awaiting.get(identifier, [])
        for waiting in copies:
            if waiting.sent_as == sent_as:
                return waiting
        return next((waiting for waiting in copies if waiting.sent_as == UNKNOWN), None)

    def queue_awaiting(
        self, identifier: MessageIdentifier, sent_as: SentAs = UNKNOWN
    ) -> OutgoingQueue | None:
        """The queue of a message that waits for its final acknowledgement."""
        found = self._find(identifier, sent_as)
        return None if found is None else found.queue

    @property
    def held(self) -> set[tuple[int, int]]:
        """All that wait for their final acknowledgement: queue identifiers and keys."""
        waiting = chain.from_iterable(self._awaiting.values())
        return {(each.queue.queue_id, each.key) for each in waiting}

    def final_acknowledgement(
        self,
        identifier: MessageIdentifier,
        message_class: MessageClass,
        changes: Changes | None = None,
        sent_as: SentAs = UNKNOWN,
    ) -> Completion[bool]:
        """The destination has decided about a message that waits ([MS-MQQB] 3.1.5.7).

        A received one goes to the system journal, a rejected one becomes a dead letter, as far
        as it asks for that. False when no such message waits here.
        """
        found = self._find(identifier, sent_as)
        if found is None:
            return completed(False)
        return self.finished(found.queue, found.key, message_class, changes).giving(True)

    def finished(
        self,
        queue: OutgoingQueue,
        key: int,
        message_class: MessageClass,
        changes: Changes | None = None,
    ) -> Completion[None]:
        """The same for a message whose place is known, whether it waits or is still being sent."""
        position = self._held(queue, key)
        self._forget(queue, key)
        name = message_class.name.removeprefix("MQMSG_CLASS_")
        self._message_trace.acknowledged(queue, key, f"finally, {name}")
        source = self._acknowledgements
        with self._store.transaction("final acknowledgement") as change:
            target = source.queue_after_transfer(
                queue, key, message_class, position.flags, position.size
            )
            self._positions.transferred(change, queue, key, target, message_class)
            self._awaits_no_more(change, queue, key)
            apply_changes(change, changes)
            return change.committed

    def _awaits_no_more(self, change: StoreTransaction, queue: Queue, key: int) -> None:
        change.delete(Family.STREAM, _awaiting_key(queue, key))
        if (queue.queue_id, key) in self._in_doubt:
            self._in_doubt.discard((queue.queue_id, key))
            change.delete(Family.STREAM, IN_DOUBT_PREFIX + _AWAITING_KEY.pack(queue.queue_id, key))

    def give_up(self, change: StoreTransaction, queue: Queue, key: int) -> bool:
        """Let a purge have a message whose final acknowledgement may never come (G358).

        It had arrived when the backup was made that this queue manager was restored from. False
        for any other.
        """
        doubtful = (queue.queue_id, key) in self._in_doubt and isinstance(queue, OutgoingQueue)
        if doubtful:
            self._forget(queue, key)
            self._awaits_no_more(change, queue, key)
        return doubtful

    def _forget(self, queue: Queue, key: int) -> None:
        identifier = self._positions.message_at(queue, key).attributes.identifier
        copies = self._awaiting.get(identifier, [])
        place = self._place_of(queue, key, copies)
        if place is None:
            return
        del copies[place]
        if not copies:
            del self._awaiting[identifier]
        assert isinstance(queue, OutgoingQueue)
        self._outgoing.transfer_info(queue).eod_no_read_count -= 1

    def recover(self) -> None:
        """Lock what waited for its final acknowledgement before the restart."""
        lost: list[bytes] = []
        unusable = self._queue_manager.unusable_queues
        for record, kept in self._records.records(AWAITING_PREFIX):
            queue_id, key = _AWAITING_KEY.unpack_from(record, len(AWAITING_PREFIX))
            queue = self._queue_manager.queue_collection.get(queue_id)
            if isinstance(queue, OutgoingQueue) and key in queue.message_position_list:
                self._recover(queue, key, SentAs(*_SENT_AS.unpack(kept)) if kept else UNKNOWN)
            elif queue_id not in unusable:
                lost.append(record)
        awaiting = self.held
        for record, _ in self._records.records(IN_DOUBT_PREFIX):
            place = _AWAITING_KEY.unpack_from(record, len(IN_DOUBT_PREFIX))
            if place in awaiting:
                self._in_doubt.add(place)
            elif place[0] not in unusable:
                lost.append(record)
        if lost:
            self._records.write(dict.fromkeys(lost))

    def _recover(self, queue: OutgoingQueue, key: int, sent_as: SentAs) -> None:
        """One that was purged while it waited goes on waiting: it has arrived, and the purge
        takes effect when its destination has decided (G75, [MS-MQDMPR] 3.1.7.1.7).
        """
        message = self._positions.message_at(queue, key)
        if queue.message_position_list.state(key) is PositionState.AVAILABLE:
            self._positions.lock(queue, message, self)
        self._await(_Waiting(queue, key, sent_as), message.attributes.identifier)


def _awaiting_key(queue: Queue, key: int) -> bytes:
    return AWAITING_PREFIX + _AWAITING_KEY.pack(queue.queue_id, key)


def doubts_after_restore(
    records: Callable[[bytes], Iterator[tuple[bytes, bytes]]],
) -> dict[bytes, bytes | None]:
    """The changes of records by which what awaits its final acknowledgement is in doubt."""
    start = len(AWAITING_PREFIX)
    return {IN_DOUBT_PREFIX + key[start:]: b"" for key, _ in records(AWAITING_PREFIX)}


def is_stamped_here(message: Message, own: UUID) -> bool:
    """Whether a message is transactional and ours: only its source stamps it.

    One that has come back to us on its way has its stamp already ([MS-MQQB] 3.1.1.5).
    """
    envelope = message.envelope
    ours = envelope.source_machine == own.bytes_le and not envelope.user_flags & _HOPS
    return envelope.transactional and ours


def cannot_reach_queue(message: Message, now: int) -> bool:
    """Whether the time to reach the queue is over; `now` is seconds since 1970."""
    envelope = message.envelope
    limited = envelope.time_to_reach_queue != NEVER
    return limited and now - envelope.sent_time > envelope.time_to_reach_queue
