import asyncio
from collections.abc import Callable
from typing import Any

from structlog.testing import capture_logs

from rpcqm.base.loop_timers import timers_on_loop
from tests.support.clock import SimulatedClock


def test_timers_run_in_order_of_time_and_creation() -> None:
    clock = SimulatedClock()
    seen: list[tuple[str, int]] = []

    def note(name: str) -> Callable[[], None]:
        return lambda: seen.append((name, clock.monotonic()))

    clock.timers.call_later(50, note("late"))
    clock.timers.call_later(10, note("first"))
    clock.timers.call_later(10, note("second"))
    clock.advance(60)
    assert seen == [("first", 10), ("second", 10), ("late", 50)]


def test_a_cancelled_timer_never_runs() -> None:
    clock = SimulatedClock()
    seen: list[int] = []
    timer = clock.timers.call_later(5, lambda: seen.append(1))
    timer.cancel()
    clock.advance(10)
    assert seen == []
    assert len(clock.timers) == 0


def test_cancelled_timers_do_not_pile_up() -> None:
    clock = SimulatedClock()
    keep = clock.timers.call_later(1_000_000, lambda: None)
    for _ in range(10_000):
        clock.timers.call_later(60_000, lambda: None).cancel()
    assert len(clock.timers._heap) < 200
    assert len(clock.timers) == 1
    keep.cancel()


def test_the_edge_is_told_when_an_earlier_timer_arrives() -> None:
    clock = SimulatedClock()
    told: list[int] = []
    clock.timers.on_earlier = told.append
    clock.timers.call_later(100, lambda: None)
    clock.timers.call_later(200, lambda: None)
    clock.timers.call_later(30, lambda: None)
    assert told == [100, 30]


def test_a_timer_may_start_another() -> None:
    clock = SimulatedClock()
    seen: list[int] = []

    def again() -> None:
        seen.append(clock.monotonic())
        if len(seen) < 3:
            clock.timers.call_later(10, again)

    clock.timers.call_later(10, again)
    clock.advance(100)
    assert seen == [10, 20, 30]
    assert clock.monotonic() == 100


def test_a_timer_that_fails_leaves_those_after_it() -> None:
    clock = SimulatedClock()
    seen: list[str] = []

    async def run() -> list[Any]:
        timers = timers_on_loop(clock, asyncio.get_running_loop())
        timers.call_later(0, lambda: seen.append("before"))
        timers.call_later(0, lambda: seen.append(str(1 // 0)))
        timers.call_later(0, lambda: seen.append("after"))
        with capture_logs() as logs:
            while len(timers):
                await asyncio.sleep(0)
            timers.call_later(0, lambda: seen.append("later"))
            while len(timers):
                await asyncio.sleep(0)
        return logs

    (entry,) = asyncio.run(asyncio.wait_for(run(), 10))
    assert seen == ["before", "after", "later"]
    assert (entry["event"], entry["log_level"], entry["exc_info"]) == (
        "a timer failed",
        "error",
        True,
    )
