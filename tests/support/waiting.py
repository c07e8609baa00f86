"""Waiting for what a process of its own does in its own time."""

import time
from collections.abc import Callable

PATIENCE = 120.0
"""Seconds after which a test gives up what it waits for, however much else the machine does."""
_POLL = 0.05


def until(seen: Callable[[], object]) -> None:
    """Wait until something is so; AssertionError if it is not so in time."""
    give_up = time.monotonic() + PATIENCE
    while not seen():
        assert time.monotonic() < give_up
        time.sleep(_POLL)
