"""What the readers of both formats have in common: octets at hand, and which of them they took."""

import sys
from collections.abc import Iterator

Run = tuple[int, int]
"""Where octets begin in a file, and where those behind them do."""


class Window:
    """The octets of a file at hand, chunk by chunk.

    `taken` is what the reader took for records, blocks and their headers, the rest is damage.
    """

    def __init__(self, chunks: Iterator[bytes], base: int = 0, limit: int = sys.maxsize) -> None:
        self._chunks = chunks
        self._buffer = b""
        self._at = 0
        self._base = base
        self._limit = limit
        self._runs: list[Run] = []
        self._run = base
        self._damaged = False

    def _fill(self) -> bool:
        block = next(self._chunks, b"")
        self._base += self._at
        self._buffer, self._at = self._buffer[self._at :] + block, 0
        return bool(block)

    @property
    def offset(self) -> int:
        """Where in the file the next block or record begins."""
        return self._base + self._at

    @property
    def window(self) -> tuple[bytes, int]:
        """The octets at hand, and where in them the next block or record begins."""
        return self._buffer, self._at

    @property
    def base(self) -> int:
        """Where in the file the octets at hand begin."""
        return self._base

    @property
    def end(self) -> int:
        """Where in the file the octets at hand end."""
        return self._base + len(self._buffer)

    @property
    def limit(self) -> int:
        """Where in the file other readers go on: what begins there or later is theirs."""
        return self._limit

    def go_to(self, at: int) -> None:
        """Go on at `at` of the window: the octets before it have been read."""
        self._at = at

    @property
    def taken(self) -> list[Run]:
        """Where in the file the octets are that the reader took, in order."""
        last = [(self._run, self.offset)] if not self._damaged and self._run < self.offset else []
        return self._runs + last

    def _begin_damage(self) -> None:
        self._runs, self._damaged = self.taken, True

    def _end_damage(self) -> None:
        self._run, self._damaged = self.offset, False
