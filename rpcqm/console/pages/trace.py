"""What became of a message: a picture of its way over queue managers, and the same in words."""

from dataclasses import dataclass

from rpcqm.console.asked import Asked, Page, Shown
from rpcqm.console.drawing import class_of, machine_words, place_words, stop_words, trace_picture
from rpcqm.console.paging import paged
from rpcqm.console.texts import text
from rpcqm.operations.drafts import message_identifier
from rpcqm.operations.journeys import BY_NEXT_HOP, FINALLY, IN_ORDER, Journey, Role, Step, Stop

PATH = "/console/trace"
LONGEST = 64


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
    journey = await asked.operations.traces.journey(asked.identity, identifier)
    shown = paged(asked, PATH, journey.steps, keep=("id",))
    return Shown(
        {
            "wanted": wanted,
            "paged": shown,
            "rows": [_row(each) for each in shown.rows],
            "picture": trace_picture(journey) if journey.steps else None,
            "others": _others(journey),
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


def _others(journey: Journey) -> list[str]:
    """Queue managers whose own pages tell more; the identifier names the first one."""
    stops = [stop for step in journey.steps for stop in (step.source, step.target)]
    machines = [journey.source, *(each.machine for each in stops)]
    named = (Role.SOURCE, Role.NEXT_HOP, Role.DESTINATION)
    return list(dict.fromkeys(each.name for each in machines if each.role in named))


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
