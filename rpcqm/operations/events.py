"""What happens, told to those who listen: the one place that pages and programs subscribe to.

Nothing is looked at while nobody listens; what is rare and worth knowing later is kept anyway.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from rpcqm.adm.queue import ConnectionHistoryEntry, OutgoingQueue, Queue
from rpcqm.base.clock import Timer
from rpcqm.base.completion import Completion
from rpcqm.base.ended_rights import OpenKind
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.base.log import get_logger
from rpcqm.base.text import iso_time
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.operations import audit
from rpcqm.operations.queues import QueueOperations
from rpcqm.operations.trail import EVENTS_KEPT, Event, EventKind, Trail, record_of
from rpcqm.qm.access import require_observer
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.machine import is_internal
from rpcqm.qm.management_properties import STATES
from rpcqm.qm.operators_trail import OperatorsTrail
from rpcqm.qm.quota_use import name_for_people, named_largest
from rpcqm.qm.totals import QueueTotals, queue_totals

LISTENERS = 64
"""Programs and pages that listen to events.

Bound `events.listeners` [listeners]: the call is refused.
"""
LISTENERS_OF_ACCOUNT = 16
"""Those of one account.

Bound `events.listeners_of_account` [listeners]: the call is refused.
"""
BACKLOG = 1000
"""Events that wait for a listener that is slow.

Bound `events.backlog` [events]: the listener is dropped; it comes again with the number of its last
event.
"""
TAKEN_AT_ONCE = 200
"""Events that a listener gets at once, so that others are served between them."""
QUEUES_OF_LISTENER = 100
"""Queues that a listener names.

Bound `events.queues_of_listener` [queues]: the call is refused.
"""

_log = get_logger("operations")
_LOOK_MILLISECONDS = 500
_LOOKED_AT_ONCE = 500
"""Queues that are looked at before others are served."""
_GATHER_MILLISECONDS = 200
"""In which dead letters of one queue and reason are one event, and so is a level of a quota."""


class Subscription:
    """One listener: what has happened since it took events last.

    Of the changes of a queue it gets the latest. It is `over` when it was too slow, or when the
    queue manager stops; then it gets nothing more.
    """

    def __init__(self, events: "Events", identity: Identity, queues: frozenset[Queue] | None):
        self.identity = identity
        self.over = False
        self._events = events
        self._queues = queues
        self._backlog: deque[Event] = deque()
        self._changed: dict[str, Event] = {}
        self._came = asyncio.Event()

    def leave(self) -> None:
        """Listen no more; also when it is over this must be called."""
        self._events.leave(self)

    async def take(self, seconds: float) -> list[Event]:
        """The next events, in order; none if nothing has happened for so long, or it is over."""
        if not (self._backlog or self._changed or self.over):
            self._came.clear()
            try:
                await asyncio.wait_for(self._came.wait(), seconds)
            except TimeoutError:
                return []
        taken = [self._backlog.popleft() for _ in range(min(len(self._backlog), TAKEN_AT_ONCE))]
        for name in list(islice(self._changed, TAKEN_AT_ONCE - len(taken))):
            taken.append(self._changed.pop(name))
        return taken

    def offer(self, event: Event) -> None:
        """Something has happened; those who may not know of it are not told."""
        if self.over or not self._events.may_know(self.identity, self._queues, event):
            return
        if event.kind is EventKind.QUEUE_CHANGED:
            self._changed[event.about] = event
        elif len(self._backlog) < BACKLOG:
            self._backlog.append(event)
        else:
            self.end()
        self._came.set()

    def end(self) -> None:
        """Tell nothing more."""
        self.over = True
        self._backlog.clear()
        self._changed.clear()
        self._came.set()


_Counts = tuple[int, int, int]


class Events:
    """Hears of what happens in a queue manager, and tells those who listen."""

    def __init__(self, engine: QueueManagerEngine, queues: QueueOperations) -> None:
        self._engine, self._queues = engine, queues
        self.trail = Trail(engine.clock.now())
        self._acts = OperatorsTrail(engine.store, EVENTS_KEPT)
        self.trail.restore(self._acts.restore())
        self._listeners: dict[Subscription, None] = {}
        self._seen: dict[int, tuple[Queue, _Counts]] = {}
        self._looking: Iterator[None] | None = None
        self._timer: Timer | None = None
        self._dead: Counter[tuple[Queue, MessageClass]] = Counter()
        self._nearly_full: dict[tuple[Queue | None, int], tuple[int, int]] = {}
        engine.outgoing.state_hooks.append(self._state_changed)
        engine.outgoing.connection_hooks.append(self._connection_changed)
        engine.positions.dead_letter_hooks.append(self._dead_letter)
        engine.online_hooks.append(self._machine_changed)
        engine.flow_hooks.append(self._machine_changed)
        engine.maintenance_hooks.append(self._machine_changed)
        engine.quotas.levels.hooks.append(self._quota_reached)
        engine.stopped_hooks.append(self.stop)
        engine.ended.subscribe(OpenKind.EVENT_STREAM, self.end_all)
        audit.listeners.append(self._acted)

    def stop(self) -> None:
        """Nothing happens any more: every listener is told so."""
        if self._acted in audit.listeners:
            audit.listeners.remove(self._acted)
        for listener in list(self._listeners):
            listener.end()
        self._watch_no_more()

    def end_all(self, sid: str) -> None:
        """An account has ended: who has listened for it hears nothing more."""
        for listener in list(self._listeners):
            if listener.identity.sid == sid:
                listener.end()

    # Who listens

    def subscribe(
        self,
        identity: Identity,
        queues: Sequence[FormatName] | None = None,
        after: int | None = None,
    ) -> Subscription:
        """Listen from now on, or from behind the event of a number as far as they are kept.

        Administrators hear everything; others, and those who name `queues`, of changes of these,
        which they may peek at. Raises MQError: ACCESS_DENIED, QUEUE_NOT_FOUND,
        INSUFFICIENT_RESOURCES when too many listen.
        """
        wanted = self._wanted(identity, queues)
        mine = sum(1 for each in self._listeners if each.identity.sid == identity.sid)
        if len(self._listeners) >= LISTENERS or mine >= LISTENERS_OF_ACCOUNT:
            raise MQError(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, "too many listen already")
        listener = Subscription(self, identity, wanted)
        self._listeners[listener] = None
        for queue in wanted or ():
            listener.offer(self._change(queue, "is"))
        if after is not None:
            missed = list(self.trail.after(after))
            for event in missed[-BACKLOG:]:
                listener.offer(event)
        if self._timer is None:
            self._watch()
        return listener

    def _wanted(
        self, identity: Identity, queues: Sequence[FormatName] | None
    ) -> frozenset[Queue] | None:
        if queues is None:
            require_observer(identity)
            return None
        if len(queues) > QUEUES_OF_LISTENER:
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "too many queues are named")
        found = frozenset(self._queues.find(name) for name in queues)
        for queue in found:
            if not self._may_peek(identity, queue):
                lacks = f"{identity.name} lacks peek on {queue.full_name}"
                raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, lacks)
        return found

    def _may_peek(self, identity: Identity, queue: Queue) -> bool:
        if isinstance(queue, OutgoingQueue):
            return identity.may_look
        return identity.may_look or self._engine.access.may_peek(queue, identity)

    def latest(
        self, identity: Identity, after: int, kind: EventKind | None, limit: int
    ) -> list[Event]:
        """The events after a number that are kept, in order; for administrators."""
        require_observer(identity)
        return list(islice(self.trail.after(after, kind), limit))

    def may_know(self, identity: Identity, queues: frozenset[Queue] | None, event: Event) -> bool:
        """Whether a listener is told; rights may have changed since it began."""
        if queues is None:
            return identity.may_look
        queue = event.queue
        return (
            event.kind is EventKind.QUEUE_CHANGED
            and queue in queues
            and queue is not None
            and self._may_peek(identity, queue)
        )

    def leave(self, listener: Subscription) -> None:
        """A listener has gone."""
        listener.end()
        self._listeners.pop(listener, None)
        if not self._listeners:
            self._watch_no_more()

    # What happens

    def _tell(self, events: Iterable[Event]) -> None:
        for event in events:
            for listener in self._listeners:
                listener.offer(event)

    def _keep(
        self, kind: EventKind, about: str, told: Mapping[str, object], queue: Queue | None = None
    ) -> Event:
        now = self._engine.clock.now()
        event = self.trail.keep(now, kind, about, told, queue)
        self._tell([event])
        return event

    def _acted(self, act: audit.Act) -> None:
        more = dict(act.more)
        told = {"who": act.who, "sid": act.sid, "action": act.action}
        told |= {} if act.token is None else {"token": act.token}
        told |= {"origin": act.origin.address, "protocol": act.origin.protocol}
        event = self._keep(EventKind.OPERATOR_ACTS, act.on, told | {"more": more})
        if act.changes:
            self._acts.keep(event.number, record_of(event))

    def _state_changed(self, queue: OutgoingQueue) -> None:
        told = {"state": str(STATES[queue.state]), "next_hops": list(queue.next_hops)}
        self._keep(EventKind.SESSION_STATE, queue.destination_format_name, told, queue)

    def _connection_changed(self, queue: OutgoingQueue, entry: ConnectionHistoryEntry) -> None:
        told = {
            "state": str(STATES[queue.state]),
            "next_hops": list(queue.next_hops),
            "connection": entry.status.name,
            "addresses": list(entry.address_list),
        }
        self._keep(EventKind.SESSION_STATE, queue.destination_format_name, told, queue)

    def _machine_changed(self, _: bool) -> None:
        machine = self._engine.queue_manager
        told = {
            "connected": machine.connection_active,
            "refusing": machine.throttled,
            "maintenance": machine.maintenance is not None,
        }
        self._keep(EventKind.MACHINE_STATE, machine.computer_name, told)

    def _quota_reached(self, queue: Queue | None, level: int, used: int, quota: int) -> None:
        """A quota gets nearly full, which is told a moment later.

        Messages that do not go into a queue together are tried in smaller and smaller parts, and
        each part that is taken back has reached the level again (G728).
        """
        if not self._nearly_full:
            self._engine.timers.call_later(_GATHER_MILLISECONDS, self._tell_of_the_full)
        self._nearly_full[queue, level] = used, quota

    def _tell_of_the_full(self) -> None:
        reached, self._nearly_full = self._nearly_full, {}
        for (queue, level), (used, quota) in reached.items():
            self._tell_of_level(queue, level, used, quota)

    def _tell_of_level(self, queue: Queue | None, level: int, used: int, quota: int) -> None:
        """One event; of the quota of all messages together it is told what holds most."""
        if queue is not None:
            self._tell_of_quota(queue.pathname, name_for_people(queue), level, used, quota, queue)
            return
        engine = self._engine
        totals = queue_totals(engine.queue_manager, engine.timers, engine.quotas)
        name = engine.queue_manager.computer_name

        def told(found: Completion[QueueTotals]) -> None:
            if found.error is None:
                largest = tuple(named_largest(found.result().uses))
                self._tell_of_quota(
                    name, "all messages together", level, used, quota, None, largest
                )

        totals.add_done_callback(told)

    def _tell_of_quota(
        self,
        about: str,
        what: str,
        level: int,
        used: int,
        quota: int,
        queue: Queue | None,
        largest: tuple[str, ...] = (),
    ) -> None:
        told = {"percent": level, "what": what, "used": used, "quota": quota}
        told |= {"largest": list(largest)}
        self._keep(EventKind.QUOTA, about, told, queue)
        _log.warning("a quota is nearly used", **told)

    def _dead_letter(self, queue: Queue, reason: MessageClass) -> None:
        if not self._dead:
            self._engine.timers.call_later(_GATHER_MILLISECONDS, self._tell_of_the_dead)
        self._dead[queue, reason] += 1

    def _tell_of_the_dead(self) -> None:
        dead, self._dead = self._dead, Counter()
        for (queue, reason), messages in dead.items():
            told = {"reason": reason.name, "messages": messages}
            self._keep(EventKind.DEAD_LETTER, queue.pathname, told, queue)

    # What changes in queues, which is looked at while somebody listens

    def _watch(self) -> None:
        self._seen = {queue.queue_id: (queue, _counts(queue)) for queue in self._all_queues()}
        self._timer = self._engine.timers.call_later(_LOOK_MILLISECONDS, self._look)

    def _watch_no_more(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._looking, self._seen = None, None, {}

    def _all_queues(self) -> list[Queue]:
        queues = self._engine.queue_manager.queue_collection.values()
        return [queue for queue in queues if not queue.is_journal and not is_internal(queue)]

    def _look(self) -> None:
        """Look at some queues, and soon at the next ones, or later at all of them again."""
        if self._looking is None:
            self._looking = self._changes()
        more = next(self._looking, _END) is not _END
        if not more:
            self._looking = None
        pause = 0 if more else _LOOK_MILLISECONDS
        self._timer = self._engine.timers.call_later(pause, self._look)

    def _changes(self) -> Iterator[None]:
        queues = self._all_queues()
        for at in range(0, len(queues), _LOOKED_AT_ONCE):
            self._tell(self._changed(queues[at : at + _LOOKED_AT_ONCE]))
            yield
        there = {queue.queue_id for queue in queues}
        gone = [identifier for identifier in self._seen if identifier not in there]
        self._tell(self._change(self._seen.pop(each)[0], "deleted") for each in gone)

    def _changed(self, queues: Sequence[Queue]) -> Iterator[Event]:
        for queue in queues:
            counts = _counts(queue)
            known = self._seen.get(queue.queue_id)
            if known is None or known[1] != counts:
                self._seen[queue.queue_id] = (queue, counts)
                yield self._change(queue, "made" if known is None else "changed")

    def _change(self, queue: Queue, change: str) -> Event:
        positions = queue.message_position_list
        told = {
            "change": change,
            "messages": positions.count,
            "bytes": positions.bytes,
            "entered": positions.entered,
            "left": positions.left,
            "oldest": iso_time(positions.oldest() / 1000),
        }
        now = self._engine.clock.now()
        return Event(0, now, EventKind.QUEUE_CHANGED, queue.full_name, told, queue)


_END = object()


def _counts(queue: Queue) -> _Counts:
    positions = queue.message_position_list
    return positions.count, positions.entered, positions.left
