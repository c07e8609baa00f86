"""Queues: creating, deleting, finding, purging, and their properties.

[MS-MQDMPR] 3.1.7.1.3, .4, .7, .33. Opening and closing is in `opening`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4, uuid5

from rpcqm.adm.descriptor import Cursor, OpenQueueDescriptor
from rpcqm.adm.directory_object import NULL_GUID
from rpcqm.adm.enums import (
    INFINITE,
    OutgoingQueueState,
    PositionState,
    QueueAccessType,
    QueuePrivacyLevel,
    QueueShareMode,
    QueueType,
)
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.records import encode_queue
from rpcqm.base.completion import Completion, completed, start
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.codec.names.format_name import (
    DirectName,
    FormatName,
    FormatNameType,
    PrivateQueueFormatName,
    SuffixType,
)
from rpcqm.codec.names.path_name import MAXIMUM_SUBQUEUE_NAME, PathName, QueueKind
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.security.access_check import MQQMACCESSMASK, MQQUEUEACCESSMASK
from rpcqm.qm.names import local_key
from rpcqm.qm.opening import Opening
from rpcqm.qm.positions import purge_reason
from rpcqm.qm.properties import check_properties
from rpcqm.store.records import QUEUE_ID, Family
from rpcqm.store.transaction import Transaction as StoreTransaction

if TYPE_CHECKING:
    from rpcqm.qm.engine import QueueManagerEngine

PURGE_CHUNK = 4096
"""Messages that a purge removes in one commit."""

_COPIED = (
    "label",
    "type",
    "pathname",
    "journaling",
    "quota",
    "journal_quota",
    "authentication",
    "privacy_level",
    "transactional",
    "multicast_address",
    "security",
    "base_priority",
)
_IN_USE = frozenset(
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


class Queues:
    """All queues of the queue manager, and the descriptors of those that are open."""

    def __init__(self, engine: "QueueManagerEngine") -> None:
        self._engine = engine
        self._store = engine.store
        self.by_id: dict[int, Queue] = engine.queue_manager.queue_collection
        self.by_name: dict[str, Queue] = {}
        self.opening = Opening(engine)

    @property
    def descriptors(self) -> dict[int, OpenQueueDescriptor]:
        """Open queues by handle."""
        return self.opening.descriptors

    @property
    def cursors(self) -> dict[int, Cursor]:
        """Open cursors by handle."""
        return self._engine.readers.cursors

    def open_queue(
        self,
        format_name: FormatName | tuple[FormatName, ...],
        required_access: QueueAccessType,
        share_mode: QueueShareMode = QueueShareMode.DENY_NONE,
        *,
        identity: Identity | None = None,
    ) -> OpenQueueDescriptor:
        """Open one queue, or several for sending; see `opening.Opening.open_queue`."""
        return self.opening.open_queue(format_name, required_access, share_mode, identity)

    def close_queue(self, descriptor: OpenQueueDescriptor) -> None:
        """Close a queue; see `opening.Opening.close_queue`."""
        self.opening.close_queue(descriptor)

    # Finding

    def find_by_path(self, pathname: str) -> Queue | None:
        """The queue, journal or subqueue of that path name here; MQError when it is no path."""
        path = PathName.parse(pathname)
        return self.find_path(path) if self._engine.names.is_local(path.computer) else None

    def find_path(self, path: PathName) -> Queue | None:
        """The same for a path whose computer is this one."""
        queue = self.by_name.get(local_key(path.kind, path.queue))
        if queue is None or not path.suffix:
            return queue
        if path.is_journal:
            return queue.journal_queue_reference
        return queue.subqueue_collection.get(path.suffix.lower())

    def find_by_format_name(self, format_name: FormatName) -> Queue | None:
        """The queue here that a format name means, None when it means none here."""
        value = format_name.value
        if isinstance(value, str):
            name = format_name.direct_name
            return self.find_path(_path_of(name)) if self.is_local_direct(name) else None
        if isinstance(value, PrivateQueueFormatName):
            return self._find_private(value, format_name.suffix)
        if isinstance(value, UUID):
            return self._find_by_guid(format_name.type, value, format_name.suffix)
        return None

    def find_addressed_here(self, format_name: FormatName) -> Queue | None:
        """The same for a message that has arrived: whatever host its direct name calls (G21)."""
        if isinstance(format_name.value, str):
            return self.find_path(_path_of(format_name.direct_name))
        return self.find_by_format_name(format_name)

    def is_local_direct(self, name: DirectName) -> bool:
        """Whether a direct name is about this machine (G10)."""
        return self._engine.names.is_local(name.host)

    def _find_private(self, value: PrivateQueueFormatName, suffix: SuffixType) -> Queue | None:
        if value.source_queue_manager != self._engine.queue_manager.identifier:
            return None
        queue = self.by_id.get(value.private_queue_identifier)
        if queue is None or queue.private_queue_number != value.private_queue_identifier:
            return None
        return _with_suffix(queue, suffix)

    def _find_by_guid(self, kind: FormatNameType, guid: UUID, suffix: SuffixType) -> Queue | None:
        if kind is FormatNameType.QUEUE_FORMAT_TYPE_MACHINE:
            name = _MACHINE_QUEUES.get(suffix)
            if guid != self._engine.queue_manager.identifier or name is None:
                return None
            return self.by_name[local_key(QueueKind.SYSTEM, name)]
        if kind is not FormatNameType.QUEUE_FORMAT_TYPE_PUBLIC:
            return None
        for queue in self.by_id.values():
            if queue.identifier == guid and queue.queue_type is QueueType.PUBLIC:
                return _with_suffix(queue, suffix)
        return None

    def format_name_of(self, queue: Queue) -> FormatName:
        """The name by which others can open a queue: direct, unless a directory has it."""
        if isinstance(queue, OutgoingQueue):
            return FormatName.parse(queue.destination_format_name)
        if queue.queue_type is QueueType.PUBLIC and self._engine.directory.is_there:
            return _public_name(queue)
        return FormatName.of_path(PathName.parse(queue.pathname))

    def are_related(self, source: Queue, target: Queue) -> bool:
        """Whether messages can be moved: a queue and its subqueue, or two subqueues (G36)."""
        if source is target or source.is_journal or target.is_journal:
            return False
        return source.main is target.main

    # Creating

    def set_queue_defaults(self, queue: Queue, identity: Identity | None = None) -> None:
        """Give a queue that is to be created its defaults ([MS-MQDMPR] 3.1.7.1.33, G115)."""
        queue.label = ""
        queue.type = NULL_GUID
        queue.journaling = False
        queue.quota = self._engine.settings.queue_quota
        queue.journal_quota = INFINITE
        queue.authentication = False
        queue.privacy_level = QueuePrivacyLevel.OPTIONAL
        queue.transactional = False
        queue.multicast_address = None
        queue.security = self._engine.access.default_queue_security(identity)
        queue.base_priority = 0

    def new_queue(
        self, pathname: str, identity: Identity | None = None, **attributes: Any
    ) -> Queue:
        """A queue with these attributes and the defaults, for `create_queue`."""
        queue = Queue()
        self.set_queue_defaults(queue, identity)
        queue.pathname = pathname
        for name, value in attributes.items():
            setattr(queue, name, value)
        return queue

    def create_queue(
        self, queue: Queue, *, identity: Identity | None = None, skip_directory: bool = False
    ) -> Completion[Queue]:
        """Create a queue and its journal ([MS-MQDMPR] 3.1.7.1.3).

        The completion succeeds with the new element when it is durable. MQError:
        ILLEGAL_QUEUE_PATHNAME, QUEUE_EXISTS, ACCESS_DENIED, NO_DS for a public queue that is to
        be published, QUEUE_NOT_FOUND for a subqueue of nothing, and those of the properties.
        """
        path = self._checked_path(queue.pathname, identity)
        self._engine.access.check_queue_manager(identity, MQQMACCESSMASK.MQSEC_CREATE_QUEUE)
        check_properties({name: getattr(queue, name) for name in _COPIED})
        security = self._engine.access.default_queue_security(identity, queue.security)
        if self.find_path(path) is not None:
            raise MQError(HResult.MQ_ERROR_QUEUE_EXISTS, queue.pathname)
        if path.suffix:
            return self._create_by_name(path)
        new = self._instantiate(queue, path, security)
        if path.kind is QueueKind.PUBLIC:
            if skip_directory:
                _follow_the_directory(new, queue)
            else:
                self._engine.directory.publish(new)
        new.journal_queue_reference = self.journal_for(new, self._store.counters.queue_id.take())
        outcome: Completion[Queue] = Completion()
        with self._store.transaction("create queue") as change:
            self._put(change, new)
            change.call_after(lambda: outcome.succeed(new))
        self.register(new)
        return outcome

    def _checked_path(self, pathname: str, identity: Identity | None) -> PathName:
        path = PathName.parse(pathname)
        if not self._engine.names.is_local(path.computer) or path.is_journal:
            raise MQError(HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME, pathname)
        if path.kind is QueueKind.SYSTEM and identity is not None:
            raise MQError(HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME, "the system's own queues")
        return path

    def _create_by_name(self, path: PathName) -> Completion[Queue]:
        parent = self.find_path(path.parent)
        if parent is None:
            raise MQError(HResult.MQ_ERROR_QUEUE_NOT_FOUND, str(path.parent))
        subqueue = self.create_subqueue(parent, path.suffix)
        barrier = self._barrier()
        outcome: Completion[Queue] = Completion()
        barrier.add_done_callback(lambda _: outcome.succeed(subqueue))
        return outcome

    def _barrier(self) -> Completion[None]:
        """Succeeds when everything up to now is committed."""
        with self._store.transaction("barrier") as change:
            return change.committed

    def _instantiate(self, queue: Queue, path: PathName, security: bytes) -> Queue:
        new = Queue()
        for name in _COPIED:
            setattr(new, name, getattr(queue, name))
        self.name_here(new, path)
        new.security = security
        new.identifier = uuid4()
        new.queue_type = _TYPES[path.kind]
        new.create_time = new.modify_time = self._engine.clock.now() // 1000
        new.queue_id = self._store.counters.queue_id.take()
        if new.queue_type is QueueType.PRIVATE:  # the identifier is never used again (G17)
            new.private_queue_number = new.queue_id
        return new

    def name_here(self, queue: Queue, path: PathName) -> None:
        """Give a queue the path names that it has on a machine of today's name."""
        names = self._engine.names
        queue.pathname = str(names.path(path.kind, path.queue, path.suffix))
        queue.qualified_pathname = str(replace(path, computer=names.qualified_computer_name))

    def journal_for(self, queue: Queue, queue_id: int) -> Queue:
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

    def create_subqueue(self, parent: Queue, name: str) -> Queue:
        """A subqueue, made when it is opened for the first time (G14)."""
        if parent.parent is not None or not 1 <= len(name) <= MAXIMUM_SUBQUEUE_NAME:
            raise MQError(HResult.MQ_ERROR_QUEUE_NOT_FOUND)
        subqueue = Queue(
            identifier=uuid4(),
            pathname=f"{parent.pathname};{name}",
            qualified_pathname=f"{parent.qualified_pathname};{name}",
            queue_type=parent.queue_type,
            transactional=parent.transactional,
            create_time=self._engine.clock.now() // 1000,
            modify_time=self._engine.clock.now() // 1000,
            queue_id=self._store.counters.queue_id.take(),
            parent=parent,
            subqueue_name=name,
        )
        with self._store.transaction("create subqueue") as change:
            self._put(change, subqueue)
        self.register(subqueue)
        return subqueue

    def register(self, queue: Queue) -> None:
        """Let a queue be found, with its journal; its messages are in the store's index."""
        queue.queue_manager = self._engine.queue_manager
        index = self._store.index(queue.queue_id)
        queue.message_position_list = index
        self.by_id[queue.queue_id] = queue
        if isinstance(queue, OutgoingQueue):
            destination = FormatName.parse(queue.destination_format_name)
            self._engine.outgoing.by_destination[destination] = queue
        elif queue.parent is None:
            path = PathName.parse(queue.pathname)
            self.by_name[local_key(path.kind, path.queue)] = queue
        elif not queue.is_journal:
            queue.parent.subqueue_collection[queue.subqueue_name.lower()] = queue
            index.charge_to(self._store.index(queue.parent.queue_id).account)
        if queue.journal_queue_reference is not None:
            self.register(queue.journal_queue_reference)

    def _put(self, change: StoreTransaction, queue: Queue) -> None:
        change.put(Family.QUEUE, QUEUE_ID.pack(queue.queue_id), encode_queue(queue))

    # Deleting

    def delete_queue(
        self, queue: Queue, *, identity: Identity | None = None, skip_directory: bool = False
    ) -> Completion[None]:
        """Delete a queue with its journal and subqueues ([MS-MQDMPR] 3.1.7.1.4, G14).

        It cannot be found any more at once; the completion succeeds when it is durable. Waiting
        readers get MQ_ERROR_QUEUE_DELETED, descriptors lose their queue. The system's own queues
        and journals cannot be deleted.
        """
        if queue.queue_manager is None:
            raise MQError(HResult.MQ_ERROR_QUEUE_NOT_FOUND)
        if queue.queue_type is QueueType.SYSTEM or queue.is_journal:
            raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, queue.pathname)
        self._engine.access.check_queue(queue, identity, MQQUEUEACCESSMASK.MQSEC_DELETE_QUEUE)
        parts = [*queue.subqueue_collection.values(), queue]
        if queue.journal_queue_reference is not None:
            parts.insert(0, queue.journal_queue_reference)
        if not skip_directory:
            self._engine.directory.withdraw(queue)
        for part in parts:
            self._detach(part)
        return start(self._delete(parts))

    def _detach(self, queue: Queue) -> None:
        """Let nobody find or use a queue any more."""
        self._engine.readers.end_all_waits(queue, HResult.MQ_ERROR_QUEUE_DELETED)
        for descriptor in queue.open_queue_descriptor_collection.values():
            descriptor.two_phase_reads.clear()
            descriptor.queue_reference = None
        queue.open_queue_descriptor_collection.clear()
        self.unregister(queue)

    def unregister(self, queue: Queue) -> None:
        """Let a queue not be found any more; the opposite of `register`, without its journal."""
        queue.queue_manager = None
        self.by_id.pop(queue.queue_id, None)
        if isinstance(queue, OutgoingQueue):
            destination = FormatName.parse(queue.destination_format_name)
            self._engine.outgoing.by_destination.pop(destination, None)
        elif queue.parent is None:
            path = PathName.parse(queue.pathname)
            self.by_name.pop(local_key(path.kind, path.queue), None)
        else:
            queue.parent.subqueue_collection.pop(queue.subqueue_name.lower(), None)

    async def _delete(self, parts: list[Queue]) -> None:
        """Remove what is in the queues, once nothing is on its way into them any more."""
        if any(self._store.index(part.queue_id).pending for part in parts):
            await self._barrier()
        with self._store.transaction("delete queue") as change:
            for part in parts:
                self._remove_all(change, part)
                change.delete(Family.QUEUE, QUEUE_ID.pack(part.queue_id))
                change.drop_index(part.queue_id)
            committed = change.committed
        await committed

    def _remove_all(self, change: StoreTransaction, queue: Queue) -> None:
        deleted = self._engine.positions.message_position_deleted
        index = self._store.index(queue.queue_id)
        for key in list(index.keys()):
            if index.state(key) is not PositionState.LEAVING:
                deleted(change, queue, key, MessageClass.MQMSG_CLASS_NACK_Q_DELETED)

    def drop_if_unused(self, queue: Queue) -> None:
        """Forget a subqueue or outgoing queue that is empty and that nobody needs (G14, G58)."""
        if (
            queue.queue_manager is None
            or queue.is_journal
            or not (isinstance(queue, OutgoingQueue) or queue.parent)
            or (isinstance(queue, OutgoingQueue) and queue.state in _IN_USE)
            or queue.open_queue_descriptor_collection
            or queue.pending_moves
        ):
            return
        index = self._store.index(queue.queue_id)
        if index.count or index.pending or (index.account.count and queue.parent is None):
            return
        self._detach(queue)
        with self._store.transaction("drop queue") as change:
            change.delete(Family.QUEUE, QUEUE_ID.pack(queue.queue_id))
            change.drop_index(queue.queue_id)

    # Purging

    def purge_queue(self, queue: Queue) -> Completion[int]:
        """Remove all messages that nobody holds; the others when they are let go.

        The completion succeeds with the number removed, once that is durable. A message that is
        leaving is left alone (G61). Source: [MS-MQDMPR] 3.1.7.1.7.
        """
        if queue.queue_manager is None:
            raise MQError(HResult.MQ_ERROR_QUEUE_DELETED)
        last = queue.message_position_list.last(False)
        return completed(0) if last is None else start(self._purge(queue, last))

    async def _purge(self, queue: Queue, last: int) -> int:
        """Remove in chunks, so that a long queue does not keep everybody waiting."""
        purged, after = 0, None
        while queue.queue_manager is not None:
            keys = queue.message_position_list.page(after, PURGE_CHUNK, available=False)
            keys = [key for key in keys if key <= last]
            if not keys:
                break
            with self._store.transaction("purge") as change:
                purged += sum(self._purge_one(change, queue, key) for key in keys)
                committed = change.committed
            after = keys[-1]
            await committed
        return purged

    def _purge_one(self, change: StoreTransaction, queue: Queue, key: int) -> bool:
        state = queue.message_position_list.state(key)
        if state is PositionState.AVAILABLE:
            self._engine.positions.message_position_deleted(change, queue, key, purge_reason(queue))
            return True
        if state is PositionState.LOCKED:
            change.purge(queue.queue_id, key)
        return False

    # Properties

    def set_properties(
        self, queue: Queue, changes: Mapping[str, Any], *, identity: Identity | None = None
    ) -> Completion[None]:
        """Change attributes of a queue, all or none; done when durable.

        MQ_ERROR_PROPERTY_NOTALLOWED for what cannot be changed, and those of `check_properties`.
        """
        main = queue.main
        if main.queue_type is QueueType.SYSTEM or isinstance(main, OutgoingQueue):
            raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, "not a queue of an application")
        self._engine.access.check_queue(
            main, identity, MQQUEUEACCESSMASK.MQSEC_SET_QUEUE_PROPERTIES
        )
        check_properties(changes, changing=True)
        if changes.get("multicast_address") and main.transactional:
            raise MQError(HResult.MQ_ERROR_PROPERTIES_CONFLICT, "a transactional multicast queue")
        return self._change(main, changes)

    def get_security(self, queue: Queue, parts: int, *, identity: Identity | None = None) -> bytes:
        """The `parts` (SecurityInformation) of a queue's descriptor, self-relative."""
        return self._engine.access.get_queue_security(queue, parts, identity)

    def set_security(
        self, queue: Queue, parts: int, descriptor: bytes, *, identity: Identity | None = None
    ) -> Completion[None]:
        """Replace `parts` of a queue's descriptor; done when durable."""
        security = self._engine.access.changed_queue_security(queue, parts, descriptor, identity)
        return self._change(queue.main, {"security": security})

    def _change(self, queue: Queue, changes: Mapping[str, Any]) -> Completion[None]:
        before = {name: getattr(queue, name) for name in (*changes, "modify_time")}
        for name, value in changes.items():
            setattr(queue, name, value)
        queue.modify_time = self._engine.clock.now() // 1000
        try:
            self._engine.directory.publish_changes(queue, list(before))
            with self._store.transaction("set properties") as change:
                self._put(change, queue)
                return change.committed
        except BaseException:
            for name, value in before.items():
                setattr(queue, name, value)
            raise


_TYPES = {
    QueueKind.PRIVATE: QueueType.PRIVATE,
    QueueKind.PUBLIC: QueueType.PUBLIC,
    QueueKind.SYSTEM: QueueType.SYSTEM,
}


def _follow_the_directory(new: Queue, listed: Queue) -> None:
    """A queue that the directory lists already is the one that it calls by this identifier."""
    if listed.identifier.int:
        new.identifier = listed.identifier
    new.full_path, new.directory_path = listed.full_path, listed.directory_path


def _path_of(name: DirectName) -> PathName:
    return PathName(name.host, name.queue, name.kind, name.suffix)


def _public_name(queue: Queue) -> FormatName:
    """PUBLIC=, with its suffix for a journal; subqueues have direct names only."""
    public = FormatNameType.QUEUE_FORMAT_TYPE_PUBLIC
    if queue.subqueue_name:
        return FormatName.of_path(PathName.parse(queue.pathname))
    if queue.is_journal:
        journal = SuffixType.QUEUE_SUFFIX_TYPE_JOURNAL
        return FormatName(public, queue.main.identifier, journal)
    return FormatName(public, queue.identifier)


def _with_suffix(queue: Queue, suffix: SuffixType) -> Queue | None:
    if suffix is SuffixType.QUEUE_SUFFIX_TYPE_JOURNAL:
        return queue.journal_queue_reference
    return queue
