"""The record of the queue manager itself, and the system's queues."""

from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.adm.records import encode_queue_manager
from rpcqm.base.completion import Completion
from rpcqm.store.records import Family
from rpcqm.store.store import Store

QUEUE_MANAGER_KEY = b"queue manager"
COMPUTER_NAME_KEY = b"computer name"

DEADLETTER_ID = 1
DEADXACT_ID = 2
JOURNAL_ID = 3
ORDER_QUEUE_ID = 4
NOTIFY_QUEUE_ID = 5
ORDER_QUEUE = "order_queue$"
NOTIFY_QUEUE = "notify_queue$"


def is_deadletter(queue: Queue) -> bool:
    """Whether a queue is one of the two dead-letter queues."""
    return queue.queue_id in (DEADLETTER_ID, DEADXACT_ID)


def is_internal(queue: Queue) -> bool:
    """Whether a queue is order_queue$ or notify_queue$, which applications must not touch."""
    return queue.queue_id in (ORDER_QUEUE_ID, NOTIFY_QUEUE_ID)


def save_queue_manager(store: Store, queue_manager: QueueManager) -> Completion[None]:
    """Keep the persistent attributes; done when durable."""
    with store.transaction("save queue manager") as change:
        change.put(Family.META, QUEUE_MANAGER_KEY, encode_queue_manager(queue_manager))
        return change.committed
