"""Long work a piece at a time, between which others are served.

While others are at work (messages come or go), a piece is followed by a rest that is many times as
long as it took, so that they keep nearly all of the time. While nobody is, one piece follows the
other, and whoever comes waits for one of them at most.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from rpcqm.base.metrics import Metrics, stopwatch
from rpcqm.qm.message_counts import ARRIVED, GONE

T = TypeVar("T")

REST = 19
"""Times as long as a piece took is the rest behind it while others are at work."""
CALM = 100_000_000
"""Nanoseconds in which nobody has done anything, after which there is no more rest."""


class Pace:
    """Does pieces one after the other, whoever wants them."""

    def __init__(
        self,
        metrics: Metrics,
        now: Callable[[], int] = stopwatch,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._metrics, self._now, self._sleep = metrics, now, sleep
        self._turn = asyncio.Lock()
        self._seen = self._activity()
        self._busy_until = self._spent = 0
        self.pieces = 0
        """How many were done."""

    async def work(self, piece: Callable[[], T]) -> T:
        """What a piece gives, or raises, once it is its turn."""
        async with self._turn:
            await self._rest()
            begun = self._now()
            try:
                return piece()
            finally:
                self.pieces += 1
                self._spent = self._now() - begun

    async def _rest(self) -> None:
        for _ in range(2):  # in the first turn come those who were ready, in the second new ones
            await self._sleep(0)
        activity = self._activity()
        if activity != self._seen:
            self._seen, self._busy_until = activity, self._now() + CALM
        if self._now() < self._busy_until:
            await self._sleep(REST * self._spent / 1e9)

    def _activity(self) -> int:
        counts = self._metrics.counts
        return sum(counts[each] for each in (ARRIVED, *GONE))
