"""What became of a message: a picture of its way, and the same in words."""

from rpcqm.base.settling import settled
from rpcqm.console.asked import Asked, Page, Shown
from rpcqm.console.drawing import trace_picture
from rpcqm.console.texts import text
from rpcqm.operations.drafts import message_identifier
from rpcqm.operations.shapes import described_event, described_place

MOST_EVENTS = 1_000
LONGEST = 64


async def show(asked: Asked) -> Shown:
    """The events of a message, and where it is now."""
    wanted = asked.query.text("id").strip()[:LONGEST]
    if not wanted:
        return Shown({"wanted": "", "events": None})
    identifier = message_identifier(wanted)
    traces = asked.operations.traces
    found = list(traces.trail(asked.identity, identifier))
    events = [described_event(each) for each in found[:MOST_EVENTS]]
    places = await settled(traces.find(asked.identity, identifier))
    return Shown(
        {
            "wanted": wanted,
            "events": [(each, text(f"trace.{each['event']}")) for each in events],
            "picture": trace_picture(events) if events else None,
            "places": [
                (told, text(f"trace.place_{told['state']}"))
                for told in map(described_place, places)
            ],
        }
    )


PAGES = (
    Page(
        "/console/trace",
        "trace.title",
        "trace.html",
        show,
        entry="trace.title",
        administrators=True,
    ),
)
