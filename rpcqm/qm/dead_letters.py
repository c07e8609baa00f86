"""The two dead-letter queues: the reasons of their messages, and the unread ones (G361).

Somebody looks at dead letters by opening their queue for reading: all messages that are there then,
and until it is closed, have been looked at. That is kept over a restart.
"""

from collections import Counter
from collections.abc import Mapping

from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.codec.packet.types import SEQUENTIAL_BITS
from rpcqm.qm.machine import is_deadletter
from rpcqm.qm.message_counts import UNKNOWN, why_dead
from rpcqm.qm.opening import READ_ACCESSES, Opening
from rpcqm.store.records import COUNTER, Family
from rpcqm.store.store import Store

_PREFIX = b"dead letters looked at:"


class DeadLetters:
    """Counts dead letters; only the start walks over them."""

    def __init__(self, store: Store, queue_manager: QueueManager, opening: Opening) -> None:
        self._store = store
        self._queue_manager = queue_manager
        opening.look_hooks.append(self._look)

    def restore(self) -> None:
        """Restore which messages were unread when the queue manager stopped."""
        for queue in self.queues():
            kept = self._store.get(Family.META, _key(queue))
            last = 0 if kept is None else COUNTER.unpack(kept)[0]
            self._store.index(queue.queue_id).moved.restore_look(last)

    def queues(self) -> list[Queue]:
        """Both queues; that of transactional messages comes last."""
        machine = self._queue_manager
        queues = (machine.system_deadletter_queue, machine.system_transactional_deadletter_queue)
        return [queue for queue in queues if queue is not None]

    def count(self) -> int:
        """The number of dead letters."""
        return sum(queue.message_count for queue in self.queues())

    def by_reason(self) -> dict[str, int]:
        """The number for each reason; UNKNOWN for those of a version without reasons."""
        counts: Counter[int] = Counter()
        for queue in self.queues():
            counts.update(self._store.index(queue.queue_id).moved.classes)
        return _reasons(counts, self.count())

    def unread(self) -> int:
        """The number of unread ones."""
        return sum(self.unread_in(queue) for queue in self.queues())

    def unread_by_reason(self) -> dict[str, int]:
        """The number of unread ones for each reason."""
        counts: Counter[int] = Counter()
        for queue in self.queues():
            if not _is_open(queue):
                counts.update(self._store.index(queue.queue_id).moved.unread)
        return _reasons(counts, self.unread())

    def unread_in(self, queue: Queue) -> int:
        """The number of unread ones in one queue."""
        return 0 if _is_open(queue) else self._store.index(queue.queue_id).unread()

    def looked_at(self, queue: Queue) -> int:
        """The lookup identifier up to which all of a queue have been looked at, as a number."""
        return self._store.index(queue.queue_id).moved.looked_at

    def _look(self, queue: Queue) -> None:
        """Note that a caller begins or ends reading a queue.

        Messages on their way to the queue at that time were not seen. After a restart that cannot
        be told apart: from the first of them on, all count as unread then.
        """
        if not is_deadletter(queue):
            return
        index = self._store.index(queue.queue_id)
        if not index.unread():
            return
        arriving = index.arriving()
        last = self._store.counters.lookup_identifier.next - 1
        index.moved.look(last, arriving)
        kept = min((_number(key) - 1 for key in arriving), default=last)
        with self._store.transaction("dead letters looked at") as change:
            change.put(Family.META, _key(queue), COUNTER.pack(kept))
            change.sync = False  # after a crash they count as unread again


def _reasons(counts: Mapping[int, int], total: int) -> dict[str, int]:
    told = {why_dead(each): count for each, count in sorted(counts.items()) if count}
    rest = total - sum(told.values())
    return told | {UNKNOWN: rest} if rest > 0 else told


def _number(key: int) -> int:
    return key & ((1 << SEQUENTIAL_BITS) - 1)


def _is_open(queue: Queue) -> bool:
    opened = queue.open_queue_descriptor_collection.values()
    return any(each.access_type in READ_ACCESSES and each.notices for each in opened)


def _key(queue: Queue) -> bytes:
    return _PREFIX + str(queue.queue_id).encode()
