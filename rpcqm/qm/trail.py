"""The event trail: what happened to each message of the queues that have one.

A record is kept twice in the store's family HISTORY: by message, to be found, and by time, to be
removed when it is old. It belongs to the commit that does what it tells of.
"""

import contextlib
import enum
import secrets
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from rpcqm.adm.message import Message
from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.clock import Clock, Timer, Timers
from rpcqm.base.completion import Completion
from rpcqm.base.errors import DecodeError, MQError
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.qm.stored_messages import message_at
from rpcqm.store.errors import StoreError
from rpcqm.store.records import Family
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction

DAY = 86_400_000
"""Milliseconds."""

REMOVED_AT_ONCE = 1_000
"""Old records that one commit removes."""

_BY_MESSAGE, _BY_TIME, _SWITCH = b"m", b"t", b"s"
_IDENTIFIER = struct.Struct(">16sI")
_MOMENT = struct.Struct(">QI")
_FIXED = struct.Struct("<BQ")
_SEPARATOR = "\0"


class TrailEventType(enum.IntEnum):
    """What can happen to a message; the numbers are on the disk."""

    ARRIVED = 1
    LOCKED = 2
    GIVEN_BACK = 3
    RECEIVED = 4
    MOVED = 5
    KEPT = 6
    REMOVED = 7
    LEFT = 8
    SENT = 9
    ACKNOWLEDGED = 10
    REFUSED = 11


@dataclass(frozen=True, slots=True)
class TrailEvent:
    """One thing that happened; `time` is milliseconds since 1970.

    `detail` is the queue or the next hop that it went to, the name of the reason, or whose
    acknowledgement it was.
    """

    time: int
    happening: TrailEventType
    queue: str
    lookup_identifier: int
    detail: str = ""


class Trail:
    """Writes and reads the records; a queue's trail is off until it is switched on.

    `days` is how long records are kept.
    """

    days = 7

    def __init__(
        self, store: Store, clock: Clock, timers: Timers, queue_manager: QueueManager
    ) -> None:
        self._store = store
        self._clock = clock
        self._timers = timers
        self._queue_manager = queue_manager
        self._timer: Timer | None = None
        # Within one millisecond it orders; after a restart no number comes again.
        self._number = secrets.randbits(31)

    def restore(self) -> None:
        """Switch on the trails that were on, and remove records that are too old."""
        with self._store.transaction("restore trails") as change:
            for key, _ in self._store.records(Family.HISTORY, _SWITCH):
                queue_id = int.from_bytes(key[1:], "big")
                queue = self._queue_manager.queue_collection.get(queue_id)
                if queue is not None:
                    queue.trail = True
                elif queue_id not in self._queue_manager.unusable_queues:
                    change.delete(Family.HISTORY, key)
        self.remove_old()

    def switch(self, queue: Queue, on: bool) -> Completion[None]:
        """Begin or end the trail of a queue, its journal and its subqueues; done when durable."""
        key = _SWITCH + queue.main.queue_id.to_bytes(4, "big")
        with self._store.transaction("switch a trail") as change:
            queue.main.trail = on  # what has waited for the end of the turn came before
            if on:
                change.put(Family.HISTORY, key, b"")
            else:
                change.delete(Family.HISTORY, key)
            return change.committed

    def note(
        self,
        change: StoreTransaction,
        queue: Queue,
        message: Message,
        happening: TrailEventType,
        detail: str = "",
    ) -> None:
        """Let a record belong to a commit."""
        self._number = (self._number + 1) & 0xFFFF_FFFF
        moment = _MOMENT.pack(self._clock.now(), self._number)
        identifier = _identifier(message.attributes.identifier)
        text = _SEPARATOR.join((queue.full_name, detail)).encode()
        value = _FIXED.pack(happening, message.lookup_identifier) + text
        change.put(Family.HISTORY, _BY_MESSAGE + identifier + moment, value)
        change.put(Family.HISTORY, _BY_TIME + moment, identifier)

    def removed(
        self, change: StoreTransaction, queue: Queue, key: int, reason: MessageClass
    ) -> None:
        """Let the record of a removal belong to its commit; `reason` says which event it is."""
        received = reason is MessageClass.MQMSG_CLASS_ACK_RECEIVE
        happening = TrailEventType.RECEIVED if received else TrailEventType.REMOVED
        detail = "" if received else reason.name.removeprefix("MQMSG_CLASS_")
        self.note_at(change, queue, key, happening, detail)

    def note_at(
        self,
        change: StoreTransaction,
        queue: Queue,
        key: int,
        happening: TrailEventType,
        detail: str,
    ) -> None:
        """Let a record belong to a commit, about a message that the caller has not read."""
        # What cannot be read can still be removed.
        with contextlib.suppress(DecodeError, MQError, StoreError):
            message = message_at(self._store, queue, key)
            self.note(change, queue, message, happening, detail)

    def note_alone(self, queue: Queue, key: int, happening: TrailEventType) -> None:
        """Record an event that changes nothing on the disk; it waits for no sync."""
        with self._store.transaction("trail") as change:
            self.note_at(change, queue, key, happening, "")
            change.sync = False

    def events(self, identifier: MessageIdentifier) -> Iterator[TrailEvent]:
        """The events of a message, in order."""
        prefix = _BY_MESSAGE + _identifier(identifier)
        for key, value in self._store.records(Family.HISTORY, prefix):
            time, _ = _MOMENT.unpack_from(key, len(prefix))
            happening, lookup_identifier = _FIXED.unpack_from(value)
            queue, _, detail = value[_FIXED.size :].decode().partition(_SEPARATOR)
            yield TrailEvent(time, TrailEventType(happening), queue, lookup_identifier, detail)

    def keep(self, days: int) -> None:
        """Keep records for `days` days from now on."""
        self.days = days
        self.stop()
        self.remove_old()

    def remove_old(self) -> None:
        """Remove records older than the settings say, some at a time; again tomorrow."""
        limit = self._clock.now() - self.days * DAY
        removed = 0
        with self._store.transaction("remove old trails") as change:
            for key, identifier in self._store.records(Family.HISTORY, _BY_TIME):
                time, _ = _MOMENT.unpack_from(key, len(_BY_TIME))
                if time >= limit or removed == REMOVED_AT_ONCE:
                    break
                change.delete(Family.HISTORY, key)
                change.delete(Family.HISTORY, _BY_MESSAGE + identifier + key[len(_BY_TIME) :])
                removed += 1
        # A second lets others be served between two lots.
        delay = 1_000 if removed == REMOVED_AT_ONCE else DAY
        self._timer = self._timers.call_later(delay, self.remove_old)

    def stop(self) -> None:
        """Stop the timer: the store is about to be closed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _identifier(identifier: MessageIdentifier) -> bytes:
    return _IDENTIFIER.pack(identifier.queue_manager_guid.bytes, identifier.ordinal)
