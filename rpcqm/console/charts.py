"""Pictures of what was in the last hour, as lines of SVG with words beside them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 600, 160
_MARGIN = 8
_ROUND = (1, 2, 4, 6, 8, 10)


@dataclass(frozen=True, slots=True)
class Mark:
    """A line of the scale: how far down it is, and the value that it stands for."""

    down: float
    value: float


@dataclass(frozen=True, slots=True)
class Line:
    """One picture: `points` and `area` as SVG has them, the largest value, and the scale."""

    points: str
    area: str
    largest: float
    last: float
    marks: tuple[Mark, ...]
    width: int = WIDTH
    height: int = HEIGHT


def line(values: Sequence[float]) -> Line | None:
    """A line through values that were taken at equal distances; None for fewer than two."""
    if len(values) < 2:
        return None
    step, top = WIDTH / (len(values) - 1), round_top(max(values))
    placed = [
        f"{number * step:.1f},{_down(value / top):.1f}" for number, value in enumerate(values)
    ]
    points = " ".join(placed)
    marks = tuple(Mark(_down(part), top * part) for part in (1.0, 0.5))
    return Line(points, f"0,{HEIGHT} {points} {WIDTH},{HEIGHT}", max(values), values[-1], marks)


def _down(part: float) -> float:
    return HEIGHT - _MARGIN - part * (HEIGHT - 2 * _MARGIN)


def round_top(largest: float) -> float:
    """The end of the scale: a round number, as its half is, not below the largest value."""
    if largest <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(largest))
    return next((unit * each for each in _ROUND if unit * each >= largest), unit * 10)
