"""Pictures as SVG, drawn here: shapes with places, which a template writes out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from math import cos, pi, sin

from rpcqm.codec.names.written import DIRECT, is_direct, is_format_name, is_url, shown_name
from rpcqm.console.texts import text
from rpcqm.operations.codes import CLASSES
from rpcqm.operations.journeys import FINALLY, Journey, Kind, Machine, Role, Step, Stop

COLUMN, STEP, TOP = 200, 34, 72
MOST_STEPS, MOST_COLUMNS = 60, 12
MOST_SITES = 40
LARGEST_RADIUS = 320
BESIDE, ABOVE = 130, 60
"""Room for words around a graph."""
LONGEST_WORDS = 28
_IDENTIFIER_SHOWN = 14
_ROLES, _KINDS = tuple(Role), tuple(Kind)


@dataclass(frozen=True, slots=True)
class Band:
    """A queue manager, as a field behind its places, with its name and its part."""

    x: int
    width: int
    words: str
    role: str
    here: bool


@dataclass(frozen=True, slots=True)
class Column:
    """A place of a message, as a line downwards; `now` are words if the message is there."""

    x: int
    words: str
    now: str = ""


@dataclass(frozen=True, slots=True)
class Arrow:
    """What happened, from one place to another; `x1` is `x2` for what happened at one.

    One that is not `written` follows from the message itself alone.
    """

    x1: int
    x2: int
    y: int
    words: str
    written: bool

    @property
    def at(self) -> int:
        """Where the words stand."""
        return (self.x1 + self.x2) // 2 if self.x1 != self.x2 else self.x1


@dataclass(frozen=True, slots=True)
class TracePicture:
    """A message's way; `more` steps were left out."""

    width: int
    height: int
    bands: tuple[Band, ...]
    columns: tuple[Column, ...]
    arrows: tuple[Arrow, ...]
    more: int


def trace_picture(journey: Journey) -> TracePicture:
    """The way of a message from its sender to its reader, over queue managers."""
    shown = journey.steps[:MOST_STEPS]
    stops = [stop for step in shown for stop in (step.source, step.target)]
    stops += [stop for _, stop in journey.places]
    placed = sorted(dict.fromkeys(stops), key=_order)[:MOST_COLUMNS]
    at = {stop: 20 + COLUMN // 2 + number * COLUMN for number, stop in enumerate(placed)}
    last = max(at.values(), default=0)
    arrows = [
        Arrow(
            at.get(step.source, last),
            at.get(step.target, last),
            TOP + 24 + number * STEP,
            step_words(step),
            step.written,
        )
        for number, step in enumerate(shown)
    ]
    now = {stop: place_words(place.whereabouts) for place, stop in journey.places}
    columns = [Column(x, cut(stop_words(stop)), now.get(stop, "")) for stop, x in at.items()]
    return TracePicture(
        40 + COLUMN * max(1, len(placed)),
        TOP + 24 + len(arrows) * STEP + 24,
        tuple(_bands(at)),
        tuple(columns),
        tuple(arrows),
        len(journey.steps) - len(shown),
    )


def _order(stop: Stop) -> tuple[int, int, str, int]:
    machine = stop.machine
    return _ROLES.index(machine.role), machine.number, machine.name, _KINDS.index(stop.kind)


def _bands(at: Mapping[Stop, int]) -> Iterator[Band]:
    """One for each queue manager, as wide as its columns."""
    for machine, stops in groupby(at, key=lambda stop: stop.machine):
        places = [at[stop] for stop in stops]
        left = places[0] - COLUMN // 2
        width = places[-1] - places[0] + COLUMN
        here = machine.role is Role.HERE
        yield Band(
            left, width, cut(machine_words(machine)), text(f"trace.role_{machine.role}"), here
        )


def step_words(step: Step) -> str:
    """What happened: of acknowledgements by messages, which class they had."""
    told = class_of(step)
    return told if told.startswith(("ACK_", "NACK_")) else text(f"trace.{step.what}")


def place_words(whereabouts: Enum) -> str:
    """In which state a message is somewhere."""
    return text(f"trace.place_{whereabouts.name.lower()}")


def class_of(step: Step) -> str:
    """The class of messages that a step tells of, "" if it tells of none."""
    told = step.detail.removeprefix(FINALLY)
    return told if told in CLASSES else ""


def machine_words(machine: Machine) -> str:
    """How a queue manager is called."""
    if machine.role is Role.BETWEEN:
        return text("trace.between", number=machine.name)
    return machine.name or text("trace.elsewhere")


def stop_words(stop: Stop) -> str:
    """How a place of a queue manager is called, beside the name of that."""
    if stop.kind is Kind.MACHINE:
        return text("trace.machine")
    if stop.kind is Kind.SENDER:
        return text("trace.sender")
    if stop.kind is Kind.READER:
        return text("trace.reader")
    return _queue_words(stop.place, stop.machine)


def _queue_words(name: str, machine: Machine) -> str:
    """A queue without the name of its computer, where that stands beside it."""
    path = name[len(DIRECT) :] if is_direct(name) else name
    leaves = is_format_name(name) and (machine.role is Role.HERE or machine.told)
    if path.casefold().startswith(f"os:{machine.name.casefold()}\\"):
        leaves = False  # it is for that very computer
    if leaves or "\\" not in path or is_url(path):
        return path
    return shown_name(path).partition("\\")[2] or shown_name(path)


def cut(words: str) -> str:
    """The end of a name that is too long for a picture, of an identifier the beginning."""
    if words.startswith("{"):
        return words[:_IDENTIFIER_SHOWN] + "…" if len(words) > LONGEST_WORDS else words
    return words if len(words) <= LONGEST_WORDS else "…" + words[-LONGEST_WORDS + 1 :]


@dataclass(frozen=True, slots=True)
class Site:
    """What is drawn of a site; `routers` are the queue managers that messages pass through."""

    identifier: str
    name: str
    machines: int
    routers: Sequence[str]
    here: bool


@dataclass(frozen=True, slots=True)
class Dot:
    """A site, with lines of words above or below it, each at its own height."""

    x: int
    y: int
    here: bool
    lines: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Line:
    """A link, with what it costs."""

    x1: int
    y1: int
    x2: int
    y2: int
    cost: int

    @property
    def middle(self) -> tuple[int, int]:
        return (self.x1 + self.x2) // 2, (self.y1 + self.y2) // 2 - 4


@dataclass(frozen=True, slots=True)
class GraphPicture:
    """Sites around a circle, and the links between them."""

    width: int
    height: int
    dots: tuple[Dot, ...]
    lines: tuple[Line, ...]


def graph_picture(sites: Sequence[Site], links: Sequence[tuple[str, str, int]]) -> GraphPicture:
    """A picture of sites and of links (two identifiers, and the cost)."""
    radius = _radius(len(sites))
    centre = radius + BESIDE, radius + ABOVE
    dots = {
        site.identifier: _dot(site, *_around(number, len(sites), radius, centre), centre[1])
        for number, site in enumerate(sites)
    }
    lines = [
        Line(dots[first].x, dots[first].y, dots[second].x, dots[second].y, cost)
        for first, second, cost in links
        if first in dots and second in dots
    ]
    return GraphPicture(2 * centre[0], 2 * centre[1], tuple(dots.values()), tuple(lines))


def _radius(sites: int) -> int:
    """So that words of neighbours have room, and few sites have no empty field around them."""
    return 0 if sites == 1 else min(LARGEST_RADIUS, 50 + 30 * sites)


def _dot(site: Site, x: int, y: int, middle: int) -> Dot:
    """A site whose words are on the outer side, away from the lines."""
    words = [cut(text("routing.label", name=site.name, number=site.machines))]
    if site.here:
        words[0] = text("routing.label_here", label=words[0])
    if site.routers:
        words.append(cut(text("routing.through", names=", ".join(site.routers))))
    first = y + 32 if y >= middle else y - 24 - 16 * (len(words) - 1)
    return Dot(x, y, site.here, tuple((first + 16 * at, each) for at, each in enumerate(words)))


def _around(number: int, count: int, radius: int, centre: tuple[int, int]) -> tuple[int, int]:
    angle = 2 * pi * number / max(1, count) - pi / 2
    return round(centre[0] + radius * cos(angle)), round(centre[1] + radius * sin(angle))
