"""Many questions that are on their way together, whose answers come in their order."""

import asyncio
from collections import deque
from collections.abc import Coroutine, Iterable
from typing import TypeVar

IN_FLIGHT = 32
"""Questions on their way at a time: where connections do not share calls each takes one."""

T = TypeVar("T")


async def answered_together(questions: Iterable[Coroutine[object, object, T]]) -> list[T]:
    """The answers in the order of the questions, which are asked as there is room for them.

    Raises the first failure; nothing is on its way any more then.
    """
    answers: list[T] = []
    on_the_way: deque[asyncio.Task[T]] = deque()
    try:
        for question in questions:
            on_the_way.append(asyncio.create_task(question))
            if len(on_the_way) >= IN_FLIGHT:
                answers.append(await on_the_way.popleft())
        while on_the_way:
            answers.append(await on_the_way.popleft())
        return answers
    finally:
        for task in on_the_way:
            task.cancel()
        await asyncio.gather(*on_the_way, return_exceptions=True)
