"""The store's interface to the process around it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoreEnvironment:
    """The functions of the process that the store uses.

    `end_of_turn` runs a callback at the end of the current turn. `fatal` is called when a write has
    failed. `executor` runs a function in a thread, `call_from_thread` brings a callback back from
    it; without them, every write is made in the loop. `stopwatch` gives nanoseconds.
    """

    end_of_turn: Callable[[Callable[[], None]], object]
    fatal: Callable[[BaseException], None]
    executor: Callable[[Callable[[], None]], object] | None
    call_from_thread: Callable[[Callable[[], None]], object] | None
    stopwatch: Callable[[], int]
