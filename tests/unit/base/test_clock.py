import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from rpcqm.base.clock import Deadlines
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


def test_deadlines_call_what_is_not_cancelled_each_after_its_delay() -> None:
    clock = SimulatedClock()
    deadlines, seen = Deadlines(clock.timers, 100), list[tuple[str, int]]()

    def add(name: str) -> None:
        deadlines.add(name, lambda: seen.append((name, clock.monotonic())))

    for name in ("first", "with it", "cancelled"):
        add(name)
    clock.advance(40)
    add("later")
    deadlines.cancel("cancelled")
    deadlines.cancel("never there")
    clock.advance(60)
    assert seen == [("first", 100), ("with it", 100)]
    assert len(deadlines) == 1
    add("last")
    clock.advance(100)
    assert seen[2:] == [("later", 140), ("last", 200)]
    add("cancelled")
    clock.advance(40)
    add("after it")
    deadlines.cancel("cancelled")
    clock.advance(100)
    assert seen[4:] == [("after it", 340)]
    assert len(clock.timers) == 0


def test_deadlines_have_one_timer_however_many_there_are() -> None:
    clock = SimulatedClock()
    deadlines = Deadlines(clock.timers, 100)
    for key in range(1000):
        deadlines.add(key, lambda: None)
        deadlines.cancel(key - 1)
    assert len(clock.timers) == 1
    deadlines.cancel(999)
    clock.advance(100)
    assert len(clock.timers) == 0


def test_a_deadline_whose_call_fails_does_not_stop_the_others() -> None:
    clock = SimulatedClock()
    deadlines, seen = Deadlines(clock.timers, 100), list[int]()
    deadlines.add("fails", lambda: 1 // 0)
    deadlines.add("goes on", lambda: seen.append(1))
    with pytest.raises(ZeroDivisionError):
        clock.advance(100)
    clock.advance(0)
    assert seen == [1]
