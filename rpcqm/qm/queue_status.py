"""The status of queues: their messages, their waiting readers, their traffic."""

from collections.abc import Iterator
from dataclasses import dataclass

from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.qm.access import AccessControl
from rpcqm.qm.machine import is_internal


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """One queue; `oldest` is milliseconds since 1970, 0 for an empty queue.

    `entered` and `left` count messages since the start.
    """

    name: str
    messages: int
    bytes: int
    entered: int
    left: int
    oldest: int
    open_handles: int
    waiting_readers: int
    open_to_all: bool


def queue_statuses(queue_manager: QueueManager, access: AccessControl) -> Iterator[QueueStatus]:
    """The status of every queue except journals, order_queue$ and notify_queue$."""
    for queue in queue_manager.queue_collection.values():
        if not queue.is_journal and not is_internal(queue):
            yield _status(queue, queue.parent is None and access.is_open_to_all(queue))


def _status(queue: Queue, open_to_all: bool) -> QueueStatus:
    positions = queue.message_position_list
    return QueueStatus(
        queue.full_name,
        positions.count,
        positions.bytes,
        positions.entered,
        positions.left,
        positions.oldest(),
        len(queue.open_queue_descriptor_collection),
        len(queue.waiting_receives) + len(queue.waiting_peeks),
        open_to_all,
    )
