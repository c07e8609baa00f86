"""The queue manager at a glance: its totals, its last hour, and what needs attention first."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from rpcqm.base.admission import Admission
from rpcqm.base.completion import Completion, completed, start
from rpcqm.base.identity import Identity
from rpcqm.base.told import Moment, MomentOrNone
from rpcqm.operations.attention import Attention, attention_of
from rpcqm.operations.history import History, Point
from rpcqm.operations.machine import Standing, standing
from rpcqm.qm.access import require_observer
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.quota_levels import percent_of
from rpcqm.qm.quota_use import name_for_people
from rpcqm.qm.quotas import KILOBYTE
from rpcqm.qm.totals import SLICE, QueueTotals, queue_totals

KEPT_FOR = 1_000
"""Milliseconds for which the totals of many queues are told again."""


@dataclass(frozen=True, slots=True)
class Holding:
    """A queue, a journal or a dead-letter queue among those that hold most."""

    queue: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Overview:
    """What a queue manager does; sizes are bytes.

    `quota_percent` is how much of the quota of all messages together is used, and `largest` are the
    queues that hold most.
    `messages` and `bytes` are all that is kept, `quota_bytes` what may be; `queues`, `oldest` and
    `oldest_queue` are of the queues of applications here. `sessions` are outgoing queues by their
    state. `failed_logons` are those within the hour. Rates are messages a second.
    """

    name: str
    version: str
    now: Moment
    started: Moment
    connected: bool
    disconnected: Standing | None
    maintenance: Standing | None
    queues: int
    messages: int
    bytes: int
    quota_bytes: int
    quota_percent: int
    largest: tuple[Holding, ...]
    queues_nearly_full: int
    in_per_second: float
    out_per_second: float
    oldest: MomentOrNone
    oldest_queue: str
    dead_letters: int
    dead_letters_unread: int
    dead_letters_by_reason: Mapping[str, int]
    dead_letters_unread_by_reason: Mapping[str, int]
    connections: int
    waiting_reads: int
    locked_messages: int
    leases: int
    transactions: int
    oldest_transaction: MomentOrNone
    sessions: Mapping[str, int]
    outgoing_messages: int
    outgoing_bytes: int
    outgoing_oldest: MomentOrNone
    disk_free: int
    disk_reserve: int
    disk_refusing: bool
    store_bytes: int
    failed_logons: int
    history: tuple[Point, ...] = ()
    attention: tuple[Attention, ...] = ()


class OverviewOperations:
    """Raises MQ_ERROR_ACCESS_DENIED for others than administrators."""

    def __init__(
        self, engine: QueueManagerEngine, started: int, admission: Admission | None = None
    ) -> None:
        self._engine = engine
        self._started = started
        self._admission = admission
        self.history = History(engine)
        self.com_names: Callable[[], Sequence[str]] = lambda: ()
        """Names by which clients of COM objects call this computer, and which the objects lack."""
        self.certificates: Mapping[str, int] = {}
        """When the certificates of settings end, in milliseconds since 1970."""
        self._totals: tuple[int, QueueTotals] | None = None

    def overview(self, identity: Identity) -> Completion[Overview]:
        """What the queue manager does now, and has done in the last hour."""
        require_observer(identity)
        return start(self.found())

    async def found(self) -> Overview:
        """The same, for who may know it."""
        totals = await self._queue_totals()
        told = self._told(totals)
        unusable = set(self._engine.queue_manager.unusable_queues.values())
        conflicts = self._engine.identity_conflicts.recent()
        lost = self._engine.quotas.lost_copies.recent()
        attention = attention_of(
            told,
            totals.stuck,
            self.com_names(),
            unusable,
            conflicts,
            totals.uses,
            lost,
            self._engine.triggers.states(),
            self.certificates,
        )
        return replace(told, attention=attention)

    def _queue_totals(self) -> Completion[QueueTotals]:
        """The totals of all queues; those of many are told for a moment to all who ask."""
        now, engine = self._engine.clock.monotonic(), self._engine
        if len(engine.queue_manager.queue_collection) <= SLICE:
            return queue_totals(engine.queue_manager, engine.timers, engine.quotas)
        if self._totals is not None and now - self._totals[0] < KEPT_FOR:
            return completed(self._totals[1])
        found = queue_totals(engine.queue_manager, engine.timers, engine.quotas)
        found.add_done_callback(self._keep)
        return found

    def _keep(self, found: Completion[QueueTotals]) -> None:
        if found.error is None:
            self._totals = self._engine.clock.monotonic(), found.result()

    def _told(self, totals: QueueTotals) -> Overview:
        engine, machine, store = self._engine, self._engine.queue_manager, self._engine.store
        transactions, dead_letters = machine.transaction_collection, engine.dead_letters
        point = self.history.now()
        return Overview(
            name=machine.computer_name,
            version=machine.queue_manager_version,
            now=engine.clock.now(),
            started=self._started,
            connected=machine.connection_active,
            disconnected=standing(machine.disconnected),
            maintenance=standing(machine.maintenance),
            queues=totals.queues,
            messages=store.total.count,
            bytes=store.total.bytes,
            quota_bytes=machine.queue_manager_quota * KILOBYTE,
            quota_percent=percent_of(store.total.bytes, machine.queue_manager_quota * KILOBYTE)
            or 0,
            largest=tuple(
                Holding(name_for_people(use.queue), use.bytes) for use in totals.uses.largest
            ),
            queues_nearly_full=totals.uses.nearly_full,
            in_per_second=point.in_per_second,
            out_per_second=point.out_per_second,
            oldest=totals.oldest,
            oldest_queue=totals.oldest_queue,
            dead_letters=dead_letters.count(),
            dead_letters_unread=dead_letters.unread(),
            dead_letters_by_reason=dead_letters.by_reason(),
            dead_letters_unread_by_reason=dead_letters.unread_by_reason(),
            connections=0 if self._admission is None else self._admission.count,
            waiting_reads=totals.waiting_reads,
            locked_messages=totals.locked_messages,
            leases=len(engine.leases),
            transactions=len(transactions),
            oldest_transaction=next((each.begun for each in transactions.values()), 0),
            sessions={state.value: count for state, count in totals.sessions.items()},
            outgoing_messages=totals.outgoing_messages,
            outgoing_bytes=totals.outgoing_bytes,
            outgoing_oldest=totals.outgoing_oldest,
            disk_free=store.space.free,
            disk_reserve=store.space.reserve,
            disk_refusing=store.space.refusing,
            store_bytes=store.disk_bytes(),
            failed_logons=self.history.failed_logons(),
            history=self.history.points(),
        )
