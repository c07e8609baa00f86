"""Completions for tasks of an event loop, which can wait for them."""

import asyncio
from functools import partial
from typing import TypeVar

from rpcqm.base.completion import Completion

T = TypeVar("T")


async def settled(outcome: Completion[T]) -> T:
    """The value of a completion, for a task; the task may be cancelled meanwhile."""
    if not outcome.done:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        outcome.add_done_callback(partial(_tell, done))
        await done
    return outcome.result()


def _tell(done: "asyncio.Future[None]", _: object) -> None:
    if not done.done():
        done.set_result(None)
