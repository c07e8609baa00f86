"""Runs: messages of one queue that are inserted, or removed, in one step.

A run has the effect of its messages one by one, in fewer steps. One transaction may hold any number
of runs beside other changes.
"""

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, compress, repeat
from typing import TYPE_CHECKING

from rpcqm.adm.enums import PositionState
from rpcqm.codec.packet.types import SEQUENTIAL_BITS
from rpcqm.store.columns import AVAILABLE, MessageColumns
from rpcqm.store.records import (
    FLAG_EXPRESS,
    NEVER,
    POSITION,
    POSITION_KEY,
    SERIAL,
    PositionRecord,
)
from rpcqm.store.spans import Span

if TYPE_CHECKING:
    from rocksdict import ColumnFamily as FamilyHandle

    from rpcqm.store.settings import StoreSettings

RECORDS_OF_MESSAGE = 2
"""A durable message is a body and a position on the disk."""

_LEAVING = int(PositionState.LEAVING)
_AVAILABLE_STATE = bytes([AVAILABLE])
_NEVER = array("Q", [NEVER])
_TO_EXPRESS = bytes(flags | FLAG_EXPRESS for flags in range(256))

Operation = tuple[bytes, bytes | None, "FamilyHandle"]


class Run(MessageColumns):
    """Columns of messages that wait for their commit, in the order of their keys.

    `bytes` is the length of their packets together. Keys may be given in any order; sorted, those
    of a priority are neighbours. Raises ValueError for columns of different lengths.
    """

    __slots__ = ("_expires", "bytes")

    def __init__(
        self,
        keys: Sequence[int],
        serials: range,
        sizes: Sequence[int],
        arrival: int,
        expiries: Sequence[int] | None,
        flags: int | Sequence[int],
    ) -> None:
        count = len(keys)
        ordered = sorted(keys)
        if not count == len(serials) == len(sizes):
            raise ValueError("a run needs as many packets as identifiers")
        self._expires = expiries is not None
        self.bytes = sum(sizes)
        self.keys = array("Q", ordered)
        self.serials = array("Q", serials)
        self.sizes = array("I", sizes)
        self.arrivals = array("Q", (arrival,)) * count
        self.expiries = _NEVER * count if expiries is None else array("Q", expiries)
        self.flags = bytes((flags,)) * count if isinstance(flags, int) else bytes(flags)
        self.states = _AVAILABLE_STATE * count
        if not count == len(self.expiries) == len(self.flags):
            raise ValueError("a run needs times and flags for each message")
        if ordered != keys:
            self._reorder(keys)

    def _reorder(self, keys: Sequence[int]) -> None:
        """Reorder the columns from the order of `keys` into that of the sorted keys."""
        places = sorted(range(len(keys)), key=keys.__getitem__)
        self.serials = array("Q", map(self.serials.__getitem__, places))
        self.sizes = array("I", map(self.sizes.__getitem__, places))
        self.expiries = array("Q", map(self.expiries.__getitem__, places))
        self.flags = bytes(map(self.flags.__getitem__, places))

    def express(self) -> None:
        """Mark every message as express."""
        self.flags = self.flags.translate(_TO_EXPRESS)

    def leave(self, keys: Collection[int]) -> None:
        """Let these messages be leaving once they are visible."""
        self.states = bytes(_LEAVING if key in keys else AVAILABLE for key in self.keys)

    def by_priority(self) -> Iterator[tuple[int, int, int]]:
        """The high byte of the keys, and the range of places, for each priority."""
        keys, start = self.keys, 0
        while start < len(keys):
            number = keys[start] >> SEQUENTIAL_BITS
            end = len(keys)
            if keys[-1] >> SEQUENTIAL_BITS > number:
                end = bisect_left(keys, (number + 1) << SEQUENTIAL_BITS, start)
            yield number, start, end
            start = end

    def earliest(self, start: int, end: int) -> int:
        """As MessageColumns.earliest; quick where nothing expires."""
        return super().earliest(start, end) if self._expires else NEVER

    def position(self, key: int) -> PositionRecord:
        """The entry of a message, which is in the run."""
        at = bisect_left(self.keys, key)
        return PositionRecord(
            self.serials[at], self.sizes[at], self.arrivals[at], self.expiries[at], self.flags[at]
        )

    def entries(self, start: int, end: int) -> Iterator[tuple[int, int, int, int, int, int, int]]:
        """Key, serial, size, arrival, expiry, flags and state of each message in that range."""
        columns = (
            self.keys,
            self.serials,
            self.sizes,
            self.arrivals,
            self.expiries,
            self.flags,
            self.states,
        )
        return zip(*(column[start:end] for column in columns), strict=True)

    def records(self, queue_id: int, family: "FamilyHandle") -> Iterator[Operation]:
        """The operations that write the positions."""
        none = repeat(0)
        keys = map(POSITION_KEY.pack, repeat(queue_id), self.keys)
        values = map(
            POSITION.pack,
            self.serials,
            self.arrivals,
            self.expiries,
            self.sizes,
            self.flags,
            none,
            none,
            none,
        )
        return zip(keys, values, repeat(family))


class Departure:
    """Messages that leave together, in the requested order.

    `states` are the earlier ones; LEAVING is that of a pending message.
    """

    __slots__ = ("flags", "keys", "serials", "states")

    def __init__(self, keys: Sequence[int]) -> None:
        self.keys = array("Q", keys)
        self.serials = array("Q")
        self.flags = bytearray()
        self.states = bytearray()

    def add(self, position: PositionRecord, state: int) -> None:
        """Add the next message."""
        self.serials.append(position.serial)
        self.flags.append(position.flags)
        self.states.append(state)

    def add_span(self, span: Span, states: bytearray) -> None:
        """Add the next messages, which are neighbours."""
        self.serials += span.chunk.serials[span.slot : span.end]
        self.flags += span.chunk.flags[span.slot : span.end]
        self.states += states

    def express(self) -> list[int]:
        """The serials of the express messages."""
        if max(self.flags, default=0) < FLAG_EXPRESS:
            return []
        return list(compress(self.serials, map(FLAG_EXPRESS.__le__, self.flags)))

    def records(
        self, queue_id: int, bodies: "FamilyHandle", positions: "FamilyHandle"
    ) -> Iterator[Operation]:
        """The operations that delete the durable parts."""
        keys, serials = self.keys, self.serials
        if max(self.flags, default=0) >= FLAG_EXPRESS:
            durable = [flags < FLAG_EXPRESS for flags in self.flags]
            keys, serials = (
                array("Q", compress(keys, durable)),
                array("Q", compress(serials, durable)),
            )
        gone: repeat[None] = repeat(None)
        return chain(
            zip(map(POSITION_KEY.pack, repeat(queue_id), keys), gone, repeat(positions)),
            zip(map(SERIAL.pack, serials), gone, repeat(bodies)),
        )


def bodies(serials: range, packets: Sequence[bytes], family: "FamilyHandle") -> Iterator[Operation]:
    """The operations that write the packets of a run."""
    return zip(map(SERIAL.pack, serials), packets, repeat(family))


def cut(sizes: Sequence[int], settings: "StoreSettings") -> Iterator[slice]:
    """Cut messages of these sizes (bytes) into runs that each fit into one synced write.

    A message that alone is larger than a write is a run of its own.
    """
    most = max(settings.group_records // RECORDS_OF_MESSAGE, 1)
    start = total = 0
    for at, size in enumerate(sizes):
        if at > start and (total + size > settings.group_bytes or at - start >= most):
            yield slice(start, at)
            start, total = at, 0
        total += size
    if start < len(sizes):
        yield slice(start, len(sizes))
