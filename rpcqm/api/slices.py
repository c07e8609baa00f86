"""Long answers are made in slices, between which others are served."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TypeVar

from rpcqm.api.asked import Reply
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


WHOLE = 1 << 16
"""Octets of an answer that leaves at once."""


def in_parts(parts: Sequence[bytes]) -> Reply:
    """JSON in several parts; others are served between them if they are long."""
    length = sum(map(len, parts))
    if length <= WHOLE:
        return Reply(200, octets=b"".join(parts))
    headers = (("Content-Length", str(length)),)
    return Reply(200, headers=headers, stream=_Parts(parts))


class _Parts:
    """Octets that are there already."""

    def __init__(self, parts: Sequence[bytes]) -> None:
        self._parts = iter(parts)

    async def next(self) -> bytes | None:
        """The next ones, of about a slice."""
        await asyncio.sleep(0)
        made: list[bytes] = []
        size = 0
        for part in self._parts:
            made.append(part)
            size += len(part)
            if size >= WHOLE:
                break
        return b"".join(made) or None

    def close(self) -> None:
        """Tell no more."""
        self._parts = iter(())
