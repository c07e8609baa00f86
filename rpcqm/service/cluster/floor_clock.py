"""A clock that never shows less than the previous primary's."""

from rpcqm.base.clock import Clock


class FloorClock:
    """Gives `floor` (milliseconds since 1970) until the clock itself has reached it.

    Messages just sent by another machine's clock must not lie in the future here.
    """

    def __init__(self, clock: Clock, floor: int) -> None:
        self._clock = clock
        self.floor = floor

    def now(self) -> int:
        return max(self._clock.now(), self.floor)

    def monotonic(self) -> int:
        return self._clock.monotonic()
