"""The queues of applications in the order of their names, which is kept while none comes or goes.

Putting ten thousand in order takes some milliseconds. So it is done in pieces, and a program that
asks for page after page does not have it done again for each.
"""

from bisect import bisect_right
from collections.abc import Generator

from rpcqm.adm.enums import QueueType
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.operations.shapes import short_name
from rpcqm.qm.registry import QueueRegistry

PIECE = 200
"""Queues that are looked at in one piece: a quarter of a millisecond."""


class OrderedQueues:
    """Queues by their short names without regard to case; `names` are those, folded."""

    def __init__(self, found: list[tuple[str, int, Queue]]) -> None:
        self.names = [name for name, _, _ in found]
        self.queues = [queue for _, _, queue in found]

    def behind(self, name: str) -> int:
        """The place of the first queue behind a name, which no queue needs to have."""
        return bisect_right(self.names, name.casefold())


class QueueOrder:
    """Puts them in order when somebody asks and one has come or gone since."""

    def __init__(self, registry: QueueRegistry) -> None:
        self._registry = registry
        self._known: tuple[int, OrderedQueues] | None = None

    def ordered(self) -> Generator[tuple[()], None, OrderedQueues]:
        """The queues that are there when this begins, found out in pieces."""
        changes = self._registry.changes
        if self._known is not None and self._known[0] == changes:
            return self._known[1]
        self._known = None
        found: list[tuple[str, int, Queue]] = []
        queues = self._registry.all()
        for at in range(0, len(queues), PIECE):
            found += sorted(map(_entry, filter(is_of_an_application, queues[at : at + PIECE])))
            yield ()
        found.sort()  # it merges pieces that are in order, which is quick
        ordered = OrderedQueues(found)
        self._known = changes, ordered  # what has come meanwhile is in order the next time
        return ordered


def is_of_an_application(queue: Queue) -> bool:
    """Whether programs see it among their queues: subqueues and journals are parts of them."""
    return (
        queue.parent is None
        and not isinstance(queue, OutgoingQueue)
        and queue.queue_type is not QueueType.SYSTEM
    )


def _entry(queue: Queue) -> tuple[str, int, Queue]:
    return short_name(queue).casefold(), queue.queue_id, queue
