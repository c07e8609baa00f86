"""Completions for tasks of an event loop, which can wait for them."""

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any, TypeVar

from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError

T = TypeVar("T")

_running: set["asyncio.Task[Any]"] = set()
"""Tasks that nobody else holds."""


async def settled(outcome: Completion[T]) -> T:
    """Wait in a task for a completion, and return its value; the task may be cancelled."""
    if not outcome.done:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        outcome.add_done_callback(partial(_tell, done))
        await done
    return outcome.result()


def _tell(done: "asyncio.Future[None]", _: object) -> None:
    if not done.done():
        done.set_result(None)


def settling(work: Coroutine[Any, Any, T]) -> Completion[T]:
    """The outcome of a task of the event loop, for those who wait for completions only.

    It fails with MQ_ERROR_SERVICE_NOT_AVAILABLE if the loop ends before the task does.
    """
    outcome: Completion[T] = Completion()
    task = asyncio.get_running_loop().create_task(work)
    _running.add(task)
    task.add_done_callback(partial(_settle, outcome))
    return outcome


def _settle(outcome: Completion[T], task: "asyncio.Task[T]") -> None:
    _running.discard(task)
    if task.cancelled():
        outcome.fail(MQError(HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE))
    elif (error := task.exception()) is not None:
        outcome.fail(error)
    else:
        outcome.succeed(task.result())
