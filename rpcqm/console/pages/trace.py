"""What became of a message: a picture of its way over queue managers, and the same in words."""

from dataclasses import dataclass

from rpcqm.base.errors import HResult, MQError, NtStatus
from rpcqm.console.asked import Asked, Page, Shown
from rpcqm.console.drawing import class_of, machine_words, place_words, stop_words, trace_picture
from rpcqm.console.paging import paged
from rpcqm.console.texts import text
from rpcqm.operations.drafts import message_identifier
from rpcqm.operations.journeys import BY_NEXT_HOP, FINALLY, IN_ORDER, Step, Stop

PATH = "/console/trace"
LONGEST = 64
_WHY: dict[HResult | NtStatus, str] = {
    HResult.MQ_ERROR_MACHINE_NOT_FOUND: "trace.untold_unlisted",
    HResult.MQ_ERROR_ACCESS_DENIED: "trace.untold_denied",
    HResult.MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE: "trace.untold_silent",
}
"""Words for why a queue manager has told nothing."""


@dataclass(frozen=True, slots=True)
class Row:
    """A step in words; `code` is the name of a class of messages, which can be explained."""

    step: Step
    what: str
    source: str
    target: str
    detail: str
    code: str


async def show(asked: Asked) -> Shown:
    """The steps of a message, and where it is now."""
    wanted = asked.query.text("id").strip()[:LONGEST]
    if not wanted:
        return Shown({"wanted": "", "paged": None})
    identifier = message_identifier(wanted)
    way = await asked.operations.traces.way(asked.identity, identifier)
    journey = way.journey
    shown = paged(asked, PATH, journey.steps, keep=("id",))
    return Shown(
        {
            "wanted": wanted,
            "paged": shown,
            "rows": [_row(each) for each in shown.rows],
            "picture": trace_picture(journey) if journey.steps else None,
            "told": way.told,
            "untold": [_untold(name, error) for name, error in way.untold],
            "places": [
                (place, _at(stop), place_words(place.whereabouts)) for place, stop in journey.places
            ],
        }
    )


def _row(step: Step) -> Row:
    code = class_of(step)
    source, target = _at(step.source), _at(step.target)
    words = text(f"trace.{step.what}")
    return Row(step, words, source, "" if source == target else target, _detail(step.detail), code)


def _detail(detail: str) -> str:
    if detail.startswith(FINALLY):
        return text("trace.finally")
    told = {BY_NEXT_HOP: "trace.by_next_hop", IN_ORDER: "trace.in_order"}
    return text(told[detail]) if detail in told else detail


def _at(stop: Stop) -> str:
    machine = machine_words(stop.machine)
    return text("trace.at", place=stop_words(stop), machine=machine)


def _untold(name: str, error: MQError) -> str:
    """Who has not told its part, and why."""
    if name.startswith("{"):
        return text("trace.untold_unnamed", name=name)
    known = _WHY.get(error.status)
    return text(known or "trace.untold", name=name, why=error.detail or error.status.meaning)


PAGES = (
    Page(
        PATH,
        "trace.title",
        "trace.html",
        show,
        entry="trace.title",
        administrators=True,
    ),
)
