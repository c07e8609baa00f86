"""The queues of messages for other queue managers ([MS-MQDMPR] 3.1.4.14, .15, 3.1.7.2.3, .4)."""

from collections.abc import Callable
from functools import partial
from uuid import uuid4

from rpcqm.adm.enums import OutgoingQueueState
from rpcqm.adm.queue import ConnectionHistoryEntry, OutgoingQueue, OutgoingTransferInfo
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.adm.records import encode_queue
from rpcqm.base.addresses import owner_of
from rpcqm.base.clock import Clock
from rpcqm.base.completion import Completion, completed
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqvalues import ConnectionStatus, FormatNameType
from rpcqm.qm.outgoing_bounds import ACCOUNT, OWN, OutgoingBounds
from rpcqm.qm.registry import QueueRegistry
from rpcqm.store.records import QUEUE_ID, Family
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction

QueueHook = Callable[[OutgoingQueue], None]
TransferHook = Callable[[OutgoingTransferInfo], None]
ConnectionHook = Callable[[OutgoingQueue, ConnectionHistoryEntry], None]

HISTORY_AT_MOST = 32
"""Entries of ConnectionHistory that are remembered for each queue."""

ORIGINS_AT_MOST = 8
"""Accounts remembered as senders to one queue, the latest ones."""

_KEPT_STATES = frozenset({OutgoingQueueState.ON_HOLD, OutgoingQueueState.LOCKED})


class Outgoing:
    """The events by which administrators pause and resume outgoing queues."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        queue_manager: QueueManager,
        registry: QueueRegistry,
        bounds: OutgoingBounds,
    ) -> None:
        self._store = store
        self._bounds = bounds
        self._clock = clock
        self._queue_manager = queue_manager
        self._registry = registry
        self.state_hooks: list[QueueHook] = []
        self.resend_hooks: list[QueueHook] = []
        self.transfer_hooks: list[TransferHook] = []
        self.connection_hooks: list[ConnectionHook] = []
        self._held: set[int] = set()
        """Queues that were on hold when HardenedSecurity locked them."""

    # Queues

    def list(self) -> list[OutgoingQueue]:
        """All outgoing queues, in the order in which they were made."""
        return list(self._registry.by_destination.values())

    def find(self, name: FormatName) -> OutgoingQueue | None:
        """The outgoing queue to a destination."""
        return self._registry.by_destination.get(name)

    def create(
        self,
        name: FormatName,
        change: StoreTransaction | None = None,
        base_priority: int = 0,
        origin: str = OWN,
        *,
        unbounded: bool = False,
    ) -> OutgoingQueue:
        """Make the outgoing queue to a destination ([MS-MQDMPR] 3.1.7.1.5).

        It is durable with `change`, or else before any message in it. `origin` is who has named the
        destination: an account's SID or a source's address, which counts as its owner's (G91).
        Raises TooManyOutgoingQueuesError unless it is `unbounded`.
        """
        origin = owner_of(origin)
        if not unbounded:
            self._bounds.admit(origin)
        queue = OutgoingQueue(
            identifier=uuid4(),
            label=str(name),
            destination_format_name=str(name),
            base_priority=base_priority,
            multicast=name.type is FormatNameType.QUEUE_FORMAT_TYPE_MULTICAST,
            queue_id=self._store.counters.queue_id.take(),
            origin=origin,
        )
        if self._queue_manager.hardened_security and not name.is_http:
            queue.state = OutgoingQueueState.LOCKED
        if change is not None:
            self._put(change, queue)
        else:
            with self._store.transaction("create outgoing queue") as change:
                self._put(change, queue)
        return queue

    def adopt(self, queue: OutgoingQueue, origin: str, *, unbounded: bool = False) -> None:
        """Count a queue for an account that sends to it, if a stranger had it made (G426)."""
        if origin in (queue.origin, *queue.other_origins):
            return
        strangers = queue.origin not in (OWN, origin) and not queue.origin.startswith(ACCOUNT)
        if not strangers or not (unbounded or self._bounds.has_room(origin)):
            queue.other_origins = (*queue.other_origins, origin)[-ORIGINS_AT_MOST:]
            return
        self._registry.give_to(queue, origin)
        with self._store.transaction("origin of an outgoing queue") as change:
            change.put(Family.QUEUE, QUEUE_ID.pack(queue.queue_id), encode_queue(queue))

    def _put(self, change: StoreTransaction, queue: OutgoingQueue) -> None:
        change.put(Family.QUEUE, QUEUE_ID.pack(queue.queue_id), encode_queue(queue))
        self._registry.register(queue)
        change.call_when_undone(partial(self._registry.unregister, queue))

    def start(self) -> None:
        """Reset the states: no queue has a session at the start; held ones stay so ([MS-MQDMPR]
        3.1.3)."""
        for queue in self.list():
            if queue.state not in _KEPT_STATES:
                queue.state = OutgoingQueueState.INACTIVE
        self.apply_hardened_security()

    def apply_hardened_security(self) -> None:
        """Lock or unlock every outgoing queue, as HardenedSecurity says now ([MS-MQDMPR] 3.1.3).

        A queue that was on hold when it was locked is on hold again afterwards, as over restarts.
        """
        hardened = self._queue_manager.hardened_security
        for queue in self.list():
            if hardened and not FormatName.parse(queue.destination_format_name).is_http:
                self._lock(queue)
            elif queue.state is OutgoingQueueState.LOCKED and not hardened:
                held = queue.queue_id in self._held
                on_hold, waiting = OutgoingQueueState.ON_HOLD, OutgoingQueueState.WAITING
                self.set_state(queue, on_hold if held else waiting)
        if not hardened:
            self._held.clear()

    def _lock(self, queue: OutgoingQueue) -> None:
        if queue.state is OutgoingQueueState.ON_HOLD:
            self._held.add(queue.queue_id)
        self.set_state(queue, OutgoingQueueState.LOCKED)

    def admin_pause_queue(self, queue: OutgoingQueue) -> Completion[None]:
        """An administrator stops the transfer out of a queue ([MS-MQDMPR] 3.1.4.14).

        MQ_ERROR_UNSUPPORTED_OPERATION for one that HardenedSecurity has locked.
        """
        _require_unlocked(queue)
        return self.pause_queue(queue)

    def admin_resume_queue(self, queue: OutgoingQueue) -> Completion[None]:
        """An administrator lets the transfer go on ([MS-MQDMPR] 3.1.4.15).

        MQ_ERROR_UNSUPPORTED_OPERATION for one that HardenedSecurity has locked.
        """
        _require_unlocked(queue)
        return self.resume_queue(queue)

    def pause_queue(self, queue: OutgoingQueue) -> Completion[None]:
        """The queue is on hold ([MS-MQDMPR] 3.1.7.2.3), over restarts too; done when durable."""
        return self._keep_state(queue, OutgoingQueueState.ON_HOLD)

    def resume_queue(self, queue: OutgoingQueue) -> Completion[None]:
        """The queue is inactive, which means that it may connect ([MS-MQDMPR] 3.1.7.2.4)."""
        return self._keep_state(queue, OutgoingQueueState.INACTIVE)

    def _keep_state(self, queue: OutgoingQueue, state: OutgoingQueueState) -> Completion[None]:
        self.set_state(queue, state)
        if queue.queue_manager is None:
            return completed(None)
        with self._store.transaction("state of an outgoing queue") as change:
            change.put(Family.QUEUE, QUEUE_ID.pack(queue.queue_id), encode_queue(queue))
            return change.committed

    def set_state(self, queue: OutgoingQueue, state: OutgoingQueueState) -> None:
        """Change OutgoingQueue.State, and call `state_hooks` if it differs.

        A protocol's state is not kept over a restart.
        """
        if queue.state is not state:
            queue.state = state
            for hook in self.state_hooks:
                hook(queue)

    def resend(self, queue: OutgoingQueue) -> None:
        """Send unacknowledged messages again now, on an administrator's order.

        `resend_hooks` do it; MQ_ERROR_UNSUPPORTED_OPERATION without a protocol.
        """
        if not self.resend_hooks:
            raise MQError(HResult.MQ_ERROR_UNSUPPORTED_OPERATION, "nothing sends elsewhere")
        for hook in self.resend_hooks:
            hook(queue)

    def record_connection(
        self,
        queue: OutgoingQueue,
        status: ConnectionStatus,
        error: int = 0,
        address_list: tuple[str, ...] = (),
    ) -> None:
        """Add to OutgoingQueue.ConnectionHistory, which forgets its oldest entries.

        `connection_hooks` are told.
        """
        now = self._clock.now() // 1000
        entry = ConnectionHistoryEntry(status, now, error, address_list)
        queue.connection_history.append(entry)
        del queue.connection_history[:-HISTORY_AT_MOST]
        for hook in self.connection_hooks:
            hook(queue, entry)

    def transfer_info(self, queue: OutgoingQueue) -> OutgoingTransferInfo:
        """The statistics of the transfer out of a queue, created at the first use."""
        info = queue.outgoing_transfer_info_reference
        if info is None:
            info = queue.outgoing_transfer_info_reference = OutgoingTransferInfo(queue)
        return info

    def shown_transfer(self, queue: OutgoingQueue) -> OutgoingTransferInfo:
        """The present statistics: `transfer_hooks` fill in the values of their protocols."""
        info = self.transfer_info(queue)
        for hook in self.transfer_hooks:
            hook(info)
        return info


def _require_unlocked(queue: OutgoingQueue) -> None:
    if queue.state is OutgoingQueueState.LOCKED:
        raise MQError(HResult.MQ_ERROR_UNSUPPORTED_OPERATION, "hardened_security locks it")
