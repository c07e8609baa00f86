"""Reading and writing the directory ([MS-MQDMPR] 3.1.7.1.18 to .25).

The directory is a static one: its file belongs to an operator and is never written. What is
created or changed here lies over it, in the queue manager's own store.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar
from uuid import UUID

from rpcqm.adm.directory import (
    DIRECTORY_ATTRIBUTES,
    KINDS,
    AttributeFilter,
    AttributeSortOrder,
    DirectoryContents,
    DirectorySource,
    DirectoryUnavailableError,
    FilterOperator,
    equals,
)
from rpcqm.adm.directory_object import DirectoryObject, User
from rpcqm.adm.directory_records import decode_attributes, encode_attributes
from rpcqm.adm.directory_writer import DirectoryAnswer, DirectoryWriter
from rpcqm.adm.enums import DirectoryOperationResult, QueueType
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.clock import Timer, Timers
from rpcqm.base.completion import Completion, completed, start
from rpcqm.base.errors import DecodeError
from rpcqm.base.log import get_logger
from rpcqm.qm.access import AccessControl
from rpcqm.qm.directory_copies import (
    copied_with,
    kind_of,
    sort_key,
    update_from,
    with_changes,
)
from rpcqm.qm.handles import new_handle
from rpcqm.qm.publications import SHOWN
from rpcqm.qm.settings import QueueManagerSettings
from rpcqm.store.records import Family
from rpcqm.store.store import Store

T = TypeVar("T", bound=DirectoryObject)

DIRECTORY_ONLINE = 60 * 1000
"""The timer of [MS-MQDMPR] 3.1.2.5, in milliseconds."""

_PREFIX = b"directory:"
_WITHDRAWN = "withdrawn"
"""Kept in the place of attributes of a queue that was withdrawn from a real directory."""
_SUCCESS = DirectoryOperationResult.SUCCESS
_NOT_CONNECTED = DirectoryOperationResult.DIRECTORY_NOT_CONNECTED

_log = get_logger("qm")


class DirectoryAccess:
    """The directory events; without a directory, every one of them is DirectoryNotConnected."""

    def __init__(
        self,
        store: Store,
        timers: Timers,
        queue_manager: QueueManager,
        settings: QueueManagerSettings,
        access: AccessControl,
    ) -> None:
        self._store = store
        self._timers = timers
        self._queue_manager = queue_manager
        self._access = access
        self._settings = settings
        self._source = settings.directory
        self._made_here = _read_records(store)
        self._queries: dict[int, Iterator[DirectoryObject]] = {}
        self._timer: Timer | None = None
        self._listed: tuple[DirectoryContents | None, dict[UUID, Queue]] = (None, {})
        self._taken_over: dict[UUID, bytes] = {}
        self._certified: tuple[DirectoryContents | None, dict[bytes, list[User]]] = (None, {})

    @property
    def is_there(self) -> bool:
        """Whether this queue manager has a directory."""
        return self._source is not None

    # Events that change

    def create_directory_object(
        self, element: DirectoryObject, attributes: Iterable[str] | None = None
    ) -> Completion[DirectoryAnswer]:
        """Publish an object, or only the attributes listed ([MS-MQDMPR] 3.1.7.1.18, G142).

        A real directory chooses the identifier, which the object then has.
        """
        writer = self._writer_of(element)
        if writer is None or self._contents() is None:
            return completed(self._create_here(element, attributes))
        return start(self._create_there(writer, element, attributes))

    async def _create_there(
        self, writer: DirectoryWriter, element: DirectoryObject, attributes: Iterable[str] | None
    ) -> DirectoryAnswer:
        answer = await writer.create(element)
        if answer.result is _SUCCESS and answer.identifier is not None:
            element.identifier = answer.identifier
            self._keep(element, attributes)  # until the directory is read again
        return answer

    def _create_here(
        self, element: DirectoryObject, attributes: Iterable[str] | None = None
    ) -> DirectoryAnswer:
        contents = self._contents()
        if contents is None:
            return DirectoryAnswer(self._go_offline())
        kind = kind_of(element)
        if any(each.identifier == element.identifier for each in self._all(contents, kind)):
            return DirectoryAnswer(DirectoryOperationResult.OBJECT_ALREADY_EXISTS)
        self._keep(element, attributes)
        return DirectoryAnswer(_SUCCESS, element.identifier)

    def delete_directory_object(self, element: DirectoryObject) -> Completion[DirectoryAnswer]:
        """Withdraw an object ([MS-MQDMPR] 3.1.7.1.19).

        The result is GenericError for an object of the file, which only its operator changes.
        """
        writer = self._writer_of(element)
        if writer is None or self._contents() is None:
            return completed(self._delete_here(element))
        return start(self._delete_there(writer, element))

    async def _delete_there(
        self, writer: DirectoryWriter, element: DirectoryObject
    ) -> DirectoryAnswer:
        answer = await writer.delete(element)
        if answer.result in (_SUCCESS, DirectoryOperationResult.OBJECT_NOT_FOUND):
            self.forget(element.identifier)
        return answer

    def forget(self, identifier: UUID) -> None:
        """Hide a queue whose object is gone, as long as the replica still has it."""
        self._put(Queue, identifier, {_WITHDRAWN: True})
        self._made_here[Queue][identifier] = {_WITHDRAWN: True}

    def _delete_here(self, element: DirectoryObject) -> DirectoryAnswer:
        contents = self._contents()
        if contents is None:
            return DirectoryAnswer(self._go_offline())
        kind = kind_of(element)
        if any(each.identifier == element.identifier for each in contents.of(kind)):
            return DirectoryAnswer(DirectoryOperationResult.GENERIC_ERROR)
        if self._made_here[kind].pop(element.identifier, None) is None:
            return DirectoryAnswer(DirectoryOperationResult.OBJECT_NOT_FOUND)
        self._drop(kind, element.identifier)
        return DirectoryAnswer(_SUCCESS)

    def _drop(self, kind: type[DirectoryObject], identifier: UUID) -> None:
        self._certified = (None, {})
        with self._store.transaction("delete directory object") as change:
            change.delete(Family.META, _key(kind, identifier))

    def _drop_what_is_shown(self) -> None:
        """Forget what was published and withdrawn in a real directory once that shows it.

        From then on it is the directory that says what somebody else changes there.
        """
        contents = self._contents()
        if contents is None or self._writer_of(Queue()) is None:
            return
        made_here, shown = (
            self._made_here[Queue],
            {each.identifier: each for each in contents.queues},
        )
        for identifier, kept in list(made_here.items()):
            if _is_shown(shown.get(identifier), kept):
                del made_here[identifier]
                self._drop(Queue, identifier)

    def write_directory(
        self, element: DirectoryObject, attributes: Iterable[str] | None = None
    ) -> Completion[DirectoryAnswer]:
        """Change attributes of an object that is there; done when the change is durable.

        Source: [MS-MQDMPR] 3.1.7.1.24.
        """
        names = None if attributes is None else list(attributes)
        writer = self._writer_of(element)
        if writer is None or self._contents() is None:
            answer, written = self._write_here(element, names)
            return written.giving(answer) if not written.done else completed(answer)
        return start(self._write_there(writer, element, names))

    async def _write_there(
        self, writer: DirectoryWriter, element: DirectoryObject, names: list[str] | None
    ) -> DirectoryAnswer:
        kind = kind_of(element)
        answer = await writer.write(element, DIRECTORY_ATTRIBUTES[kind] if names is None else names)
        if answer.result is _SUCCESS:
            await self._keep(element, names)
        return answer

    def _write_here(
        self, element: DirectoryObject, attributes: Iterable[str] | None
    ) -> tuple[DirectoryAnswer, Completion[None]]:
        """The completion succeeds when the change is durable."""
        contents = self._contents()
        if contents is None:
            return DirectoryAnswer(self._go_offline()), completed(None)
        kind = kind_of(element)
        if not any(each.identifier == element.identifier for each in self._all(contents, kind)):
            return DirectoryAnswer(DirectoryOperationResult.OBJECT_NOT_FOUND), completed(None)
        return DirectoryAnswer(_SUCCESS), self._keep(element, attributes)

    def _writer_of(self, element: DirectoryObject) -> DirectoryWriter | None:
        """The writer of such an object in a real directory; None for objects that stay here."""
        writer = self._settings.directory_writer
        return writer if writer is not None and writer.creates(element) else None

    def _keep(self, element: DirectoryObject, attributes: Iterable[str] | None) -> Completion[None]:
        kind = kind_of(element)
        names = set(DIRECTORY_ATTRIBUTES[kind] if attributes is None else attributes)
        values = self._made_here[kind].setdefault(element.identifier, {})
        values.update((name, getattr(element, name)) for name in names | {"identifier"})
        return self._put(kind, element.identifier, values)

    def _put(
        self, kind: type[DirectoryObject], identifier: UUID, values: dict[str, object]
    ) -> Completion[None]:
        self._certified = (None, {})
        with self._store.transaction("write directory") as change:
            change.put(Family.META, _key(kind, identifier), encode_attributes(values))
            return change.committed

    # Events that read

    def read_directory(
        self,
        kind: type[T],
        filters: Sequence[AttributeFilter] = (),
        attributes: Iterable[str] | None = None,
        force_directory_read: bool = False,
    ) -> tuple[DirectoryOperationResult, T | None]:
        """The first object that satisfies all filters ([MS-MQDMPR] 3.1.7.1.20).

        It is a copy with the attributes listed, except for local queues and the local queue manager
        while the directory is offline.
        """
        if self._queue_manager.directory_offline and not force_directory_read:
            return self._read_offline(kind, filters)
        contents = self._contents()
        if contents is None:
            if not force_directory_read:
                self._go_offline()
            return _NOT_CONNECTED, None
        if not _are_attributes(kind, filters):
            return DirectoryOperationResult.ATTRIBUTE_NOT_FOUND, None
        for element in self._candidates(contents, kind, filters):
            if all(each.matches(element) for each in filters):
                return _SUCCESS, copied_with(element, attributes)
        if self._settings.directory_missed is not None:
            self._settings.directory_missed()
        return DirectoryOperationResult.OBJECT_NOT_FOUND, None

    def _candidates(
        self, contents: DirectoryContents, kind: type[T], filters: Sequence[AttributeFilter]
    ) -> Iterator[T]:
        """The objects that may satisfy the filters, by an index where the directory is large."""
        indexed = next((each for each in filters if _is_indexed(each)), None)
        if indexed is None:
            yield from self._all(contents, kind)
            return
        changed = self._made_here[kind]
        for element in contents.having(kind, indexed.attribute, indexed.value):
            if element.identifier not in changed:
                yield element
        for identifier, values in changed.items():
            if _WITHDRAWN not in values:
                there = contents.having(kind, "identifier", identifier)
                yield with_changes(copied_with(there[0], None) if there else kind(), values)

    def _read_offline(
        self, kind: type[T], filters: Sequence[AttributeFilter]
    ) -> tuple[DirectoryOperationResult, T | None]:
        local: list[DirectoryObject] = []
        if kind is Queue:
            local += self._queue_manager.queue_collection.values()
        elif kind is QueueManager:
            local.append(self._queue_manager)
        for element in local:
            if isinstance(element, kind) and all(each.matches(element) for each in filters):
                return _SUCCESS, element
        if kind is Queue:
            return DirectoryOperationResult.OBJECT_NOT_FOUND, None
        return _NOT_CONNECTED, None

    def read_directory_begin(
        self,
        kind: type[DirectoryObject],
        filters: Sequence[AttributeFilter] = (),
        attributes: Iterable[str] | None = None,
        sort_order: Sequence[AttributeSortOrder] = (),
    ) -> tuple[DirectoryOperationResult, int]:
        """Begin to read all objects that satisfy the filters ([MS-MQDMPR] 3.1.7.1.21).

        The handle is for `read_directory_next`; 0 without success.
        """
        contents = self._contents()
        if contents is None:
            return _NOT_CONNECTED, 0
        sorted_by = [equals(each.attribute, None) for each in sort_order]
        if not _are_attributes(kind, [*filters, *sorted_by]):
            return DirectoryOperationResult.ATTRIBUTE_NOT_FOUND, 0
        found = [
            element
            for element in self._all(contents, kind)
            if all(each.matches(element) for each in filters)
        ]
        for order in sorted(sort_order, key=lambda order: order.sort_priority):
            if order.sort_priority:
                found.sort(key=partial(sort_key, order), reverse=not order.sort_ascending)
        names = None if attributes is None else list(attributes)
        handle = new_handle(self._queries)
        self._queries[handle] = iter([copied_with(element, names) for element in found])
        return _SUCCESS, handle

    def read_directory_next(
        self, handle: int
    ) -> tuple[DirectoryOperationResult, DirectoryObject | None]:
        """The next object; EndOfData behind the last ([MS-MQDMPR] 3.1.7.1.22).

        GenericError if no query has the handle.
        """
        if handle not in self._queries:
            return DirectoryOperationResult.GENERIC_ERROR, None
        element = next(self._queries[handle], None)
        if element is None:
            return DirectoryOperationResult.END_OF_DATA, None
        return _SUCCESS, element

    def read_directory_end(self, handle: int) -> DirectoryOperationResult:
        """Forget a query; GenericError if none has the handle ([MS-MQDMPR] 3.1.7.1.23)."""
        if self._queries.pop(handle, None) is None:
            return DirectoryOperationResult.GENERIC_ERROR
        return _SUCCESS

    def certificate_owners(self, certificate: bytes) -> set[bytes]:
        """The SIDs of the users who have a certificate; none while the directory cannot be read.

        They are found by its digest ([MS-MQMQ] 2.2.21), without a search for each message.
        """
        contents = self._contents()
        if contents is None:
            return set()
        if self._certified[0] is not contents:
            self._certified = contents, _by_digest(self._all(contents, User))
        digest = hashlib.md5(certificate, usedforsecurity=False).digest()
        found = self._certified[1].get(digest, ())
        return {user.security_identifier for user in found if certificate in user.certificates}

    def _contents(self) -> DirectoryContents | None:
        if self._source is None:
            return None
        try:
            return self._source()
        except DirectoryUnavailableError as error:  # the caller goes offline
            _log.warning("the directory cannot be read", error=str(error))
            return None

    def _all(self, contents: DirectoryContents, kind: type[T]) -> Iterator[T]:
        """The directory's objects with the local changes, then those made here."""
        changed = dict(self._made_here[kind])
        for element in contents.of(kind):
            change = changed.pop(element.identifier, None)
            if change is None:
                yield element
            elif _WITHDRAWN not in change:
                yield with_changes(copied_with(element, None), change)
        for values in changed.values():
            if _WITHDRAWN not in values:
                yield with_changes(kind(), values)

    # Online and offline

    def start(self) -> None:
        """Look for the directory, now and every minute while it is not there."""
        if self.is_there:
            self._queue_manager.directory_integrated = True
            self._name_own_queues()
            self.check_directory_online()

    def _name_own_queues(self) -> None:
        """Give queues that were published here path names with the machine's present name."""
        for queue in self._own_public_queues():
            kept = self._made_here[Queue].get(queue.identifier, {})
            stale = [name for name in _NAMES if kept.get(name) not in (None, getattr(queue, name))]
            if stale:
                self._keep(queue, stale)

    def _own_public_queues(self) -> list[Queue]:
        return [
            queue
            for queue in self._queue_manager.queue_collection.values()
            if queue.queue_type is QueueType.PUBLIC and not isinstance(queue, OutgoingQueue)
        ]

    def use(self, source: DirectorySource) -> None:
        """Use another source; objects that were created here lie over it as before."""
        self.stop()
        self._source = source
        self.start()

    def stop(self) -> None:
        """Look for the directory no more."""
        self._stop_timer()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_later(self) -> None:
        """Start the Directory Online Timer, unless it runs."""
        if self._timer is None:
            later = self._timers.call_later
            self._timer = later(DIRECTORY_ONLINE, self.check_directory_online)

    def _go_offline(self) -> DirectoryOperationResult:
        """Note that the directory did not answer, and try again every minute."""
        if self.is_there:
            self._queue_manager.directory_offline = True
            self._look_later()
        return _NOT_CONNECTED

    def check_directory_online(self) -> None:
        """Look for the directory again, and take over its view of this queue manager.

        Source: [MS-MQDMPR] 3.1.7.1.25.
        """
        self._stop_timer()
        queue_manager = self._queue_manager
        own = [equals("identifier", queue_manager.identifier)]
        status, element = self.read_directory(QueueManager, own, force_directory_read=True)
        if status is _NOT_CONNECTED:
            self._go_offline()
            return
        if element is None:
            _log.warning(
                "the directory does not know this queue manager",
                status=status.value,
                name=queue_manager.computer_name,
                identifier=str(queue_manager.identifier),
            )
            self._look_later()
            if queue_manager.directory_offline and self._settings.directory_needs_us:
                return
        else:
            update_from(queue_manager, element, _KEPT_LOCALLY)
            queue_manager.addresses = list(element.addresses)
        queue_manager.directory_offline = False
        for queue in self._own_public_queues():
            self._update_queue(queue)
        self.online()

    def _update_queue(self, queue: Queue) -> None:
        status, element = self.read_directory(Queue, [equals("identifier", queue.identifier)])
        if status is _SUCCESS and element is not None:
            update_from(queue, element, _KEPT_LOCALLY)
        self.take_over_security(queue)

    def take_over_security(self, queue: Queue) -> None:
        """Use the directory's descriptor of a local public queue (G152).

        Local changes of it come first. Source: [MS-MQQB] 3.1.5.8.3.
        """
        if self._queue_manager.directory_offline:
            return
        contents = self._contents()
        if contents is None:
            self._go_offline()
            return
        identifier = queue.identifier
        listed = self._listed_queue(contents, identifier)
        if listed is None or not listed.security:
            return
        changed_here = "security" in self._made_here[Queue].get(identifier, ())
        if not changed_here and self._taken_over.get(identifier) != listed.security:
            self._taken_over[identifier] = listed.security
            access = self._access
            queue.security = access.default_queue_security(None, listed.security)

    def _listed_queue(self, contents: DirectoryContents, identifier: UUID) -> Queue | None:
        """A queue of the file, without a search for each message."""
        if self._listed[0] is not contents:
            self._listed = contents, {queue.identifier: queue for queue in contents.queues}
        return self._listed[1].get(identifier)

    def online(self) -> None:
        """Called when the directory has been read; `Directory` refreshes everything that depends on
        it."""


def _is_shown(queue: Queue | None, kept: dict[str, object]) -> bool:
    """Whether a directory shows a queue as it was published, or none that was withdrawn."""
    if queue is None or _WITHDRAWN in kept:
        return queue is None and _WITHDRAWN in kept
    return all(kept[name] == getattr(queue, name) for name in SHOWN if name in kept)


_NAMES = ("pathname", "qualified_pathname")

_KEPT_LOCALLY = frozenset(
    {
        "identifier",
        "create_time",
        "queue_manager_version",
        "operating_system_version",
        "operating_system_type",
        "security",
        "pathname",
        "qualified_pathname",
        "private_queue_number",
        "queue_type",
        "transactional",
        "computer_name",
        "qualified_computer_name",
        "supporting_server",
    }
)
"""Attributes that a static file does not decide: facts of this machine, and fixed ones."""


def _read_records(store: Store) -> dict[type[DirectoryObject], dict[UUID, dict[str, object]]]:
    """Objects created or changed here before, by kind and identifier; raises DecodeError."""
    found: dict[type[DirectoryObject], dict[UUID, dict[str, object]]] = {
        kind: {} for kind in DIRECTORY_ATTRIBUTES
    }
    for key, record in store.records(Family.META, _PREFIX):
        name, _, identifier = key[len(_PREFIX) :].partition(b":")
        try:
            kept = found[KINDS[name.decode()]]
            kept[UUID(bytes=identifier)] = decode_attributes(record)
        except (KeyError, ValueError) as error:
            raise DecodeError(f"damaged record of a directory object: {error!r}") from error
    return found


def _key(kind: type[DirectoryObject], identifier: UUID) -> bytes:
    return _PREFIX + kind.__name__.encode() + b":" + identifier.bytes


def _are_attributes(kind: type[DirectoryObject], filters: Iterable[AttributeFilter]) -> bool:
    return all(each.attribute in DIRECTORY_ATTRIBUTES[KINDS[kind.__name__]] for each in filters)


_INDEXED = frozenset({"identifier", "pathname", "qualified_pathname", "computer_name"})


def _is_indexed(each: AttributeFilter) -> bool:
    """Whether a filter asks for one value of an indexed attribute."""
    return each.operator is FilterOperator.EQUALS and each.attribute in _INDEXED


def _by_digest(users: Iterable[User]) -> dict[bytes, list[User]]:
    found: dict[bytes, list[User]] = {}
    for user in users:
        for digest in user.certificate_digest_list:
            found.setdefault(digest, []).append(user)
    return found
