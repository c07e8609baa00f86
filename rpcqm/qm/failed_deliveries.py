"""Failed deliveries: their counts, and messages that are put aside as poison.

A message that a reader has locked or a transaction has received, and that comes back, was aborted
once more ([MS-MQDMPR] 3.1.1.12, AbortCount). A queue with a limit moves it to a subqueue then.
"""

from functools import partial

from rpcqm.adm.enums import PositionState, QueueManagerState, QueueType
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.records import encode_queue
from rpcqm.base.completion import Completion, completed
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.base.log import get_logger
from rpcqm.base.text import folded
from rpcqm.codec.names.path_name import PathName
from rpcqm.codec.security.access_check import MQQUEUEACCESSMASK
from rpcqm.qm.access import AccessControl
from rpcqm.qm.positions import Positions
from rpcqm.qm.queues import QueueEvents
from rpcqm.qm.registry import QueueRegistry
from rpcqm.store.records import QUEUE_ID, Family
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction

_log = get_logger("qm")


class FailedDeliveries:
    """Counts deliveries that have failed, and keeps the limits of queues."""

    def __init__(
        self,
        store: Store,
        registry: QueueRegistry,
        access: AccessControl,
        positions: Positions,
        queues: QueueEvents,
    ) -> None:
        self._store = store
        self._registry = registry
        self._access = access
        self._positions = positions
        self._queues = queues

    def set_limit(
        self, queue: Queue, limit: int, subqueue: str, identity: Identity | None = None
    ) -> Completion[None]:
        """Let a queue move messages to a subqueue after `limit` failures; 0 means never.

        Raises MQError: ACCESS_DENIED, ILLEGAL_QUEUE_PATHNAME for an invalid subqueue.
        """
        main = queue.main
        if main.queue_type is QueueType.SYSTEM or isinstance(main, OutgoingQueue):
            raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, "not a queue of an application")
        self._access.check_queue(main, identity, MQQUEUEACCESSMASK.MQSEC_SET_QUEUE_PROPERTIES)
        if PathName.parse(f"{main.pathname};{subqueue}").is_journal:
            raise MQError(HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME, subqueue)
        before = main.max_deliveries, main.poison_subqueue
        main.max_deliveries, main.poison_subqueue = limit, subqueue
        try:
            with self._store.transaction("set the limit of deliveries") as change:
                change.put(Family.QUEUE, QUEUE_ID.pack(main.queue_id), encode_queue(main))
                return change.committed
        except BaseException:
            main.max_deliveries, main.poison_subqueue = before
            raise

    def give_back(self, queue: Queue, key: int) -> Completion[None]:
        """Give back a locked message after a failed delivery.

        It is available at once with one abort more, which is written with a later commit; or it is
        moved to the subqueue for poison, and the completion succeeds when that is durable.
        """
        if not _counts(queue, key):
            self._positions.release(queue, key)
            return completed(None)
        target = self.next_place(queue, key)
        with self._store.transaction("give back") as change:
            self.count(change, queue, key, target)
            if target is not None:
                return change.committed
            change.sync = False
        self._positions.release(queue, key)
        return completed(None)

    def next_place(self, queue: Queue, key: int) -> Queue | None:
        """The subqueue for a message if its delivery fails now; it is kept until `count`.

        None if the message stays.
        """
        main = queue.main
        if not main.max_deliveries or queue.is_journal or not _counts(queue, key):
            return None
        aborts = self._store.index(queue.queue_id).moves(key).abort_count + 1
        name = main.poison_subqueue
        if aborts < main.max_deliveries or folded(queue.subqueue_name) == folded(name):
            return None
        target = main.subqueue_collection.get(folded(name))
        if target is None:
            target = self._queues.create_subqueue(main, name)
        target.pending_moves += 1
        return target

    def count(self, change: StoreTransaction, queue: Queue, key: int, target: Queue | None) -> None:
        """Add the new number of aborts to a commit, or a move of the message to `target` (G180)."""
        if not _counts(queue, key):
            return
        before = self._store.index(queue.queue_id).moves(key)
        aborts = before.abort_count + 1
        if target is None:
            moves = before._replace(abort_count=aborts)
            change.update_position(queue.queue_id, key, moves=moves)
            return
        self._positions.move(change, queue, key, target)
        change.call_after(partial(self._put_aside, queue, target, aborts))
        change.call_when_undone(partial(self._let_go, target))

    def _put_aside(self, queue: Queue, target: Queue, aborts: int) -> None:
        _log.warning(
            "a message that was delivered in vain is put aside",
            queue=queue.pathname,
            deliveries=aborts,
            moved_to=target.pathname,
        )
        self._let_go(target)

    def _let_go(self, target: Queue) -> None:
        target.pending_moves -= 1
        self._registry.drop_if_unused(target)


def _counts(queue: Queue, key: int) -> bool:
    """Whether giving a message back is a failed delivery; it is not while the service stops."""
    machine = queue.queue_manager
    return (
        machine is not None
        and machine.queue_manager_state is QueueManagerState.READY
        and not isinstance(queue, OutgoingQueue)
        and queue.message_position_list.state(key) is PositionState.LOCKED
    )
