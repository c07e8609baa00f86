"""Positions in columns: the input of chunks, decoded from the records of the disk."""

from array import array
from collections.abc import Iterator
from itertools import compress

from rpcqm.adm.enums import PositionState
from rpcqm.store.errors import StoreError
from rpcqm.store.records import FLAG_PURGE_PENDING, NEVER, POSITION, POSITION_KEY, Moves

AVAILABLE = int(PositionState.AVAILABLE)

_STATES = bytes(
    PositionState.PURGE_PENDING if flags & FLAG_PURGE_PENDING else PositionState.AVAILABLE
    for flags in range(256)
)
_FLAGS = bytes(flags & ~FLAG_PURGE_PENDING for flags in range(256))


class MessageColumns:
    """Columns of messages of one queue in the order of their keys, for a chunk to take over."""

    __slots__ = ("arrivals", "expiries", "flags", "keys", "serials", "sizes", "states")

    keys: "array[int]"
    serials: "array[int]"
    sizes: "array[int]"
    arrivals: "array[int]"
    expiries: "array[int]"
    flags: bytes | bytearray
    states: bytes | bytearray

    def earliest(self, start: int, end: int) -> int:
        """The earliest expiry of an available message in that range; NEVER without one."""
        expiries, states = self.expiries[start:end], self.states[start:end]
        if states.count(AVAILABLE) < len(states):
            return min(compress(expiries, map(AVAILABLE.__eq__, states)), default=NEVER)
        return min(expiries, default=NEVER)


class Columns(MessageColumns):
    """The columns of a run of (key, value) position records, in the order of their keys.

    Whole runs are sliced, because a million records leave no time for each. Values are
    little-endian words, keys big-endian, the machine little-endian. Raises StoreError if a
    record has not the length it should have.
    """

    __slots__ = ("_abort_counts", "_classes", "_last_move_times", "_move_counts", "queue_ids")

    def __init__(self, records: list[tuple[bytes, bytes]]) -> None:
        count = len(records)
        packed = b"".join([key for key, _ in records])
        values = b"".join([value for _, value in records])
        if len(packed) != POSITION_KEY.size * count or len(values) != POSITION.size * count:
            raise StoreError("A position record has a wrong length: run rpcqm fsck.")
        self._take_keys(packed, count)
        self._take_values(values)

    def __len__(self) -> int:
        return len(self.keys)

    def _take_keys(self, packed: bytes, count: int) -> None:
        thirds = array("I", packed)
        thirds.byteswap()
        self.queue_ids = thirds[0::3]
        halves = array("I", bytes(8 * count))
        halves[1::2] = thirds[1::3]
        halves[0::2] = thirds[2::3]
        self.keys = array("Q", halves.tobytes())

    def _take_values(self, values: bytes) -> None:
        words, halves = array("Q", values), array("I", values)
        self.serials = words[0::6]
        self.arrivals = words[1::6]
        self.expiries = words[2::6]
        self.sizes = halves[6::12]
        words_of_flags = halves[7::12].tobytes()
        flags = bytearray(words_of_flags[0::4])
        self._classes = array("H", words_of_flags)[1::2]
        self.flags = flags.translate(_FLAGS)
        self.states = flags.translate(_STATES)
        self._abort_counts = halves[8::12]
        self._move_counts = halves[9::12]
        self._last_move_times = words[5::6]

    def moved(self) -> Iterator[tuple[int, Moves]]:
        """Places in the run of messages that were given back or moved, or died, with their counts.

        Equal counts are one object: most dead letters of a queue have the same.
        """
        columns = (self._abort_counts, self._move_counts, self._last_move_times, self._classes)
        if not any(map(any, columns)):
            return
        known: dict[tuple[int, ...], Moves] = {}
        for at, moves in enumerate(zip(*columns, strict=True)):
            if any(moves):
                yield at, known.setdefault(moves, Moves(*moves))
