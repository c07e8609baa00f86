"""A primary whose clock is behind the one before gives that one's time until it has caught up."""

from rpcqm.service.cluster.floor_clock import FloorClock
from tests.support.clock import SimulatedClock


def test_time_does_not_go_back_with_a_takeover() -> None:
    own = SimulatedClock(1_000)
    clock = FloorClock(own, 0)
    assert clock.now() == 1_000
    clock.floor = 3_600_000
    assert clock.now() == 3_600_000
    own.advance(3_599_000)
    assert clock.now() == 3_600_000
    own.advance(1)
    assert clock.now() == 3_600_001
    assert clock.monotonic() == own.monotonic()
