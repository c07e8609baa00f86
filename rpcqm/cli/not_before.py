"""`rpcqm send --not-before`: a message that the queue manager holds back until its time."""

import argparse
import datetime
import time
from typing import TYPE_CHECKING

from rpcqm.base.units import amount
from rpcqm.cli.errors import UsageMistake
from rpcqm.cli.session import with_server
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.codec.packet.enums import PrivacyLevel
from rpcqm.codec.packet.types import NULL_IDENTIFIER
from rpcqm.codec.types.mqvalues import INFINITE

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient
    from rpcqm.codec.names.format_name import FormatName

MOST_SECONDS = 10 * 365 * 86_400


def moment(text: str) -> int:
    """A time to come: a moment, or how long from now; milliseconds since 1970."""
    try:
        at = datetime.datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is not None and not text.isdigit():
        return int(at.timestamp() * 1000)  # without a zone it is of this machine's
    try:
        seconds = amount(text, "s")
    except ValueError:
        seconds = -1
    if not 0 <= seconds <= MOST_SECONDS:
        raise argparse.ArgumentTypeError(
            f"`{text}` is neither a moment, like 2026-12-24T18:00, nor a time from now, like 90min"
        )
    return int(time.time() * 1000) + seconds * 1000


def send(arguments: argparse.Namespace, names: "list[FormatName]", message: OutgoingMessage) -> int:
    """Let the queue manager hold a message back, and print under which identifier."""
    if arguments.server is not None or arguments.count != 1:
        raise UsageMistake("--not-before does not go together with --server and --count.")
    members = _members(arguments, message)

    async def work(client: "QueueManagerClient") -> None:
        print(await client.scheduled.schedule(names, message.body, members, arguments.not_before))

    return with_server(arguments, f"send to `{arguments.queue}`", work)


def _members(arguments: argparse.Namespace, message: OutgoingMessage) -> dict[str, object]:
    """The message as /api/v1 names its members."""
    from rpcqm.codec.bodies.described import ACKNOWLEDGEMENTS  # only now: it takes time to load

    asked = [word for word, bit in ACKNOWLEDGEMENTS.items() if message.acknowledgements & bit]
    correlated = message.correlation_identifier != NULL_IDENTIFIER
    queues = {
        "response_queue": message.response_queue,
        "admin_queue": message.administration_queue,
        "dead_letter_queue": message.dead_letter_queue,
    }
    return {
        "label": message.label,
        "priority": message.priority,
        "body_type": int(message.body_type),
        "recoverable": message.recoverable,
        "transactional": arguments.transactional,
        "ttbr": _seconds(message.time_to_be_received),
        "ttrq": _seconds(message.time_to_reach_queue),
        "correlation_id": str(message.correlation_identifier) if correlated else None,
        "acknowledgements": asked,
        "journal": message.journal,
        "dead_letter": message.dead_letter,
        "encrypt": message.privacy != PrivacyLevel.NONE,
        "traceparent": message.traceparent,
        **{name: None if queue is None else str(queue) for name, queue in queues.items()},
    }


def _seconds(value: int) -> int | None:
    return None if value == INFINITE else value
