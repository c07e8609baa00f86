"""Operators' acts in the event trail of the machine, kept over restarts (G581).

Records are in the store's family HISTORY, by the numbers of their events; `operations` encodes
them.
"""

import contextlib
import struct
from collections import deque

from rpcqm.store.errors import StoreStoppedError
from rpcqm.store.records import Family
from rpcqm.store.store import Store

_PREFIX = b"o"
_KEY = struct.Struct(">cQ")


class OperatorsTrail:
    """The records of the latest acts, a bounded number."""

    def __init__(self, store: Store, most: int) -> None:
        self._store, self._most = store, most
        self._numbers: deque[int] = deque()

    def restore(self) -> list[tuple[int, bytes]]:
        """The stored acts in order; the oldest records beyond the bound are removed."""
        kept = [
            (_KEY.unpack(key)[1], value)
            for key, value in self._store.records(Family.HISTORY, _PREFIX)
        ]
        self._numbers.extend(number for number, _ in kept)
        self._remove_old()
        return kept[-self._most :]

    def keep(self, number: int, record: bytes) -> None:
        """Store a record without waiting for a sync; nothing once the store has stopped."""
        with (
            contextlib.suppress(StoreStoppedError),
            self._store.transaction("keep an act") as change,
        ):
            change.put(Family.HISTORY, _KEY.pack(_PREFIX, number), record)
            change.sync = False
        self._numbers.append(number)
        self._remove_old()

    def _remove_old(self) -> None:
        """Remove old records a chunk at a time, so that it happens seldom."""
        if len(self._numbers) <= self._most:
            return
        old = [self._numbers.popleft() for _ in range(len(self._numbers) - self._most)]
        with (
            contextlib.suppress(StoreStoppedError),
            self._store.transaction("forget old acts") as change,
        ):
            for number in old:
                change.delete(Family.HISTORY, _KEY.pack(_PREFIX, number))
            change.sync = False
