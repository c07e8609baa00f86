"""What the queue manager does, and what needs attention first."""

from collections.abc import Sequence

from rpcqm.base.settling import settled
from rpcqm.console.asked import Asked, Page, Shown
from rpcqm.console.charts import line
from rpcqm.console.forms import link
from rpcqm.console.texts import text
from rpcqm.operations.history import Point
from rpcqm.operations.overview import Overview

ROWS = 12
"""Of the table that says the same as the pictures: one for five minutes of an hour."""
_PICTURES = ("in_per_second", "out_per_second", "messages")


async def show(asked: Asked) -> Shown:
    """The overview; for administrators, others learn where they can go."""
    if not asked.identity.is_administrator:
        return Shown({"machine": None})
    found = await settled(asked.operations.overview.overview(asked.identity))
    values = {name: [getattr(each, name) for each in found.history] for name in _PICTURES}
    return Shown(
        {
            "machine": found,
            "attention": [(each, _page_of(each.code, found)) for each in found.attention],
            "pictures": [
                (text(f"overview.{name}"), name, line(values[name])) for name in _PICTURES
            ],
            "points": _thinned(found.history),
            "oldest_link": link("/console/queue", queue=found.oldest_queue),
            "now": asked.now,
        }
    )


def _page_of(code: str, overview: Overview) -> str:
    """Where one looks after it; "" where no page does that."""
    if code == "old_message":
        return link("/console/queue", queue=overview.oldest_queue)
    return "/console/queues" if code == "dead_letters_unread" else ""


def _thinned(points: Sequence[Point]) -> list[Point]:
    """Some of the points, at equal distances, the last one among them."""
    step = max(1, len(points) // ROWS)
    return list(points[::-1][::step])


PAGES = (
    Page("/console/overview", "overview.title", "overview.html", show, entry="overview.title"),
)
