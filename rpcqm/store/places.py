"""The places of a queue's messages in memory: their order and their states."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from rpcqm.adm.enums import PositionState
from rpcqm.codec.packet.types import SEQUENTIAL_BITS
from rpcqm.store.chunk import DELETED
from rpcqm.store.errors import PositionStateError
from rpcqm.store.expiry import ExpiryHeap
from rpcqm.store.moves import MovesOfMessages
from rpcqm.store.priority_index import EMPTY, Neighbours, Place, PriorityIndex, Row
from rpcqm.store.put_off import PutOff
from rpcqm.store.records import MAX_IDENTIFIER, NO_MOVES, Moves, PositionRecord
from rpcqm.store.runs import Run

PRIORITIES = 8
"""Priorities are 0 to 7; keys have 7 - priority in their high byte."""

_AVAILABLE = int(PositionState.AVAILABLE)
_STATES = tuple(PositionState)


class Places:
    """The visible messages of one queue, ordered by lookup identifier.

    Keys are lookup identifiers (u64): 7 - priority in the high byte, so that their order is the
    order of the queue (G1). `pending` messages are not visible yet, and have a key. `count` is of
    all visible messages, `available` of those in that state; `entered` counts the arrivals since
    the start. `moved` has the history of messages.

    Work put off to the end of the turn is carried out before each look that would notice it: it
    makes messages pending, and has locked ones leave. Available ones stay so.
    """

    __slots__ = (
        "_heap",
        "_loaded",
        "_priorities",
        "_put_off",
        "_used",
        "available",
        "count",
        "entered",
        "moved",
        "pending",
        "queue_id",
    )

    def __init__(self, queue_id: int, heap: ExpiryHeap, put_off: PutOff) -> None:
        self.queue_id = queue_id
        self._put_off = put_off
        self._priorities = [EMPTY] * PRIORITIES
        self._used: list[PriorityIndex] = []
        self._heap = heap
        self.moved = MovesOfMessages()
        self.pending: dict[int, PositionRecord | Run] = {}
        self.count = self.entered = self._loaded = 0
        self.available = 0

    def first_available(self) -> int | None:
        """The key of the first available message; None if no message is available."""
        place = self.first_place()
        return None if place is None else place[2].keys[place[3]]

    def first_place(self) -> Place | None:
        """The place of the first available message, until something changes."""
        if self.available:
            for priority in self._used:
                if (at := priority.open.find(1)) >= 0:
                    chunk = priority.chunks[at]
                    return priority, at, chunk, chunk.states.find(_AVAILABLE)
        return None

    def first(self, available: bool = True) -> int | None:
        """The first key, among the available messages or among all."""
        return self._seek(0, available)

    def last(self, available: bool = True) -> int | None:
        """The last key, among the available messages or among all."""
        return self._seek_back(MAX_IDENTIFIER, available)

    def next(self, key: int, available: bool = True) -> int | None:
        """The smallest key above `key`, which need not be there itself."""
        return self._seek(key + 1, available)

    def previous(self, key: int, available: bool = True) -> int | None:
        """The largest key below `key`, which need not be there itself."""
        return self._seek_back(key - 1, available) if key else None

    def _seek(self, key: int, available: bool) -> int | None:
        for priority in self._priorities[key >> SEQUENTIAL_BITS :]:
            if priority.chunks and (found := priority.first_from(key, available)) is not None:
                return found
        return None

    def _seek_back(self, key: int, available: bool) -> int | None:
        for number in range(min(key >> SEQUENTIAL_BITS, PRIORITIES - 1), -1, -1):
            priority = self._priorities[number]
            if priority.chunks and (found := priority.last_until(key, available)) is not None:
                return found
        return None

    @property
    def left(self) -> int:
        """The number of messages that have gone since the start."""
        return self._loaded + self.entered - self.count

    def oldest(self) -> int:
        """The arrival of the oldest message among the first one of each priority; 0 without
        messages.

        The time is milliseconds since 1970.
        """
        firsts = (priority.first_from(0, False) for priority in self._priorities if priority.chunks)
        found = (self.position(key) for key in firsts if key is not None)
        return min((each.arrival for each in found if each is not None), default=0)

    def count_after(self, number: int) -> int:
        """How many messages came after the one with that number, of any priority."""
        by_priority = enumerate(self._priorities)
        return sum(each.count_after(at << SEQUENTIAL_BITS | number) for at, each in by_priority)

    def unread(self) -> int:
        """How many messages came since the last look at the queue, if looks are kept for it."""
        return self.count_after(self.moved.looked_at) + sum(key in self for key in self.moved.late)

    def first_available_run(self, limit: int) -> Neighbours | None:
        """The first available neighbouring messages, at most `limit`; None without any."""
        runs = (each.first_available_run(limit) for each in self._priorities if each.chunks)
        return next(filter(None, runs), None)

    def available_behind(self, after: int | None) -> Iterator[Row]:
        """The available messages above `after` (None = from the first), until something changes."""
        first = 0 if after is None else after + 1
        for priority in self._priorities[first >> SEQUENTIAL_BITS :]:
            yield from priority.available_from(first)

    def page(self, after: int | None, limit: int, available: bool = True) -> list[int]:
        """Up to `limit` keys above `after` (None = from the first), in order."""
        keys: list[int] = []
        key = self.first(available) if after is None else self.next(after, available)
        while key is not None and len(keys) < limit:
            keys.append(key)
            key = self.next(key, available)
        return keys

    def keys_of(self, serial: int) -> list[int]:
        """The keys of the message with a serial.

        It is looked for in every column: a hundredth of a second for a million messages.
        """
        return [
            key
            for priority in self._priorities
            for chunk in priority.chunks
            if serial in chunk.serials
            for key, found, state in zip(chunk.keys, chunk.serials, chunk.states, strict=True)
            if found == serial and _STATES[state] is not PositionState.DELETED
        ]

    def __contains__(self, key: int) -> bool:
        return self.find(key) is not None

    def state(self, key: int) -> PositionState:
        """The state of a message; DELETED when it is not here."""
        if self._put_off.waits:
            self._put_off.carry_out()
        place = self.find(key)
        return PositionState.DELETED if place is None else _STATES[place[2].states[place[3]]]

    def position(self, key: int) -> PositionRecord | None:
        """The entry of a message; None if the message is not here."""
        place = self.find(key)
        return None if place is None else place[2].position(place[3])

    def expected(self, key: int) -> PositionRecord:
        """The entry of a message; raises PositionStateError if it is not here or is leaving."""
        position = self.position(key)
        if position is None or self.state(key) is PositionState.LEAVING:
            raise PositionStateError(f"there is no message {key:#x}")
        return position

    def serial(self, key: int) -> int | None:
        """The serial of a message's packet; None if the message is not here."""
        place = self.find(key)
        return None if place is None else place[2].serials[place[3]]

    def moves(self, key: int) -> Moves:
        """How often the message was given back or moved, and when last."""
        return self.moved.get(key, NO_MOVES)

    def arriving(self) -> list[int]:
        """The keys of messages with a commit under way, in order."""
        if self._put_off.waits:
            self._put_off.carry_out()
        return sorted(self.pending) if self.pending else []

    def find(self, key: int) -> Place | None:
        """The place of a message, until something changes; None if it is not here."""
        number = key >> SEQUENTIAL_BITS
        if number >= PRIORITIES:
            return None
        priority = self._priorities[number]
        at = bisect_left(priority.largest, key)
        if at == len(priority.chunks):
            return None
        chunk = priority.chunks[at]
        slot = bisect_left(chunk.keys, key)
        if slot == len(chunk.keys) or chunk.keys[slot] != key or chunk.states[slot] == DELETED:
            return None
        return priority, at, chunk, slot

    def pending_position(self, key: int) -> PositionRecord | None:
        """The entry of a message that is pending; None if the message is not."""
        position = self.pending.get(key)
        return position.position(key) if isinstance(position, Run) else position

    def _is_free(self, key: int) -> bool:
        number = key >> SEQUENTIAL_BITS
        if number >= PRIORITIES:
            return False
        largest = self._priorities[number].largest
        return not largest or key > largest[-1] or self.find(key) is None

    def keys(self) -> Iterable[int]:
        """Every key in order; the queue must not change meanwhile."""
        for priority in self._priorities:
            for chunk in priority.chunks:
                for key, state in zip(chunk.keys, chunk.states, strict=True):
                    if state != DELETED:
                        yield key

    def _to_fill(self, number: int) -> PriorityIndex:
        """The messages of a priority, created for the first of them: most queues have only one."""
        found = self._priorities[number]
        if found is EMPTY:
            found = self._priorities[number] = PriorityIndex(self.queue_id, self._heap)
            self._used = [each for each in self._priorities if each is not EMPTY]
        return found
