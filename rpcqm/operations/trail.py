"""What has happened lately, and what operators did: bounded, and kept in memory.

What operators have changed is kept over restarts too.
"""

import enum
import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import merge

from rpcqm.adm.queue import Queue

EVENTS_KEPT = 1000
"""Events of each kind that are kept in memory, and acts of operators.

A connection that comes and goes hides nothing that operators did.

Bound `events.kept` [events]: the oldest of its kind is forgotten.
"""


class EventKind(enum.StrEnum):
    """What an event is about."""

    QUEUE_CHANGED = "queue-changed"
    DEAD_LETTER = "dead-letter"
    SESSION_STATE = "session-state"
    MACHINE_STATE = "machine-state"
    QUOTA = "quota"
    OPERATOR_ACTS = "operator-acts"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that has happened; `time` is milliseconds since 1970.

    `number` grows from event to event, and is 0 for those that are not kept. `told` has what JSON
    has; `queue` is the one that it is about, if it is about one here.
    """

    number: int
    time: int
    kind: EventKind
    about: str
    told: Mapping[str, object]
    queue: Queue | None = None


class Trail:
    """The latest events of each kind."""

    def __init__(self, started: int) -> None:
        """`started` makes numbers grow over restarts too: milliseconds since 1970."""
        self._kept: dict[EventKind, deque[Event]] = {
            kind: deque(maxlen=EVENTS_KEPT) for kind in EventKind
        }
        self._last = started

    def restore(self, kept: Iterable[tuple[int, bytes]]) -> None:
        """Bring back what operators did before the start: numbers with records."""
        for number, record in kept:
            time, about, told = json.loads(record)
            event = Event(number, time, EventKind.OPERATOR_ACTS, about, told)
            self._kept[EventKind.OPERATOR_ACTS].append(event)
            self._last = max(self._last, number)

    @property
    def last(self) -> int:
        """The number of the latest event."""
        return self._last

    def keep(
        self,
        time: int,
        kind: EventKind,
        about: str,
        told: Mapping[str, object],
        queue: Queue | None,
    ) -> Event:
        """Add an event; the oldest of its kind may be forgotten."""
        self._last += 1
        event = Event(self._last, time, kind, about, told, queue)
        self._kept[kind].append(event)
        return event

    def after(self, number: int, kind: EventKind | None = None) -> Iterator[Event]:
        """The events behind a number, in order; of one kind if that is said."""
        kinds = EventKind if kind is None else (kind,)
        events = merge(*(self._kept[each] for each in kinds), key=lambda event: event.number)
        return (event for event in events if event.number > number)


def record_of(event: Event) -> bytes:
    """An event of an operator as it is kept over a restart."""
    return json.dumps([event.time, event.about, event.told], separators=(",", ":")).encode()
