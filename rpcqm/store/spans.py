"""Spans: neighbouring messages of one chunk, whose states change in one step."""

from array import array
from typing import TYPE_CHECKING

from rpcqm.adm.enums import PositionState
from rpcqm.store.chunk import DELETED
from rpcqm.store.columns import AVAILABLE

if TYPE_CHECKING:
    from rpcqm.store.priority_index import Place

PRESENT = bytes(state not in (PositionState.LEAVING, PositionState.DELETED) for state in range(256))
"""Translates a column of states into one of 1 for every message that may be removed."""
ONLY_AVAILABLE = bytes(state == AVAILABLE for state in range(256))
"""Translates a column of states into one of 1 for every message that may be locked."""

_DELETED = bytes([DELETED])


class Span:
    """The places `slot` to `end` of a chunk, which has the number `at` in the index."""

    __slots__ = ("at", "chunk", "end", "priority", "slot")

    def __init__(self, place: "Place", keys: "array[int]", first: int) -> None:
        """As many places from `place` on as have the keys from `first` on, one at least."""
        self.priority, self.at, self.chunk, self.slot = place
        self.end = self.slot + _equal(self.chunk.keys, self.slot, keys, first)

    @property
    def keys(self) -> "array[int]":
        return self.chunk.keys[self.slot : self.end]

    def __len__(self) -> int:
        return self.end - self.slot

    @property
    def size(self) -> int:
        """The length of the packets together."""
        return sum(self.chunk.sizes[self.slot : self.end])

    def are(self, state: int) -> bool:
        """Whether all are in a state."""
        return self.chunk.states.count(state, self.slot, self.end) == len(self)

    def has_any(self, flags: int) -> bool:
        """Whether one of the messages has one of the flags."""
        return any(map(flags.__and__, set(self.chunk.flags[self.slot : self.end])))

    def keep(self, wanted: bytes) -> bytearray:
        """Shorten the span to its first messages in a wanted state; returns their states."""
        states = self.chunk.states[self.slot : self.end]
        if (stop := states.translate(wanted).find(0)) >= 0:
            del states[stop:]
            self.end = self.slot + stop
        return states

    def turn(self, state: int, before: bytearray) -> int:
        """Change the state of all, from another than `before`; how many were available.

        `state` is not AVAILABLE.
        """
        chunk = self.chunk
        available = before.count(AVAILABLE)
        chunk.states[self.slot : self.end] = bytes((state,)) * len(before)
        chunk.available -= available
        if not chunk.available:
            self.priority.open[self.at] = 0
        return available

    def delete(self) -> None:
        """Delete all, which are leaving."""
        self.chunk.states[self.slot : self.end] = _DELETED * len(self)
        self.chunk.live -= len(self)
        self.priority.shrink(self.at)


def has_neighbour(column: "array[int]", slot: int, keys: "array[int]", at: int) -> bool:
    """Whether the place behind `slot` has the key behind `at`."""
    return at + 1 < len(keys) and slot + 1 < len(column) and column[slot + 1] == keys[at + 1]


def _equal(column: "array[int]", slot: int, keys: "array[int]", first: int) -> int:
    """How many of `keys` from `first` on are in the column from `slot` on, side by side."""
    there = column[slot : slot + len(keys) - first]
    wanted = keys[first : first + len(there)]
    if there == wanted:
        return len(there)
    return next(
        at for at, (one, other) in enumerate(zip(there, wanted, strict=True)) if one != other
    )
