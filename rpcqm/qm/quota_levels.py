"""When a quota gets nearly full, told once for each time that it does (G633)."""

from collections.abc import Callable

from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager

LEVELS = (95, 80)
"""Percent of a quota that are told of, the highest first."""
BACK = 5
"""So many percent below a level it has been left, and is told of again when it is reached."""
_OF_ALL = 0
"""Stands for all messages together: no queue has that number."""

Reached = Callable[[Queue | None, int, int, int], None]
"""Told that a queue, or None for all messages together, has reached a level: percent, the bytes
that are used, and those of the quota."""


class QuotaLevels:
    """Which levels the quotas of queues, journals and of all messages together have reached.

    It is looked at when a message or a copy is let in: nothing else makes a queue fuller.
    """

    def __init__(self, queue_manager: QueueManager) -> None:
        self.hooks: list[Reached] = []
        self._queue_manager = queue_manager
        self._levels: dict[int, int] = {}

    @property
    def some(self) -> bool:
        """Whether any has reached one, so that it may have been left since."""
        return bool(self._levels)

    def note(self, queue: Queue | None, used: int, quota: int) -> None:
        """So many bytes of a quota are used; `hooks` are told if that is a level more."""
        key = _OF_ALL if queue is None else queue.queue_id
        before = self._levels.get(key, 0)
        level = level_of(used, quota, before)
        if level == before:
            return
        if level:
            self._levels[key] = level
            self._forget_deleted()
        else:
            del self._levels[key]
        if level > before:
            for hook in self.hooks:
                hook(queue, level, used, quota)

    def restore(self, queue: Queue | None, used: int, quota: int) -> None:
        """Take over what was reached before a start: nobody is told of it again."""
        if level := level_of(used, quota):
            self._levels[_OF_ALL if queue is None else queue.queue_id] = level

    def _forget_deleted(self) -> None:
        """Now and then, so that queues that come and go leave nothing behind."""
        there = self._queue_manager.queue_collection
        if len(self._levels) > 2 * len(there):
            kept = {key: level for key, level in self._levels.items() if key in there}
            self._levels = kept


def level_of(used: int, quota: int, before: int = 0) -> int:
    """The highest level that is reached, or was and has not been left yet; 0 below all."""
    for level in LEVELS:
        reached = used * 100 >= level * quota
        if reached or (before >= level and used * 100 > (level - BACK) * quota):
            return level
    return 0


def percent_of(used: int, quota: int | None) -> int | None:
    """How much of a quota of bytes is used, 100 only if nothing is left; None without one."""
    if quota is None:
        return None
    return min(used * 100 // max(quota, 1), 100)
