"""Calls for each of many values without a step of the interpreter for each."""

from collections import deque
from collections.abc import Iterable


def run_all(calls: Iterable[object]) -> None:
    """Make all calls of a lazy sequence, such as `map` gives; what they return is not kept."""
    deque(calls, maxlen=0)
