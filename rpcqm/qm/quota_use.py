"""How much of their quotas queues use, and what holds most of all.

A queue counts with its subqueues; its journal has a quota of its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import nlargest
from operator import attrgetter

from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.codec.names.written import short_name
from rpcqm.qm.quotas import KILOBYTE, Quotas

NEARLY_FULL = 0.8
ALMOST_FULL = 0.95
"""Parts of a quota from which an overview says so."""

MOST_FULL = 20
"""Queues near their quotas that an overview tells of.

Bound `overview.most_full` [queues]: those that are less full are counted by the metric only.
"""

MOST_NAMED = 3
"""Queues that hold most, which are named where the quota of all messages together is used up."""


@dataclass(frozen=True, slots=True)
class QuotaUse:
    """What a queue takes; `quota` is bytes, None for no bound."""

    queue: Queue
    bytes: int
    quota: int | None

    @property
    def part(self) -> float:
        return 0.0 if self.quota is None else self.bytes / max(self.quota, 1)


@dataclass(slots=True)
class QuotaUses:
    """Those of all queues: the fullest ones, and those that hold most."""

    nearly_full: int = 0
    fullest: list[QuotaUse] = field(default_factory=list)
    largest: list[QuotaUse] = field(default_factory=list)

    def add(self, queue: Queue, quotas: Quotas) -> None:
        """Count one queue; subqueues are part of theirs."""
        if not quotas.is_of_its_own(queue):
            return
        if not (used := quotas.used(queue)):
            return
        use = QuotaUse(queue, used, quotas.quota_bytes(queue))
        if use.part >= NEARLY_FULL:
            self.nearly_full += 1
            self.fullest = nlargest(MOST_FULL, (*self.fullest, use), attrgetter("part"))
        if len(self.largest) < MOST_NAMED or used > self.largest[-1].bytes:
            self.largest = nlargest(MOST_NAMED, (*self.largest, use), attrgetter("bytes"))


def name_for_people(queue: Queue) -> str:
    """What a queue is called in a sentence: `orders`, `the journal of orders`, `DeadLetter$`."""
    if isinstance(queue, OutgoingQueue):
        return queue.destination_format_name
    if queue.is_journal and queue.parent is not None:
        return f"the journal of {short_name(queue.parent.pathname)}"
    return short_name(queue.pathname)


def named_largest(uses: QuotaUses) -> Iterator[str]:
    """The queues that hold most, with what they hold."""
    for use in uses.largest:
        yield f"{name_for_people(use.queue)} ({use.bytes // KILOBYTE:,} KB)"
