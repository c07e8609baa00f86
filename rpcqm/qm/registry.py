"""The queues that are here: finding, registering and forgetting them."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID, uuid5

from rpcqm.adm.enums import OutgoingQueueState, QueueType
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.text import folded
from rpcqm.codec.names.format_name import DirectName, FormatName, PrivateQueueFormatName, SuffixType
from rpcqm.codec.names.path_name import PathName, QueueKind
from rpcqm.codec.names.written import no_such_queue
from rpcqm.codec.types.mqvalues import FormatNameType
from rpcqm.qm.names import LocalNames, local_key
from rpcqm.qm.readers import WaitingReaders
from rpcqm.store.records import QUEUE_ID, Family
from rpcqm.store.store import Store

IN_USE = frozenset(
    {
        OutgoingQueueState.CONNECTED,
        OutgoingQueueState.DISCONNECTING,
        OutgoingQueueState.ON_HOLD,
    }
)
"""States in which an outgoing queue is kept even if it is empty."""

_MACHINE_QUEUES = {
    SuffixType.QUEUE_SUFFIX_TYPE_JOURNAL: "journal",
    SuffixType.QUEUE_SUFFIX_TYPE_DEADLETTER: "deadletter",
    SuffixType.QUEUE_SUFFIX_TYPE_DEADXACT: "deadxact",
}


class QueueRegistry:
    """QueueCollection ([MS-MQDMPR] 3.1.1.2), and its queues by their names."""

    def __init__(
        self, store: Store, queue_manager: QueueManager, names: LocalNames, readers: WaitingReaders
    ) -> None:
        self._store = store
        self._queue_manager = queue_manager
        self._names = names
        self._readers = readers
        self._queues = queue_manager.queue_collection
        self._by_name: dict[str, Queue] = {}
        self._by_former_name: dict[str, Queue] = {}
        self.changes = 0
        """How often a queue came, went, or got another name: what is made of all is the same
        while this is."""
        self.by_destination: dict[FormatName, OutgoingQueue] = {}
        """Outgoing queues."""
        self.origins: Counter[str] = Counter()
        """How many of them each origin has."""
        self.outgoing_hooks: list[Callable[[], None]] = []
        """Told when an outgoing queue comes."""

    # Finding

    def all(self) -> list[Queue]:
        """Every queue here, those of the system, journals, subqueues and outgoing ones too."""
        return list(self._queues.values())

    def find_by_id(self, queue_id: int) -> Queue | None:
        """The queue of a number that no other queue had or will have."""
        return self._queues.get(queue_id)

    def find_by_path(self, pathname: str) -> Queue | None:
        """The queue, journal or subqueue of a path name here; raises MQError for a bad name."""
        path = PathName.parse(pathname)
        return self.find_path(path) if self._names.is_local(path.computer) else None

    def find_path(self, path: PathName) -> Queue | None:
        """The same for a path whose computer is this one."""
        queue = self._by_name.get(local_key(path.kind, path.queue))
        if queue is None or not path.suffix:
            return queue
        if path.is_journal:
            return queue.journal_queue_reference
        return queue.subqueue_collection.get(folded(path.suffix))

    def formerly(self, path: PathName) -> Queue | None:
        """The queue here that was the last to have that name before it was renamed (G653).

        Its journal or its subqueue, if the path is of one.
        """
        queue = self._by_former_name.get(local_key(path.kind, path.queue))
        if queue is None or not path.suffix:
            return queue
        return self.find_path(replace(PathName.parse(queue.pathname), suffix=path.suffix))

    def find_kept_path(self, pathname: str) -> Queue | None:
        """As `find_by_path`; a name that was kept in a message may be of before a rename."""
        found = self.find_by_path(pathname)
        return self.formerly(PathName.parse(pathname)) if found is None else found

    def find_by_format_name(self, format_name: FormatName) -> Queue | None:
        """The local queue that a format name means, or None if it means no local queue."""
        value = format_name.value
        if isinstance(value, str):
            name = format_name.direct_name
            return self.find_path(_path_of(name)) if self.is_local_direct(name) else None
        if isinstance(value, PrivateQueueFormatName):
            return self._find_private(value, format_name.suffix)
        if isinstance(value, UUID):
            return self._find_by_guid(format_name.type, value, format_name.suffix)
        return None

    def is_here(self, format_name: FormatName) -> bool:
        """Whether the queue would be on this machine, if it existed (G10)."""
        value = format_name.value
        if isinstance(value, str):
            return self.is_local_direct(format_name.direct_name)
        if isinstance(value, PrivateQueueFormatName):
            return value.source_queue_manager == self._queue_manager.identifier
        return False

    def find_application_queue(self, format_name: FormatName) -> Queue | None:
        """The queue of an application that a name means; None for a name of another machine.

        Raises MQError: QUEUE_NOT_FOUND, ACCESS_DENIED for a queue of the system,
        UNSUPPORTED_FORMATNAME_OPERATION for a subqueue or a journal.
        """
        queue = self.find_by_format_name(format_name)
        if queue is None:
            if self.is_here(format_name):
                raise no_such_queue(format_name)
            return None
        if queue.queue_type is QueueType.SYSTEM:
            raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, "a queue of the system")
        if queue.parent is not None:
            raise MQError(HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION, str(format_name))
        return queue

    def find_addressed_here(self, format_name: FormatName) -> Queue | None:
        """The same for a message that has arrived: whatever host its direct name calls (G21)."""
        if isinstance(format_name.value, str):
            return self.find_path(_path_of(format_name.direct_name))
        return self.find_by_format_name(format_name)

    def is_local_direct(self, name: DirectName) -> bool:
        """Whether a direct name is about this machine (G10, G231)."""
        return self._names.is_local_direct(name)

    def _find_private(self, value: PrivateQueueFormatName, suffix: SuffixType) -> Queue | None:
        if value.source_queue_manager != self._queue_manager.identifier:
            return None
        queue = self._queues.get(value.private_queue_identifier)
        if queue is None or queue.private_queue_number != value.private_queue_identifier:
            return None
        return _with_suffix(queue, suffix)

    def _find_by_guid(self, kind: FormatNameType, guid: UUID, suffix: SuffixType) -> Queue | None:
        if kind is FormatNameType.QUEUE_FORMAT_TYPE_MACHINE:
            name = _MACHINE_QUEUES.get(suffix)
            if guid != self._queue_manager.identifier or name is None:
                return None
            return self._by_name[local_key(QueueKind.SYSTEM, name)]
        if kind is not FormatNameType.QUEUE_FORMAT_TYPE_PUBLIC:
            return None
        for queue in self._queues.values():
            if queue.identifier == guid and queue.queue_type is QueueType.PUBLIC:
                return _with_suffix(queue, suffix)
        return None

    # Registering

    def name_here(self, queue: Queue, path: PathName) -> None:
        """Give a queue the path names that it has on a machine of today's name."""
        names = self._names
        self.changes += 1
        queue.pathname = str(names.path(path.kind, path.queue, path.suffix))
        queue.qualified_pathname = str(replace(path, computer=names.qualified_computer_name))

    def rename(self, queue: Queue, path: PathName) -> None:
        """Let a queue of an application be found by another name, with its parts."""
        before = PathName.parse(queue.pathname)
        self._by_name.pop(local_key(before.kind, before.queue), None)
        self.name_here(queue, path)
        self._by_name[local_key(path.kind, path.queue)] = queue
        parts = list(queue.subqueue_collection.values())
        if queue.journal_queue_reference is not None:
            parts.append(queue.journal_queue_reference)
        for part in parts:
            suffix = PathName.parse(part.pathname).suffix
            part.pathname = f"{queue.pathname};{suffix}"
            part.qualified_pathname = f"{queue.qualified_pathname};{suffix}"

    def remember(self, queue: Queue, names: tuple[str, ...]) -> None:
        """Know a queue by these earlier names instead of those that it has."""
        self._forget_former(queue)
        queue.former_names = names
        for name in names:
            self._by_former_name[local_key(QueueKind.PRIVATE, name)] = queue

    def _forget_former(self, queue: Queue) -> None:
        for name in queue.former_names:
            key = local_key(QueueKind.PRIVATE, name)
            if self._by_former_name.get(key) is queue:
                del self._by_former_name[key]

    def register(self, queue: Queue) -> None:
        """Let a queue be found, with its journal; its messages are in the store's index."""
        self.changes += 1
        queue.queue_manager = self._queue_manager
        index = self._store.index(queue.queue_id)
        queue.message_position_list = index
        known = queue.queue_id in self._queues
        self._queues[queue.queue_id] = queue
        if isinstance(queue, OutgoingQueue):
            destination = FormatName.parse(queue.destination_format_name)
            self.by_destination[destination] = queue
            self.origins[queue.origin] += not known
            for hook in self.outgoing_hooks:
                hook()
        elif queue.parent is None:
            path = PathName.parse(queue.pathname)
            self._by_name[local_key(path.kind, path.queue)] = queue
            self.remember(queue, queue.former_names)
        elif not queue.is_journal:
            queue.parent.subqueue_collection[folded(queue.subqueue_name)] = queue
            index.charge_to(self._store.index(queue.parent.queue_id).account)
        if queue.journal_queue_reference is not None:
            self.register(queue.journal_queue_reference)

    # Forgetting

    def unregister(self, queue: Queue) -> None:
        """Let a queue not be found any more; the opposite of `register`, without its journal."""
        self.changes += 1
        queue.queue_manager = None
        known = self._queues.pop(queue.queue_id, None)
        if isinstance(queue, OutgoingQueue):
            destination = FormatName.parse(queue.destination_format_name)
            self.by_destination.pop(destination, None)
            if known is not None:
                self._one_less(queue.origin)
        elif queue.parent is None:
            path = PathName.parse(queue.pathname)
            self._by_name.pop(local_key(path.kind, path.queue), None)
            self._forget_former(queue)
        else:
            queue.parent.subqueue_collection.pop(folded(queue.subqueue_name), None)

    def give_to(self, queue: OutgoingQueue, origin: str) -> None:
        """Count an outgoing queue for another origin."""
        self._one_less(queue.origin)
        queue.origin = origin
        self.origins[origin] += 1

    def _one_less(self, origin: str) -> None:
        self.origins[origin] -= 1
        if not self.origins[origin]:
            del self.origins[origin]

    def detach(self, queue: Queue) -> None:
        """End the waits on a queue, close its descriptors, and take it out of the names."""
        self._readers.end_all_waits(queue, HResult.MQ_ERROR_QUEUE_DELETED)
        for descriptor in queue.open_queue_descriptor_collection.values():
            descriptor.two_phase_reads.clear()
            descriptor.queue_reference = None
        queue.open_queue_descriptor_collection.clear()
        self.unregister(queue)

    def drop_if_unused(self, queue: Queue) -> None:
        """Forget a subqueue or outgoing queue that is empty and that nobody needs (G14, G58)."""
        if (
            queue.queue_manager is None
            or queue.is_journal
            or not (isinstance(queue, OutgoingQueue) or queue.parent)
            or (isinstance(queue, OutgoingQueue) and queue.state in IN_USE)
            or queue.open_queue_descriptor_collection
            or queue.pending_moves
        ):
            return
        index = self._store.index(queue.queue_id)
        if index.count or index.arriving() or (index.account.count and queue.parent is None):
            return
        self.detach(queue)
        with self._store.transaction("drop queue") as change:
            change.delete(Family.QUEUE, QUEUE_ID.pack(queue.queue_id))
            change.drop_index(queue.queue_id)


def journal_for(queue: Queue, queue_id: int) -> Queue:
    """The journal of a queue; it is part of the queue's own record, and named after it."""
    return Queue(
        identifier=uuid5(queue.identifier, "journal"),
        pathname=f"{queue.pathname};JOURNAL",
        qualified_pathname=f"{queue.qualified_pathname};JOURNAL",
        queue_type=queue.queue_type,
        transactional=queue.transactional,
        queue_id=queue_id,
        parent=queue,
        is_journal=True,
    )


def _path_of(name: DirectName) -> PathName:
    return PathName(name.host, name.queue, name.kind, name.suffix)


def _with_suffix(queue: Queue, suffix: SuffixType) -> Queue | None:
    if suffix is SuffixType.QUEUE_SUFFIX_TYPE_JOURNAL:
        return queue.journal_queue_reference
    return queue
