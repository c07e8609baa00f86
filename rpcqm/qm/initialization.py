"""Makes a queue manager of the records in the store ([MS-MQDMPR] 3.1.3, 3.1.4.1, .2)."""

from dataclasses import dataclass, field
from uuid import UUID, uuid4

from rpcqm.adm.enums import OutgoingQueueState, PositionState, QueueType
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.adm.records import (
    QueueRecord,
    decode_queue,
    decode_queue_manager,
    encode_queue,
    encode_queue_manager,
)
from rpcqm.base.clock import Clock
from rpcqm.base.errors import DecodeError, MQError
from rpcqm.base.log import get_logger
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import PathName, QueueKind
from rpcqm.codec.security.descriptor import SecurityDescriptor
from rpcqm.qm.access import AccessControl
from rpcqm.qm.default_security import migrate
from rpcqm.qm.directory import Directory
from rpcqm.qm.machine import (
    COMPUTER_NAME_KEY,
    DEADLETTER_ID,
    DEADXACT_ID,
    IDENTITY_ORDER_KEY,
    JOIN_ORDER,
    JOURNAL_ID,
    NOTIFY_QUEUE,
    NOTIFY_QUEUE_ID,
    ORDER_QUEUE,
    ORDER_QUEUE_ID,
    QUEUE_MANAGER_KEY,
    save_queue_manager,
)
from rpcqm.qm.names import LocalNames
from rpcqm.qm.positions import Positions, purge_reason
from rpcqm.qm.registry import QueueRegistry, journal_for
from rpcqm.qm.settings import QueueManagerSettings
from rpcqm.store.records import QUEUE_ID, Family
from rpcqm.store.store import Store

_log = get_logger("qm")


@dataclass(eq=False, repr=False)
class Initialization:
    """Restores queues, messages and transactions from the store."""

    _store: Store
    _clock: Clock
    _queue_manager: QueueManager
    _settings: QueueManagerSettings
    _names: LocalNames
    _registry: QueueRegistry
    _access: AccessControl
    _directory: Directory
    _positions: Positions
    _name_in_paths: str = field(default="", init=False)
    _descriptors: set[bytes] = field(default_factory=set, init=False)
    _copied_from: UUID | None = field(default=None, init=False)

    def load(self) -> None:
        """Bring back the queue manager and its queues ([MS-MQDMPR] 3.1.3)."""
        self._load_queue_manager()
        self._create_system_queues()
        self._load_queues()
        self._keep_another_identity()
        self._note_name()
        migrate(self._store, self._queue_manager)

    # The queue manager

    def _load_queue_manager(self) -> None:
        """Load the identity, or make it once, durable before anybody can see it."""
        queue_manager, settings = self._queue_manager, self._settings
        queue_manager.computer_name = settings.computer_name
        queue_manager.qualified_computer_name = self._names.qualified_computer_name
        queue_manager.queue_manager_quota = settings.queue_manager_quota
        queue_manager.journal_quota = settings.journal_quota
        queue_manager.supporting_server = settings.supporting_server
        queue_manager.routing_server = settings.routing_server
        queue_manager.queue_manager_version = settings.queue_manager_version
        queue_manager.operating_system_version = settings.operating_system_version
        record = self._store.get(Family.META, QUEUE_MANAGER_KEY)
        if record is not None:
            decode_queue_manager(record, queue_manager)
            self._check_descriptor(queue_manager.security)
            self._take_another_identity()
        queue_manager.srmp_http_support = settings.srmp_http_support
        queue_manager.hardened_security = settings.hardened_security
        if record is None:
            given = self._joined() or self._directory.given_identifier()
            queue_manager.identifier = given or uuid4()
            now = self._clock.now() // 1000
            queue_manager.create_time = queue_manager.modify_time = now
            queue_manager.security = self._access.default_queue_manager_security()
            save_queue_manager(self._store, queue_manager)

    # Another identity

    def _take_another_identity(self) -> None:
        """Carry out an order to become another queue manager than the copied one (G491).

        The order is carried out once, with the commit of `_keep_another_identity`.
        """
        order, machine = self._settings.identity_order, self._queue_manager
        done = self._store.get(Family.META, IDENTITY_ORDER_KEY)
        if not order or done == order.encode():
            return
        joined = self._joined()
        if joined is not None:
            self._joined_as(joined)
            return
        self._copied_from = machine.identifier
        given = self._directory.given_identifier()
        machine.identifier = given if given and given != machine.identifier else uuid4()

    def _joined(self) -> UUID | None:
        """The identifier of this queue manager in the directory that an order has it join."""
        word, _, identifier = self._settings.identity_order.partition(":")
        return UUID(identifier) if word == JOIN_ORDER else None

    def _joined_as(self, identifier: UUID) -> None:
        """Become the directory's queue manager; waiting messages are held, as the old one's."""
        machine = self._queue_manager
        if machine.identifier != identifier:
            before = str(machine.identifier)
            _log.warning("joined the directory", before=before, now=str(identifier))
            machine.identifier = identifier
            save_queue_manager(self._store, machine)

    def _keep_another_identity(self) -> None:
        """Make that durable, and hold what waits to be sent: the copied one sends it."""
        if self._copied_from is None:
            return
        machine, registry = self._queue_manager, self._registry
        waiting = [queue for queue in registry.by_destination.values() if queue.message_count]
        with self._store.transaction("another identity") as change:
            change.put(Family.META, QUEUE_MANAGER_KEY, encode_queue_manager(machine))
            change.put(Family.META, IDENTITY_ORDER_KEY, self._settings.identity_order.encode())
            for queue in waiting:
                queue.state = OutgoingQueueState.ON_HOLD
                change.put(Family.QUEUE, QUEUE_ID.pack(queue.queue_id), encode_queue(queue))
        _log.warning(
            "the queue manager has another identity",
            before=str(self._copied_from),
            now=str(machine.identifier),
            paused=len(waiting),
        )

    # Queues

    def _create_system_queues(self) -> None:
        queue_manager = self._queue_manager
        deadletter = self._system_queue(DEADLETTER_ID, QueueKind.SYSTEM, "DEADLETTER")
        deadxact = self._system_queue(DEADXACT_ID, QueueKind.SYSTEM, "DEADXACT")
        deadxact.transactional = True
        queue_manager.system_deadletter_queue = deadletter
        queue_manager.system_transactional_deadletter_queue = deadxact
        queue_manager.system_journal_queue = self._system_queue(
            JOURNAL_ID, QueueKind.SYSTEM, "JOURNAL"
        )
        order = self._system_queue(ORDER_QUEUE_ID, QueueKind.PRIVATE, ORDER_QUEUE)
        order.private_queue_number = ORDER_QUEUE_ID
        notify = self._system_queue(NOTIFY_QUEUE_ID, QueueKind.PRIVATE, NOTIFY_QUEUE)
        notify.private_queue_number = NOTIFY_QUEUE_ID

    def _system_queue(self, queue_id: int, kind: QueueKind, name: str) -> Queue:
        """One of the permanent queues; its identifier follows from the machine's."""
        path = self._names.path(kind, name)
        queue = Queue(
            identifier=UUID(int=self._queue_manager.identifier.int ^ queue_id),
            pathname=str(path),
            qualified_pathname=str(path).replace(
                path.computer, self._names.qualified_computer_name, 1
            ),
            queue_type=QueueType.SYSTEM,
            create_time=self._queue_manager.create_time,
            modify_time=self._queue_manager.create_time,
            security=self._access.default_queue_security(None),
            queue_id=queue_id,
        )
        self._registry.register(queue)
        return queue

    def _load_queues(self) -> None:
        """Queues first, then what belongs to them."""
        records = [
            decode_queue(QUEUE_ID.unpack(key)[0], data)
            for key, data in self._store.records(Family.QUEUE)
        ]
        for record in sorted(records, key=lambda record: record.parent_id > 0):
            self._load_queue(record)

    def _load_queue(self, record: QueueRecord) -> None:
        """Load a queue, unless its name is refused by now (G494).

        Raises DecodeError for a record that no queue manager has written.
        """
        queues, machine = self._registry, self._queue_manager
        queue = record.queue
        self._check_descriptor(queue.security)
        has_parent = record.parent_id not in machine.unusable_queues
        if refusal := _refusal(queue, has_parent=has_parent):
            self._leave_alone(record, refusal)
            return
        if not isinstance(queue, OutgoingQueue):
            self._name_in_paths = PathName.parse(queue.pathname).computer
            queues.name_here(queue, PathName.parse(queue.pathname))
        if record.journal_id:
            queue.journal_queue_reference = journal_for(queue, record.journal_id)
        if record.parent_id:
            queue.parent = machine.queue_collection.get(record.parent_id)
            if queue.parent is None or queue.parent.parent is not None:
                raise DecodeError(f"the queue {queue.queue_id} is a part of no queue")
            queue.subqueue_name = record.subqueue_name
        queues.register(queue)

    def _check_descriptor(self, security: bytes) -> None:
        """Raise DecodeError for octets that are no descriptor; most queues have the same."""
        if security and security not in self._descriptors:
            SecurityDescriptor.decode(security)
            self._descriptors.add(security)

    def _leave_alone(self, record: QueueRecord, refusal: str) -> None:
        """Keep a queue with its messages for a version that takes its name (G494).

        Its messages are locked, so that their times do not end meanwhile.
        """
        queue, messages = record.queue, 0
        name = queue.full_name
        for queue_id in filter(None, (queue.queue_id, record.journal_id)):
            index = self._store.index(queue_id)
            messages += index.count
            for key in list(index.keys()):
                index.lock(key, self)
            self._queue_manager.unusable_queues[queue_id] = name
        _log.error("a queue cannot be used", queue=name, reason=refusal, messages=messages)

    def _note_name(self) -> None:
        """Log once that the computer has another name: the path names of queues follow it.

        Versions before this did not keep the name, but path names have it.
        """
        now = self._settings.computer_name
        kept = self._store.get(Family.META, COMPUTER_NAME_KEY)
        before = self._name_in_paths if kept is None else kept.decode("utf-8", "replace")
        if before and before.casefold() != now.casefold():
            _log.warning(
                "the computer's name has changed, and path names of queues with it",
                before=before,
                now=now,
                advice=f'set name = "{before}" to keep the old one',
            )
        if kept is None or before != now:
            with self._store.transaction("computer name") as change:
                change.put(Family.META, COMPUTER_NAME_KEY, now.encode())

    def finish_purges(self, awaiting: set[tuple[int, int]]) -> None:
        """Remove messages that were purged while a reader held them.

        A message that a prepared transaction holds, or that is `awaiting` its final acknowledgement
        (queue identifier and key), goes when that is decided.
        """
        held = {
            (operation.queue.queue_id, operation.lookup_identifier)
            for transaction in self._queue_manager.transaction_collection.values()
            for operation in transaction.transactional_operation_collection
        }
        held |= awaiting
        with self._store.transaction("finish purges") as change:
            for queue in list(self._queue_manager.queue_collection.values()):
                if self._store.index(queue.queue_id).count == queue.message_position_list.available:
                    continue
                for key in list(self._store.index(queue.queue_id).keys()):
                    state = queue.message_position_list.state(key)
                    if state is PositionState.PURGE_PENDING and (queue.queue_id, key) not in held:
                        self._positions.message_position_deleted(
                            change, queue, key, purge_reason(queue)
                        )


def _refusal(queue: Queue, *, has_parent: bool) -> str:
    """Why a stored queue cannot be used; "" if it can."""
    try:
        if isinstance(queue, OutgoingQueue):
            FormatName.parse(queue.destination_format_name)
        else:
            PathName.parse(queue.pathname)
    except MQError as error:
        return str(error)
    return "" if has_parent else "its main queue cannot be used"
