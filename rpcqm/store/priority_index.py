"""The messages of one queue and one priority, in the order of their identifiers."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from rpcqm.store.chunk import LIVE, Chunk
from rpcqm.store.columns import AVAILABLE, MessageColumns
from rpcqm.store.expiry import ExpiryHeap

_AVAILABLE_STATE = bytes([AVAILABLE])

FULL = 512
"""The last chunk of an index grows to this, and neighbours are merged up to it."""
SPLIT = 1024
"""A chunk that has grown to this is split: inserting moves all behind it."""
SMALL = 64
"""A chunk shorter than this is not worth compacting."""


class Neighbours(NamedTuple):
    """Columns of messages that are side by side; sizes are octets."""

    keys: "array[int]"
    serials: "array[int]"
    sizes: "array[int]"
    flags: bytearray


class Row(NamedTuple):
    """A queue's values of a message beside its packet; `size` is stored octets."""

    key: int
    serial: int
    size: int
    arrival: int
    flags: int


class PriorityIndex:
    """A list of chunks, with each one's largest key and whether it has available entries."""

    __slots__ = ("chunks", "heap", "largest", "open", "queue_id")

    def __init__(self, queue_id: int, heap: ExpiryHeap) -> None:
        self.queue_id = queue_id
        self.heap = heap
        self.chunks: list[Chunk] = []
        self.largest = array("Q")
        self.open = bytearray()

    def insert(
        self, key: int, serial: int, size: int, arrival: int, expiry: int, flags: int, state: int
    ) -> None:
        """Insert an entry, whose key is not taken.

        A deleted entry may still have the key; the new one comes before it and is found first.
        """
        chunks = self.chunks
        if not chunks or key > self.largest[-1]:
            at = len(chunks) - 1
            if at < 0 or len(chunks[at].keys) >= FULL:
                at = self._grow()
            chunk = chunks[at]
            chunk.append(key, serial, size, arrival, expiry, flags, state)
            self.largest[at] = key
        else:
            at = bisect_left(self.largest, key)
            chunk = chunks[at]
            slot = bisect_left(chunk.keys, key)
            chunk.insert(slot, key, serial, size, arrival, expiry, flags, state)
        chunk.live += 1
        if state == AVAILABLE:
            chunk.available += 1
            self.open[at] = 1
            if expiry < chunk.earliest:
                self.heap.push(chunk, expiry)
        if len(chunk.keys) >= SPLIT:
            self._split(at)

    def ends_before(self, key: int) -> bool:
        """Whether every key here is smaller, so that `extend` may append."""
        return not self.largest or key > self.largest[-1]

    def count_after(self, key: int) -> int:
        """How many entries have larger keys."""
        at = bisect_right(self.largest, key)
        if at == len(self.chunks):
            return 0
        chunk = self.chunks[at]
        states = chunk.states[bisect_right(chunk.keys, key) :]
        return sum(states.translate(LIVE)) + sum(each.live for each in self.chunks[at + 1 :])

    def extend(self, columns: MessageColumns, start: int, end: int) -> None:
        """Append a run of messages, whose keys are all larger."""
        while start < end:
            at = len(self.chunks) - 1
            if at < 0 or len(self.chunks[at].keys) >= FULL:
                at = self._grow()
            chunk = self.chunks[at]
            stop = min(end, start + FULL - len(chunk.keys))
            chunk.extend(columns, start, stop)
            self.largest[at] = chunk.keys[-1]
            self.open[at] = chunk.available > 0
            if (earliest := columns.earliest(start, stop)) < chunk.earliest:
                self.heap.push(chunk, earliest)
            start = stop

    def _grow(self) -> int:
        """Add a chunk at the end; returns its place."""
        if self.chunks and not self.chunks[-1].live:
            self.chunks[-1].clear()
        else:
            self.chunks.append(Chunk(self.queue_id))
            self.largest.append(0)
            self.open.append(0)
        return len(self.chunks) - 1

    def _split(self, at: int) -> None:
        lower = self.chunks[at]
        upper = lower.split()
        self.chunks.insert(at + 1, upper)
        self.largest.insert(at, lower.keys[-1])
        self.open[at] = lower.available > 0
        self.open.insert(at + 1, upper.available > 0)
        if (earliest := upper.earliest_available()) < upper.earliest:
            self.heap.push(upper, earliest)

    def shrink(self, at: int) -> None:
        """After a removal: drop, compact or merge the chunk when little of it is left.

        Only the last remaining chunk may stay without a live entry.
        """
        chunk = self.chunks[at]
        length = len(chunk.keys)
        if not chunk.live:
            if len(self.chunks) > 1:
                self._drop(at)
            elif length >= SMALL:
                chunk.clear()
                self.largest[at] = 0
        elif length >= SMALL and chunk.live * 2 < length:
            chunk.compact()
            self.largest[at] = chunk.keys[-1]
            self._merge(at)

    def _drop(self, at: int) -> None:
        del self.chunks[at], self.largest[at], self.open[at]

    def _merge(self, at: int) -> None:
        """Merge the chunk with a neighbour if both together are no longer than FULL."""
        for lower in (at, at - 1):
            if 0 <= lower < len(self.chunks) - 1:
                chunk, upper = self.chunks[lower], self.chunks[lower + 1]
                if len(chunk.keys) + len(upper.keys) <= FULL:
                    self._join(lower)
                    return

    def _join(self, at: int) -> None:
        chunk, upper = self.chunks[at], self.chunks[at + 1]
        earliest = min(chunk.earliest, upper.earliest)
        chunk.absorb(upper)
        self.largest[at] = self.largest[at + 1]
        self.open[at] = chunk.available > 0
        self._drop(at + 1)
        if earliest < chunk.earliest:
            self.heap.push(chunk, earliest)

    def first_available_run(self, limit: int) -> Neighbours | None:
        """The first available neighbouring messages, at most `limit`; None without any."""
        at = self.open.find(1)
        if at < 0:
            return None
        chunk = self.chunks[at]
        start = chunk.states.find(AVAILABLE)
        states = chunk.states[start : start + limit]
        run = slice(start, start + len(states) - len(states.lstrip(_AVAILABLE_STATE)))
        return Neighbours(chunk.keys[run], chunk.serials[run], chunk.sizes[run], chunk.flags[run])

    def available_from(self, key: int) -> Iterator[Row]:
        """The available messages whose keys are not below `key`, until something changes."""
        at = bisect_left(self.largest, key)
        while (at := self.open.find(1, at)) >= 0:
            chunk = self.chunks[at]
            slot = bisect_left(chunk.keys, key) - 1
            while (slot := chunk.states.find(AVAILABLE, slot + 1)) >= 0:
                yield Row(
                    chunk.keys[slot],
                    chunk.serials[slot],
                    chunk.sizes[slot],
                    chunk.arrivals[slot],
                    chunk.flags[slot],
                )
            at += 1

    def first_from(self, key: int, available: bool) -> int | None:
        """The smallest key that is not below `key`, among the available or all live entries."""
        at = bisect_left(self.largest, key)
        if at < len(self.chunks):
            slot = bisect_left(self.chunks[at].keys, key)
            if (found := _find(self.chunks[at], slot, available)) is not None:
                return found
        while (at := at + 1) < len(self.chunks):
            if available and (at := self.open.find(1, at)) < 0:
                return None
            if (found := _find(self.chunks[at], 0, available)) is not None:
                return found
        return None

    def last_until(self, key: int, available: bool) -> int | None:
        """The largest key that is not above `key`, among the available or all live entries."""
        at = min(bisect_left(self.largest, key), len(self.chunks) - 1)
        if at >= 0:
            chunk = self.chunks[at]
            slot = bisect_left(chunk.keys, key)
            end = slot + (slot < len(chunk.keys) and chunk.keys[slot] == key)
            if (found := _find_last(chunk, end, available)) is not None:
                return found
        while (at := at - 1) >= 0:
            if available and (at := self.open.rfind(1, 0, at + 1)) < 0:
                return None
            if (found := _find_last(self.chunks[at], None, available)) is not None:
                return found
        return None


EMPTY = PriorityIndex(0, ExpiryHeap())
"""A queue's index for a priority without messages; nothing is ever put into it."""

Place = tuple[PriorityIndex, int, Chunk, int]
"""A message: its priority, the number and the chunk there, its slot."""


def _find(chunk: Chunk, start: int, available: bool) -> int | None:
    if available:
        slot = chunk.states.find(AVAILABLE, start)
    else:
        slot = chunk.states.translate(LIVE).find(1, start)
    return chunk.keys[slot] if slot >= 0 else None


def _find_last(chunk: Chunk, end: int | None, available: bool) -> int | None:
    if available:
        slot = chunk.states.rfind(AVAILABLE, 0, end)
    else:
        slot = chunk.states.translate(LIVE).rfind(1, 0, end)
    return chunk.keys[slot] if slot >= 0 else None
