"""Long answers are made in slices, between which others are served."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import TypeVar

from rpcqm.base.metrics import stopwatch

T = TypeVar("T")

SLICE = 2_000_000
"""Nanoseconds for which pieces are made before others are served."""


async def in_slices(pieces: Iterator[T]) -> AsyncIterator[list[T]]:
    """The pieces that were made within a slice of time; each takes a fraction of one."""
    while True:
        await asyncio.sleep(0)
        made = _slice(pieces)
        if not made:
            return
        yield made


def _slice(pieces: Iterator[T]) -> list[T]:
    end = stopwatch() + SLICE
    made: list[T] = []
    for piece in pieces:
        made.append(piece)
        if stopwatch() >= end:
            break
    return made
