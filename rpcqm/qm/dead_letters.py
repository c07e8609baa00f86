"""The two dead-letter queues: why their messages are there, and which nobody has looked at (G361).

Somebody looks at dead letters by opening their queue to read it: whatever is there then, and until
it is closed, has been looked at. That is kept over a restart.
"""

from collections import Counter
from dataclasses import dataclass

from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.qm.machine import is_deadletter
from rpcqm.qm.message_counts import UNKNOWN, why_dead
from rpcqm.qm.opening import READ_ACCESSES, Opening
from rpcqm.store.records import COUNTER, Family
from rpcqm.store.store import Store

_PREFIX = b"dead letters looked at:"


@dataclass(slots=True)
class _Looked:
    """How many of a queue were unread when `entered` messages had come since the start."""

    unread: int
    entered: int = 0


class DeadLetters:
    """Counts dead letters; nothing here walks over them but the start."""

    def __init__(self, store: Store, queue_manager: QueueManager, opening: Opening) -> None:
        self._store = store
        self._queue_manager = queue_manager
        self._looked: dict[int, _Looked] = {}
        opening.look_hooks.append(self._look)

    def restore(self) -> None:
        """Find out what nobody had looked at when the queue manager stopped."""
        for queue in self.queues():
            kept = self._store.get(Family.META, _key(queue))
            last = 0 if kept is None else COUNTER.unpack(kept)[0]
            index = self._store.index(queue.queue_id)
            self._looked[queue.queue_id] = _Looked(index.count_after(last), index.entered)

    def queues(self) -> list[Queue]:
        """That of transactional messages comes last."""
        machine = self._queue_manager
        queues = (machine.system_deadletter_queue, machine.system_transactional_deadletter_queue)
        return [queue for queue in queues if queue is not None]

    def count(self) -> int:
        """How many there are."""
        return sum(queue.message_count for queue in self.queues())

    def by_reason(self) -> dict[str, int]:
        """How many there are for each reason; UNKNOWN are those of a version that kept none."""
        counts: Counter[int] = Counter()
        for queue in self.queues():
            counts.update(self._store.index(queue.queue_id).classes)
        told = {why_dead(each): count for each, count in sorted(counts.items()) if count}
        rest = self.count() - sum(told.values())
        return told | {UNKNOWN: rest} if rest > 0 else told

    def unread(self) -> int:
        """How many nobody has looked at."""
        return sum(self._unread(queue) for queue in self.queues())

    def _unread(self, queue: Queue) -> int:
        looked = self._looked.get(queue.queue_id)
        if looked is None or _is_open(queue):
            return 0
        come = queue.message_position_list.entered - looked.entered
        return min(looked.unread + come, queue.message_count)

    def _look(self, queue: Queue) -> None:
        """Somebody begins to read a queue, or ends that."""
        looked = self._looked.get(queue.queue_id)
        if looked is None or not is_deadletter(queue):
            return
        entered = queue.message_position_list.entered
        if not looked.unread and looked.entered == entered:
            return
        self._looked[queue.queue_id] = _Looked(0, entered)
        last = self._store.counters.lookup_identifier.next - 1
        with self._store.transaction("dead letters looked at") as change:
            change.put(Family.META, _key(queue), COUNTER.pack(last))
            change.sync = False  # after a crash they count as unread again


def _is_open(queue: Queue) -> bool:
    opened = queue.open_queue_descriptor_collection.values()
    return any(each.access_type in READ_ACCESSES for each in opened)


def _key(queue: Queue) -> bytes:
    return _PREFIX + str(queue.queue_id).encode()
