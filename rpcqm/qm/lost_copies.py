"""Copies of messages for journals and dead-letter queues that had no room (G58).

The message itself is received, or removed, all the same: nobody would notice that its copy is
missing.
"""

from collections import OrderedDict
from dataclasses import dataclass

from rpcqm.adm.queue import Queue
from rpcqm.base.clock import Clock
from rpcqm.base.log import get_logger
from rpcqm.base.metrics import Metrics
from rpcqm.qm.machine import is_deadletter

MOST_QUEUES = 100
"""Queues without room for copies that are remembered.

Bound `overview.without_room` [queues]: the one that had no room longest ago is forgotten.
"""
PERIOD = 3_600_000
"""Milliseconds between two lines of the log about one queue."""
RECENT = 24 * PERIOD
"""Milliseconds for which a lost copy needs attention."""
COUNTED = "copies.lost"
"""The metric that counts them."""

_log = get_logger("qm")


@dataclass(slots=True)
class LostCopies:
    """The lost copies of one queue; `last` and `told` are milliseconds since 1970.

    `untold` are those since the last line of the log.
    """

    queue: Queue
    count: int = 0
    last: int = 0
    told: int = 0
    untold: int = 0


class LostCopiesOfQueues:
    """The lost copies of all queues since the start."""

    def __init__(self, clock: Clock, metrics: Metrics) -> None:
        self._clock, self._metrics = clock, metrics
        self._known: OrderedDict[int, LostCopies] = OrderedDict()

    def note(self, queue: Queue, quota: int) -> None:
        """Note a lost copy: that queue is at its quota of so many KB."""
        lost = self._known.pop(queue.queue_id, None) or LostCopies(queue)
        lost.last = self._clock.now()
        lost.count += 1
        lost.untold += 1
        self._known[queue.queue_id] = lost
        if len(self._known) > MOST_QUEUES:
            self._known.popitem(last=False)
        self._metrics.count(COUNTED)
        if lost.told == 0 or lost.last - lost.told >= PERIOD:
            self._say(lost, quota)

    def _say(self, lost: LostCopies, quota: int) -> None:
        kind = "dead letters" if is_deadletter(lost.queue) else "journal"
        _log.warning(
            "no room for copies of messages",
            queue=lost.queue.pathname,
            kind=kind,
            quota=quota,
            copies=lost.untold,
        )
        lost.told, lost.untold = lost.last, 0

    def recent(self) -> list[LostCopies]:
        """The queues that need attention, the latest first."""
        since = self._clock.now() - RECENT
        return [
            each
            for each in reversed(self._known.values())
            if each.last >= since and each.queue.queue_manager is not None
        ]
