"""What a code means, and what to do about it."""

from rpcqm.console.asked import Asked, Page, Shown
from rpcqm.http.statuses import status_of_code
from rpcqm.operations.codes import find_codes, similar_names

LONGEST = 80


async def show(asked: Asked) -> Shown:
    """Everything that a number or a name may stand for."""
    wanted = asked.query.text("code").strip()[:LONGEST]
    found = find_codes(wanted) if wanted else []
    return Shown(
        {
            "wanted": wanted,
            "found": [(each, status_of_code(each.name)) for each in found],
            "similar": similar_names(wanted) if wanted and not found else [],
        }
    )


PAGES = (Page("/console/explain", "explain.title", "explain.html", show, entry="explain.title"),)
