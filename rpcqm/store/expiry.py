"""The expiry of messages: a heap of chunks, not of messages."""

import heapq
from itertools import count
from typing import TYPE_CHECKING

from rpcqm.store.records import NEVER

if TYPE_CHECKING:
    from rpcqm.store.chunk import Chunk


class ExpiryHeap:
    """Chunks by the earliest expiry among their available messages.

    Whenever `chunk.earliest` is not NEVER, the heap has an entry with that time. An entry only
    says when to look: it is stale if its chunk has another time by now.
    """

    __slots__ = ("_heap", "_serial")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Chunk]] = []
        self._serial = count()

    def push(self, chunk: "Chunk", expiry: int) -> None:
        """Look at `chunk` no later than `expiry`."""
        chunk.earliest = expiry
        heapq.heappush(self._heap, (expiry, next(self._serial), chunk))

    def next_expiry(self) -> int | None:
        """The earliest time at which a message may expire; None if no message will."""
        while self._heap:
            expiry, _, chunk = self._heap[0]
            if chunk.earliest == expiry:
                if chunk.live:
                    return expiry
                chunk.earliest = NEVER
            heapq.heappop(self._heap)
        return None

    def take_due(self, now: int, limit: int) -> list[tuple[int, int]]:
        """(queue id, key) of available messages that have expired, up to about `limit`.

        They are not changed, and are returned again until they are removed or locked.
        """
        due: list[tuple[int, int]] = []
        looked_at: list[Chunk] = []
        while len(due) < limit and (expiry := self.next_expiry()) is not None and expiry <= now:
            chunk = heapq.heappop(self._heap)[2]
            chunk.earliest = NEVER
            looked_at.append(chunk)
            due.extend((chunk.queue_id, key) for key in chunk.expired(now))
        for chunk in looked_at:
            if (earliest := chunk.earliest_available()) < NEVER:
                self.push(chunk, earliest)
        return due
