"""The heap of timers on an asyncio loop."""

import asyncio

from rpcqm.base.clock import Clock, Timers


def timers_on_loop(clock: Clock, loop: asyncio.AbstractEventLoop) -> Timers:
    """Timers that the loop runs when they fall due."""
    armed: asyncio.TimerHandle | None = None
    timers = Timers(clock)

    def arm(due: int) -> None:
        nonlocal armed
        if armed is not None:
            armed.cancel()
        armed = loop.call_later(max(due - clock.monotonic(), 0) / 1000, run)

    def run() -> None:
        nonlocal armed
        armed = None
        timers.run_due()
        due = timers.next_due()
        if due is not None and armed is None:
            arm(due)

    timers.on_earlier = arm
    return timers
