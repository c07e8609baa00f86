"""Decoding of long bodies, on which nobody else waits (G396)."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class LongDecoding:
    """Does one piece of work after the other beside the loop, in a thread of its own.

    Work of somebody who has gone before its turn is not done.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="decode")

    async def run(self, work: Callable[[], T]) -> T:
        """What the work gives, or raises."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
