"""A chunk: neighbouring messages of one queue and one priority, in columns."""

from array import array
from itertools import compress

from rpcqm.adm.enums import PositionState
from rpcqm.store.columns import AVAILABLE, MessageColumns
from rpcqm.store.records import NEVER, PositionRecord

DELETED = int(PositionState.DELETED)

LIVE = bytes(state != DELETED for state in range(256))
"""Translates a column of states into one of 1 for every entry that is not deleted."""


class Chunk:
    """Columns of up to a thousand messages, ordered by key.

    A removed entry stays as DELETED until `compact`. `earliest` is the time in the expiry heap: no
    available entry expires before it.
    """

    __slots__ = (
        "arrivals",
        "available",
        "earliest",
        "expiries",
        "flags",
        "keys",
        "live",
        "queue_id",
        "serials",
        "sizes",
        "states",
    )

    def __init__(self, queue_id: int) -> None:
        self.queue_id = queue_id
        self.keys = array("Q")
        self.serials = array("Q")
        self.sizes = array("I")
        self.arrivals = array("Q")
        self.expiries = array("Q")
        self.flags = bytearray()
        self.states = bytearray()
        self.live = 0
        self.available = 0
        self.earliest = NEVER

    def append(
        self, key: int, serial: int, size: int, arrival: int, expiry: int, flags: int, state: int
    ) -> None:
        self.keys.append(key)
        self.serials.append(serial)
        self.sizes.append(size)
        self.arrivals.append(arrival)
        self.expiries.append(expiry)
        self.flags.append(flags)
        self.states.append(state)

    def insert(
        self,
        at: int,
        key: int,
        serial: int,
        size: int,
        arrival: int,
        expiry: int,
        flags: int,
        state: int,
    ) -> None:
        self.keys.insert(at, key)
        self.serials.insert(at, serial)
        self.sizes.insert(at, size)
        self.arrivals.insert(at, arrival)
        self.expiries.insert(at, expiry)
        self.flags.insert(at, flags)
        self.states.insert(at, state)

    def extend(self, columns: MessageColumns, start: int, end: int) -> None:
        """Append a run of messages, whose keys are all larger."""
        self.keys += columns.keys[start:end]
        self.serials += columns.serials[start:end]
        self.sizes += columns.sizes[start:end]
        self.arrivals += columns.arrivals[start:end]
        self.expiries += columns.expiries[start:end]
        self.flags += columns.flags[start:end]
        self.states += columns.states[start:end]
        self._count()

    def position(self, slot: int) -> PositionRecord:
        """The entry of a message."""
        return PositionRecord(
            self.serials[slot],
            self.sizes[slot],
            self.arrivals[slot],
            self.expiries[slot],
            self.flags[slot],
        )

    def clear(self) -> None:
        """Drop every entry from the columns."""
        del self.keys[:], self.serials[:], self.sizes[:], self.arrivals[:]
        del self.expiries[:], self.flags[:], self.states[:]

    def compact(self) -> None:
        """Drop the deleted entries from the columns."""
        live = self.states.translate(LIVE)
        self.keys = array("Q", compress(self.keys, live))
        self.serials = array("Q", compress(self.serials, live))
        self.sizes = array("I", compress(self.sizes, live))
        self.arrivals = array("Q", compress(self.arrivals, live))
        self.expiries = array("Q", compress(self.expiries, live))
        self.flags = bytearray(compress(self.flags, live))
        self.states = bytearray(compress(self.states, live))

    def split(self) -> "Chunk":
        """Move the upper half into a new chunk; `earliest` stays right for both."""
        upper = Chunk(self.queue_id)
        half = slice(len(self.keys) // 2, None)
        upper.keys = self.keys[half]
        upper.serials = self.serials[half]
        upper.sizes = self.sizes[half]
        upper.arrivals = self.arrivals[half]
        upper.expiries = self.expiries[half]
        upper.flags = self.flags[half]
        upper.states = self.states[half]
        del self.keys[half], self.serials[half], self.sizes[half], self.arrivals[half]
        del self.expiries[half], self.flags[half], self.states[half]
        self._count()
        upper._count()
        return upper

    def absorb(self, upper: "Chunk") -> None:
        """Take over the entries of a chunk whose keys are all larger."""
        self.keys += upper.keys
        self.serials += upper.serials
        self.sizes += upper.sizes
        self.arrivals += upper.arrivals
        self.expiries += upper.expiries
        self.flags += upper.flags
        self.states += upper.states
        self._count()
        upper.live = 0

    def _count(self) -> None:
        self.available = self.states.count(AVAILABLE)
        self.live = len(self.states) - self.states.count(DELETED)

    def expired(self, now: int) -> list[int]:
        """Keys of the available entries whose expiry is not after `now`."""
        return [
            key
            for key, expiry, state in zip(self.keys, self.expiries, self.states, strict=True)
            if expiry <= now and state == AVAILABLE
        ]

    def earliest_available(self) -> int:
        """The earliest expiry of an available entry; NEVER if no entry is available."""
        if self.available == len(self.states):
            return min(self.expiries, default=NEVER)
        return min(
            (
                expiry
                for expiry, state in zip(self.expiries, self.states, strict=True)
                if state == AVAILABLE
            ),
            default=NEVER,
        )
