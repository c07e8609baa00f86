"""What the queue manager does, and what needs attention first."""

from rpcqm.console.asked import Asked, Page, Shown


async def show(asked: Asked) -> Shown:
    """The overview; for administrators, others learn where they can go."""
    if not asked.identity.is_administrator:
        return Shown({"machine": None})
    return Shown({"machine": asked.operations.machine.state(asked.identity), "now": asked.now})


PAGES = (
    Page("/console/overview", "overview.title", "overview.html", show, entry="overview.title"),
)
