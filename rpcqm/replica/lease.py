"""The time for which a primary may answer reads, and for which a standby waits in silence.

No write depends on a clock: its condition is the fence. The lease is for reads and for packets to
other machines, which no condition guards. Clocks of two machines are never compared; both count on
one that goes on while a machine sleeps, and may differ in their speed by `DRIFT`.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

DRIFT = 0.01
"""The difference in speed that two clocks may have."""
MARGIN = 500
"""Milliseconds that a standby waits beyond the lease."""

Boottime = Callable[[], int]
"""Milliseconds since the machine was started, including those of sleep."""


def boottime() -> int:
    """The machine's own clock of this kind, which nobody can set."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


@dataclass(slots=True)
class Lease:
    """A lease of `length` milliseconds, counted from the start of the last successful append."""

    length: int
    boottime: Boottime
    _until: int = 0
    _renewed: int | None = None
    on_renewal: Callable[[], None] | None = None
    """Called at each renewal."""

    def renew(self, begun: int) -> None:
        """Renew by an append that began at that time: another node has read it later."""
        self._until = max(self._until, begun + self.length)
        self._renewed = self.boottime()
        if self.on_renewal is not None:
            self.on_renewal()

    def end(self) -> None:
        """Give the lease up."""
        self._until = 0

    @property
    def held(self) -> bool:
        """Whether no other node can have taken over yet."""
        return self.boottime() < self._until

    @property
    def since_renewal(self) -> int:
        """Milliseconds since the last successful append; 0 before the first."""
        return 0 if self._renewed is None else self.boottime() - self._renewed

    @property
    def patience(self) -> int:
        """The silence after which no earlier lease can still be held."""
        return self.length + int(self.length * DRIFT) + MARGIN
