"""The pages; those with an entry stand in the navigation, in this order."""

from rpcqm.console.asked import Page
from rpcqm.console.pages import (
    accounts,
    confirmed,
    edited,
    explain,
    flight,
    opened,
    orders,
    outgoing,
    overview,
    permissions,
    queue,
    queues,
    routing,
    search,
    trace,
    trail,
    triggers,
    written,
)

PAGES: tuple[Page, ...] = (
    *overview.PAGES,
    *queues.PAGES,
    *search.PAGES,
    *queue.PAGES,
    *written.PAGES,
    *confirmed.PAGES,
    *orders.PAGES,
    *edited.PAGES,
    *permissions.PAGES,
    *outgoing.PAGES,
    *flight.PAGES,
    *opened.PAGES,
    *trace.PAGES,
    *routing.PAGES,
    *triggers.PAGES,
    *accounts.PAGES,
    *trail.PAGES,
    *explain.PAGES,
)
