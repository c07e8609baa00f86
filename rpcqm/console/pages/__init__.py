"""The pages; those with an entry stand in the navigation, in this order."""

from rpcqm.console.asked import Page
from rpcqm.console.pages import confirmed, overview, queue, queues, written

PAGES: tuple[Page, ...] = (
    *overview.PAGES,
    *queues.PAGES,
    *queue.PAGES,
    *written.PAGES,
    *confirmed.PAGES,
)
