"""What all queues hold together, found out in slices between which others are served."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from rpcqm.adm.enums import OutgoingQueueState, QueueType
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.clock import Timers
from rpcqm.base.completion import Completion, start
from rpcqm.qm.quota_use import QuotaUses
from rpcqm.qm.quotas import Quotas
from rpcqm.qm.unsent import unsent

SLICE = 200
"""Queues that are looked at before others are served: about a millisecond."""

PAUSE = 1
"""Milliseconds between two slices."""


@dataclass(frozen=True, slots=True)
class StuckQueue:
    """An outgoing queue with messages to send that does not send; `error` is an HRESULT, or 0.

    `oldest` is milliseconds since 1970.
    """

    name: str
    state: OutgoingQueueState
    messages: int
    oldest: int
    error: int


@dataclass(slots=True)
class QueueTotals:
    """All queues; times are milliseconds since 1970, 0 for no message.

    `queues` and `oldest` are of the queues of applications here. Outgoing queues count in
    `sessions`, by their state, and in the members that are named so, of what is still to
    be sent; `outgoing_bytes` is all that they take. `stuck` has those with the oldest messages to
    send, MOST_STUCK at most.
    """

    queues: int = 0
    oldest: int = 0
    oldest_queue: str = ""
    waiting_reads: int = 0
    locked_messages: int = 0
    outgoing_messages: int = 0
    outgoing_bytes: int = 0
    outgoing_oldest: int = 0
    sessions: Counter[OutgoingQueueState] = field(default_factory=Counter)
    stuck: list[StuckQueue] = field(default_factory=list)
    uses: QuotaUses = field(default_factory=QuotaUses)

    def add(self, queue: Queue, quotas: Quotas) -> None:
        """Count one queue."""
        self.uses.add(queue, quotas)
        self.waiting_reads += len(queue.waiting_receives) + len(queue.waiting_peeks)
        if isinstance(queue, OutgoingQueue):
            self._add_outgoing(queue)
        elif queue.queue_type is not QueueType.SYSTEM and not queue.is_journal:
            self._add_own(queue)

    def _add_own(self, queue: Queue) -> None:
        self.queues += queue.parent is None
        positions = queue.message_position_list
        if not positions.count:
            return
        self.locked_messages += positions.count - positions.available
        oldest = positions.oldest()
        if not self.oldest or oldest < self.oldest:
            self.oldest, self.oldest_queue = oldest, queue.pathname

    def _add_outgoing(self, queue: OutgoingQueue) -> None:
        self.sessions[queue.state] += 1
        positions = queue.message_position_list
        if not positions.count:
            return
        self.outgoing_bytes += positions.bytes
        count, oldest = unsent(queue)
        if not count:
            return
        self.outgoing_messages += count
        self.outgoing_oldest = min(self.outgoing_oldest or oldest, oldest)
        if queue.state is not OutgoingQueueState.CONNECTED:
            history = queue.connection_history
            error = history[-1].error if history else 0
            name = queue.destination_format_name
            self.stuck.append(StuckQueue(name, queue.state, count, oldest, error))
            if len(self.stuck) > 2 * MOST_STUCK:
                self._keep_oldest()

    def _keep_oldest(self) -> None:
        self.stuck = sorted(self.stuck, key=lambda each: each.oldest)[:MOST_STUCK]


MOST_STUCK = 20
"""Outgoing queues without a session that an overview tells of.

Bound `overview.most_stuck` [queues]: those with younger messages are not told of.
"""


def queue_totals(
    queue_manager: QueueManager, timers: Timers, quotas: Quotas
) -> Completion[QueueTotals]:
    """Look at all queues; at once if they are few."""
    return start(_totals(queue_manager, timers, quotas))


async def _totals(queue_manager: QueueManager, timers: Timers, quotas: Quotas) -> QueueTotals:
    totals = QueueTotals()
    slices = _slices(list(queue_manager.queue_collection.values()))
    for number, part in enumerate(slices):
        if number:
            await _pause(timers)
        for queue in part:
            if queue.queue_manager is not None:  # it has not been deleted meanwhile
                totals.add(queue, quotas)
    totals._keep_oldest()
    return totals


def _slices(queues: list[Queue]) -> Iterator[list[Queue]]:
    for at in range(0, len(queues), SLICE):
        yield queues[at : at + SLICE]


def _pause(timers: Timers) -> Completion[None]:
    over: Completion[None] = Completion()
    timers.call_later(PAUSE, lambda: over.succeed(None))
    return over
