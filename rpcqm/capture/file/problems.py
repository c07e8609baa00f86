"""What is wrong with a capture: reported with file and offset, counted, and passed over."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One damage; `offset` is where in the (uncompressed) file it begins."""

    file: str
    offset: int
    kind: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}: {self.reason}"


class Problems:
    """Collects problems: all are counted, the first `limit` are kept and told to `listener`."""

    def __init__(
        self,
        file: str = "",
        listener: Callable[[Problem], None] | None = None,
        limit: int = 1000,
    ) -> None:
        self.file = file
        self.counts: Counter[str] = Counter()
        self._kept: list[Problem] = []
        self._listener = listener
        self._limit = limit

    def add(self, kind: str, offset: int, reason: str) -> None:
        self.add_several(kind, 1, offset, reason)

    def add_several(self, kind: str, count: int, offset: int, reason: str) -> None:
        """Several of one kind that one line tells of; the first of them is at `offset`."""
        self.counts[kind] += count
        if len(self._kept) < self._limit:
            problem = Problem(self.file, offset, kind, reason)
            self._kept.append(problem)
            if self._listener is not None:
                self._listener(problem)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._kept)

    @property
    def total(self) -> int:
        return self.counts.total()
