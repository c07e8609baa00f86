"""What the queue manager does, and what needs attention first."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from rpcqm.base.settling import settled
from rpcqm.console.asked import Asked, Page, Shown
from rpcqm.console.charts import line
from rpcqm.console.forms import link
from rpcqm.console.pages.outgoing import state_in_words
from rpcqm.console.pages.standing import offered
from rpcqm.console.rendering import octets
from rpcqm.console.texts import text
from rpcqm.operations.attention import Attention
from rpcqm.operations.codes import CLASSES
from rpcqm.operations.dead_letters import Unread
from rpcqm.operations.history import Point
from rpcqm.operations.overview import Overview

ROWS = 12
"""Of the table that says the same as the pictures: one for five minutes of an hour."""
_PAGES_OF = {
    "old_transaction": "/console/flight",
    "failed_logons": "/console/accounts",
    "identity_shared": "/console/flight",
    "triggers_unserved": "/console/triggers",
    "trigger_failing": "/console/triggers",
}
_PICTURES = ("in_per_second", "out_per_second", "messages")


async def show(asked: Asked) -> Shown:
    """The overview; for administrators, others learn where they can go."""
    if not asked.identity.may_look:
        return Shown({"machine": None})
    found = await settled(asked.operations.overview.overview(asked.identity))
    letters = [
        (each, _letters_page(each)) for each in asked.operations.dead_letters.queues(asked.identity)
    ]
    values = {name: [getattr(each, name) for each in found.history] for name in _PICTURES}
    cluster = asked.operations.cluster
    return Shown(
        {
            "machine": found,
            "cluster": None if cluster is None else cluster.status(asked.identity),
            "attention": [(each, _page_of(each, found, letters)) for each in found.attention],
            "reasons": _reasons(found),
            "of_quota": _of_quota(found),
            "dead_queues": letters,
            "began": found.history[0].time if found.history else 0,
            "ended": found.history[-1].time if found.history else 0,
            "pictures": [
                (text(f"overview.{name}"), name, line(values[name])) for name in _PICTURES
            ],
            "points": _thinned(found.history),
            "states": [(_state(state), number) for state, number in found.sessions.items()],
            "oldest_link": link("/console/queue", queue=found.oldest_queue),
            "orders": offered(asked, found.maintenance is not None, found.connected),
            "now": asked.now,
        }
    )


def _of_quota(found: Overview) -> str:
    """How much of the quota of all messages is used, and what holds most."""
    largest = ", ".join(f"{each.queue} ({octets(each.bytes)})" for each in found.largest)
    key = "overview.part_most" if largest else "overview.part"
    return text(key, percent=found.quota_percent, largest=largest)


def _state(name: str) -> str:
    """What a state of outgoing queues means: `NeedValidation` is `need validation` elsewhere."""
    return state_in_words("need validation" if name == "NeedValidation" else name)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why messages are dead letters, and how many; `code` can be explained, "" cannot."""

    words: str
    code: str
    number: int
    unread: int


def _reasons(overview: Overview) -> list[Reason]:
    found = []
    for reason, number in overview.dead_letters_by_reason.items():
        name = f"NACK_{reason.upper()}"
        words, code = (CLASSES[name], name) if name in CLASSES else (reason, "")
        unread = overview.dead_letters_unread_by_reason.get(reason, 0)
        found.append(Reason(words.rstrip("."), code, number, unread))
    return found


def _letters_page(letters: Unread) -> str:
    """The page of a queue of dead letters, which marks those that nobody has looked at."""
    new = letters.looked_at + 1 if letters.unread else None
    return link("/console/queue", queue=letters.name, new=new)


def _page_of(each: Attention, overview: Overview, letters: Sequence[tuple[Unread, str]]) -> str:
    """Where one looks after it; "" where no page does that."""
    if each.code == "dead_letters_unread":
        return next((page for queue, page in letters if queue.unread), "/console/queues")
    if each.code == "old_message":
        return link("/console/queue", queue=overview.oldest_queue)
    if each.target.startswith("/queues/"):
        return link("/console/queue", queue=unquote(each.target.rpartition("/")[2]))
    if each.code.startswith("outgoing_"):
        return link("/console/outgoing/queue", queue=unquote(each.target.rpartition("/")[2]))
    return _PAGES_OF.get(each.code, "")


def _thinned(points: Sequence[Point]) -> list[Point]:
    """Some of the points, at equal distances, the last one among them."""
    step = max(1, len(points) // ROWS)
    return list(points[::-1][::step])


PAGES = (
    Page("/console/overview", "overview.title", "overview.html", show, entry="overview.title"),
)
