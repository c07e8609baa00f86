"""What is not finished: transactions and leases, and who holds them."""

from rpcqm.base.settling import settled
from rpcqm.console.asked import Asked, Page, Redirect, Shown
from rpcqm.console.forms import link
from rpcqm.console.naming import names_of_accounts
from rpcqm.console.pages.asking import sure
from rpcqm.console.paging import paged
from rpcqm.console.texts import text
from rpcqm.operations.messages import Lease
from rpcqm.operations.network_shapes import described_transaction
from rpcqm.operations.shapes import described_lease

TABLES = ("transactions", "leases")
PATH, RELEASE = "/console/flight", "/console/flight/release"


async def show(asked: Asked) -> Shown:
    """Both; who is no administrator sees the own leases."""
    identity, operations = asked.identity, asked.operations
    leases = paged(asked, PATH, operations.messages.leases(identity), "leases", TABLES)
    open_ones = None
    transactions: list[tuple[dict[str, object], int]] = []
    if identity.may_look:
        names = names_of_accounts(asked)
        found = operations.sessions.transactions(identity)
        open_ones = paged(asked, PATH, found, "transactions", TABLES)
        transactions = [
            (described_transaction(each, names), asked.now - each.begun) for each in open_ones.rows
        ]
    return Shown(
        {
            "transactions": transactions,
            "open_ones": open_ones,
            "leases": [_lease(asked, each) for each in leases.rows],
            "leases_paged": leases,
        }
    )


def _lease(asked: Asked, lease: Lease) -> dict[str, object]:
    """A row: what is told of a lease, and what the caller may do there."""
    return described_lease(lease) | {
        "to": link("/console/queue", queue=lease.queue.pathname),
        "held": asked.now - lease.begun,
        "left": lease.expires - asked.now,
        "own": lease.owner == asked.identity.sid,
    }


async def ask_release(asked: Asked) -> Shown:
    """Which message would be given back."""
    wanted = asked.query.text("lease")
    for each in asked.operations.messages.leases(asked.identity):
        if each.identifier == wanted:
            question = text("flight.release_sure", queue=each.queue.pathname, account=each.account)
            return sure(question, "flight.release", PATH, {"lease": wanted})
    return sure(text("flight.release_gone"), "flight.release", PATH, {"lease": wanted})


async def release(asked: Asked) -> Redirect:
    """Give the message of a lease of one's own back."""
    messages = asked.operations.messages
    await settled(messages.give_back(asked.identity, asked.form.text("lease")))
    return Redirect(PATH, text("flight.release_done"))


PAGES = (
    Page(PATH, "flight.title", "flight.html", show, entry="flight.title"),
    Page(RELEASE, "flight.release", "ask.html", ask_release, release),
)
