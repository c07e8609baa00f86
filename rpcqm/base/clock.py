"""Injected time: a clock in milliseconds and one heap of timers."""

import heapq
import itertools
import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """Where time comes from; nothing else in the package asks the system for it."""

    def now(self) -> int:
        """Milliseconds since 1970-01-01 UTC."""
        ...

    def monotonic(self) -> int:
        """Milliseconds from an arbitrary point, never going backwards."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> int:
        return time.monotonic_ns() // 1_000_000


class Timer:
    """One pending call; `cancel` makes it never happen."""

    __slots__ = ("_timers", "callback", "due")

    def __init__(self, timers: "Timers", due: int, callback: Callable[[], None]) -> None:
        self._timers = timers
        self.due = due
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        if self.callback is not None:
            self.callback = None
            self._timers.note_cancelled()


class Timers:
    """A heap of timers over one clock.

    `on_earlier` is called with the due time (monotonic ms) whenever the earliest timer moves
    forward, so that the edge can arm the event loop.
    """

    def __init__(self, clock: Clock, on_earlier: Callable[[int], None] | None = None) -> None:
        self._clock = clock
        self.on_earlier = on_earlier
        self._heap: list[tuple[int, int, Timer]] = []
        self._serial = itertools.count()
        self._cancelled = 0

    def __len__(self) -> int:
        return len(self._heap) - self._cancelled

    def call_later(self, delay: int, callback: Callable[[], None]) -> Timer:
        """Call `callback` after `delay` milliseconds; never before this method has returned."""
        timer = Timer(self, self._clock.monotonic() + delay, callback)
        earlier = not self._heap or timer.due < self._heap[0][0]
        heapq.heappush(self._heap, (timer.due, next(self._serial), timer))
        if earlier and self.on_earlier is not None:
            self.on_earlier(timer.due)
        return timer

    def monotonic(self) -> int:
        """Milliseconds as the clock counts them."""
        return self._clock.monotonic()

    def next_due(self) -> int | None:
        """The time at which the earliest timer is due (monotonic ms), or None."""
        while self._heap and self._heap[0][2].callback is None:
            heapq.heappop(self._heap)
            self._cancelled -= 1
        return self._heap[0][0] if self._heap else None

    def run_due(self) -> None:
        """Run every timer that is due now, in order of time, then of creation.

        Raises the error of a timer that fails; that timer is over, and the later ones still wait to
        be run.
        """
        now = self._clock.monotonic()
        while (due := self.next_due()) is not None and due <= now:
            timer = heapq.heappop(self._heap)[2]
            callback, timer.callback = timer.callback, None
            if callback is not None:
                callback()

    def note_cancelled(self) -> None:
        """Remove cancelled timers from the heap if they are most of it."""
        self._cancelled += 1
        if self._cancelled > 64 and self._cancelled * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].callback is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0


class Deadlines:
    """Calls that all have the same delay, by one timer: to add and to cancel one is cheap.

    Each has a key, by which it is cancelled.
    """

    __slots__ = ("_delay", "_due", "_timer", "_timers")

    def __init__(self, timers: Timers, delay: int) -> None:
        self._timers, self._delay = timers, delay
        self._due: dict[object, tuple[int, Callable[[], object]]] = {}
        self._timer: Timer | None = None

    def __len__(self) -> int:
        return len(self._due)

    def add(self, key: object, callback: Callable[[], object]) -> None:
        """Call `callback` after the delay, unless `key`, which is not there yet, is cancelled."""
        self._due[key] = self._timers.monotonic() + self._delay, callback
        if self._timer is None:
            self._timer = self._timers.call_later(self._delay, self._expire)

    def cancel(self, key: object) -> None:
        self._due.pop(key, None)

    def _expire(self) -> None:
        """Call the first one if it is due; the timer is the next one's then."""
        self._timer = None
        now = self._timers.monotonic()
        for key, (due, callback) in self._due.items():
            if due <= now:
                del self._due[key]
                self._wait(now)
                callback()
            else:
                self._wait(now)
            return

    def _wait(self, now: int) -> None:
        for due, _ in self._due.values():
            self._timer = self._timers.call_later(max(0, due - now), self._expire)
            return
