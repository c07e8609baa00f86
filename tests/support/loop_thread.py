"""An event loop in a thread of its own, for servers inside the process of a test."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """What a test asks of the loop; `end` stops it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._thread = threading.Thread(target=loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop; its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(30)

    def do(self, function: Callable[[], T]) -> T:
        """Run a function on the loop; its result."""

        async def call() -> T:
            return function()

        return self.run(call())

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the loop sees a condition become true."""

        async def wait() -> None:
            async with asyncio.timeout(20):
                while not condition():
                    await asyncio.sleep(0.002)

        self.run(wait())

    def end(self) -> None:
        """Stop and close the loop."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()
