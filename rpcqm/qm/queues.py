"""Queues: creating, deleting, purging, and their properties.

[MS-MQDMPR] 3.1.7.1.3, .4, .7, .33. Finding is in `registry`, opening and closing in `opening`.
"""

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from functools import partial
from uuid import uuid4

from rpcqm.adm.directory_object import NULL_GUID
from rpcqm.adm.enums import PositionState, QueueType
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.records import encode_queue
from rpcqm.base.clock import Clock
from rpcqm.base.completion import Completion, completed, start
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.base.text import folded
from rpcqm.codec.names.format_name import FormatName, SuffixType
from rpcqm.codec.names.path_name import MAXIMUM_SUBQUEUE_NAME, PathName, QueueKind
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.security.access_check import MQQMACCESSMASK, MQQUEUEACCESSMASK
from rpcqm.codec.types.mqvalues import INFINITE, FormatNameType, QueuePrivacyLevel
from rpcqm.qm.access import AccessControl
from rpcqm.qm.directory import Directory
from rpcqm.qm.names import LocalNames
from rpcqm.qm.positions import Positions, purge_reason
from rpcqm.qm.properties import check_properties
from rpcqm.qm.registry import QueueRegistry, journal_for
from rpcqm.qm.settings import QueueManagerSettings
from rpcqm.store.records import QUEUE_ID, Family
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction

RESERVED = "names that end with $ are reserved for the system"
PURGE_CHUNK = 4096
"""Messages that a purge removes in one commit."""

Together = Callable[[StoreTransaction], object]
TogetherWith = Callable[[Queue, StoreTransaction], object]
"""Adds changes that have to be durable with another one."""

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


@dataclass(eq=False, repr=False)
class QueueEvents:
    """Creating, changing, purging and deleting queues."""

    _store: Store
    _clock: Clock
    _settings: QueueManagerSettings
    _names: LocalNames
    _registry: QueueRegistry
    _access: AccessControl
    _directory: Directory
    _positions: Positions

    def __post_init__(self) -> None:
        self._directory.create_listed = partial(self.create_queue, skip_directory=True)
        self.gives_up: Callable[[StoreTransaction, Queue, int], bool] = lambda *_: False
        """Whether the holder of a message leaves it to a purge after all."""
        self._being_published: set[str] = set()
        """Names of queues that wait for identifiers of a real directory."""

    # Names

    def format_name_of(self, queue: Queue) -> FormatName:
        """The name by which others can open a queue: direct, unless a directory has it."""
        if isinstance(queue, OutgoingQueue):
            return FormatName.parse(queue.destination_format_name)
        if queue.queue_type is QueueType.PUBLIC and self._directory.is_there:
            return _public_name(queue)
        return FormatName.of_path(PathName.parse(queue.pathname))

    # Creating

    def set_queue_defaults(self, queue: Queue, identity: Identity | None = None) -> None:
        """Give a new queue its defaults ([MS-MQDMPR] 3.1.7.1.33, G115)."""
        queue.label = ""
        queue.type = NULL_GUID
        queue.journaling = False
        queue.quota = self._settings.queue_quota
        queue.journal_quota = INFINITE
        queue.authentication = False
        queue.privacy_level = QueuePrivacyLevel.MQ_PRIV_LEVEL_OPTIONAL
        queue.transactional = False
        queue.multicast_address = None
        queue.security = self._access.default_queue_security(identity)
        queue.base_priority = 0

    def new_queue(
        self, pathname: str, identity: Identity | None = None, **attributes: object
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
        self._access.check_queue_manager(identity, MQQMACCESSMASK.MQSEC_CREATE_QUEUE)
        check_properties({name: getattr(queue, name) for name in _COPIED})
        security = self._access.default_queue_security(identity, queue.security)
        if self._registry.find_path(path) is not None:
            raise MQError(HResult.MQ_ERROR_QUEUE_EXISTS, queue.pathname)
        if path.suffix:
            return self._create_by_name(path)
        new = self._instantiate(queue, path, security)
        if path.kind is QueueKind.PUBLIC:
            if skip_directory:
                _follow_the_directory(new, queue)
            elif self._directory.writes(new):
                return start(self._create_there(new))
            else:
                self._directory.publish(new)
        return self._create(new)

    async def _create_there(self, new: Queue) -> Queue:
        """Create a public queue, after a real directory has given it its identifier."""
        name = folded(new.pathname)
        if name in self._being_published:
            raise MQError(HResult.MQ_ERROR_QUEUE_EXISTS, new.pathname)
        self._being_published.add(name)
        try:
            await self._directory.publish_there(new)
        finally:
            self._being_published.discard(name)
        try:
            if self._registry.find_path(PathName.parse(new.pathname)) is not None:
                raise MQError(HResult.MQ_ERROR_QUEUE_EXISTS, new.pathname)
            creation = self._create(new, self._directory.arrived)
        except BaseException:
            self._directory.look_again(new)
            raise
        return await creation

    def _create(self, new: Queue, together: TogetherWith | None = None) -> Completion[Queue]:
        new.journal_queue_reference = journal_for(new, self._store.counters.queue_id.take())
        outcome: Completion[Queue] = Completion()
        with self._store.transaction("create queue") as change:
            self._put(change, new)
            if together is not None:
                together(new, change)
            change.call_after(lambda: outcome.succeed(new))
        self._registry.register(new)
        return outcome

    def _checked_path(self, pathname: str, identity: Identity | None) -> PathName:
        path = PathName.parse(pathname)
        if not self._names.is_local(path.computer) or path.is_journal:
            raise MQError(HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME, pathname)
        if path.kind is QueueKind.SYSTEM and identity is not None:
            raise MQError(HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME, "the system's own queues")
        if path.queue.endswith("$") and identity is not None:
            raise MQError(HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME, f"{path.queue}: {RESERVED}")
        return path

    def _create_by_name(self, path: PathName) -> Completion[Queue]:
        parent = self._registry.find_path(path.parent)
        if parent is None:
            raise MQError(HResult.MQ_ERROR_QUEUE_NOT_FOUND, str(path.parent))
        subqueue = self.create_subqueue(parent, path.suffix)
        barrier = self._barrier()
        outcome: Completion[Queue] = Completion()
        barrier.add_done_callback(lambda _: outcome.succeed(subqueue))
        return outcome

    def _barrier(self) -> Completion[None]:
        """Succeeds when all changes up to now are committed."""
        with self._store.transaction("barrier") as change:
            return change.committed

    def _instantiate(self, queue: Queue, path: PathName, security: bytes) -> Queue:
        new = Queue()
        for name in _COPIED:
            setattr(new, name, getattr(queue, name))
        self._registry.name_here(new, path)
        new.security = security
        new.identifier = uuid4()
        new.queue_type = _TYPES[path.kind]
        new.create_time = new.modify_time = self._clock.now() // 1000
        new.queue_id = self._store.counters.queue_id.take()
        if new.queue_type is QueueType.PRIVATE:  # the identifier is never used again (G17)
            new.private_queue_number = new.queue_id
        return new

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
            create_time=self._clock.now() // 1000,
            modify_time=self._clock.now() // 1000,
            queue_id=self._store.counters.queue_id.take(),
            parent=parent,
            subqueue_name=name,
        )
        with self._store.transaction("create subqueue") as change:
            self._put(change, subqueue)
        self._registry.register(subqueue)
        return subqueue

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
        self._access.check_queue(queue, identity, MQQUEUEACCESSMASK.MQSEC_DELETE_QUEUE)
        if not skip_directory and self._directory.writes(queue):
            return start(self._delete_there(queue))
        # before it is gone: deferred requests still find the queue
        parts, arriving = self._parts(queue)
        if not skip_directory:
            self._directory.withdraw(queue)
        return self._detach(parts, arriving)

    def _parts(self, queue: Queue) -> tuple[list[Queue], bool]:
        """A queue with its journal and subqueues, and whether messages are just arriving in any."""
        parts = [*queue.subqueue_collection.values(), queue]
        if queue.journal_queue_reference is not None:
            parts.insert(0, queue.journal_queue_reference)
        return parts, any(part.message_position_list.arriving() for part in parts)

    async def _delete_there(self, queue: Queue) -> None:
        """Delete a public queue, after its object in a real directory."""
        await self._directory.withdraw_there(queue)
        if queue.queue_manager is None:
            self._directory.look_again(queue)
            raise MQError(HResult.MQ_ERROR_QUEUE_NOT_FOUND)
        parts, arriving = self._parts(queue)
        await self._detach(parts, arriving, partial(self._directory.arrived, queue))

    def _detach(
        self, parts: list[Queue], arriving: bool, together: Together | None = None
    ) -> Completion[None]:
        for part in parts:
            self._registry.detach(part)
        return start(self._delete(parts, arriving, together))

    async def _delete(
        self, parts: list[Queue], arriving: bool, together: Together | None = None
    ) -> None:
        """Remove all messages of the queues, once no more are being written into them."""
        if arriving:
            await self._barrier()
        with self._store.transaction("delete queue") as change:
            for part in parts:
                self._remove_all(change, part)
                change.delete(Family.QUEUE, QUEUE_ID.pack(part.queue_id))
                change.drop_index(part.queue_id)
            if together is not None:
                together(change)
            committed = change.committed
        await committed

    def _remove_all(self, change: StoreTransaction, queue: Queue) -> None:
        deleted = self._positions.message_position_deleted
        index = self._store.index(queue.queue_id)
        for key in list(index.keys()):
            if index.state(key) is not PositionState.LEAVING:
                deleted(change, queue, key, MessageClass.MQMSG_CLASS_NACK_Q_DELETED)

    # Purging

    def purge_queue(self, queue: Queue) -> Completion[int]:
        """Remove all messages that nobody holds; the others when their holders release them.

        The completion succeeds with the number removed, once that is durable. A message that is
        leaving is left alone (G61); those whose commit is on its way are removed behind it (G379).
        Source: [MS-MQDMPR] 3.1.7.1.7.
        """
        if queue.queue_manager is None:
            raise MQError(HResult.MQ_ERROR_QUEUE_DELETED)
        positions = queue.message_position_list
        last, arriving = positions.last(False), positions.arriving()
        if arriving:
            return start(self._purge_all(queue, last, arriving))
        return completed(0) if last is None else start(self._purge(queue, last))

    async def _purge_all(self, queue: Queue, last: int | None, arriving: list[int]) -> int:
        arrived = self._barrier()
        purging = completed(0) if last is None else start(self._purge(queue, last))
        await arrived
        purged = 0
        for first in range(0, len(arriving), PURGE_CHUNK):
            purged += await self._purge_keys(queue, arriving[first : first + PURGE_CHUNK])
        return purged + await purging

    async def _purge(self, queue: Queue, last: int) -> int:
        """Remove in chunks, so that a long queue does not keep everybody waiting."""
        purged, after = 0, None
        while queue.queue_manager is not None:
            keys = queue.message_position_list.page(after, PURGE_CHUNK, available=False)
            keys = [key for key in keys if key <= last]
            if not keys:
                break
            after = keys[-1]
            purged += await self._purge_keys(queue, keys)
        return purged

    async def _purge_keys(self, queue: Queue, keys: Iterable[int]) -> int:
        if queue.queue_manager is None:
            return 0
        with self._store.transaction("purge") as change:
            purged = sum(self._purge_one(change, queue, key) for key in keys)
            committed = change.committed
        await committed
        return purged

    def _purge_one(self, change: StoreTransaction, queue: Queue, key: int) -> bool:
        state = queue.message_position_list.state(key)
        held = state in (PositionState.LOCKED, PositionState.PURGE_PENDING)
        if state is PositionState.AVAILABLE or (held and self.gives_up(change, queue, key)):
            self._positions.message_position_deleted(change, queue, key, purge_reason(queue))
            return True
        if state is PositionState.LOCKED:
            change.purge(queue.queue_id, key)
        return False

    # Properties

    def set_properties(
        self, queue: Queue, changes: Mapping[str, object], *, identity: Identity | None = None
    ) -> Completion[None]:
        """Change attributes of a queue, all or none; done when durable.

        Raises MQ_ERROR_PROPERTY_NOTALLOWED for what cannot be changed, and those of
        `check_properties`.
        """
        main = queue.main
        if main.queue_type is QueueType.SYSTEM or isinstance(main, OutgoingQueue):
            raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, "not a queue of an application")
        self._access.check_queue(main, identity, MQQUEUEACCESSMASK.MQSEC_SET_QUEUE_PROPERTIES)
        check_properties(changes, changing=True)
        if changes.get("multicast_address") and main.transactional:
            raise MQError(HResult.MQ_ERROR_PROPERTIES_CONFLICT, "a transactional multicast queue")
        return self._change(main, changes)

    def get_security(self, queue: Queue, parts: int, *, identity: Identity | None = None) -> bytes:
        """The `parts` (SecurityInformation) of a queue's descriptor, self-relative."""
        return self._access.get_queue_security(queue, parts, identity)

    def set_security(
        self, queue: Queue, parts: int, descriptor: bytes, *, identity: Identity | None = None
    ) -> Completion[None]:
        """Replace `parts` of a queue's descriptor; done when durable."""
        security = self._access.changed_queue_security(queue, parts, descriptor, identity)
        return self._change(queue.main, {"security": security})

    def _change(self, queue: Queue, changes: Mapping[str, object]) -> Completion[None]:
        if self._directory.writes(queue, changes):
            return start(self._change_there(queue, changes))
        return self._change_here(queue, changes)

    async def _change_there(self, queue: Queue, changes: Mapping[str, object]) -> None:
        """Change a public queue whose object in a real directory has to be changed first."""
        wanted = copy(queue)
        for name, value in changes.items():
            setattr(wanted, name, value)
        await self._directory.publish_changes_there(wanted, list(changes))
        try:
            if queue.queue_manager is None:
                raise MQError(HResult.MQ_ERROR_QUEUE_NOT_FOUND)
            changed = self._change_here(queue, changes, partial(self._directory.arrived, queue))
        except BaseException:
            self._directory.look_again(queue)
            raise
        await changed

    def _change_here(
        self, queue: Queue, changes: Mapping[str, object], together: Together | None = None
    ) -> Completion[None]:
        before = {name: getattr(queue, name) for name in (*changes, "modify_time")}
        self._store.carry_out_first()  # what was put off sees the old ones
        for name, value in changes.items():
            setattr(queue, name, value)
        queue.modify_time = self._clock.now() // 1000
        try:
            self._directory.publish_changes(queue, list(before))
            with self._store.transaction("set properties") as change:
                self._put(change, queue)
                if together is not None:
                    together(change)
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


def _public_name(queue: Queue) -> FormatName:
    """PUBLIC=, with its suffix for a journal; subqueues have direct names only."""
    public = FormatNameType.QUEUE_FORMAT_TYPE_PUBLIC
    if queue.subqueue_name:
        return FormatName.of_path(PathName.parse(queue.pathname))
    if queue.is_journal:
        journal = SuffixType.QUEUE_SUFFIX_TYPE_JOURNAL
        return FormatName(public, queue.main.identifier, journal)
    return FormatName(public, queue.identifier)
