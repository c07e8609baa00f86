"""Opening and closing queues ([MS-MQDMPR] 3.1.7.1.5, .6)."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.adm.enums import QueueType
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.clock import Clock
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.base.origin import ORIGIN
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.written import no_such_queue
from rpcqm.codec.types.mqvalues import FormatNameType, QueueAccessType, QueueShareMode
from rpcqm.qm.access import AccessControl
from rpcqm.qm.acknowledgement_queues import AcknowledgementQueues
from rpcqm.qm.directory import MAXIMUM_ELEMENTS, Directory
from rpcqm.qm.handles import new_handle
from rpcqm.qm.outgoing import Outgoing
from rpcqm.qm.outgoing_bounds import OWN, origin_of
from rpcqm.qm.positions import Positions
from rpcqm.qm.queues import QueueEvents
from rpcqm.qm.readers import WaitingReaders
from rpcqm.qm.registry import QueueRegistry
from rpcqm.qm.sender_rights import takes_own_messages
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction

_SEND = QueueAccessType.SEND_ACCESS
_SYSTEM = QueueType.SYSTEM
_SHARED = QueueShareMode.DENY_NONE
_RECEIVE = QueueAccessType.RECEIVE_ACCESS
_PEEKS = frozenset({QueueAccessType.PEEK_ACCESS, QueueAccessType.PEEK_ADMIN_ACCESS})
_ADMIN = frozenset({QueueAccessType.RECEIVE_ADMIN_ACCESS, QueueAccessType.PEEK_ADMIN_ACCESS})
_SENT_ONLY = frozenset({_SEND, *_ADMIN})
"""The ways of opening names whose messages can only be sent, or wait here for that."""
_APPLICATION_ACCESSES = frozenset(QueueAccessType) - {QueueAccessType.MOVE_ACCESS}
_READ_ONLY = frozenset(
    {
        FormatNameType.QUEUE_FORMAT_TYPE_MACHINE,
        FormatNameType.QUEUE_FORMAT_TYPE_CONNECTOR,
    }
)

_UNRESOLVED = frozenset(
    {
        FormatNameType.QUEUE_FORMAT_TYPE_MACHINE,
        FormatNameType.QUEUE_FORMAT_TYPE_CONNECTOR,
        FormatNameType.QUEUE_FORMAT_TYPE_DL,
    }
)

READ_ACCESSES = frozenset({QueueAccessType.RECEIVE_ACCESS, QueueAccessType.PEEK_ACCESS})
"""The ways of opening a queue of another queue manager."""

HTTP_IS_OFF = "messages over HTTP are off; set http_port or https_port"


@dataclass(eq=False, repr=False)
class Opening:
    """Open queues by their handles."""

    _store: Store
    _queue_manager: QueueManager
    _registry: QueueRegistry
    _readers: WaitingReaders
    _positions: Positions
    _access: AccessControl
    _directory: Directory
    _outgoing: Outgoing
    _acknowledgement_queues: AcknowledgementQueues
    _queues: QueueEvents
    _clock: Clock

    def __post_init__(self) -> None:
        self.descriptors: dict[int, OpenQueueDescriptor] = {}
        self._context_values: set[int] = set()
        self._numbers = itertools.count(1)
        self.look_hooks: list[Callable[[Queue], None]] = []
        """Called with a system queue that is opened for reading, and with one that is closed."""

    def open_queue(
        self,
        format_name: FormatName | tuple[FormatName, ...],
        required_access: QueueAccessType,
        share_mode: QueueShareMode = _SHARED,
        *,
        identity: Identity | None = None,
    ) -> OpenQueueDescriptor:
        """Open a queue by format name, or several for sending ([MS-MQDMPR] 3.1.7.1.5).

        The identity's rights are checked here (G9). A subqueue of an existing queue is made when
        it is opened for reading or moving (G14), an outgoing queue when somebody sends.
        Raises MQError: QUEUE_NOT_FOUND, SHARING_VIOLATION, UNSUPPORTED_FORMATNAME_OPERATION,
        UNSUPPORTED_ACCESS_MODE, ACCESS_DENIED.
        """
        names = self._directory.expand_format_name(format_name)
        if len(names) > 1:
            return self._open_several(names, required_access, share_mode, identity)
        name = names[0]
        self._check_name(name, required_access)
        queue = self._find(name, required_access, identity)
        if share_mode != _SHARED and identity is not None and _keeps_nobody_out(identity):
            self._access.check_open(queue, identity, _RECEIVE)  # others are kept out (G85)
        _check_sharing(queue, required_access, share_mode)
        descriptor = self._describe(name, required_access, share_mode, queue, identity)
        self._notice_look(descriptor, queue)
        return descriptor

    def open_to_send_at_once(
        self, format_name: FormatName | tuple[FormatName, ...], identity: Identity
    ) -> OpenQueueDescriptor:
        """The same for one send at once: nobody else runs before the queue is closed again.

        For a local queue the descriptor is on no list, as nobody could meet it there; closing it
        does nothing.
        """
        names = self._directory.expand_format_name(format_name)
        queue = self._registry.find_by_format_name(names[0]) if len(names) == 1 else None
        if queue is None or isinstance(queue, OutgoingQueue):
            return self.open_queue(format_name, _SEND, identity=identity)
        self._check_name(names[0], _SEND)
        self.check_to_send(queue, identity)
        return OpenQueueDescriptor(0, 0, _SEND, _SHARED, names[0], queue)

    def check_to_send(self, queue: Queue, identity: Identity) -> None:
        """Raise MQError if a caller may not send to a local queue, whose name is for sending."""
        self._check_here(queue, _SEND, identity)

    def check_to_receive(self, queue: Queue, identity: Identity) -> None:
        """The same for receiving; nobody else runs before it is over."""
        self._check_here(queue, _RECEIVE, identity)
        _check_sharing(queue, _RECEIVE, _SHARED)

    def _notice_look(self, descriptor: OpenQueueDescriptor, queue: Queue) -> None:
        reads = descriptor.access_type in READ_ACCESSES and descriptor.notices
        if reads and queue.queue_type is _SYSTEM:
            for hook in self.look_hooks:
                hook(queue)

    def _open_several(
        self,
        names: tuple[FormatName, ...],
        required_access: QueueAccessType,
        share_mode: QueueShareMode,
        identity: Identity | None,
    ) -> OpenQueueDescriptor:
        """A descriptor over one descriptor per element; if one fails, all are closed again."""
        if required_access != _SEND:
            raise MQError(HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION)
        if share_mode != _SHARED:
            raise MQError(HResult.MQ_ERROR_UNSUPPORTED_ACCESS_MODE)
        descriptor = self._describe(names[0], _SEND, share_mode, None, identity)
        descriptor.multiple = True
        descriptor.format_names = names
        try:
            for name in names:
                single = self.open_queue(name, _SEND, identity=identity)
                descriptor.open_queue_descriptor_collection.append(single)
        except MQError:
            self.close_queue(descriptor)
            raise
        return descriptor

    def add_destination(
        self, descriptor: OpenQueueDescriptor, name: FormatName, identity: Identity | None = None
    ) -> None:
        """Add one more queue to a descriptor that was opened for sending, each once.

        It is the descriptor of a multiple-element format name then (G74). Raises MQError as
        `open_queue` does, INSUFFICIENT_RESOURCES for too many names, QUEUE_DELETED if the first
        queue is gone.
        """
        if name in descriptor.format_names:
            return
        if descriptor.queue_reference is None and not descriptor.multiple:
            raise MQError(HResult.MQ_ERROR_QUEUE_DELETED)
        if len(descriptor.format_names) >= MAXIMUM_ELEMENTS:
            raise MQError(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, "too many destinations")
        added = self.open_queue(name, _SEND, identity=identity)
        singles = descriptor.open_queue_descriptor_collection
        queue = descriptor.queue_reference
        if queue is not None:
            singles.append(self._describe(descriptor.format_name, _SEND, _SHARED, queue, identity))
            queue.open_queue_descriptor_collection.pop(descriptor.handle, None)
            descriptor.queue_reference = None
        descriptor.multiple = True
        descriptor.format_names += (name,)
        singles.append(added)

    def dead_letter_place(self, name: FormatName, identity: Identity | None) -> str:
        """The path name of a local application queue that may keep the caller's dead letters.

        The caller may send to it. Raises MQError: QUEUE_NOT_FOUND, ACCESS_DENIED,
        UNSUPPORTED_FORMATNAME_OPERATION.
        """
        queue = self._registry.find_by_format_name(name)
        if queue is None or isinstance(queue, OutgoingQueue):
            raise no_such_queue(name)
        if queue.parent is not None or queue.is_journal or queue.queue_type is QueueType.SYSTEM:
            raise MQError(HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION, str(name))
        self._access.check_open(queue, identity, _SEND)
        return queue.pathname

    def _describe(
        self,
        name: FormatName,
        access: QueueAccessType,
        share_mode: QueueShareMode,
        queue: Queue | None,
        identity: Identity | None,
    ) -> OpenQueueDescriptor:
        handle = new_handle(self.descriptors)
        context_value = new_handle(self._context_values)
        descriptor = OpenQueueDescriptor(handle, context_value, access, share_mode, name, queue)
        if identity is not None:
            descriptor.owner, descriptor.account = identity.sid, identity.name
            descriptor.notices = not identity.read_only
        descriptor.origin, descriptor.opened = ORIGIN.get(), self._clock.now()
        descriptor.number = next(self._numbers)
        self.descriptors[handle] = descriptor
        self._context_values.add(context_value)
        if queue is not None:
            queue.open_queue_descriptor_collection[handle] = descriptor
        return descriptor

    def _can_send_by(self, name: FormatName) -> bool:
        """Whether the protocol runs that carries messages for that name (G232)."""
        return self._queue_manager.srmp_http_support or not name.is_http

    # Finding the queue to open

    def _find(self, name: FormatName, access: QueueAccessType, identity: Identity | None) -> Queue:
        queue = self._registry.find_by_format_name(name)
        if queue is None and name.type is FormatNameType.QUEUE_FORMAT_TYPE_SUBQUEUE:
            queue = self._new_subqueue(name, access, identity)
        if queue is None:
            return self._find_outgoing(name, access, identity)
        self._check_here(queue, access, identity)
        return queue

    def _check_name(self, name: FormatName, access: QueueAccessType) -> None:
        """Raise MQError if such names cannot be opened for `access`, or not at present."""
        _check_kind(name, access)
        if access == _SEND and not self._can_send_by(name):
            raise MQError(HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION, HTTP_IS_OFF)

    def _check_here(self, queue: Queue, access: QueueAccessType, identity: Identity | None) -> None:
        """Raise MQError if a caller may not open a local queue."""
        _check_local(queue, access)
        self._access.check_open(queue, identity, access)

    def _new_subqueue(
        self, name: FormatName, access: QueueAccessType, identity: Identity | None
    ) -> Queue | None:
        """The subqueue of a local queue; opening it creates it."""
        direct = name.direct_name
        if not self._registry.is_local_direct(direct):
            return None
        parent = self._registry.find_path(name.path_name.parent)
        if parent is None:
            raise no_such_queue(name)
        if access == _SEND:
            raise MQError(HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION)
        if identity is not None and identity.read_only:  # it would be created
            raise no_such_queue(name)
        self._access.check_open(parent, identity, access)
        return self._queues.create_subqueue(parent, direct.suffix)

    def _find_outgoing(
        self, name: FormatName, access: QueueAccessType, identity: Identity | None
    ) -> Queue:
        """The outgoing queue for a remote queue."""
        queue: OutgoingQueue | None = self._outgoing.find(name)
        if access != _SEND and (queue is None or access not in _ADMIN):
            raise no_such_queue(name)
        if self._registry.is_here(name):
            raise no_such_queue(name)
        queue = queue or self._new_outgoing(name, identity)
        try:
            self._access.check_open(queue, identity, access)
        except MQError:  # the bearer of a token that is not for that queue
            self._registry.drop_if_unused(queue)
            raise
        self._acknowledgement_queues.adopt(queue)
        if access == _SEND:
            unbounded = identity is not None and identity.is_administrator
            self._outgoing.adopt(queue, origin_of(identity), unbounded=unbounded)
        return queue

    def is_outgoing(self, name: FormatName, identity: Identity) -> bool:
        """Whether messages to that name wait here; administrators may ask that."""
        return identity.may_look and self._outgoing.find(name) is not None

    def _new_outgoing(self, name: FormatName, identity: Identity | None) -> OutgoingQueue:
        if name.type is FormatNameType.QUEUE_FORMAT_TYPE_PUBLIC:
            self._check_public(name)
        base_priority = self._directory.base_priority(name)
        return self._outgoing.create(
            name,
            base_priority=base_priority,
            origin=origin_of(identity),
            unbounded=identity is not None and identity.is_administrator,
        )

    def _check_public(self, name: FormatName) -> None:
        """Raise unless a public queue that is not here is another machine's."""
        queue = self._directory.public_queue(name)
        if queue is None or queue.queue_manager is None:
            raise MQError(HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION, "not in a directory")
        if queue.queue_manager.identifier == self._queue_manager.identifier:
            raise no_such_queue(name)

    def resolve_for_sending(
        self, name: FormatName, change: StoreTransaction, source: str = "", origin: str = OWN
    ) -> Queue | None:
        """The queue for the queue manager's own messages to a name; None if no queue can take them.

        A new outgoing queue belongs to `change`. `source` is the address of the stranger that has
        named it; otherwise it counts for `origin`. Raises TooManyAcknowledgementQueuesError if
        strangers have too many, and TooManyOutgoingQueuesError.
        """
        queue = self._registry.find_by_format_name(name)
        if queue is not None:
            return queue if takes_own_messages(queue) else None
        if self._registry.is_here(name) or name.type in _UNRESOLVED or not self._can_send_by(name):
            return None
        if (
            name.type is FormatNameType.QUEUE_FORMAT_TYPE_PUBLIC
            and self._directory.destination_queue_manager(name) is None
        ):
            return None
        found = self._outgoing.find(name)
        if source:
            self._acknowledgement_queues.check_url(name, source, found)
        if found is None and source:
            return self._acknowledgement_queues.create(name, change, source)
        if found is not None:
            return found
        base_priority = self._directory.base_priority(name)
        return self._outgoing.create(name, change, base_priority, origin)

    def makes_no_queue(self, name: FormatName) -> bool:
        """Whether `resolve_for_sending` creates no queue for a name, and remembers nothing."""
        return not name.is_http and (
            self._registry.find_by_format_name(name) is not None
            or self._registry.is_here(name)
            or self._outgoing.find(name) is not None
        )

    def is_sent_elsewhere(self, name: FormatName) -> bool:
        """Whether the queue manager's own messages to a name go by an existing outgoing queue."""
        return (
            not name.is_http
            and self._registry.find_by_format_name(name) is None
            and self._outgoing.find(name) is not None
        )

    # Closing

    def close_queue(self, descriptor: OpenQueueDescriptor) -> None:
        """End everything that uses a descriptor, and forget it.

        Waiting readers get MQ_ERROR_OPERATION_CANCELLED, messages under a two-phase read are given
        back (G37) unless their removal is under way (G61), cursors are closed. Closing again does
        nothing. Source: [MS-MQDMPR] 3.1.7.1.6, G11.
        """
        if descriptor.handle not in self.descriptors:
            return
        self._store.carry_out_first()  # deferred requests may need the descriptor
        del self.descriptors[descriptor.handle]
        self._context_values.discard(descriptor.context_value)
        for single in descriptor.open_queue_descriptor_collection:
            self.close_queue(single)
        readers = self._readers
        readers.end_waits_of(descriptor, HResult.MQ_ERROR_OPERATION_CANCELLED)
        for cursor in list(descriptor.cursor_collection.values()):
            readers.close_cursor(cursor)
        queue = descriptor.queue_reference
        if queue is None:
            return
        self._notice_look(descriptor, queue)
        queue.open_queue_descriptor_collection.pop(descriptor.handle, None)
        reads = sorted(descriptor.two_phase_reads)
        descriptor.two_phase_reads.clear()
        descriptor.queue_reference = None
        for key in reads:
            self._positions.release(queue, key)
        self._registry.drop_if_unused(queue)

    def end_waits(self, sid: str) -> None:
        """End an account's waiting reads with MQ_ERROR_ACCESS_DENIED."""
        for descriptor in self._opened_by(sid):
            self._readers.end_waits_of(descriptor, HResult.MQ_ERROR_ACCESS_DENIED)

    def close_all(self, sid: str) -> None:
        """Close all open queues of an account, with their cursors."""
        for descriptor in self._opened_by(sid):
            self.close_queue(descriptor)

    def _opened_by(self, sid: str) -> list[OpenQueueDescriptor]:
        return [each for each in self.descriptors.values() if each.owner == sid]


def _keeps_nobody_out(identity: Identity) -> bool:
    """Whether an exclusive opening needs the right to receive (G725)."""
    return identity.is_anonymous or identity.read_only


def is_name_for(name: FormatName, access: QueueAccessType) -> bool:
    """Whether names of this kind, which are no URLs, can be opened for `access`."""
    try:
        _check_kind(name, access)
    except MQError:
        return False
    return not name.is_http


def check_modes(access: int, share_mode: int) -> None:
    """Raise MQError(MQ_ERROR_INVALID_PARAMETER) if an application cannot open a queue so.

    Opening for sending excludes nobody ([MS-MQMP] 3.1.4.17).
    """
    valid = access in _APPLICATION_ACCESSES and share_mode in tuple(QueueShareMode)
    if not valid or (access == _SEND and share_mode != _SHARED):
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, f"access {access:#x}")


def _check_kind(name: FormatName, access: QueueAccessType) -> None:
    """Raise MQError if names of this kind cannot be opened for `access` ([MS-MQMP] 3.1.4.17)."""
    multicast = name.type is FormatNameType.QUEUE_FORMAT_TYPE_MULTICAST
    sent_only = multicast or name.is_http
    read_only = name.type in _READ_ONLY or name.is_read_only
    if (sent_only and access not in _SENT_ONLY) or (read_only and access == _SEND):
        raise MQError(HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION, str(name))
    if read_only and access == QueueAccessType.MOVE_ACCESS:
        raise MQError(HResult.MQ_ERROR_UNSUPPORTED_ACCESS_MODE, str(name))


def _check_local(queue: Queue, access: QueueAccessType) -> None:
    """Raise MQError for sending to a subqueue, or an administrator's access to a queue here."""
    if access == _SEND and queue.subqueue_name:
        raise MQError(HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION, queue.pathname)
    if access in _ADMIN:
        raise MQError(HResult.MQ_ERROR_UNSUPPORTED_ACCESS_MODE, queue.pathname)


def _check_sharing(queue: Queue, access: QueueAccessType, share_mode: QueueShareMode) -> None:
    """Check an opening against existing ones: [MS-MQDMPR] 3.1.7.1.5, for all doors (G415)."""
    existing = queue.open_queue_descriptor_collection.values()
    deny = QueueShareMode.DENY_RECEIVE
    if any(other.share_mode == deny and other.access_type == _RECEIVE for other in existing):
        refused = share_mode == deny or access == _RECEIVE
    elif any(other.share_mode == deny and other.access_type in _PEEKS for other in existing):
        refused = access == _RECEIVE
    else:
        receiving = any(other.access_type == _RECEIVE for other in existing)
        refused = receiving and share_mode == deny
    if refused:
        raise MQError(HResult.MQ_ERROR_SHARING_VIOLATION, queue.pathname)
