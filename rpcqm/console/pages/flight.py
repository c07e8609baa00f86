"""What is not finished: transactions and leases, and who holds them."""

from rpcqm.base.settling import settled
from rpcqm.console.asked import Asked, Page, Redirect, Shown
from rpcqm.console.pages.asking import sure
from rpcqm.console.texts import text
from rpcqm.operations.network_shapes import described_transaction
from rpcqm.operations.shapes import described_lease

MOST_ROWS = 1_000
"""Rows of a table."""
PATH, RELEASE = "/console/flight", "/console/flight/release"


async def show(asked: Asked) -> Shown:
    """Both; who is no administrator sees the own leases."""
    identity, operations = asked.identity, asked.operations
    leases = operations.messages.leases(identity)
    transactions = None
    if identity.is_administrator:
        names = {each.sid: each.name for each in operations.accounts.list(identity)}
        found = operations.sessions.transactions(identity)
        transactions = [
            (described_transaction(each, names), asked.now - each.begun)
            for each in found[:MOST_ROWS]
        ]
    return Shown(
        {
            "transactions": transactions,
            "leases": [
                (
                    described_lease(each),
                    asked.now - each.begun,
                    each.expires - asked.now,
                    each.owner == identity.sid,
                )
                for each in leases[:MOST_ROWS]
            ],
            "leases_in_all": len(leases),
        }
    )


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
    await settled(messages.release(asked.identity, [asked.form.text("lease")]))
    return Redirect(PATH, text("flight.release_done"))


PAGES = (
    Page(PATH, "flight.title", "flight.html", show, entry="flight.title"),
    Page(RELEASE, "flight.release", "ask.html", ask_release, release),
)
