"""The heap of timers on an asyncio loop."""

import asyncio

from rpcqm.base.clock import Clock, Timers
from rpcqm.base.log import get_logger

_log = get_logger("base")


def timers_on_loop(clock: Clock, loop: asyncio.AbstractEventLoop) -> Timers:
    """Timers that the loop runs when they are due; a failing timer is logged, the others go on."""
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
        try:
            timers.run_due()
        except Exception:
            # other due timers are still in the heap: the loop is armed for them at once
            _log.exception("a timer failed")
        finally:
            due = timers.next_due()
            if due is not None and armed is None:
                arm(due)

    timers.on_earlier = arm
    return timers
