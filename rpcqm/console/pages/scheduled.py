"""Messages that are held back until their time, which their senders and administrators cancel."""

from rpcqm.base.errors import MQError, NtStatus
from rpcqm.base.settling import settled
from rpcqm.console.asked import Asked, Page, Redirect, Shown
from rpcqm.console.pages.asking import sure
from rpcqm.console.paging import paged
from rpcqm.console.texts import text
from rpcqm.operations.scheduling import Scheduled, described, may_cancel

PATH = "/console/scheduled"
CANCEL = f"{PATH}/cancel"


async def show(asked: Asked) -> Shown:
    """Those of the caller, all for administrators and observers, the next one first."""
    held = asked.operations.scheduling.list(asked.identity)
    shown = paged(asked, PATH, held)
    rows = [
        described(each) | {"due": each.due, "may_cancel": may_cancel(asked.identity, each)}
        for each in shown.rows
    ]
    return Shown({"rows": rows, "paged": shown})


def _found(asked: Asked) -> Scheduled:
    identifier = asked.query.text("id")
    for each in asked.operations.scheduling.list(asked.identity):
        if each.identifier == identifier:
            return each
    raise MQError(NtStatus.STATUS_OBJECT_NAME_NOT_FOUND, text("scheduled.gone"))


async def ask_cancel(asked: Asked) -> Shown:
    """Which message is never sent then."""
    found = _found(asked)
    told = described(found)
    question = text("scheduled.sure", queue=told["queue_name"], account=found.account)
    return sure(question, "scheduled.cancel", PATH, {"id": found.identifier}, [found.label])


async def cancel(asked: Asked) -> Redirect:
    """Never send a message."""
    await settled(asked.operations.scheduling.cancel(asked.identity, asked.form.text("id")))
    return Redirect(PATH, text("scheduled.done"))


PAGES = (
    Page(PATH, "scheduled.title", "scheduled.html", show, entry="scheduled.title"),
    Page(CANCEL, "scheduled.cancel", "ask.html", ask_cancel, cancel),
)
