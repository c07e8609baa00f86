"""Messages that a turn of the loop puts into queues, carried out together.

A template has recognised each of them as like one of the careful path (docs/request-templates.md).
They wait here until the turn ends, or until something happens that must not overtake them: a
careful call, any other change of the store. Then each queue's are admitted, stored and made visible
as one. Where anything is unusual, nothing has happened yet, and each goes the careful way.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial

from rpcqm.adm.message import CONSEQUENCES, ON_ARRIVAL
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.base.clock import Clock
from rpcqm.base.log import get_logger
from rpcqm.codec.types.mqvalues import QueuePrivacyLevel
from rpcqm.fast.arrival_runs import ArrivalRun, ArrivalRuns
from rpcqm.fast.observer import Observer
from rpcqm.fast.requests import Kind, TemplatedMessage, TemplatedRemoval, composed_each
from rpcqm.qm.positions import Positions, only_leaves
from rpcqm.store.run_changes import are_held
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction

MOST_MESSAGES = 1024
"""Messages for one queue, or removals from it, that wait for the end of a turn.

Bound `rpc.templated_messages_of_a_turn` [messages]: those that wait are carried out.
"""
MOST_BYTES = 4 << 20
"""Octets of bodies for one queue that wait for the end of a turn.

One write stays short, and takes little memory.

Bound `rpc.templated_octets_of_a_turn` [octets]: those that wait are carried out.
"""

SENT, ENDED, READ = "templates.sent", "templates.ended", "templates.read"
"""Counters of the requests that templates have carried out."""

_log = get_logger("qm")


@dataclass(slots=True)
class _Arrivals:
    """The messages that a turn puts into one queue."""

    queue: Queue
    kind: Kind
    messages: list[TemplatedMessage] = field(default_factory=list)
    size: int = 0

    @property
    def requests(self) -> Iterable[TemplatedMessage]:
        return self.messages


@dataclass(slots=True)
class _Removals:
    """The messages that a turn removes from one queue, by lookup identifiers."""

    queue: Queue
    by_key: dict[int, TemplatedRemoval] = field(default_factory=dict)

    @property
    def requests(self) -> Iterable[TemplatedRemoval]:
        return self.by_key.values()


class Turn:
    """The requests that wait for the end of this turn; `waiting` says whether there are any.

    While it is not `is_on`, no template recognises anything. A `shadow` of tests compares each run
    with the careful path.
    """

    def __init__(self, store: Store, clock: Clock, runs: ArrivalRuns, positions: Positions) -> None:
        self._store = store
        self._clock = clock
        self._runs = runs
        self._positions = positions
        self._arrivals: dict[int, _Arrivals] = {}
        self._removals: dict[int, _Removals] = {}
        self.is_on = True
        self.shadow: Observer | None = None
        self.waiting = False

    def add(self, queue: Queue, kind: Kind, message: TemplatedMessage, size: int) -> None:
        """Put a message into a queue at the turn's end; `size` is about its octets."""
        run = self._arrivals.get(queue.queue_id)
        if run is not None and run.kind != kind:
            self.drain()
            run = None
        if run is None:
            run = self._arrivals[queue.queue_id] = _Arrivals(queue, kind)
            self._wait()
        run.messages.append(message)
        run.size += size
        if len(run.messages) >= MOST_MESSAGES or run.size >= MOST_BYTES:
            self.drain()

    def remove(self, queue: Queue, key: int, removal: TemplatedRemoval) -> None:
        """Remove a message that a two-phase read has locked, at the turn's end."""
        run = self._removals.get(queue.queue_id)
        if run is not None and key in run.by_key:
            self.drain()
            run = None
        if run is None:
            run = self._removals[queue.queue_id] = _Removals(queue)
            self._wait()
        run.by_key[key] = removal
        if len(run.by_key) >= MOST_MESSAGES:
            self.drain()

    def count_read(self) -> None:
        """Count a read that a template has answered."""
        self._store.metrics.count(READ)

    def _wait(self) -> None:
        self.waiting = True
        self._store.put_off(self._carry_out_all)

    def drain(self) -> None:
        """Carry out the waiting requests; none waits any more when this returns."""
        self._store.carry_out_first()

    def _carry_out_all(self) -> None:
        self.waiting = False
        arrivals, self._arrivals = self._arrivals, {}
        removals, self._removals = self._removals, {}
        with nullcontext() if self.shadow is None else self.shadow.at_one_time():
            self._carry_out(arrivals.values(), removals.values())

    def _carry_out(self, arrivals: Collection[_Arrivals], removals: Collection[_Removals]) -> None:
        for arriving in arrivals:
            if not self._can_insert_in_bulk(arriving) or not self._put(arriving):
                _go_carefully(arriving.requests)
        for leaving in removals:
            if not self._only_leaves(leaving) or not self._take_out(leaving):
                _go_carefully(leaving.requests)

    def _rehearsed(self, run: _Arrivals | _Removals) -> object:
        return None if self.shadow is None else self.shadow.rehearse(run.requests)

    def _compare(
        self, run: _Arrivals | _Removals, rehearsal: object, change: StoreTransaction
    ) -> None:
        if self.shadow is not None:
            self.shadow.compare(rehearsal, change, [each.response for each in run.requests])

    # Into a queue

    def _can_insert_in_bulk(self, run: _Arrivals) -> bool:
        """Whether a run can be stored as one.

        It cannot if an acknowledgement needs a new queue. Nor if a message has expired when it
        comes: its acknowledgement takes a number before the next message does.
        """
        if not can_insert_in_bulk(run.queue):
            return False
        if not run.kind.flags & ON_ARRIVAL:
            return True
        now = self._clock.now()
        if min(message.expiry(now) for message in run.messages) <= now:
            return False
        asked = {(each.administration, id(each.sender)): each for each in run.messages}
        tells = self._positions.consequences.acknowledgement_needs_no_new_queue
        return all(tells(each.administration, each.sender) for each in asked.values())

    def _put(self, run: _Arrivals) -> bool:
        """Store a run as a whole; False if there is no room for it."""
        queue, store = run.queue, self._store
        now = self._clock.now()
        try:
            rehearsal = self._rehearsed(run)
            with store.transaction("enqueue a turn") as change:
                change.return_numbers_on_rollback()
                self._insert(change, run, now)
                self._compare(run, rehearsal, change)
                change.requests = len(run.messages)
                change.call_after(partial(_stored, run))
        except Exception as error:  # whatever it is, the careful path reports it to each
            _log.debug("a turn goes the careful way", queue=queue.pathname, error=str(error))
            return False
        for message in run.messages:
            message.accepted()
        store.metrics.count(SENT, len(run.messages))
        return True

    def _insert(self, change: StoreTransaction, run: _Arrivals, now: int) -> None:
        if run.kind.flags & ON_ARRIVAL:
            self._runs.insert_each(change, self._one_by_one(run, now))
            return
        self._runs.insert(change, self._composed(run, now))

    def _one_by_one(self, run: _Arrivals, now: int) -> Iterator[tuple[Queue, bytes]]:
        """Each message, which gets its number behind the consequences of the one before (G301)."""
        ordinals = self._store.counters.message_ordinal
        for message in run.messages:
            yield run.queue, message.compose(ordinals.take() & 0xFFFF_FFFF, now // 1000)

    def _composed(self, run: _Arrivals, now: int) -> ArrivalRun:
        messages, kind = run.messages, run.kind
        count = len(messages)
        taken = self._store.counters.message_ordinal.take_many(count)
        ordinals = [ordinal & 0xFFFF_FFFF for ordinal in taken]
        are_alike = len(set(map(type, messages))) == 1
        compose = messages[0].composed if are_alike else composed_each
        composed = compose(messages, ordinals, now)
        return ArrivalRun(
            run.queue,
            kind.recoverable,
            composed.packets,
            composed.priorities,
            [kind.flags] * count,
            composed.expiries,
        )

    # Out of a queue

    def _only_leaves(self, run: _Removals) -> bool:
        """Whether the removals have no consequences, and each reader still has its message."""
        queue = run.queue
        if not only_leaves(queue):
            return False
        owners = {key: removal.descriptor for key, removal in run.by_key.items()}
        return are_held(self._store.index(queue.queue_id), owners, CONSEQUENCES)

    def _take_out(self, run: _Removals) -> bool:
        """Remove a run as a whole; False if nothing has been removed."""
        queue = run.queue
        try:
            rehearsal = self._rehearsed(run)
            with self._store.transaction("dequeue a turn") as change:
                self._positions.read_many(change, queue, list(run.by_key))
                self._compare(run, rehearsal, change)
                change.requests = len(run.by_key)
                change.call_after(partial(self._removed, run))
        except Exception as error:  # whatever it is, the careful path reports it to each
            _log.debug("a turn goes the careful way", queue=queue.pathname, error=str(error))
            return False
        for removal in run.by_key.values():
            removal.removing()
        self._store.metrics.count(ENDED, len(run.by_key))
        return True

    def _removed(self, run: _Removals) -> None:
        for removal in run.by_key.values():
            _guarded(removal.removed)


def can_insert_in_bulk(queue: Queue) -> bool:
    """Whether a local queue takes any message outside transactions, and keeps no trail of it."""
    return not (
        queue.queue_manager is None
        or isinstance(queue, OutgoingQueue)
        or queue.trail
        or queue.transactional
        or queue.authentication
        or queue.privacy_level is not QueuePrivacyLevel.MQ_PRIV_LEVEL_OPTIONAL
    )


def _stored(run: _Arrivals) -> None:
    for message in run.messages:
        try:
            message.stored()
        except Exception:
            _unanswered()


def _go_carefully(requests: "Iterable[TemplatedMessage | TemplatedRemoval]") -> None:
    for request in requests:
        _guarded(request.carefully)


def _guarded(answer: Callable[[], None]) -> None:
    try:
        answer()
    except Exception:
        _unanswered()


def _unanswered() -> None:
    """Log it, and go on: the others of the turn must be answered."""
    _log.exception("a request of a turn could not be answered")
