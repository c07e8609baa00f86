"""Resolves names of queues, in a directory if one is configured.

Source: [MS-MQDMPR] 3.1.7.1.26, 3.1.7.3.8.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NoReturn
from uuid import UUID

from rpcqm.adm.directory import AttributeFilter, equals
from rpcqm.adm.directory_object import DistributionList, Enterprise, QueueAlias
from rpcqm.adm.directory_writer import DirectoryAnswer
from rpcqm.adm.enums import DirectoryOperationResult, QueueType
from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.clock import Timers
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.log import get_logger
from rpcqm.base.text import folded
from rpcqm.codec.names.format_name import DistributionListName, FormatName, PrivateQueueFormatName
from rpcqm.codec.names.path_name import PathName
from rpcqm.codec.types.mqvalues import FormatNameType
from rpcqm.qm.access import AccessControl
from rpcqm.qm.directory_access import DirectoryAccess
from rpcqm.qm.directory_copies import copied
from rpcqm.qm.names import LocalNames
from rpcqm.qm.outgoing import Outgoing
from rpcqm.qm.publications import PUBLISHED, Publications
from rpcqm.qm.registry import QueueRegistry
from rpcqm.qm.settings import QueueManagerSettings
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction

MAXIMUM_ELEMENTS = 1_000
"""Format names that one distribution list may stand for, with the lists in it."""

_SUCCESS = DirectoryOperationResult.SUCCESS

_log = get_logger("qm")


class Directory(DirectoryAccess):
    """Resolves names, and brings the directory's contents into the queue manager."""

    def __init__(
        self,
        store: Store,
        timers: Timers,
        queue_manager: QueueManager,
        settings: QueueManagerSettings,
        access: AccessControl,
        names: LocalNames,
        registry: QueueRegistry,
        outgoing: Outgoing,
    ) -> None:
        super().__init__(store, timers, queue_manager, settings, access)
        self._names = names
        self._registry = registry
        self._outgoing = outgoing
        self.create_listed: Callable[[Queue], object]
        """Creates a public queue that the directory lists; the queues set it."""
        self.online_hooks: list[Callable[[], None]] = []
        """Called when the directory can be read again."""
        self.publications = Publications(
            store, timers, registry, queue_manager, settings, self.forget
        )
        self._owners: dict[object, UUID] = {}
        """The owners of public queues elsewhere, for times without the directory."""

    def get_queue_path(self, format_name: FormatName) -> tuple[str, str]:
        """The path name of a queue, or "" when only its machine is known, and the machine.

        Raises MQ_ERROR_ILLEGAL_FORMATNAME for names that cannot be resolved.
        Source: [MS-MQDMPR] 3.1.7.1.26.
        """
        value = format_name.value
        if isinstance(value, str):
            return str(format_name.path_name), format_name.direct_name.host
        if isinstance(value, PrivateQueueFormatName):
            return self._private_queue_path(format_name, value)
        if format_name.type is not FormatNameType.QUEUE_FORMAT_TYPE_PUBLIC:
            _refuse(format_name)
        local = self._registry.find_by_format_name(format_name)
        if local is not None:
            return local.pathname, self._queue_manager.computer_name
        queue = self.public_queue(format_name)
        if queue is None or queue.queue_manager is None:
            _refuse(format_name)
        return queue.pathname, queue.queue_manager.computer_name

    def _private_queue_path(
        self, format_name: FormatName, value: PrivateQueueFormatName
    ) -> tuple[str, str]:
        own = self._queue_manager
        if value.source_queue_manager == own.identifier:
            queue = self._registry.find_by_format_name(format_name)
            return "" if queue is None else queue.pathname, own.computer_name
        machine = self.queue_manager(value.source_queue_manager)
        if machine is None:
            _refuse(format_name)
        return "", machine.computer_name

    def queue_manager(self, identifier: UUID) -> QueueManager | None:
        """The directory's queue manager of an identifier, or None."""
        return self.read_directory(QueueManager, [equals("identifier", identifier)])[1]

    def lists(self, computer_name: str) -> bool:
        """Whether the directory has a queue manager of that name."""
        return self.is_there and self._machine_named(computer_name) is not None

    def _machine_named(self, computer_name: str) -> QueueManager | None:
        wanted = [equals("computer_name", computer_name)]
        return self.read_directory(QueueManager, wanted)[1]

    def public_queue(self, format_name: FormatName) -> Queue | None:
        """The queue of a PUBLIC= name, from the directory; its queue manager is set."""
        return self.read_directory(Queue, [equals("identifier", format_name.value)])[1]

    def base_priority(self, format_name: FormatName) -> int:
        """BasePriority of the queue of a name, if the directory contains it; else 0."""
        if format_name.type is not FormatNameType.QUEUE_FORMAT_TYPE_PUBLIC:
            return 0
        queue = self.public_queue(format_name)
        return 0 if queue is None else queue.base_priority

    def find_path(self, pathname: str) -> FormatName | None:
        """The PUBLIC= name of a public queue of any machine; raises MQError for a bad path name."""
        path = PathName.parse(pathname)
        for attribute in ("pathname", "qualified_pathname"):
            queue = self.read_directory(Queue, [equals(attribute, str(path))])[1]
            if queue is not None:
                return FormatName(FormatNameType.QUEUE_FORMAT_TYPE_PUBLIC, queue.identifier)
        return None

    def find_directory_path(self, path: str) -> FormatName:
        """The name for a path in the directory, LDAP://… ([MC-MQAC] 3.12.6.1).

        It is the path, the distinguished name or <GUID=…> of a public queue, a queue alias or a
        distribution list (G287). Raises MQ_ERROR_QUEUE_NOT_FOUND.
        """
        scheme, _, rest = path.partition("//")
        name = rest if "=" in rest.partition("/")[0] else rest.partition("/")[2]
        if scheme.upper() == "LDAP:" and rest and not self._queue_manager.directory_offline:
            filters = [equals("directory_path", path)]
            if name:  # most objects of a file have no full path, which matches nothing
                filters.append(equals("full_path", name))
            filters += [equals("identifier", guid) for guid in _guid_in(name)]
            for wanted in filters:
                found = self._recipient(wanted)
                if found is not None:
                    return found
        raise MQError(HResult.MQ_ERROR_QUEUE_NOT_FOUND, path)

    def _recipient(self, wanted: AttributeFilter) -> FormatName | None:
        """The name of the wanted queue or list, or the target of the wanted alias."""
        queue = self.read_directory(Queue, [wanted])[1]
        if queue is not None:
            return FormatName(FormatNameType.QUEUE_FORMAT_TYPE_PUBLIC, queue.identifier)
        alias = self.read_directory(QueueAlias, [wanted])[1]
        if alias is not None:
            return FormatName.parse(alias.format_name)
        several = self.read_directory(DistributionList, [wanted])[1]
        if several is None:
            return None
        value = DistributionListName(several.identifier, None)
        return FormatName(FormatNameType.QUEUE_FORMAT_TYPE_DL, value)

    def destination_queue_manager(self, format_name: FormatName) -> UUID | None:
        """The owner of the queue of a name; None if the directory does not contain it."""
        value = format_name.value
        if isinstance(value, PrivateQueueFormatName):
            return value.source_queue_manager
        if format_name.type is not FormatNameType.QUEUE_FORMAT_TYPE_PUBLIC:
            return None
        if self._registry.find_by_format_name(format_name) is not None:
            return self._queue_manager.identifier
        queue = self.public_queue(format_name)
        if queue is not None and queue.queue_manager is not None:
            self._owners[value] = queue.queue_manager.identifier
        elif not self._queue_manager.directory_offline:
            return None
        return self._owners.get(value)

    # Lists

    def expand_format_name(
        self, format_name: FormatName | tuple[FormatName, ...]
    ) -> tuple[FormatName, ...]:
        """The single names in a name, each once, sorted without regard to case.

        Raises MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION for distribution lists that cannot be
        resolved, and for those without any name. Source: [MS-MQDMPR] 3.1.7.3.8.
        """
        names = (format_name,) if isinstance(format_name, FormatName) else format_name
        if len(names) == 1 and not isinstance(names[0].value, DistributionListName):
            return names
        unique: dict[FormatName, None] = dict.fromkeys(
            sorted(self._resolved(names), key=lambda name: folded(str(name)))
        )
        if not unique:
            raise MQError(HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION, "an empty list")
        return tuple(unique)

    def _resolved(self, names: tuple[FormatName, ...]) -> list[FormatName]:
        """Replace lists by the names in them; a list that is met again adds nothing."""
        pending, found, seen = list(names), [], set()
        for name in pending:  # the list grows meanwhile
            if name in seen:
                continue
            seen.add(name)
            if isinstance(name.value, DistributionListName):
                pending += self._members(name, name.value)
            else:
                found.append(name)
            if len(seen) > MAXIMUM_ELEMENTS:
                raise MQError(HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION, "too many names")
        return found

    def _members(self, name: FormatName, value: DistributionListName) -> list[FormatName]:
        found = self.read_directory(DistributionList, [equals("identifier", value.guid)])[1]
        if found is None:
            raise MQError(HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION, str(name))
        return [FormatName.parse(text) for text in found.format_names]

    # The directory's view of this queue manager

    def given_identifier(self) -> UUID | None:
        """The directory's identifier for a new queue manager of this name."""
        own = [equals("computer_name", self._queue_manager.computer_name)]
        found = self.read_directory(QueueManager, own, force_directory_read=True)[1]
        return None if found is None else found.identifier

    def online(self) -> None:
        """Find the enterprise, create our own public queues, learn the owners of others."""
        self._drop_what_is_shown()
        self._queue_manager.enterprise_reference = self.read_directory(Enterprise)[1]
        self._create_own_queues()
        for outgoing in self._outgoing.list():
            self.destination_queue_manager(FormatName.parse(outgoing.destination_format_name))
        for hook in self.online_hooks:
            hook()

    def _create_own_queues(self) -> None:
        """Create the public queues that the directory file lists."""
        contents, own = self._contents(), self._queue_manager.identifier
        for queue in [] if contents is None else list(self._all(contents, Queue)):
            machine = queue.queue_manager
            if machine is not None and machine.identifier == own:
                self._create_own_queue(copied(queue), machine)

    def _create_own_queue(self, queue: Queue, machine: QueueManager) -> None:
        if machine.identifier != self._queue_manager.identifier:
            return
        path = PathName.parse(queue.pathname)
        if self._registry.find_path(path) is not None or self.publications.has(queue.pathname):
            return
        queue.pathname = str(self._names.path(path.kind, path.queue))
        try:
            self.create_listed(queue)
        except MQError as error:  # the other queues of the list are created all the same
            _log.warning("queue not created", queue=queue.pathname, error=str(error))

    # Public queues

    def public_queues(self) -> dict[UUID, Queue]:
        """All identified public queues, and those here in any case."""
        contents = self._contents()
        known = () if contents is None else self._all(contents, Queue)
        here = (
            queue
            for queue in self._queue_manager.queue_collection.values()
            if queue.queue_type is QueueType.PUBLIC and queue.parent is None
        )
        return {queue.identifier: queue for queue in (*known, *here)}

    def listed_queues(self) -> set[UUID]:
        """Identifiers of queues that the directory lists, and that are not published from here."""
        contents = self._contents()
        if contents is None or self._writer_of(Queue()) is not None:
            return set()
        return {queue.identifier for queue in contents.queues}

    # Publishing

    def writes(self, queue: Queue, attributes: Iterable[str] = PUBLISHED) -> bool:
        """Whether a change of a queue goes into a real directory, whose answer has to be waited
        for."""
        is_public = queue.queue_type is QueueType.PUBLIC and queue.parent is None
        published = is_public and self._writer_of(queue) is not None
        return published and not set(PUBLISHED).isdisjoint(attributes)

    def publish(self, queue: Queue) -> None:
        """Publish a public queue here. Raises MQ_ERROR_NO_DS, QUEUE_EXISTS or DS_ERROR."""
        _check(self._create_here(queue))

    async def publish_there(self, queue: Queue) -> None:
        """Publish a public queue in a real directory, and give it the identifier from there.

        After success the caller calls `arrived` in the commit that makes the queue, else
        `look_again`, which leads to the object being deleted. Raises those of `publish` and
        ACCESS_DENIED.
        """
        await self._change_there(queue, self.create_directory_object)

    async def _change_there(
        self,
        queue: Queue,
        change: Callable[[Queue], Completion[DirectoryAnswer]],
        absent: DirectoryOperationResult | None = None,
    ) -> None:
        writer = self._settings.directory_writer
        if self._queue_manager.directory_offline or (writer is not None and writer.offline):
            raise MQError(HResult.MQ_ERROR_NO_DS, "the directory does not answer")
        await self.publications.begin(queue)
        answer = await change(queue)
        if answer.result is DirectoryOperationResult.DIRECTORY_NOT_CONNECTED:
            self.publications.end_in_doubt(queue)
            _check(answer)
        if answer.result not in (_SUCCESS, absent):
            self.publications.end_refused(queue)
            _check(answer)

    def arrived(self, queue: Queue, change: StoreTransaction) -> None:
        """Note that the commit of `change` makes here what was changed in a real directory."""
        self.publications.end(queue, change)

    def look_again(self, queue: Queue) -> None:
        """Correct the object: its change has failed here, so it becomes as the queue is."""
        self.publications.end_in_doubt(queue)

    def publish_changes(self, queue: Queue, attributes: list[str]) -> None:
        """Publish what has changed. Raises MQ_ERROR_NO_DS or DS_ERROR."""
        if self.is_there and queue.queue_type is QueueType.PUBLIC:
            answer, _ = self._write_here(queue, attributes)
            if answer.result is not DirectoryOperationResult.OBJECT_NOT_FOUND:
                _check(answer)

    async def publish_changes_there(self, queue: Queue, attributes: Sequence[str]) -> None:
        """The same in a real directory; a missing object is no error. Then as `publish_there`."""
        names = [name for name in PUBLISHED if name in attributes]
        change = partial(self.write_directory, attributes=names)
        await self._change_there(queue, change, DirectoryOperationResult.OBJECT_NOT_FOUND)

    def withdraw(self, queue: Queue) -> None:
        """Withdraw a deleted public queue; raises MQ_ERROR_ACCESS_DENIED if the file lists it."""
        if self.is_there and queue.queue_type is QueueType.PUBLIC:
            if self._writer_of(queue) is not None:  # those here are withdrawn by the other event
                raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, "its own queue manager withdraws it")
            answer = self._delete_here(queue)
            if answer.result is DirectoryOperationResult.GENERIC_ERROR:
                raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, "the directory has the queue")
            if answer.result is not DirectoryOperationResult.OBJECT_NOT_FOUND:
                _check(answer)

    async def withdraw_there(self, queue: Queue) -> None:
        """Delete the object of a public queue here from a real directory; as `publish_there`."""
        absent = DirectoryOperationResult.OBJECT_NOT_FOUND
        await self._change_there(queue, self.delete_directory_object, absent)

    def start(self) -> None:
        super().start()
        self.publications.start()

    def stop(self) -> None:
        super().stop()
        self.publications.stop()


def _guid_in(name: str) -> list[UUID]:
    """The identifier in <GUID=…>, if there is one."""
    found = _GUID_PATH.fullmatch(name)
    return [] if found is None else [UUID(found[1])]


_GUID_PATH = re.compile(
    r"<GUID=\{?([0-9A-Fa-f]{8}(?:-?[0-9A-Fa-f]{4}){3}-?[0-9A-Fa-f]{12})\}?>", re.I
)

_REFUSALS = {
    DirectoryOperationResult.DIRECTORY_NOT_CONNECTED: HResult.MQ_ERROR_NO_DS,
    DirectoryOperationResult.OBJECT_ALREADY_EXISTS: HResult.MQ_ERROR_QUEUE_EXISTS,
}


def _check(answer: DirectoryAnswer) -> None:
    if answer.denied:
        raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, answer.reason)
    if answer.result is not _SUCCESS:
        refusal = _REFUSALS.get(answer.result, HResult.MQ_ERROR_DS_ERROR)
        raise MQError(refusal, answer.reason or answer.result.value)


def _refuse(format_name: FormatName) -> NoReturn:
    raise MQError(HResult.MQ_ERROR_ILLEGAL_FORMATNAME, str(format_name))
