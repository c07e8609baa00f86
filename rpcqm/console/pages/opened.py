"""Who has queues open, and the connections of all doors: each can be ended, after a question."""

from rpcqm.base.settling import settled
from rpcqm.codec.names.format_name import FormatName
from rpcqm.console.asked import Asked, Page, Redirect, Shown
from rpcqm.console.forms import link
from rpcqm.console.naming import queue_in
from rpcqm.console.pages.asking import sure
from rpcqm.console.paging import ROWS
from rpcqm.console.texts import text
from rpcqm.operations.opened import described_connection

PATH, END, CONNECTIONS = "/console/opened", "/console/opened/end", "/console/connections"


def _queue(asked: Asked) -> FormatName | None:
    return queue_in(asked.query) if asked.query.text("queue") else None


async def show(asked: Asked) -> Shown:
    """Handles, leases and transactions of a queue, or of all; for administrators."""
    queue, after = asked.query.text("queue"), asked.query.text("after")
    page = asked.operations.opened.page(asked.identity, _queue(asked), after, ROWS)
    title = text("opened.of", name=queue) if queue else text("opened.title")
    return Shown(
        {
            "title": title,
            "queue": queue,
            "rows": page.rows,
            "may_end": asked.identity.is_administrator,
            "next": link(PATH, queue=queue, after=page.after) if page.after else "",
            "first": link(PATH, queue=queue) if after else "",
        }
    )


async def show_connections(asked: Asked) -> Shown:
    """Connections of all doors; for administrators."""
    found = asked.operations.opened.connections(asked.identity)
    shown = [described_connection(each) for each in found[:ROWS]]
    may_end = asked.identity.is_administrator
    return Shown({"rows": shown, "total": len(found), "may_end": may_end})


async def ask_end(asked: Asked) -> Shown:
    """What would be ended, as the page before has told it."""
    wanted, queue = asked.query.text("id"), asked.query.text("queue")
    asked.operations.opened.connections(asked.identity)  # so that nobody asks in vain
    question = text("opened.sure", what=wanted, who=asked.query.text("who") or text("unknown"))
    return sure(question, "opened.end", _list_of(wanted, queue), {"id": wanted, "queue": queue})


def _list_of(wanted: str, queue: str) -> str:
    """The page that lists what is to be ended."""
    return CONNECTIONS if wanted.startswith("connection-") else link(PATH, queue=queue)


async def end(asked: Asked) -> Redirect:
    """End it, as if its client had gone."""
    wanted, queue = asked.form.text("id"), asked.form.text("queue")
    await settled(asked.operations.opened.end(asked.identity, wanted))
    return Redirect(_list_of(wanted, queue), text("opened.done", what=wanted))


PAGES = (
    Page(PATH, "opened.title", "opened.html", show, entry="opened.title", administrators=True),
    Page(CONNECTIONS, "opened.connections", "connections.html", show_connections),
    Page(END, "opened.end", "ask.html", ask_end, end),
)
