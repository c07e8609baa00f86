"""The way of a message from its sender to its reader, as far as it is known here.

Events tell what was written down here. The message tells the rest: its identifier names the queue
manager where it was sent, its packet when, how many routing servers have had it and for which queue
it is. What no event confirms is a step that is not `written`. Nobody else is asked: `ways` puts
together what several queue managers tell.
"""

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from rpcqm.base.errors import MQError
from rpcqm.codec.names.format_name import FormatName, PrivateQueueFormatName
from rpcqm.codec.names.written import is_direct, is_format_name
from rpcqm.qm.message_lookup import MessageLocation, MessageOrigin
from rpcqm.qm.trail import TrailEvent, TrailEventType

BY_NEXT_HOP, IN_ORDER, FINALLY = "by the next hop", "in order", "finally, "
"""The words of `qm.message_trace` for the sender of an acknowledgement."""


class Role(enum.StrEnum):
    """The part of a queue manager in a message's way, in the order of that way."""

    SOURCE = "source"
    BETWEEN = "between"
    BEFORE = "before"
    HERE = "here"
    NEXT_HOP = "next_hop"
    DESTINATION = "destination"
    ELSEWHERE = "elsewhere"


class Kind(enum.StrEnum):
    """The kind of a stop, in the order in which the stops of a queue manager are drawn."""

    SENDER = "sender"
    MACHINE = "machine"
    QUEUE = "queue"
    READER = "reader"


@dataclass(frozen=True, slots=True)
class Machine:
    """A queue manager; `name` is what is known: a name, else an address or its identifier.

    Those `between` are several, of which the name says how many. One that has `told` its part
    itself has its number in the order of the way.
    """

    role: Role
    name: str
    number: int = 0
    told: bool = False


@dataclass(frozen=True, slots=True)
class Stop:
    """A place where a message was; `place` is the name of a queue."""

    machine: Machine
    kind: Kind
    place: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """What happened, from one stop to another, or at one.

    `time` is milliseconds since 1970, 0 if nobody has written it down.
    """

    time: int
    what: str
    source: Stop
    target: Stop
    detail: str = ""
    written: bool = True


@dataclass(frozen=True, slots=True)
class Journey:
    """All steps in order, and where the message is now: in which state, at which stop.

    `source` is the queue manager that the identifier names. What is unknown here has no steps.
    """

    source: Machine
    steps: tuple[Step, ...]
    places: tuple[tuple[MessageLocation, Stop], ...]


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What is known of queue managers: our own, names by identifier and by address.

    `destination` finds the one that a format name leads to, which is a name or None.
    """

    own: UUID
    own_name: str
    name_of: Callable[[UUID], str]
    name_at: Callable[[str], str]
    destination: Callable[[FormatName], str | None]


def journey(
    source: UUID,
    events: Sequence[TrailEvent],
    places: Sequence[MessageLocation],
    known: Knowledge,
) -> Journey:
    """The way of a message that `source` has sent."""
    made = _Journey(source, events, places, known)
    steps = tuple(made.steps()) if events or places else ()
    return Journey(made.source, steps, tuple((each, made.stop(each.queue)) for each in places))


class _Journey:
    def __init__(
        self,
        source: UUID,
        events: Sequence[TrailEvent],
        places: Sequence[MessageLocation],
        known: Knowledge,
    ) -> None:
        self._events, self._places, self._known = events, places, known
        self._here = Machine(Role.HERE, known.own_name)
        is_ours = source == known.own
        self.source = self._here if is_ours else Machine(Role.SOURCE, known.name_of(source))
        self._origin, self._held = _origin_of(places)
        self._dead = self._unwritten_deaths()
        self._hops: dict[str, Stop] = {}

    def stop(self, queue: str) -> Stop:
        """A queue of this queue manager."""
        return Stop(self._here, Kind.QUEUE, queue)

    def steps(self) -> Iterator[Step]:
        """All of them, those before this queue manager first."""
        yield from self._beginning()
        for event in self._events:
            if event.happening is not TrailEventType.ARRIVED:
                yield from self._step(event)
            elif self.source is self._here or event.detail:
                yield self._arrived(event.time, event.queue, event.detail)
        for place, reason, meant in self._dead:
            target = self.stop(place.queue)
            yield Step(place.arrived, "kept", self.stop(meant), target, reason, False)

    def _unwritten_deaths(self) -> list[tuple[MessageLocation, str, str]]:
        """Dead letters without an event: their reasons, and the queues that they were for."""
        written = {each.detail for each in self._events}
        return [
            (each, each.origin.dead, each.origin.destination)
            for each in self._places
            if each.origin is not None and each.origin.dead and each.origin.destination
            if each.queue not in written
        ]

    def _first_held(self) -> tuple[int, str] | None:
        """The time and place of the first copy that is here; a dead letter was elsewhere before."""
        if self._dead:
            return 0, self._dead[0][2]
        return next(((each.arrived, each.queue) for each in self._places), None)

    # How it came here

    def _beginning(self) -> Iterator[Step]:
        """The way to this queue manager; one for a message sent here only without an event."""
        arrived = [each for each in self._events if each.happening is TrailEventType.ARRIVED]
        if self.source is not self._here:
            yield from self._from_elsewhere(arrived)
            return
        written = {each.queue for each in arrived}
        sent = dict.fromkeys(each.queue for each in self._events if each.lookup_identifier)
        first = [each for each in sent if is_format_name(each)] or list(sent)[:1]
        if not first and (held := self._first_held()) is not None:
            first = [held[1]]
        for queue in first:
            if queue not in written and not (written and not is_format_name(queue)):
                yield self._arrived(self._sent_time, queue, "", written=False)

    @property
    def _sent_time(self) -> int:
        return 0 if self._origin is None else self._origin.sent

    def _arrived(self, time: int, queue: str, detail: str, written: bool = True) -> Step:
        target = self.stop(queue)
        source = target if detail else Stop(self._here, Kind.SENDER)
        return Step(time, "arrived", source, target, detail, written)

    def _from_elsewhere(self, arrived: Sequence[TrailEvent]) -> Iterator[Step]:
        sent = Stop(self.source, Kind.MACHINE)
        if any(each.detail for each in arrived):  # imported: nobody knows its way to the file
            return
        yield Step(self._sent_time, "handed_over", Stop(self.source, Kind.SENDER), sent, "", False)
        last = sent
        if number := self._routing_servers():
            last = Stop(Machine(Role.BETWEEN, str(number)), Kind.MACHINE)
            yield Step(0, "passed_on", sent, last, "", False)
        for event in arrived:
            yield Step(event.time, "arrived", last, self.stop(event.queue))
        if not arrived and (first := self._first_place()) is not None:
            yield Step(first[0], "arrived", last, self.stop(first[1]), "", False)

    def _first_place(self) -> tuple[int, str] | None:
        """The time and place of the arrival here, if no event has them."""
        for event in self._events:
            if event.lookup_identifier:
                return 0, event.queue
        return self._first_held()

    def _routing_servers(self) -> int:
        """The routing servers before this one, which counts itself for messages in transit."""
        if self._origin is None:
            return 0
        return max(0, self._origin.hops - any(map(is_format_name, self._held)))

    # What became of it here, and behind

    def _step(self, event: TrailEvent) -> Iterator[Step]:
        here, detail, what = self.stop(event.queue), event.detail, event.happening.name.lower()
        match event.happening:
            case TrailEventType.SENT:
                yield from self._sent(event, here)
            case TrailEventType.RECEIVED:
                yield Step(event.time, what, here, Stop(self._here, Kind.READER), detail)
            case TrailEventType.MOVED | TrailEventType.KEPT if detail:
                yield Step(event.time, what, here, self.stop(detail))
            case TrailEventType.REFUSED:
                yield Step(event.time, what, self._hop(event.queue), here, detail)
            case TrailEventType.ACKNOWLEDGED:
                yield Step(event.time, what, self._author(event), here, detail)
            case _:
                yield Step(event.time, what, here, here, detail)

    def _sent(self, event: TrailEvent, here: Stop) -> Iterator[Step]:
        known = event.queue in self._hops
        end = self._destination(event.queue)
        address = event.detail.partition("=")[2] or event.detail
        name = self._known.name_at(address)
        hop = Stop(Machine(Role.NEXT_HOP, name or address), Kind.MACHINE)
        if is_direct(event.queue) or name == end.machine.name:
            hop = end  # to a direct name nobody passes it on
        self._hops[event.queue] = hop
        yield Step(event.time, "sent", here, hop, event.detail)
        if hop is not end and not known:
            yield Step(0, "passed_on", hop, end, "", False)

    def _hop(self, queue: str) -> Stop:
        return self._hops.get(queue) or self._destination(queue)

    def _destination(self, queue: str) -> Stop:
        """The queue elsewhere that an outgoing queue sends to."""
        try:
            name = FormatName.parse(queue)
            machine = self._known.destination(name)
        except MQError:
            machine = None
        if machine is None:
            return Stop(Machine(Role.ELSEWHERE, ""), Kind.QUEUE, queue)
        return Stop(Machine(Role.DESTINATION, machine), Kind.QUEUE, queue)

    def _author(self, event: TrailEvent) -> Stop:
        """The sender of an acknowledgement; a refusal that came as a message has an unnamed one."""
        if event.lookup_identifier:
            finally_or_in_order = event.detail != BY_NEXT_HOP
            return (self._destination if finally_or_in_order else self._hop)(event.queue)
        outgoing = [each.queue for each in self._events if is_format_name(each.queue)]
        if event.detail.startswith("ACK_") and len(set(outgoing)) == 1:
            return self._destination(outgoing[0])
        return Stop(Machine(Role.ELSEWHERE, ""), Kind.MACHINE)


def _origin_of(places: Sequence[MessageLocation]) -> tuple[MessageOrigin | None, list[str]]:
    """The origin in the first copy that is here, and the queues that hold it."""
    told = [each.origin for each in places if each.origin is not None]
    return (told[0] if told else None), [each.queue for each in places]


def machine_in(name: FormatName) -> UUID | str | None:
    """The queue manager in a format name: its identifier, or the name of its host."""
    if isinstance(name.value, str):
        return name.direct_name.host
    if isinstance(name.value, PrivateQueueFormatName):
        return name.value.source_queue_manager
    return None
