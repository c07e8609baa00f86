"""How long a primary may answer reads, and how long a standby waits for a sign of life.

No write rests on a clock: its condition is the fence. The lease is for reads and for packets to
other machines, which no condition guards. Clocks of two machines are never compared; both count on
one that goes on while a machine sleeps, and may differ in their speed by `DRIFT`.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

DRIFT = 0.01
"""By which two clocks may differ in speed."""
MARGIN = 500
"""Milliseconds that a standby waits beyond the lease."""

Boottime = Callable[[], int]
"""Milliseconds since the machine was started, those in which it slept among them."""


def boottime() -> int:
    """The machine's own clock of this kind, which nobody can set."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


@dataclass(slots=True)
class Lease:
    """Of `length` milliseconds, which count from when something was begun that succeeded."""

    length: int
    boottime: Boottime
    _until: int = 0
    _renewed: int | None = None
    on_renewal: Callable[[], None] | None = None
    """Called when it was renewed, and may be held again."""

    def renew(self, begun: int) -> None:
        """What was begun at that time has succeeded: another node has heard of it later."""
        self._until = max(self._until, begun + self.length)
        self._renewed = self.boottime()
        if self.on_renewal is not None:
            self.on_renewal()

    def end(self) -> None:
        """Hold it no longer."""
        self._until = 0

    @property
    def held(self) -> bool:
        """Whether no other node can have taken over yet."""
        return self.boottime() < self._until

    @property
    def since_renewal(self) -> int:
        """Milliseconds since something succeeded; 0 if nothing has yet."""
        return 0 if self._renewed is None else self.boottime() - self._renewed

    @property
    def patience(self) -> int:
        """The silence after which nobody holds it any more who held it when it began."""
        return self.length + int(self.length * DRIFT) + MARGIN
