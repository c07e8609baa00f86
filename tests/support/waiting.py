"""Waiting for what a process of its own does in its own time."""

import time
from collections.abc import Callable

PATIENCE = 20.0
_POLL = 0.05


def until(seen: Callable[[], object]) -> None:
    """Wait until something is so; AssertionError if it is not so in time."""
    give_up = time.monotonic() + PATIENCE
    while not seen():
        assert time.monotonic() < give_up
        time.sleep(_POLL)
