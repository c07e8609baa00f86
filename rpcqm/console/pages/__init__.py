"""The pages, in the order of the navigation."""

from rpcqm.console.asked import Page
from rpcqm.console.pages import overview

PAGES: tuple[Page, ...] = (*overview.PAGES,)
