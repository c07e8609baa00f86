"""When to try again after failures."""

from collections.abc import Callable

from rpcqm.base.clock import Timer, Timers

LONGEST_RETRY = 300_000
"""The longest time between two attempts, in milliseconds, however many have failed."""


def delay_after(failures: int, first: int) -> int:
    """Milliseconds to wait after `failures` failures: `first`, doubled for each further one."""
    longest = max(first, LONGEST_RETRY)
    return min(first << min(failures - 1, 32), longest)


class RetryTimer:
    """The retry timer of a queue or stream ([MS-MQQB] 3.1.6.1, [MC-MQSRM] 3.1.2.1).

    `first` gives the shortest delay in milliseconds; `expired` is called at the end of the delay.
    """

    def __init__(
        self, timers: Timers, first: Callable[[], int], expired: Callable[[], None]
    ) -> None:
        self._timers = timers
        self._first = first
        self._expired = expired
        self._timer: Timer | None = None

    @property
    def runs(self) -> bool:
        return self._timer is not None

    def start(self, failures: int) -> None:
        """Start a delay for this number of failures; a running timer goes on."""
        if self._timer is None:
            delay = delay_after(failures, self._first())
            self._timer = self._timers.call_later(delay, self._expire)

    def _expire(self) -> None:
        self._timer = None
        self._expired()

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
