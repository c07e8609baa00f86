"""The overview of the queue manager."""

from rpcqm.api import models
from rpcqm.api.asked import Asked, Reply, settled
from rpcqm.api.derived import model_of
from rpcqm.base.told import told
from rpcqm.operations import attention, history
from rpcqm.operations import overview as totals

Standing = models.Standing
"""A standing order, of which an overview tells: its model has to be there first."""
HistoryPoint = model_of(
    history.Point, "HistoryPoint", "A moment, and the messages a second since the point before."
)
Attention = model_of(
    attention.Attention,
    "Attention",
    "Something to look after; `target` is the path below /api/v1 of where it is.",
)
Holding = model_of(
    totals.Holding, "Holding", "A queue, journal or dead-letter queue among those that hold most."
)
Overview = model_of(
    totals.Overview,
    "Overview",
    """What a queue manager does now, what needs attention first, and the last hour.

    Sizes are bytes, rates are messages a second, times of what is not there are null. `sessions`
    counts queues to other queue managers by state, `failed_logons` those within the hour.
    """,
)


async def show_overview(asked: Asked) -> Reply:
    """The totals, the last hour, and the most urgent problems first."""
    overview = await settled(asked.operations.overview.overview(asked.identity))
    return Reply(200, told(overview))
