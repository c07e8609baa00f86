"""MSMQQueueInfo: a queue by its name, and its properties ([MC-MQAC] 3.10)."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Self

from rpcqm.adm.enums import QueueType
from rpcqm.adm.queue import Queue
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.automation.values import Variant
from rpcqm.codec.names.format_name import FormatName, format_names, parse_format_names
from rpcqm.codec.names.path_name import PathName, QueueKind
from rpcqm.codec.security.access_check import MQQUEUEACCESSMASK
from rpcqm.codec.types.mqvalues import FormatNameType, QueuePrivacyLevel
from rpcqm.dcom.com_object import ComCall
from rpcqm.mqac._message_properties import not_implemented
from rpcqm.mqac.arguments import boolean, signed
from rpcqm.mqac.dates import date_variant
from rpcqm.mqac.guids import braced, guid_of
from rpcqm.mqac.machine import Machine
from rpcqm.mqac.named_queues import NamedQueues
from rpcqm.mqac.opening import is_sent_only, open_queue
from rpcqm.mqac.owned import LONGEST_GUID, LONGEST_MULTICAST_ADDRESS
from rpcqm.mqac.path_names import format_name_of_path
from rpcqm.mqac.public_queues import PUBLIC, completed_queue, listed_queue
from rpcqm.mqac.queue import MSMQQueue
from rpcqm.operations.audit import COM, ordered, ordered_from
from rpcqm.qm.access import refuse_read_only
from rpcqm.qm.properties import CHANGEABLE, MAXIMUM_LABEL

_BITS = 0xFFFF_FFFF
_COPIED = (
    "identifier",
    "label",
    "type",
    "pathname",
    "qualified_pathname",
    "directory_path",
    "create_time",
    "modify_time",
    "journaling",
    "quota",
    "journal_quota",
    "authentication",
    "privacy_level",
    "transactional",
    "multicast_address",
    "base_priority",
    "queue_type",
)
"""The attributes that Refresh copies; the descriptor only for callers who may read it."""

_LONGEST_PUBLIC_NAME = 63
_BASE_PRIORITIES = range(-0x8000, 0x8000)


class MSMQQueueInfo(NamedQueues):
    """The referenced queue, and a copy of its properties: `queue` is the specification's refQueue.

    `queue_format_names` and `_format_name` are QueueFormatName, decoded and as it was set.
    """

    INTERFACES = ("IMSMQQueueInfo4", "IMSMQQueueInfo3", "IMSMQQueueInfo2", "IMSMQQueueInfo")

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._initialize()

    def _initialize(self) -> None:
        """[MC-MQAC] 3.10.3 Initialization."""
        self.queue = Queue()
        self._machine.queues.set_queue_defaults(self.queue)
        self._name("", None)

    def _name(self, path_name: str, format_name: str | None) -> None:
        """Reference another queue, and forget everything about the earlier one."""
        self.queue.pathname = path_name
        self._format_name = format_name
        self.queue_format_names: tuple[FormatName, ...] = ()
        self.is_refreshed = self.is_application_queue = self.is_queue_created = False

    @classmethod
    def of_names(cls, machine: Machine, call: ComCall, names: tuple[FormatName, ...]) -> Self:
        """The object for a format name, refreshed if possible."""
        made = cls(machine)
        made.keep_names(call, "format name", names)
        made._set_names(names)
        with suppress(MQError):  # its properties are looked up when a client reads them
            made.Refresh(call)
        return made

    def _set_names(self, names: tuple[FormatName, ...]) -> None:
        self.queue_format_names = names
        self._format_name = format_names(names)

    # Names

    def get_PathName(self, call: ComCall) -> str:
        """The path name; the one that was set if there is no such queue (G271).

        Source: [MC-MQAC] 3.10.4.1.6 PathName (Opnum 12).
        """
        try:
            return self._refreshed(call).pathname
        except MQError:
            if not self.queue.pathname:
                raise
            return self.queue.pathname

    def put_PathName(self, call: ComCall, bstrPathName: str | bytes | None) -> None:
        """[MC-MQAC] 3.10.4.1.7 PathName (Opnum 13)."""
        self._name(self.keep_path_name(call, bstrPathName), None)

    def get_FormatName(self, call: ComCall) -> str | None:
        """QueueFormatName, looked up first if only a path name was set (G271).

        Source: [MC-MQAC] 3.10.4.1.8 FormatName (Opnum 14).
        """
        if self._format_name is None:
            with suppress(MQError):  # without such a queue: NULL
                self._update_format_name()
        return self._format_name

    def put_FormatName(self, call: ComCall, bstrFormatName: str | bytes | None) -> None:
        """[MC-MQAC] 3.10.4.1.9 FormatName (Opnum 15)."""
        self._name("", self.keep_format_name(call, bstrFormatName) or None)

    def _update_format_name(self) -> tuple[FormatName, ...]:
        """Update QueueFormatName ([MC-MQAC] 3.10.6.1); raises MQError without any name."""
        if self._format_name is not None:
            self.queue_format_names = parse_format_names(self._format_name)
        elif self.queue.pathname:
            self._set_names((self._name_of_path(),))
        else:
            raise MQError(HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME, "no queue was named")
        return self.queue_format_names

    def _name_of_path(self) -> FormatName:
        """The format name of the path name that was set; `.` in it becomes this computer."""
        path, names = PathName.parse(self.queue.pathname), self._machine.names
        if path.kind is QueueKind.PUBLIC and not _fits_a_directory(path.queue):
            raise MQError(HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME, "too long for a public queue")
        if path.computer == ".":
            path = replace(path, computer=names.computer_name)
        return format_name_of_path(self._machine, str(path))

    def resolved_format_names(self) -> tuple[FormatName, ...]:
        """The queues that it names, () without a name, as an MSMQDestination; raises MQError."""
        is_named = self._format_name is not None or bool(self.queue.pathname)
        return self._update_format_name() if is_named else ()

    def _single_name(self) -> FormatName:
        """The name of one queue with properties; else MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION."""
        names = self._update_format_name()
        if is_sent_only(names):
            status = HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION
            raise MQError(status, format_names(names))
        return names[0]

    # Properties

    def _refreshed(self, call: ComCall) -> Queue:
        if not self.is_refreshed:
            self.Refresh(call)
        return self.queue

    def get_QueueGuid(self, call: ComCall) -> str | None:
        """[MC-MQAC] 3.10.4.1.1 QueueGuid (Opnum 7)."""
        queue = self._refreshed(call)
        return braced(queue.identifier) if self.is_application_queue else None

    def get_ServiceTypeGuid(self, call: ComCall) -> str:
        """[MC-MQAC] 3.10.4.1.2 ServiceTypeGuid (Opnum 8)."""
        return braced(self._refreshed(call).type)

    def put_ServiceTypeGuid(self, call: ComCall, bstrGuidServiceType: str | bytes | None) -> None:
        """Take any text: Create and Update refuse a malformed GUID (G271).

        Source: [MC-MQAC] 3.10.4.1.3 ServiceTypeGuid (Opnum 9).
        """
        given = self.keep_text(call, "service type", bstrGuidServiceType, LONGEST_GUID)
        self._set("type", guid_of(given) or given)

    def get_Label(self, call: ComCall) -> str:
        """[MC-MQAC] 3.10.4.1.4 Label (Opnum 10)."""
        return self._refreshed(call).label

    def put_Label(self, call: ComCall, bstrLabel: str | bytes | None) -> None:
        """[MC-MQAC] 3.10.4.1.5 Label (Opnum 11)."""
        status = HResult.MQ_ERROR_LABEL_TOO_LONG
        self._set("label", self.keep_text(call, "label", bstrLabel, MAXIMUM_LABEL, status))

    def get_IsTransactional(self, call: ComCall) -> int:
        """MQ_TRANSACTIONAL or 0; [MC-MQAC] 3.10.4.1.10 IsTransactional (Opnum 16)."""
        return int(self._refreshed(call).transactional)

    def get_IsTransactional2(self, call: ComCall) -> bool:
        """[MC-MQAC] 3.10.4.1.35 IsTransactional2 (Opnum 41)."""
        return self._refreshed(call).transactional

    def get_PrivLevel(self, call: ComCall) -> int:
        """[MC-MQAC] 3.10.4.1.11 PrivLevel (Opnum 17)."""
        queue = self._refreshed(call)
        if not self.is_application_queue:
            return QueuePrivacyLevel.MQ_PRIV_LEVEL_OPTIONAL
        return int(queue.privacy_level)

    def put_PrivLevel(self, call: ComCall, lPrivLevel: int) -> None:
        """[MC-MQAC] 3.10.4.1.12 PrivLevel (Opnum 18)."""
        known = lPrivLevel in tuple(QueuePrivacyLevel)
        self._set("privacy_level", QueuePrivacyLevel(lPrivLevel) if known else lPrivLevel)

    def get_Journal(self, call: ComCall) -> int:
        """[MC-MQAC] 3.10.4.1.13 Journal (Opnum 19)."""
        queue = self._refreshed(call)
        return int(self.is_application_queue and queue.journaling)

    def put_Journal(self, call: ComCall, lJournal: int) -> None:
        """[MC-MQAC] 3.10.4.1.14 Journal (Opnum 20)."""
        self._set("journaling", lJournal != 0)

    def get_Quota(self, call: ComCall) -> int:
        """In KB, -1 without a bound; [MC-MQAC] 3.10.4.1.15 Quota (Opnum 21)."""
        queue = self._refreshed(call)
        return signed(queue.quota) if self.is_application_queue else -1

    def put_Quota(self, call: ComCall, lQuota: int) -> None:
        """[MC-MQAC] 3.10.4.1.16 Quota (Opnum 22)."""
        self._set("quota", lQuota & _BITS)

    def get_JournalQuota(self, call: ComCall) -> int:
        """In KB, as everywhere else (G271); [MC-MQAC] 3.10.4.1.23 JournalQuota (Opnum 29)."""
        queue = self._refreshed(call)
        return signed(queue.journal_quota) if self.is_application_queue else -1

    def put_JournalQuota(self, call: ComCall, lJournalQuota: int) -> None:
        """[MC-MQAC] 3.10.4.1.24 JournalQuota (Opnum 30)."""
        self._set("journal_quota", lJournalQuota & _BITS)

    def get_BasePriority(self, call: ComCall) -> int:
        """[MC-MQAC] 3.10.4.1.17 BasePriority (Opnum 23)."""
        queue = self._refreshed(call)
        return queue.base_priority if self._is_public() else 0

    def put_BasePriority(self, call: ComCall, lBasePriority: int) -> None:
        """Only of a queue that is named by PUBLIC=; [MC-MQAC] 3.10.4.1.18 BasePriority (Opnum 24).

        Raises MQ_ERROR_ILLEGAL_PROPERTY_VALUE.
        """
        if lBasePriority not in _BASE_PRIORITIES or not self._is_public():
            raise MQError(HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE, f"{lBasePriority}")
        self._set("base_priority", lBasePriority)

    def _is_public(self) -> bool:
        return (self._format_name or "")[:7].upper() == "PUBLIC="

    def get_CreateTime(self, call: ComCall) -> Variant:
        """[MC-MQAC] 3.10.4.1.19 CreateTime (Opnum 25)."""
        return date_variant(self._refreshed(call).create_time)

    def get_ModifyTime(self, call: ComCall) -> Variant:
        """[MC-MQAC] 3.10.4.1.20 ModifyTime (Opnum 26)."""
        queue = self._refreshed(call)
        return date_variant(queue.modify_time if self.is_application_queue else 0)

    def get_Authenticate(self, call: ComCall) -> int:
        """[MC-MQAC] 3.10.4.1.21 Authenticate (Opnum 27)."""
        queue = self._refreshed(call)
        return int(self.is_application_queue and queue.authentication)

    def put_Authenticate(self, call: ComCall, lAuthenticate: int) -> None:
        """[MC-MQAC] 3.10.4.1.22 Authenticate (Opnum 28)."""
        self._set("authentication", lAuthenticate != 0)

    def get_MulticastAddress(self, call: ComCall) -> str:
        """[MC-MQAC] 3.10.4.1.37 MulticastAddress (Opnum 43)."""
        return self._refreshed(call).multicast_address or ""

    def put_MulticastAddress(self, call: ComCall, bstrMulticastAddress: str | bytes | None) -> None:
        """[MC-MQAC] 3.10.4.1.38 MulticastAddress (Opnum 44)."""
        most = LONGEST_MULTICAST_ADDRESS
        given = self.keep_text(call, "multicast address", bstrMulticastAddress, most)
        self._set("multicast_address", given or None)

    def _set(self, name: str, value: object) -> None:
        """Change the copy, which Create and Update write; they refuse invalid values."""
        setattr(self.queue, name, value)

    def get_IsWorldReadable(self, call: ComCall) -> int:
        """[MC-MQAC] 3.10.4.1.25 IsWorldReadable (Opnum 31)."""
        return int(self.get_IsWorldReadable2(call))

    def get_IsWorldReadable2(self, call: ComCall) -> bool:
        """Whether everyone may read the messages (G272); it never fails (G290).

        Source: [MC-MQAC] 3.10.4.1.36 IsWorldReadable2 (Opnum 42).
        """
        return self._machine.access.is_readable_by_all(self._known_security(call))

    def _known_security(self, call: ComCall) -> bytes:
        """The descriptor of the queue, which is looked up if the object was not refreshed.

        If there is no such queue, it is the object's own. Properties that were set and not yet
        written by Update stay.
        """
        if not self.is_refreshed and not self.is_queue_created:
            looked_up = type(self)(self._machine)
            looked_up._name(self.queue.pathname, self._format_name)
            with suppress(MQError):  # by the specification this method always succeeds
                return looked_up._refreshed(call).security
        return self.queue.security

    def get_PathNameDNS(self, call: ComCall) -> str:
        """[MC-MQAC] 3.10.4.1.31 PathNameDNS (Opnum 37)."""
        return self._public_property(call, lambda queue: queue.qualified_pathname)

    def get_ADsPath(self, call: ComCall) -> str:
        """[MC-MQAC] 3.10.4.1.39 ADsPath (Opnum 45)."""
        return self._public_property(call, lambda queue: queue.directory_path)

    def _public_property(self, call: ComCall, read: Callable[[Queue], str]) -> str:
        """A property of public queues; raises MQError for any other queue."""
        queue = self._refreshed(call)
        name = self._single_name()
        if queue.queue_type is not QueueType.PUBLIC:
            raise MQError(HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION, str(name))
        return read(queue)

    get_Properties = not_implemented
    get_Security = not_implemented
    put_Security = not_implemented

    # The queue

    async def Create(
        self, call: ComCall, IsTransactional: Variant | None, IsWorldReadable: Variant | None
    ) -> None:
        """[MC-MQAC] 3.10.4.1.26 Create (Opnum 32)."""
        if not self.queue.pathname:
            raise MQError(HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME, "no path name was set")
        path = PathName.parse(self.queue.pathname)
        queues, attributes = self._machine.queues, self._properties()
        if path.kind is not QueueKind.PUBLIC:
            attributes.pop("base_priority")  # ignored for private queues, [MS-MQMQ] 2.3.1.6
        attributes["transactional"] = boolean(IsTransactional, False)
        attributes["security"] = self._machine.access.application_queue_security(
            call.identity, boolean(IsWorldReadable, False)
        )
        new = queues.new_queue(str(path), call.identity, **attributes)
        with ordered_from(call.peer, COM):
            creation = self._machine.orders.create(call.identity, new)
        created = await creation
        self.queue.transactional = created.transactional
        self.queue.security = created.security
        self.is_queue_created = self.is_application_queue = True

    def _properties(self) -> dict[str, object]:
        return {name: getattr(self.queue, name) for name in CHANGEABLE}

    async def Delete(self, call: ComCall) -> None:
        """[MC-MQAC] 3.10.4.1.27 Delete (Opnum 33)."""
        machine, name = self._machine, self._single_name()
        queue = machine.registry.find_application_queue(name)
        if queue is not None:
            with ordered_from(call.peer, COM):
                deleted = machine.orders.delete(call.identity, queue)
            await deleted
        else:
            self._withdraw(call, name)
        self._initialize()

    def _withdraw(self, call: ComCall, name: FormatName) -> None:
        """Delete a public queue of another machine from the directory if it may be (G276)."""
        listed = listed_queue(self._machine, name)
        with ordered_from(call.peer, COM), ordered(call.identity, "delete queue", str(name)):
            refuse_read_only(call.identity)
            self._machine.directory.withdraw(listed)

    async def Open(self, call: ComCall, Access: int, ShareMode: int) -> MSMQQueue:
        """[MC-MQAC] 3.10.4.1.28 Open (Opnum 34)."""
        names = self._update_format_name()
        return await open_queue(self._machine, call, self, names, Access, ShareMode)

    def Refresh(self, call: ComCall) -> None:
        """[MC-MQAC] 3.10.4.1.29 Refresh (Opnum 35)."""
        machine, name = self._machine, self._single_name()
        if _is_of_the_system(name):
            self._refresh_from_system_queue(name)
            return
        queue = machine.registry.find_application_queue(name)
        if queue is not None and queue.queue_type is not QueueType.PUBLIC:
            self._copy(call, queue, queue)
            return
        public = name if queue is None else FormatName(PUBLIC, queue.identifier)
        found = completed_queue(machine, listed_queue(machine, public))
        self._copy(call, found, queue or found)

    def _copy(self, call: ComCall, found: Queue, protected: Queue) -> None:
        """Copy the properties, and the descriptor of `protected` if the caller may read it."""
        access = self._machine.access
        if found.security:  # a directory may contain no rights: then everybody may look
            rights = MQQUEUEACCESSMASK.MQSEC_GET_QUEUE_PROPERTIES
            access.check_queue(found, call.identity, rights)
        for attribute in _COPIED:
            setattr(self.queue, attribute, getattr(found, attribute))
        self.queue.security = access.readable_security(protected, call.identity)
        self.is_application_queue = self.is_refreshed = True

    def _refresh_from_system_queue(self, name: FormatName) -> None:
        """Reset the properties: a system queue has none of an application's queue."""
        queue = self._machine.registry.find_by_format_name(name)
        if queue is None:
            raise MQError(HResult.MQ_ERROR_QUEUE_NOT_FOUND, str(name))
        self.queue.pathname = queue.pathname
        self.is_application_queue, self.is_refreshed = False, True

    async def Update(self, call: ComCall) -> None:
        """Only of a queue here (G276); [MC-MQAC] 3.10.4.1.30 Update (Opnum 36)."""
        machine, name = self._machine, self._single_name()
        queue = machine.registry.find_application_queue(name)
        if queue is None:
            listed = listed_queue(machine, name)
            with ordered_from(call.peer, COM), ordered(call.identity, "set properties", str(name)):
                raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, f"{listed.pathname} is not here")
        changes = self._properties()
        if queue.queue_type is not QueueType.PUBLIC:
            changes.pop("base_priority")
        with ordered_from(call.peer, COM):
            changed = machine.orders.set_properties(call.identity, queue, changes)
        await changed


def _is_of_the_system(name: FormatName) -> bool:
    """Whether it is MACHINE=, or a direct name of a system queue."""
    if isinstance(name.value, str):
        return name.direct_name.kind is QueueKind.SYSTEM
    return name.type is FormatNameType.QUEUE_FORMAT_TYPE_MACHINE


def _fits_a_directory(name: str) -> bool:
    """Whether a path fits: slashes count twice there ([MC-MQAC] 3.10.6.1)."""
    return len(name) + name.count("/") <= _LONGEST_PUBLIC_NAME
