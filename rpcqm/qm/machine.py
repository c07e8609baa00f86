"""The record of the queue manager itself, and the system's queues."""

import re

from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.adm.records import encode_queue_manager
from rpcqm.base.completion import Completion
from rpcqm.store.records import Family
from rpcqm.store.store import Store

QUEUE_MANAGER_KEY = b"queue manager"
COMPUTER_NAME_KEY = b"computer name"
IDENTITY_ORDER_KEY = b"identity order"
"""In META: the last order by which the queue manager became another one (G491)."""
JOIN_ORDER = "join"
"""The word before the identifier, in an order to become a directory's queue manager."""

DEADLETTER_ID = 1
DEADXACT_ID = 2
JOURNAL_ID = 3
ORDER_QUEUE_ID = 4
NOTIFY_QUEUE_ID = 5
ORDER_QUEUE = "order_queue$"
NOTIFY_QUEUE = "notify_queue$"


_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")
"""Builds have five digits by now, though [MS-MQMP] 3.1.4.23 counts four (G123)."""


def version_numbers(queue_manager: QueueManager) -> tuple[int, int, int]:
    """Major version, minor version and build; zeros where the operating system has none."""
    version = _VERSION.match(queue_manager.queue_manager_version)
    if version is None:
        return 0, 0, 0
    return int(version[1]), int(version[2]), int(version[3])


def is_deadletter(queue: Queue) -> bool:
    """Whether a queue is one of the two dead-letter queues."""
    return queue.queue_id in (DEADLETTER_ID, DEADXACT_ID)


def is_internal(queue: Queue) -> bool:
    """Whether a queue is order_queue$ or notify_queue$, which applications must not touch."""
    return queue.queue_id in (ORDER_QUEUE_ID, NOTIFY_QUEUE_ID)


def save_queue_manager(store: Store, queue_manager: QueueManager) -> Completion[None]:
    """Store the persistent attributes; done when durable."""
    with store.transaction("save queue manager") as change:
        change.put(Family.META, QUEUE_MANAGER_KEY, encode_queue_manager(queue_manager))
        return change.committed
