"""The first message of a queue, found and locked in few steps; peeks, too.

`MessageEvents.dequeue_message_begin` stays the only definition of how a two-phase read begins
([MS-MQDMPR] 3.1.7.1.11); this module handles a message that nothing has happened to since it came
(docs/request-templates.md).
"""

from dataclasses import dataclass
from typing import NamedTuple

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.adm.enums import PositionState
from rpcqm.adm.message import (
    FLAG_ALLOW_PEEK_WHEN_LOCKED,
    FLAG_APPLICATION_DEADLETTER,
    Message,
)
from rpcqm.adm.queue import Queue
from rpcqm.qm.access import READING, RECEIVING
from rpcqm.qm.positions import Positions
from rpcqm.store.index import QueueIndex
from rpcqm.store.priority_index import Place
from rpcqm.store.records import NO_MOVES
from rpcqm.store.store import Store

_AVAILABLE = int(PositionState.AVAILABLE)
_UNUSUAL = FLAG_ALLOW_PEEK_WHEN_LOCKED | FLAG_APPLICATION_DEADLETTER


class FirstMessage(NamedTuple):
    """A `stored` message and its place; it arrived so many milliseconds after 1970."""

    positions: QueueIndex
    place: Place
    key: int
    arrival: int
    stored: bytes


@dataclass(eq=False, repr=False)
class FirstMessages:
    """Finds first messages, and locks them; finds messages for peeks."""

    _store: Store
    _positions: Positions

    def find(self, descriptor: OpenQueueDescriptor) -> FirstMessage | None:
        """The message that a read would lock; None for the careful path, which waits or refuses."""
        queue = descriptor.queue_reference
        if queue is None or descriptor.access_type not in RECEIVING:
            return None
        return self.find_in(queue)

    def find_in(self, queue: Queue) -> FirstMessage | None:
        """The same for a queue from which the caller may receive."""
        index = queue.message_position_list
        if queue.main.trail or not isinstance(index, QueueIndex):
            return None
        place = index.first_place()
        return None if place is None else self._stored(index, place)

    def find_to_peek(self, descriptor: OpenQueueDescriptor, key: int) -> FirstMessage | None:
        """The message of a peek: the first one, or that of a key other than 0; or None."""
        queue = descriptor.queue_reference
        if queue is None or queue.peekable_when_locked or descriptor.access_type not in READING:
            return None
        index = queue.message_position_list
        if not isinstance(index, QueueIndex):
            return None
        place = index.find(key) if key else index.first_place()
        if place is None or place[2].states[place[3]] != _AVAILABLE:
            return None
        return self._stored(index, place)

    def _stored(self, index: QueueIndex, place: Place) -> FirstMessage | None:
        """A message that was never touched; None for another."""
        chunk, slot = place[2], place[3]
        key = chunk.keys[slot]
        if chunk.flags[slot] & _UNUSUAL or index.moves(key) is not NO_MOVES:
            return None
        stored = self._store.read_packet(chunk.serials[slot])
        return FirstMessage(index, place, key, chunk.arrivals[slot], stored)

    def lock(self, descriptor: OpenQueueDescriptor, first: FirstMessage) -> None:
        """Lock the message from `find` until Dequeue Message End."""
        queue = descriptor.queue_reference
        assert queue is not None
        descriptor.two_phase_reads.add(first.key)
        self.lock_for(queue, first, descriptor)

    def lock_for(self, queue: Queue, first: FirstMessage, owner: object) -> None:
        """Lock the message from `find_in` for an owner, who settles it."""
        first.positions.lock_at(first.place, owner)
        watch = self._positions.watch
        if watch is not None:
            message = Message.restored(first.stored, 0)
            message.lookup_identifier = first.key
            watch.received(queue, message, watch.now())
