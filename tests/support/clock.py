"""Time that a test moves."""

from rpcqm.base.clock import Timers


class SimulatedClock:
    """A clock that stands still until a test moves it; `timers` follow."""

    def __init__(self, now: int = 1_750_000_000_000) -> None:
        self._now = now
        self._monotonic = 0
        self.timers = Timers(self)

    def now(self) -> int:
        return self._now

    def monotonic(self) -> int:
        return self._monotonic

    def advance(self, milliseconds: int) -> None:
        """Let time pass, stopping at every timer that falls due on the way."""
        target = self._monotonic + milliseconds
        while (due := self.timers.next_due()) is not None and due <= target:
            self._move_to(max(due, self._monotonic))
            self.timers.run_due()
        self._move_to(target)

    def advance_with(self, timers: Timers, milliseconds: int) -> None:
        """The same, stopping at the timers of a service as well, which has its own."""
        end = self._monotonic + milliseconds
        while (due := timers.next_due()) is not None and due <= end:
            self.advance(max(due - self._monotonic, 0))
            timers.run_due()
        self.advance(end - self._monotonic)

    def set_ahead(self, milliseconds: int) -> None:
        """Set the time of day, as an administrator does: no time passes, and no timer is due."""
        self._now += milliseconds

    def _move_to(self, monotonic: int) -> None:
        self._now += monotonic - self._monotonic
        self._monotonic = monotonic
