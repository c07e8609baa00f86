"""Pictures of what was in the last hour, as lines of SVG with words beside them."""

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 600, 160
_MARGIN = 8


@dataclass(frozen=True, slots=True)
class Line:
    """One picture: `points` and `area` as SVG has them, and the largest value for its scale."""

    points: str
    area: str
    largest: float
    last: float
    width: int = WIDTH
    height: int = HEIGHT


def line(values: Sequence[float]) -> Line | None:
    """A line through values that were taken at equal distances; None for fewer than two."""
    if len(values) < 2:
        return None
    largest = max(values)
    step = WIDTH / (len(values) - 1)
    top = largest or 1.0
    room = HEIGHT - 2 * _MARGIN
    placed = [
        f"{number * step:.1f},{HEIGHT - _MARGIN - value / top * room:.1f}"
        for number, value in enumerate(values)
    ]
    points = " ".join(placed)
    return Line(points, f"0,{HEIGHT} {points} {WIDTH},{HEIGHT}", largest, values[-1])
