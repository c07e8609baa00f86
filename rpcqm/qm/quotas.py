"""Quotas: how much may be stored ([MS-MQDMPR] 3.1.7.1.9; G3, G5, G56).

Quotas are kilobytes. What counts is in the store's accounts: every message from its admission
until its removal is on the disk; subqueues charge their parent.
"""

from rpcqm.adm.enums import EnqueueStatus
from rpcqm.adm.message import NEVER, Envelope
from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.clock import Clock
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.names.written import short_name
from rpcqm.codec.types.mqvalues import INFINITE
from rpcqm.qm.lost_copies import LostCopiesOfQueues
from rpcqm.qm.quota_levels import LEVELS, QuotaLevels, percent_of
from rpcqm.store.store import Store

KILOBYTE = 1024


class EnqueueRefusedError(MQError):
    """Enqueue Message has returned a status other than zero; `reason` is that status."""

    def __init__(self, reason: EnqueueStatus, detail: str = "") -> None:
        super().__init__(_STATUS[reason], detail or reason.name)
        self.reason = reason


_STATUS = {
    EnqueueStatus.QUEUE_QUOTA_EXCEEDED: HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
    EnqueueStatus.QUEUE_MANAGER_QUOTA_EXCEEDED: HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
    EnqueueStatus.TIMED_OUT_IN_TRANSIT: HResult.MQ_ERROR_IO_TIMEOUT,
}


def refuse_late(envelope: Envelope, now: int) -> None:
    """Raise EnqueueRefusedError if a message has not reached its queue in time, at `now` (s)."""
    time_to_reach = envelope.time_to_reach_queue
    if time_to_reach != NEVER and now - envelope.sent_time > time_to_reach:
        raise EnqueueRefusedError(EnqueueStatus.TIMED_OUT_IN_TRANSIT)


class Quotas:
    """Admission of messages."""

    def __init__(self, store: Store, clock: Clock, queue_manager: QueueManager) -> None:
        self._store = store
        self._queue_manager = queue_manager
        self.lost_copies = LostCopiesOfQueues(clock, store.metrics)
        self.levels = QuotaLevels(queue_manager)

    def admit(self, queue: Queue, size: int) -> None:
        """Raise EnqueueRefusedError when a message of `size` bytes has no room.

        The queue manager comes first: it is throttled, or its own quota would be exceeded.
        """
        queue_manager = self._queue_manager
        used = self._store.usage_of(queue.queue_id)
        if queue_manager.throttled:
            self._store.space.look_again()
        of_all = EnqueueStatus.QUEUE_MANAGER_QUOTA_EXCEEDED
        if queue_manager.throttled:
            raise EnqueueRefusedError(of_all, "the disk is nearly full")
        taken, quota = self._store.total.bytes + size, queue_manager.queue_manager_quota
        if taken > quota * KILOBYTE:
            raise EnqueueRefusedError(of_all, f"the queue manager is at its quota of {quota:,} KB")
        self._look(None, taken, quota * KILOBYTE)
        main = queue.parent or queue
        if main.quota != INFINITE:
            taken = used.bytes + size
            if taken > main.quota * KILOBYTE:
                detail = f"`{short_name(main.pathname)}` is at its quota of {main.quota:,} KB"
                raise EnqueueRefusedError(EnqueueStatus.QUEUE_QUOTA_EXCEEDED, detail)
            self._look(main, taken, main.quota * KILOBYTE)

    def _look(self, queue: Queue | None, taken: int, quota: int) -> None:
        """Notice that a quota gets nearly full, at the cost of a comparison while it is not."""
        if taken * 100 >= LEVELS[-1] * quota or self.levels.some:
            self.levels.note(queue, taken, quota)

    def restore_levels(self) -> None:
        """Note what was nearly full before this start."""
        machine = self._queue_manager
        for queue in machine.queue_collection.values():
            if (quota := self.quota_bytes(queue)) is not None and self.is_of_its_own(queue):
                self.levels.restore(queue, self.used(queue), quota)
        self.levels.restore(None, self._store.total.bytes, machine.queue_manager_quota * KILOBYTE)

    def is_of_its_own(self, queue: Queue) -> bool:
        """Whether a queue has a quota of its own: a subqueue is part of its queue."""
        return queue.parent is None or queue.is_journal

    def quota_bytes(self, queue: Queue) -> int | None:
        """The quota of a queue, a journal or a dead-letter queue; None for no bound."""
        quota = self.keeping_quota(queue)
        return None if quota == INFINITE else quota * KILOBYTE

    def percent(self, queue: Queue | None) -> int | None:
        """How much of its quota a queue has used, a subqueue of its queue's; None without one."""
        if queue is None:
            return None
        main = queue if self.is_of_its_own(queue) else queue.main
        return percent_of(self.used(main), self.quota_bytes(main))

    def has_room(self, queue: Queue, quota: int, size: int) -> bool:
        """Whether `size` more bytes fit into a quota of KB."""
        if quota == INFINITE:
            return True
        return self.used(queue) + size <= quota * KILOBYTE

    def used(self, queue: Queue) -> int:
        """The bytes that count against the quota of a queue."""
        return self._store.usage_of(queue.queue_id).bytes

    def may_keep(self, queue: Queue, size: int) -> bool:
        """Whether a journal or dead-letter queue has room for a copy; one without is noted."""
        quota = self.keeping_quota(queue)
        if self.has_room(queue, quota, size):
            if quota != INFINITE:
                self._look(queue, self.used(queue) + size, quota * KILOBYTE)
            return True
        self.lost_copies.note(queue, quota)
        return False

    def keeping_quota(self, queue: Queue) -> int:
        """The quota, in KB, of a journal or dead-letter queue."""
        if queue.is_journal and queue.parent is not None:
            return queue.parent.journal_quota
        if queue is self._queue_manager.system_journal_queue:
            return self._queue_manager.journal_quota
        return queue.quota
