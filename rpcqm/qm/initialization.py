"""From what was kept to a queue manager that works ([MS-MQDMPR] 3.1.3, 3.1.4.1, .2)."""

from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from rpcqm.adm.enums import PositionState, QueueManagerState, QueueType
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.records import (
    QueueRecord,
    decode_queue,
    decode_queue_manager,
    encode_queue_manager,
)
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult
from rpcqm.codec.names.path_name import PathName, QueueKind
from rpcqm.qm import staged
from rpcqm.qm.default_security import migrate
from rpcqm.qm.positions import purge_reason
from rpcqm.store.records import QUEUE_ID, Family

if TYPE_CHECKING:
    from rpcqm.qm.engine import QueueManagerEngine

QUEUE_MANAGER_KEY = b"queue manager"

DEADLETTER_ID = 1
DEADXACT_ID = 2
JOURNAL_ID = 3
ORDER_QUEUE_ID = 4
NOTIFY_QUEUE_ID = 5
ORDER_QUEUE = "order_queue$"
NOTIFY_QUEUE = "notify_queue$"


class Initialization:
    """Start and stop."""

    def __init__(self, engine: "QueueManagerEngine") -> None:
        self._engine = engine
        self._deadletter: tuple[Queue, ...] = ()
        self._internal: tuple[Queue, ...] = ()

    def is_deadletter(self, queue: Queue) -> bool:
        """Whether it is one of the two dead-letter queues."""
        return queue in self._deadletter

    def is_internal(self, queue: Queue) -> bool:
        """Whether applications must not touch it: order_queue$ and notify_queue$."""
        return queue in self._internal

    def start(self) -> None:
        """Bring everything back ([MS-MQDMPR] 3.1.3), without the steps that need a domain.

        Transactions of this queue manager alone that a restart left open are aborted: what they
        sent is gone, what they received is available.
        """
        engine = self._engine
        engine.queue_manager.queue_manager_state = QueueManagerState.INITIALIZING
        self._load_queue_manager()
        self._create_system_queues()
        self._load_queues()
        migrate(engine)
        engine.outgoing.apply_hardened_security()
        engine.directory.start()
        staged.recover(engine)
        engine.transfer.recover()
        for hook in engine.loaded_hooks:
            hook()
        self._finish_purges()
        engine.transactions.abort_internal_transactions()
        for queue in list(engine.queues.by_id.values()):
            engine.queues.drop_if_unused(queue)
        engine.strangers.start()
        engine.expiry.look()
        engine.store.space.watch(engine.control_flow)
        engine.queue_manager.connection_active = True
        engine.queue_manager.queue_manager_state = QueueManagerState.READY

    def stop(self) -> None:
        """Answer everybody who waits, and do nothing any more."""
        engine = self._engine
        engine.queue_manager.queue_manager_state = QueueManagerState.STOPPING
        engine.expiry.stop()
        engine.directory.stop()
        engine.trail.stop()
        engine.strangers.stop()
        for queue in list(engine.queues.by_id.values()):
            engine.readers.end_all_waits(queue, HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE)
        for hook in engine.stopped_hooks:
            hook()
        engine.queue_manager.connection_active = False
        engine.queue_manager.queue_manager_state = QueueManagerState.STOPPED

    # The queue manager

    def _load_queue_manager(self) -> None:
        """The identity is made once, and durable before anybody can see it."""
        engine = self._engine
        queue_manager, settings = engine.queue_manager, engine.settings
        queue_manager.computer_name = settings.computer_name
        queue_manager.qualified_computer_name = engine.names.qualified_computer_name
        queue_manager.queue_manager_quota = settings.queue_manager_quota
        queue_manager.journal_quota = settings.journal_quota
        queue_manager.supporting_server = settings.supporting_server
        queue_manager.routing_server = settings.routing_server
        queue_manager.queue_manager_version = settings.queue_manager_version
        queue_manager.operating_system_version = settings.operating_system_version
        record = engine.store.get(Family.META, QUEUE_MANAGER_KEY)
        if record is not None:
            decode_queue_manager(record, queue_manager)
        queue_manager.srmp_http_support = settings.srmp_http_support
        queue_manager.hardened_security = settings.hardened_security
        if record is None:
            queue_manager.identifier = engine.directory.given_identifier() or uuid4()
            now = engine.clock.now() // 1000
            queue_manager.create_time = queue_manager.modify_time = now
            queue_manager.security = engine.access.default_queue_manager_security()
            self.save_queue_manager()

    def save_queue_manager(self) -> Completion[None]:
        """Keep the persistent attributes; done when durable."""
        engine = self._engine
        with engine.store.transaction("save queue manager") as change:
            record = encode_queue_manager(engine.queue_manager)
            change.put(Family.META, QUEUE_MANAGER_KEY, record)
            return change.committed

    # Queues

    def _create_system_queues(self) -> None:
        queue_manager = self._engine.queue_manager
        deadletter = self._system_queue(DEADLETTER_ID, QueueKind.SYSTEM, "DEADLETTER")
        deadxact = self._system_queue(DEADXACT_ID, QueueKind.SYSTEM, "DEADXACT")
        deadxact.transactional = True
        queue_manager.system_deadletter_queue = deadletter
        queue_manager.system_transactional_deadletter_queue = deadxact
        queue_manager.system_journal_queue = self._system_queue(
            JOURNAL_ID, QueueKind.SYSTEM, "JOURNAL"
        )
        self._deadletter = (deadletter, deadxact)
        order = self._system_queue(ORDER_QUEUE_ID, QueueKind.PRIVATE, ORDER_QUEUE)
        order.private_queue_number = ORDER_QUEUE_ID
        notify = self._system_queue(NOTIFY_QUEUE_ID, QueueKind.PRIVATE, NOTIFY_QUEUE)
        notify.private_queue_number = NOTIFY_QUEUE_ID
        self._internal = (order, notify)

    def _system_queue(self, queue_id: int, kind: QueueKind, name: str) -> Queue:
        """One of the queues that are always there; its identifier follows from the machine's."""
        engine = self._engine
        path = engine.names.path(kind, name)
        queue = Queue(
            identifier=UUID(int=engine.queue_manager.identifier.int ^ queue_id),
            pathname=str(path),
            qualified_pathname=str(path).replace(
                path.computer, engine.names.qualified_computer_name, 1
            ),
            queue_type=QueueType.SYSTEM,
            create_time=engine.queue_manager.create_time,
            modify_time=engine.queue_manager.create_time,
            security=engine.access.default_queue_security(None),
            queue_id=queue_id,
        )
        engine.queues.register(queue)
        return queue

    def _load_queues(self) -> None:
        """Queues first, then what belongs to them."""
        records = [
            decode_queue(QUEUE_ID.unpack(key)[0], data)
            for key, data in self._engine.store.records(Family.QUEUE)
        ]
        for record in sorted(records, key=lambda record: record.parent_id > 0):
            self._load_queue(record)

    def _load_queue(self, record: QueueRecord) -> None:
        queues = self._engine.queues
        queue = record.queue
        if not isinstance(queue, OutgoingQueue):
            queues.name_here(queue, PathName.parse(queue.pathname))
        if record.journal_id:
            queue.journal_queue_reference = queues.journal_for(queue, record.journal_id)
        if record.parent_id:
            queue.parent = queues.by_id[record.parent_id]
            queue.subqueue_name = record.subqueue_name
        queues.register(queue)

    def _finish_purges(self) -> None:
        """Remove what was purged while somebody held it.

        What a prepared transaction holds, or what has arrived and waits for its final
        acknowledgement, goes when that is decided.
        """
        engine = self._engine
        held = {
            (operation.queue.queue_id, operation.lookup_identifier)
            for transaction in engine.queue_manager.transaction_collection.values()
            for operation in transaction.transactional_operation_collection
        }
        held |= engine.transfer.held
        with engine.store.transaction("finish purges") as change:
            for queue in list(engine.queues.by_id.values()):
                if (
                    engine.store.index(queue.queue_id).count
                    == queue.message_position_list.available
                ):
                    continue
                for key in list(engine.store.index(queue.queue_id).keys()):
                    state = queue.message_position_list.state(key)
                    if state is PositionState.PURGE_PENDING and (queue.queue_id, key) not in held:
                        engine.positions.message_position_deleted(
                            change, queue, key, purge_reason(queue)
                        )
