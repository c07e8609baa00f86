"""What `rpcqm top` shows: one look at a queue manager, and the order of its queues."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rpcqm.base.errors import FaultStatus, RpcFault
from rpcqm.base.text import folded, visible
from rpcqm.cli.cluster_lines import active_line
from rpcqm.cli.output import counted, size_text
from rpcqm.cli.overview import overview_fields
from rpcqm.cli.queue_rates import QueueRates, age_text, queue_rates
from rpcqm.cli.top_tables import Tables
from rpcqm.cli.watching import is_wanted

if TYPE_CHECKING:
    from rpcqm.client.maintenance import Status
    from rpcqm.client.queue_manager import QueueManagerClient

MOST_ROWS = 500
"""Queues that are shown: more than anybody scrolls through, and quick to draw."""

_NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Picture:
    """What was seen at one time; `overview` is as `/api/v1/overview` tells it.

    `flight` is who holds leases, transactions and sessions, None where nobody wants to know.
    """

    overview: dict[str, Any]
    status: "Status"
    queues: list[QueueRates]
    flight: dict[str, Any] | None = None
    cluster: dict[str, Any] | None = None
    """How the cluster is, None for a queue manager that is in none."""


class Looks:
    """Looks at a queue manager one after the other, so that there are rates."""

    def __init__(self, client: "QueueManagerClient", before: "Status | None" = None) -> None:
        self._client = client
        self._before = before
        self._in_cluster = True

    async def look(self, flight: bool = False) -> Picture:
        """Ask; rates are those since the look before, or since the start."""
        overview = await self._client.maintenance.overview()
        held = await self._client.maintenance.in_flight() if flight else None
        status = await self._client.maintenance.status()
        if self._before is not None and self._before.started != status.started:
            self._before = None  # it has been started again, and counts from zero
        queues = queue_rates(self._before, status)
        self._before = status
        return Picture(overview, status, queues, held, await self._cluster())

    async def _cluster(self) -> dict[str, Any] | None:
        """How the cluster is, asked until the queue manager has said that it is in none."""
        if not self._in_cluster:
            return None
        try:
            return await self._client.cluster.status()
        except RpcFault as error:
            if error.status is not FaultStatus.nca_s_unk_if:
                raise
            self._in_cluster = False
            return None


Key = Callable[[QueueRates], float | str]
ORDERS: dict[str, Key] = {
    "messages": lambda row: -row.queue.messages,
    "size": lambda row: -row.queue.bytes,
    "in": lambda row: -row.rate_in,
    "out": lambda row: -row.rate_out,
    "oldest": lambda row: row.queue.oldest or _NEVER,
    "waiting": lambda row: -row.queue.waiting_readers,
    "name": lambda row: folded(row.queue.name),
}
"""What queues are sorted by; of equal ones the name decides."""


@dataclass(slots=True)
class View:
    """Which queues are shown, and in which order; and which table is shown instead."""

    order: str = "messages"
    pattern: str = ""
    reverse: bool = False
    tables: Tables = field(default_factory=Tables)

    def sort_by(self, order: str) -> None:
        """Take another order, from its usual end."""
        self.order, self.reverse = order, False

    def sort_by_next(self) -> None:
        """Take the order after this one."""
        names = list(ORDERS)
        self.sort_by(names[(names.index(self.order) + 1) % len(names)])

    def chosen(self, picture: Picture) -> list[QueueRates]:
        """The queues that are wanted, the first of them first."""
        wanted = [row for row in picture.queues if is_wanted(self.pattern or None, row.queue.name)]
        return sorted(wanted, key=ORDERS[self.order], reverse=self.reverse)


def short_name(name: str, host: str) -> str:
    """A private queue here, or one of the system, by the name that commands take."""
    for prefix, kept in ((f"{host}\\private$\\", 0), (f"{host}\\system$;", len("system$;"))):
        if folded(name).startswith(folded(prefix)):
            return name[len(prefix) - kept :]
    return name


def cells(picture: Picture, row: QueueRates) -> list[str]:
    """A queue as the cells of the table."""
    queue = row.queue
    return [
        visible(short_name(queue.name, picture.overview["name"])),
        f"{queue.messages:,}",
        size_text(queue.bytes),
        f"{row.rate_in:.1f}",
        f"{row.rate_out:.1f}",
        age_text(picture.status, queue),
        str(queue.waiting_readers),
    ]


def summary(picture: Picture) -> list[str]:
    """The totals, in lines that are as wide as a small terminal."""
    told = picture.overview
    fields = overview_fields(told)
    state = "" if told["connected"] else ", disconnected"
    return [
        f"{told['name']}, rpcqm {told['version']}, up {fields['Running for'].partition(' (')[0]}"
        f"{state}",
        f"{fields['Messages']}; {fields['A second']}; oldest {fields['Oldest']}",
        f"{counted(told['leases'], 'lease')}, {counted(told['transactions'], 'transaction')}, "
        f"{counted(told['waiting_reads'], 'waiting read')}, "
        f"{counted(told['connections'], 'connection')}; dead letters: {fields['Dead letters']}",
        f"To others: {fields['To others']}; disk: {fields['Disk']}",
        *([] if picture.cluster is None else [active_line(picture.cluster)]),
    ]


def attention(picture: Picture, most: int) -> list[tuple[str, bool]]:
    """What needs attention, in `most` lines at most, and whether each is urgent."""
    told = picture.overview["attention"]
    lines = [(visible(each["text"]), bool(each["urgent"])) for each in told]
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], (f"… and {len(lines) - most + 1} more", False)]
