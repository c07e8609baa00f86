"""The queue manager at a glance."""

from dataclasses import dataclass

from rpcqm.api.asked import Asked, Reply, settled
from rpcqm.operations.overview import described_overview


@dataclass(frozen=True)
class HistoryPoint:
    """A moment, and the messages a second since the point before."""

    time: str
    in_per_second: float
    out_per_second: float
    messages: int


@dataclass(frozen=True)
class Attention:
    """Something to look after; `target` is the path below /api/v1 of where it is."""

    code: str
    text: str
    target: str
    urgent: bool


@dataclass(frozen=True)
class Overview:
    """What a queue manager does now, what needs attention first, and the last hour.

    Sizes are bytes, rates are messages a second, times of what is not there are null. `sessions`
    counts queues to other queue managers by state, `failed_logons` those within the hour.
    """

    name: str
    version: str
    now: str
    started: str
    connected: bool
    queues: int
    messages: int
    bytes: int
    quota_bytes: int
    queues_nearly_full: int
    in_per_second: float
    out_per_second: float
    oldest: str | None
    oldest_queue: str
    dead_letters: int
    dead_letters_unread: int
    dead_letters_by_reason: dict[str, int]
    dead_letters_unread_by_reason: dict[str, int]
    connections: int
    waiting_reads: int
    locked_messages: int
    leases: int
    transactions: int
    oldest_transaction: str | None
    sessions: dict[str, int]
    outgoing_messages: int
    outgoing_bytes: int
    outgoing_oldest: str | None
    disk_free: int
    disk_reserve: int
    disk_refusing: bool
    store_bytes: int
    failed_logons: int
    history: list[HistoryPoint]
    attention: list[Attention]


async def show_overview(asked: Asked) -> Reply:
    """The totals, the last hour, and what needs attention first."""
    overview = await settled(asked.operations.overview.overview(asked.identity))
    return Reply(200, described_overview(overview))
