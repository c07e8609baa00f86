"""Queues to other queue managers: how they are shown, and deleting one."""

from typing import TYPE_CHECKING

from rpcqm.base.text import iso_time
from rpcqm.cli.output import (
    Table,
    counted,
    print_fields,
    print_json,
    size_text,
    time_text,
)
from rpcqm.cli.session import if_told
from rpcqm.client.outgoing_queues import ConnectionEvent, OutgoingQueueInformation
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.property_values import ManagementQueueState

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient


def print_all(queues: list[OutgoingQueueInformation], as_json: bool) -> None:
    """A line for each queue, or a JSON array."""
    if as_json:
        print_json([for_programs(queue) for queue in queues])
        return
    table = Table(["TO", "STATE", ">MESSAGES", ">SIZE", "NEXT HOP", "LAST CONNECTION"])
    for queue in queues:
        table.add(
            queue.format_name,
            _state(queue),
            queue.message_count,
            size_text(queue.bytes_in_queue),
            ", ".join(queue.next_hops) or "-",
            _event(queue.history[-1]) if queue.history else "-",
        )
    table.print()


NO_RECEIPTS = (
    "The receiver takes messages, and its receipts do not come: can it reach, and does it trust, "
    "this computer's URL? `default_stream_receipt_url` of [srmp] names another one."
)


HTTP_IS_OFF = (
    "messages over HTTP, which are off: set `http_port` or `https_port`, and start it again."
)


def print_one(queue: OutgoingQueueInformation, as_json: bool, *, is_off: bool = False) -> None:
    """Everything about a queue, its connections and acknowledgements.

    `is_off` says that what would send its messages is not switched on.
    """
    if as_json:
        print_json(for_programs(queue))
        return
    history = "\n".join(map(_event, queue.history)) or "none yet"
    print_fields(
        {
            "To": queue.format_name,
            "State": _state(queue),
            "Messages": f"{queue.message_count} ({size_text(queue.bytes_in_queue)})",
            "Next hop": ", ".join(queue.next_hops) or "-",
            "Last acknowledged": _acknowledged(queue),
            "Not acknowledged": f"{queue.unacknowledged} sent in sequence",
            "Not received yet": f"{queue.unread} arrived, waiting for their final acknowledgement",
            "Sent again": _resent(queue),
            "Connections": history,
            **({"Receipts": NO_RECEIPTS} if queue.lacks_receipts else {}),
            **({"Waits for": HTTP_IS_OFF} if is_off else {}),
        }
    )


def _state(queue: OutgoingQueueInformation) -> str:
    return (
        "on hold"
        if queue.state == ManagementQueueState.MGMT_QUEUE_STATE_ONHOLD
        else queue.state.lower()
    )


def for_programs(queue: OutgoingQueueInformation) -> dict[str, object]:
    """A queue as JSON."""
    return {
        "format_name": queue.format_name,
        "state": queue.state,
        "messages": queue.message_count,
        "bytes": queue.bytes_in_queue,
        "next_hops": list(queue.next_hops),
        "last_acknowledged": queue.last_acknowledged,
        "last_acknowledged_time": _iso(queue.last_acknowledged_time),
        "next_sequence": queue.next_sequence,
        "unacknowledged": queue.unacknowledged,
        "unread": queue.unread,
        "resend_count": queue.resend_count,
        "resend_time": _iso(queue.resend_time),
        "connections": [
            {"status": event.status, "time": _iso(event.time), "addresses": list(event.addresses)}
            for event in queue.history
        ],
    }


def _iso(seconds: int) -> str | None:
    return iso_time(seconds) if seconds else None


def _event(event: ConnectionEvent) -> str:
    place = f" ({', '.join(event.addresses)})" if event.addresses else ""
    return f"{event.status}{place}, {time_text(event.time)}"


def _acknowledged(queue: OutgoingQueueInformation) -> str:
    if not queue.last_acknowledged_time:
        return "-"
    # A queue manager tells the number only while something is not acknowledged.
    what = f"number {queue.last_acknowledged}" if queue.unacknowledged else "everything"
    return f"{what}, {time_text(queue.last_acknowledged_time)}"


def _resent(queue: OutgoingQueueInformation) -> str:
    if not queue.resend_time:
        return "not planned"
    return f"{queue.resend_count} times, next {time_text(queue.resend_time)}"


async def delete(client: "QueueManagerClient", name: FormatName) -> bool:
    """Purge an outgoing queue, and let it go; False if there is no such queue.

    One that is on hold is resumed once it is empty, because the server keeps it otherwise.
    """
    known = await if_told(client.management.outgoing_queue(name))
    if known is None:
        return False
    async with client.open_reader(name, outgoing=True) as reader:
        await reader.purge()
        left = await client.management.outgoing_queue(name)
        if left is not None and left.message_count:
            print(f"{counted(left.message_count, 'message')} stayed: being sent, or not decided.")
        elif known.state == ManagementQueueState.MGMT_QUEUE_STATE_ONHOLD:
            await client.management.order("RESUME", name)
    return True
