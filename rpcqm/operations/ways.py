"""The way of a message as all queue managers know it that could be asked, put together.

Each of them knows its own part, as `journeys` makes it. Where one part tells what another one only
guesses, the guess is left out; who is who follows from the names and identifiers that they tell.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol
from uuid import UUID

from rpcqm.base.completion import Completion
from rpcqm.base.errors import MQError
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.operations.journeys import Journey, Kind, Machine, Role, Step, Stop
from rpcqm.qm.message_lookup import MessageLocation
from rpcqm.qm.trail import TrailEvent

ONWARDS = (Role.NEXT_HOP, Role.DESTINATION)
_UNTOLD = (Role.DESTINATION, Role.NEXT_HOP, Role.SOURCE)
"""Parts of queue managers that could not be asked, what says most first."""


@dataclass(frozen=True, slots=True)
class Known:
    """What one queue manager knows of a message; `names` are those of its next hops by address."""

    queue_manager: UUID
    name: str
    events: tuple[TrailEvent, ...]
    places: tuple[MessageLocation, ...]
    names: Mapping[str, str] = field(default_factory=dict)


class Elsewhere(Protocol):
    """Asks other queue managers; the service gives what calls them."""

    def known(self, machine: str, identifier: MessageIdentifier) -> Completion[Known]:
        """What one of them knows; fails with MQError, also for one that is not to be asked."""


@dataclass(frozen=True, slots=True)
class Part:
    """What a queue manager knows, as the steps that it can tell."""

    known: Known
    journey: Journey

    @property
    def name(self) -> str:
        return self.known.name

    def names(self, roles: Iterable[Role]) -> list[str]:
        """Queue managers that have to do with the message in its view."""
        stops = [stop for step in self.journey.steps for stop in (step.source, step.target)]
        machines = [self.journey.source, *(each.machine for each in stops)]
        found = dict.fromkeys(each.name for each in machines if each.role in roles)
        return [each for each in found if each]

    def first(self) -> Stop | None:
        """The queue there that the message came to first."""
        ends = [step.target for step in self.journey.steps if step.what == "arrived"]
        ends += [stop for step in self.journey.steps for stop in (step.source, step.target)]
        own = (each for each in ends if each.machine.role is Role.HERE)
        return next((each for each in own if each.kind is Kind.QUEUE), None)


@dataclass(frozen=True, slots=True)
class Way:
    """The journey of all parts; who has told one, and who has not, and why."""

    journey: Journey
    told: tuple[str, ...]
    untold: tuple[tuple[str, MQError], ...]


def put_together(own: Part, others: Mapping[str, Part]) -> Journey:
    """One journey of our part and those of others, by the names that they were asked by."""
    return _Together(own, others).journey()


class _Together:
    def __init__(self, own: Part, others: Mapping[str, Part]) -> None:
        self._own = own
        self._parts = {each.name: each for each in (own, *others.values())}
        self._aliases = {
            alias: each.name for each in (own, *others.values()) for alias in _of(each)
        }
        self._aliases |= {asked.casefold(): each.name for asked, each in others.items()}
        self._source = self._called(own.journey.source.name)
        self._line = self._in_line()
        self._fed = {
            self._called(step.target.machine.name)
            for part in self._parts.values()
            for step in part.journey.steps
            if step.what == "sent"
        }
        self._roles = self._roles_of_untold()

    def journey(self) -> Journey:
        parts = sorted(self._parts.values(), key=self._place)
        timed: list[tuple[int, Step]] = []
        for part in parts:
            timed += self._timed(part, self._sent_at(part, timed))
        timed.sort(key=lambda pair: pair[0])
        places = [
            (place, self._stop(stop, part)) for part in parts for place, stop in part.journey.places
        ]
        source = self._machine(self._own.journey.source, self._own)
        return Journey(source, tuple(step for _, step in timed), tuple(places))

    # Who is who

    def _called(self, name: str) -> str:
        return self._aliases.get(name.casefold(), name)

    def _in_line(self) -> list[str]:
        """Those who have told a part, in the order of the message's way."""
        line = [self._source if self._source in self._parts else self._own.name]
        for name in line:
            found = map(self._called, self._parts[name].names(ONWARDS))
            line += [each for each in dict.fromkeys(found) if self._is_new(each, line)]
        return line

    def _is_new(self, name: str, line: Sequence[str]) -> bool:
        return name in self._parts and name not in line

    def _place(self, part: Part) -> int:
        line = self._line
        return line.index(part.name) if part.name in line else len(line)

    def _roles_of_untold(self) -> dict[str, Role]:
        """The one role of who is seen in several, because each part sees others."""
        return {
            self._called(name): role
            for role in reversed(_UNTOLD)
            for part in self._parts.values()
            for name in part.names((role,))
        }

    def _machine(self, machine: Machine, part: Part) -> Machine:
        if machine.role is Role.HERE:
            return self._told(part)
        if machine.role is Role.BETWEEN:
            return machine
        name = self._called(machine.name)
        if name in self._parts:
            return self._told(self._parts[name])
        return Machine(self._roles.get(name, machine.role), name)

    def _told(self, part: Part) -> Machine:
        return Machine(self._role(part), part.name, self._place(part), True)

    def _role(self, part: Part) -> Role:
        if part is self._own:
            return Role.HERE
        if part.name == self._source:
            return Role.SOURCE
        if self._own.name in self._line and self._place(part) < self._line.index(self._own.name):
            return Role.BEFORE
        return self._roles.get(part.name, Role.NEXT_HOP)

    def _stop(self, stop: Stop, part: Part) -> Stop:
        """The same place; of another one who has told a part it is the queue that it came to."""
        role, in_place = stop.machine.role, stop.kind in (Kind.MACHINE, Kind.QUEUE)
        if role not in (Role.HERE, Role.BETWEEN) and in_place:
            told = self._parts.get(self._called(stop.machine.name))
            first = None if told is None or told is part else told.first()
            if told is not None and first is not None:
                return replace(first, machine=self._told(told))
        return replace(stop, machine=self._machine(stop.machine, part))

    # What is told

    def _sent_at(self, part: Part, timed: Sequence[tuple[int, Step]]) -> int:
        """When it was sent there: nothing happened there before, whatever the clocks say."""
        times = (
            time
            for time, step in timed
            if step.what == "sent" and step.target.machine.name == part.name
        )
        return next(times, 0)

    def _timed(self, part: Part, earliest: int) -> Iterator[tuple[int, Step]]:
        """The steps of a part, each with the time by which it is ordered."""
        steps = list(self._steps(part))
        time = max((step.time for step in steps), default=0)
        found = []
        for step in reversed(steps):
            time = step.time or time
            found.append((max(time, earliest), step))
        yield from reversed(found)

    def _steps(self, part: Part) -> Iterator[Step]:
        for step in part.journey.steps:
            here = step.target.machine.role is Role.HERE
            comes = here and step.source.machine.role is not Role.HERE and step.what == "arrived"
            if comes and part.name in self._fed:
                if step.written:  # who has sent it tells the arrow
                    target = self._stop(step.target, part)
                    yield replace(step, source=target, target=target)
            elif step.written or not self._is_told(step, part):
                source, target = self._stop(step.source, part), self._stop(step.target, part)
                yield replace(step, source=source, target=target)

    def _is_told(self, step: Step, part: Part) -> bool:
        """Whether a guess of what happened elsewhere is left to who was there."""
        if Role.HERE in (step.source.machine.role, step.target.machine.role):
            return False
        told = self._parts.get(self._called(step.source.machine.name))
        if told is not None and told is not part and told.journey.steps:
            return True
        return step.source.machine.role is Role.SOURCE and part.name in self._fed


def _of(part: Part) -> tuple[str, str]:
    return part.name.casefold(), f"{{{part.known.queue_manager}}}".casefold()
