"""Queues with their rates, between two looks at a queue manager."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rpcqm.base.text import folded
from rpcqm.base.units import duration_text
from rpcqm.cli.output import Table, size_text

if TYPE_CHECKING:
    from rpcqm.client.maintenance import QueueStatus, Status


@dataclass(frozen=True, slots=True)
class QueueRates:
    """A queue with its rates in messages per second."""

    queue: "QueueStatus"
    rate_in: float
    rate_out: float


def queue_rates(before: "Status | None", now: "Status") -> list[QueueRates]:
    """Queues by name; rates since `before`, or since the start of the queue manager or queue."""
    earlier = {} if before is None else {queue.name: queue for queue in before.queues}
    seconds = max(now.now - (now.started if before is None else before.now), 0.001)
    rows = []
    for queue in now.queues:
        known = earlier.get(queue.name)
        came, left = (known.entered, known.left) if known else (0, 0)
        rates = (queue.entered - came) / seconds, (queue.left - left) / seconds
        rows.append(QueueRates(queue, *rates))
    return sorted(rows, key=lambda row: folded(row.queue.name))


def print_queues(now: "Status", rows: list[QueueRates]) -> None:
    """A table of queues."""
    table = Table(
        ["QUEUE", ">MESSAGES", ">SIZE", ">IN/s", ">OUT/s", ">OLDEST", ">OPEN", ">WAITING"]
    )
    for row in rows:
        queue = row.queue
        table.add(
            queue.name,
            queue.messages,
            size_text(queue.bytes),
            f"{row.rate_in:.1f}",
            f"{row.rate_out:.1f}",
            age_text(now, queue),
            queue.open_handles,
            queue.waiting_readers,
        )
    table.print()


def age_text(now: "Status", queue: "QueueStatus") -> str:
    """How long the oldest message of a queue has been there; empty if there is none."""
    return duration_text(max(now.now - queue.oldest, 0)) if queue.oldest else ""
