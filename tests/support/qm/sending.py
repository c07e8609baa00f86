"""Outgoing queues and packets from elsewhere, for tests of what is between queue managers."""

from typing import Any
from uuid import UUID

from rpcqm.adm.message import Message
from rpcqm.adm.queue import OutgoingQueue
from rpcqm.base.completion import Completion
from rpcqm.base.identity import ANONYMOUS
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.message import MessageAttributes, build_user_message
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.protocol_records import Changes
from tests.support.queue_manager import RunningQueueManager

ELSEWHERE = UUID("6b29fc40-ca47-1067-b31d-00dd010662da")
"""The queue manager that messages come from."""


def keep_sending(qm: RunningQueueManager, name: str) -> OutgoingQueue:
    """The outgoing queue to a destination, which stays because it is open."""
    queue = qm.open(name, QueueAccessType.SEND_ACCESS).queue_reference
    assert isinstance(queue, OutgoingQueue)
    return queue


def from_elsewhere(
    qm: RunningQueueManager, destination: str, body: bytes = b"", **more: Any
) -> Message:
    """A recoverable message of another queue manager, sent just now."""
    more.setdefault("delivery_guarantee", 1)
    more.setdefault("sent_time", qm.clock.now() // 1000)
    attributes = MessageAttributes(
        destination_queue_format_name=FormatName.parse(destination),
        identifier=MessageIdentifier(ELSEWHERE, 77),
        body=body,
        **more,
    )
    return Message(build_user_message(attributes))


def take(
    engine: QueueManagerEngine,
    message: Message,
    changes: Changes | None = None,
    *,
    authenticated: bool = False,
    encrypted: bool = False,
) -> Completion[None]:
    """Take a message as a protocol without signatures does; RejectedError says why not."""
    arrivals = engine.arrivals
    queue = arrivals.destination(message)
    if not isinstance(queue, OutgoingQueue):
        engine.protection.check_arrived(queue, authenticated, encrypted)
        arrivals.check_access(queue, ANONYMOUS)
    arrivals.check_expiry(message)
    return arrivals.store(queue, message, changes)
