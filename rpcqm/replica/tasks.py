"""The tasks of an engine in the event loop, and their end."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from rpcqm.base.completion import Completion
from rpcqm.store.errors import ReplicationError

T = TypeVar("T")
AGAIN_SECONDS = 0.5


class EngineTasks:
    """Tasks that end with their engine."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def begin(self, coroutine: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Run a coroutine as long as the engine is open."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def completion(self, coroutine: Coroutine[Any, Any, T]) -> Completion[T]:
        """A coroutine's result, or the ReplicationError that it raises."""
        outcome: Completion[T] = Completion()
        self.begin(_settle(coroutine, outcome))
        return outcome

    async def end(self) -> None:
        """Cancel all; once is not enough where a wait ends at the same moment (Python 3.11)."""
        while tasks := list(self._tasks):
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=AGAIN_SECONDS)


async def _settle(coroutine: Coroutine[Any, Any, T], outcome: Completion[T]) -> None:
    try:
        value = await coroutine
    except ReplicationError as error:
        outcome.fail(error)
    else:
        outcome.succeed(value)
