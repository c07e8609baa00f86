"""What operators did, and what has happened lately."""

from collections.abc import Mapping
from typing import Any

from rpcqm.codec.names.written import shown_name
from rpcqm.console.asked import Asked, Page, Shown
from rpcqm.console.pages.outgoing import state_in_words
from rpcqm.console.paging import paged
from rpcqm.console.texts import text
from rpcqm.operations.codes import CLASSES
from rpcqm.operations.trail import Event, EventKind

PATH = "/console/trail"
KINDS = (
    EventKind.OPERATOR_ACTS,
    EventKind.DEAD_LETTER,
    EventKind.SESSION_STATE,
    EventKind.MACHINE_STATE,
    EventKind.QUOTA,
)


async def show(asked: Asked) -> Shown:
    """The latest events, the last one first."""
    chosen = asked.query.text("kind")
    kind = next((each for each in KINDS if each.value == chosen), None)
    events = asked.operations.events.latest(asked.identity, 0, kind, 1 << 20)
    shown = paged(asked, PATH, events[::-1], keep=("kind",))
    return Shown(
        {
            "rows": [(event, in_words(event)) for event in shown.rows],
            "paged": shown,
            "kinds": [(each.value, text(f"trail.{_key(each)}")) for each in KINDS],
            "chosen": "" if kind is None else kind.value,
        }
    )


def _key(kind: EventKind) -> str:
    return kind.value.replace("-", "_")


def in_words(event: Event) -> str:
    """A sentence about an event."""
    told = event.told
    if event.kind is EventKind.OPERATOR_ACTS:
        more = _more(told["more"])
        return text(
            "trail.did_more" if more else "trail.did",
            who=_who(told),
            action=told["action"],
            about=event.about,
            more=more,
            origin=told["origin"],
        )
    if event.kind is EventKind.DEAD_LETTER:
        reason = str(told["reason"]).removeprefix("MQMSG_CLASS_")
        return text(
            "trail.died",
            number=told["messages"],
            about=shown_name(event.about),
            reason=CLASSES.get(reason, reason),
        )
    if event.kind is EventKind.MACHINE_STATE:
        connected = text("yes") if told["connected"] else text("no")
        refusing = text("yes") if told["refusing"] else text("no")
        maintenance = text("yes") if told["maintenance"] else text("no")
        return text(
            "trail.machine", connected=connected, refusing=refusing, maintenance=maintenance
        )
    if event.kind is EventKind.QUOTA:
        return _quota(told)
    connection = told.get("connection")
    what = text(f"connection.{str(connection).lower()}") if connection else ""
    state = state_in_words(str(told["state"]))
    key = "trail.connection" if what else "trail.session"
    return text(key, about=event.about, state=state, what=what)


def _quota(told: Mapping[str, Any]) -> str:
    """How full something is, and what holds most."""
    largest = ", ".join(told["largest"])
    key = "trail.used_most" if largest else "trail.used"
    return text(key, what=told["what"], percent=told["percent"], largest=largest)


def _more(told: object) -> str:
    """What the log has of an order, too: how many messages, to where, which properties."""
    more = told.items() if isinstance(told, Mapping) else ()
    return ", ".join(
        f"{name.replace('_', ' ')}: {_value(value)}" for name, value in more if value != ""
    )


def _value(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _who(told: Mapping[str, object]) -> object:
    token = told.get("token")
    return told["who"] if token is None else text("trail.bearer", who=told["who"], token=token)


PAGES = (
    Page(
        PATH,
        "trail.title",
        "trail.html",
        show,
        entry="trail.title",
        administrators=True,
    ),
)
