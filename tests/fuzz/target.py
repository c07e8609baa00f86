"""What is fuzzed, and what counts as a violation."""

import re
import resource
import time
import tracemalloc
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from random import Random

from tests.fuzz.mutation import mutated

Run = Callable[[bytes], Hashable]
"""Feeds one input and tells in short what came of it; what comes of it anew is interesting."""

Mutate = Callable[[Random, bytes, Sequence[bytes]], bytes]

SECONDS = 1.0
"""Processor time that one input may take."""
RESIDENT = 48 << 20
"""Octets by which one input may raise what the process has ever had in memory."""
TRACED = 4 << 20
TRACED_PER_OCTET = 128
"""Octets of Python's memory that one input may hold at a time: so many, and more by its size."""


class Violation(AssertionError):
    """An input did what no input may do."""


@dataclass(frozen=True)
class Target:
    """One thing that takes octets from strangers.

    `open` makes what is fed, anew after each `lifetime` inputs. Whatever it raises that is not
    `declared` is a violation. `share` is its weight among the targets.
    """

    name: str
    seeds: Callable[[], Iterable[bytes]]
    open: Callable[[], AbstractContextManager[Run]]
    declared: tuple[type[Exception], ...] = ()
    mutate: Mutate = mutated
    share: int = 10
    lifetime: int = 20_000


@dataclass
class Oracles:
    """Feeds inputs and judges what they did; keeps the worst figures."""

    declared: tuple[type[Exception], ...] = ()
    seconds: float = SECONDS
    resident: int = RESIDENT
    slowest: float = 0.0
    most_traced: int = 0
    _peak: int = field(default_factory=lambda: _peak_resident())

    def feed(self, run: Run, octets: bytes, traced: bool = False) -> Hashable:
        """What came of an input; raises Violation."""
        if traced:
            return self._feed_traced(run, octets)
        began = time.thread_time()
        outcome = self._outcome(run, octets)
        self._check_time(run, octets, time.thread_time() - began)
        self._check_resident()
        return outcome

    def _outcome(self, run: Run, octets: bytes) -> Hashable:
        try:
            return run(octets)
        except self.declared as error:
            return type(error).__name__, without_particulars(str(error))
        except Violation:
            raise
        except Exception as error:
            raise Violation(f"undeclared {type(error).__name__}: {error}") from error

    def _check_time(self, run: Run, octets: bytes, took: float) -> None:
        """A slow input has another two chances, lest a collection of garbage counts."""
        for _ in range(2):
            if took <= self.seconds:
                break
            began = time.thread_time()
            self._outcome(run, octets)
            took = min(took, time.thread_time() - began)
        self.slowest = max(self.slowest, took)
        if took > self.seconds:
            raise Violation(f"{took:.2f} s for one input")

    def _check_resident(self) -> None:
        peak = _peak_resident()
        grown, self._peak = peak - self._peak, peak
        if grown > self.resident:
            raise Violation(f"{grown >> 20} MiB for one input")

    def _feed_traced(self, run: Run, octets: bytes) -> Hashable:
        tracemalloc.start()
        try:
            outcome = self._outcome(run, octets)
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        self.most_traced = max(self.most_traced, most)
        if most > TRACED + TRACED_PER_OCTET * len(octets):
            raise Violation(f"{most >> 10} KiB of Python's memory for {len(octets)} octets")
        return outcome


def _peak_resident() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


_PARTICULARS = re.compile(r"""'.*'|".*"|[0-9A-Fa-f]*\d[0-9A-Fa-f]*""", re.DOTALL)


def without_particulars(text: str) -> str:
    """A text in which errors of one kind are one outcome: neither numbers nor quotations."""
    return _PARTICULARS.sub("", text)[:60]
