"""Pictures as SVG, drawn here: shapes with places, which a template writes out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import cos, pi, sin

from rpcqm.console.texts import text

COLUMN, STEP, TOP = 190, 34, 50
MOST_STEPS, MOST_COLUMNS = 60, 12
MOST_SITES = 40
RADIUS, CENTRE = 260, 330
LONGEST_WORDS = 28


@dataclass(frozen=True, slots=True)
class Column:
    """A place of a message, as a line downwards."""

    x: int
    words: str


@dataclass(frozen=True, slots=True)
class Arrow:
    """What happened, from one place to another; `x1` is `x2` for what happened at one."""

    x1: int
    x2: int
    y: int
    words: str

    @property
    def at(self) -> int:
        """Where the words stand."""
        return (self.x1 + self.x2) // 2 if self.x1 != self.x2 else self.x1


@dataclass(frozen=True, slots=True)
class TracePicture:
    """A message's way; `more` events were left out."""

    width: int
    height: int
    columns: tuple[Column, ...]
    arrows: tuple[Arrow, ...]
    more: int


def trace_picture(events: Sequence[Mapping[str, object]]) -> TracePicture:
    """The way of a message from its sender to its reader, by what is told of its events."""
    shown = events[:MOST_STEPS]
    steps = [_step(each) for each in shown]
    places = list(dict.fromkeys(place for source, target, _ in steps for place in (source, target)))
    places = places[:MOST_COLUMNS]
    at = {place: 20 + COLUMN // 2 + number * COLUMN for number, place in enumerate(places)}
    last = max(at.values(), default=0)
    arrows = [
        Arrow(at.get(source, last), at.get(target, last), TOP + 24 + number * STEP, words)
        for number, (source, target, words) in enumerate(steps)
    ]
    height = TOP + 24 + len(arrows) * STEP
    columns = [Column(x, cut(place)) for place, x in at.items()]
    width = 40 + COLUMN * max(1, len(places))
    return TracePicture(width, height, tuple(columns), tuple(arrows), len(events) - len(shown))


def _step(event: Mapping[str, object]) -> tuple[str, str, str]:
    """From where to where an event leads, and its words."""
    queue, detail, name = str(event["queue"]), str(event["detail"]), str(event["event"])
    words = text(f"trace.{name}")
    if name == "arrived":
        return text("trace.sender"), queue, words
    if name == "received":
        return queue, text("trace.reader"), words
    if name in ("moved", "kept") and detail:
        return queue, detail, words
    if name in ("sent", "left"):
        return queue, detail or text("trace.elsewhere"), words
    if name in ("acknowledged", "refused"):
        return detail or text("trace.elsewhere"), queue, words
    return queue, queue, words


def cut(words: str) -> str:
    """The end of a name that is too long for a picture: that is what differs."""
    return words if len(words) <= LONGEST_WORDS else "…" + words[-LONGEST_WORDS + 1 :]


@dataclass(frozen=True, slots=True)
class Dot:
    """A site, with how many queue managers are in it."""

    x: int
    y: int
    words: str
    machines: int
    here: bool


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


def graph_picture(
    sites: Sequence[tuple[str, str, int, bool]], links: Sequence[tuple[str, str, int]]
) -> GraphPicture:
    """A picture of sites (identifier, name, queue managers, whether it is ours) and links."""
    dots = {
        identifier: Dot(*_around(number, len(sites)), cut(name), machines, here)
        for number, (identifier, name, machines, here) in enumerate(sites)
    }
    lines = [
        Line(dots[first].x, dots[first].y, dots[second].x, dots[second].y, cost)
        for first, second, cost in links
        if first in dots and second in dots
    ]
    return GraphPicture(2 * CENTRE + 140, 2 * CENTRE, tuple(dots.values()), tuple(lines))


def _around(number: int, count: int) -> tuple[int, int]:
    angle = 2 * pi * number / max(1, count) - pi / 2
    x = CENTRE + 70 + RADIUS * cos(angle) * (count > 1)
    y = CENTRE + RADIUS * sin(angle) * (count > 1)
    return round(x), round(y)
