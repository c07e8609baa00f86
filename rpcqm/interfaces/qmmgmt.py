"""qmmgmt: what administrators are told, and what they order ([MS-MQMR] 3.1)."""

from collections.abc import Callable

from rpcqm.adm.enums import QueueType
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.queue_format import format_name_of
from rpcqm.codec.properties import (
    NULL_VARIANT,
    ManagementMachineProperty,
    ManagementQueueProperty,
    PropVariant,
)
from rpcqm.codec.property_values import MsmqConnected
from rpcqm.codec.propvariant import propvariant_of
from rpcqm.codec.types.mqmq import QUEUE_FORMAT
from rpcqm.codec.types.qmmgmt import (
    MGMT_MACHINE,
    MGMT_OBJECT,
    MGMT_QUEUE,
    R_QMMgmtActionRequest,
    R_QMMgmtGetInfoRequest,
    R_QMMgmtGetInfoResponse,
)
from rpcqm.interfaces._authentication import CallAdmission, checks, require_administrator
from rpcqm.interfaces._management_properties import ManagementProperties
from rpcqm.qm.outgoing import Outgoing
from rpcqm.qm.queues import QueueEvents
from rpcqm.qm.registry import QueueRegistry
from rpcqm.rpc.call import Call
from rpcqm.rpc.interface_registry import InterfacePolicy

POLICY = InterfacePolicy(check_of=checks())
"""Callers must have logged on (G85), as administrators: each call checks that ([MS-MQMR] 3)."""

Outcome = HResult | Completion[None]


class QmMgmt:
    """The handlers of the interface."""

    def __init__(
        self,
        queue_manager: QueueManager,
        registry: QueueRegistry,
        queues: QueueEvents,
        outgoing: Outgoing,
        bring_online: Callable[[], None],
        take_offline: Callable[[], None],
        compact: Callable[[], Completion[None]],
        admission: CallAdmission | None = None,
    ) -> None:
        self._queue_manager = queue_manager
        self._registry = registry
        self._outgoing = outgoing
        self._properties = ManagementProperties(queue_manager, queues, outgoing)
        self.admission = admission or CallAdmission()
        # TIDY gives back disk space; no message is removed (G31)
        self._machine_actions: dict[str, Callable[[], Completion[None] | None]] = {
            "CONNECT": bring_online,
            "DISCONNECT": take_offline,
            "TIDY": compact,
        }
        self._queue_actions: dict[str, Callable[[OutgoingQueue], None]] = {
            "PAUSE": outgoing.admin_pause_queue,
            "RESUME": outgoing.admin_resume_queue,
            "EOD_RESEND": outgoing.resend,
        }

    # Information

    def R_QMMgmtGetInfo(
        self, call: Call, request: R_QMMgmtGetInfoRequest
    ) -> R_QMMgmtGetInfoResponse:
        """Properties of the queue manager, or of a queue.

        Source: [MS-MQMR] 3.1.4.1 R_QMMgmtGetInfo (Opnum 0).
        """
        require_administrator(call)
        subject = request.pObjectFormat
        read: Callable[[int], PropVariant]
        if subject.type == MGMT_MACHINE:
            read = self._machine_property
        elif subject.type == MGMT_QUEUE:
            read = self._queue_reader(subject)
        else:
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, f"object of type {subject.type}")
        values = [propvariant_of(read(number)) for number in request.aProp]
        return R_QMMgmtGetInfoResponse(apVar=values, result=0)

    def _queue_reader(self, subject: MGMT_OBJECT) -> Callable[[int], PropVariant]:
        """Reads properties of a queue, which is neither opened nor activated by that (G31)."""
        queue = self._find(subject)
        return lambda number: self._properties.read(queue, ManagementQueueProperty.of(number))

    def _find(self, subject: MGMT_OBJECT) -> Queue:
        name = _name_in(subject)
        queue = self._registry.find_by_format_name(name) or self._outgoing.find(name)
        if queue is None:
            raise MQError(HResult.MQ_ERROR_QUEUE_NOT_FOUND, str(name))
        return queue

    def _machine_property(self, number: int) -> PropVariant:
        identifier = ManagementMachineProperty.of(number)
        value = _MACHINE_READERS[identifier](self)
        return NULL_VARIANT if value is None else identifier.variant(value)

    # Actions

    def R_QMMgmtAction(self, call: Call, request: R_QMMgmtActionRequest) -> Outcome:
        """Do what an administrator orders; [MS-MQMR] 3.1.4.2 R_QMMgmtAction (Opnum 1)."""
        require_administrator(call)
        subject, action = request.pObjectFormat, request.lpwszAction.upper()
        if subject.type == MGMT_MACHINE and action in self._machine_actions:
            return self._machine_actions[action]() or HResult.MQ_OK
        if subject.type == MGMT_QUEUE and action in self._queue_actions:
            queue = self._find(subject)
            if not isinstance(queue, OutgoingQueue):
                raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "not an outgoing queue")
            self._queue_actions[action](queue)
            return HResult.MQ_OK
        raise MQError(
            HResult.MQ_ERROR_INVALID_PARAMETER, f"{action!r} for an object of type {subject.type}"
        )

    # Properties of the queue manager, [MS-MQMQ] 2.3.11

    def active_queues(self) -> tuple[str, ...]:
        """Format names of the queues that are open, or wait to be sent."""
        queues = self._queue_manager.queue_collection.values()
        return tuple(self._properties.format_name_text(queue) for queue in queues if queue.active)

    def private_queues(self) -> tuple[str, ...]:
        """Path names of the private queues."""
        return tuple(
            queue.pathname
            for queue in self._queue_manager.queue_collection.values()
            if queue.queue_type is QueueType.PRIVATE
            and queue.parent is None
            and not isinstance(queue, OutgoingQueue)
        )

    def directory_server(self) -> str | None:
        """The name of the first directory server; None without a directory."""
        servers = self._queue_manager.directory_server_list
        return "\\\\" + servers[0] if servers else None

    def connected(self) -> str:
        """Whether the network is used."""
        if self._queue_manager.connection_active:
            return MsmqConnected.MSMQ_CONNECTED
        return MsmqConnected.MSMQ_DISCONNECTED

    def type(self) -> str:
        """The program and the versions of it and of the operating system."""
        machine = self._queue_manager
        texts = ("rpcqm", machine.queue_manager_version, machine.operating_system_version)
        return " ".join(filter(None, texts))

    def bytes_in_all_queues(self) -> int:
        """What all messages of the queue manager take, in bytes."""
        return sum(queue.total_bytes for queue in self._queue_manager.queue_collection.values())


def _name_in(subject: MGMT_OBJECT) -> FormatName:
    if not isinstance(subject.u.value, QUEUE_FORMAT):
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "no queue format")
    return format_name_of(subject.u.value)


_MACHINE_READERS: dict[
    ManagementMachineProperty, Callable[[QmMgmt], str | int | tuple[str, ...] | None]
] = {
    ManagementMachineProperty.PROPID_MGMT_MSMQ_ACTIVEQUEUES: QmMgmt.active_queues,
    ManagementMachineProperty.PROPID_MGMT_MSMQ_PRIVATEQ: QmMgmt.private_queues,
    ManagementMachineProperty.PROPID_MGMT_MSMQ_DSSERVER: QmMgmt.directory_server,
    ManagementMachineProperty.PROPID_MGMT_MSMQ_CONNECTED: QmMgmt.connected,
    ManagementMachineProperty.PROPID_MGMT_MSMQ_TYPE: QmMgmt.type,
    ManagementMachineProperty.PROPID_MGMT_MSMQ_BYTES_IN_ALL_QUEUES: QmMgmt.bytes_in_all_queues,
}
