"""When to resend unacknowledged packets, less and less often."""

from collections.abc import Callable

from rpcqm.base.clock import Clock, Timer, Timers


class ResendLadder:
    """The timer of a sequence or stream ([MS-MQQB] 3.1.6.5, [MC-MQSRM] 3.1.6.2, G28).

    `table` gives the milliseconds of each step, `is_owed` says whether an acknowledgement is
    outstanding, `resend` sends the unacknowledged packets again. `step` is the present step;
    `resend_time` is when the timer expires, in seconds since 1970, None while it does not run.
    """

    def __init__(
        self,
        clock: Clock,
        timers: Timers,
        table: Callable[[], tuple[int, ...]],
        is_owed: Callable[[], bool],
        resend: Callable[[], None],
    ) -> None:
        self._clock, self._timers = clock, timers
        self._table, self._is_owed, self._resend = table, is_owed, resend
        self._timer: Timer | None = None
        self.step = 0
        self.resend_time: int | None = None

    @property
    def interval(self) -> int:
        """Milliseconds to the next resending; the last entry of the table stays."""
        table = self._table()
        return table[min(self.step, len(table) - 1)]

    def wait(self) -> None:
        """Start the timer for a packet that has been sent, unless it runs already."""
        if self._timer is None:
            self.resend_time = (self._clock.now() + self.interval) // 1000
            self._timer = self._timers.call_later(self.interval, self._expired)

    def acknowledged(self) -> None:
        """Return to the first step after a new acknowledgement; the timer runs on for the rest."""
        self.begin_anew()
        if self._is_owed():
            self.wait()

    def begin_anew(self) -> None:
        """Stop the timer and return to the first step."""
        self.stop()
        self.step = 0

    def resend_now(self) -> None:
        """Act as if the timer had expired, on an administrator's order."""
        self.stop()
        if self._is_owed():
            self._expired()

    def _expired(self) -> None:
        """Resend, and climb one step."""
        self._timer = None
        self.step = min(self.step + 1, len(self._table()) - 1)
        self._resend()
        if self._is_owed():
            self.wait()

    def stop(self) -> None:
        """Stop the timer: nothing can be sent at the moment, or nothing is owed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.resend_time = None
