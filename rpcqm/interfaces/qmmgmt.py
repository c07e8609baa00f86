"""qmmgmt: what administrators are told, and what they order ([MS-MQMR] 3.1)."""

from collections.abc import Callable

from rpcqm.adm.enums import QueueType
from rpcqm.adm.queue import OutgoingQueue, Queue
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
from rpcqm.interfaces._authentication import CallAdmission, checks
from rpcqm.interfaces._management_properties import format_name_text, queue_property
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.rpc.call import Call
from rpcqm.rpc.interface_registry import InterfacePolicy

POLICY = InterfacePolicy(check_of=checks())
"""Callers must have logged on (G85), as administrators: each call checks that ([MS-MQMR] 3)."""

Outcome = HResult | Completion[None]


class QmMgmt:
    """The handlers of the interface."""

    def __init__(self, engine: QueueManagerEngine, admission: CallAdmission | None = None) -> None:
        self._engine = engine
        self.admission = admission or CallAdmission()
        self._machine_actions: dict[str, Callable[[], Outcome]] = {
            "CONNECT": self._connect,
            "DISCONNECT": self._disconnect,
            "TIDY": self._tidy,
        }
        self._queue_actions: dict[str, Callable[[OutgoingQueue], Outcome]] = {
            "PAUSE": self._pause,
            "RESUME": self._resume,
            "EOD_RESEND": self._resend,
        }

    # Information

    def R_QMMgmtGetInfo(
        self, call: Call, request: R_QMMgmtGetInfoRequest
    ) -> R_QMMgmtGetInfoResponse:
        """Properties of the queue manager, or of a queue.

        Source: [MS-MQMR] 3.1.4.1 R_QMMgmtGetInfo (Opnum 0).
        """
        _require_administrator(call)
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
        return lambda number: queue_property(
            self._engine, queue, ManagementQueueProperty.of(number)
        )

    def _find(self, subject: MGMT_OBJECT) -> Queue:
        name = _name_in(subject)
        queue = self._engine.registry.find_by_format_name(name) or self._engine.outgoing.find(name)
        if queue is None:
            raise MQError(HResult.MQ_ERROR_QUEUE_NOT_FOUND, str(name))
        return queue

    def _machine_property(self, number: int) -> PropVariant:
        identifier = ManagementMachineProperty.of(number)
        value = _MACHINE_READERS[identifier](self._engine)
        return NULL_VARIANT if value is None else identifier.variant(value)

    # Actions

    def R_QMMgmtAction(self, call: Call, request: R_QMMgmtActionRequest) -> Outcome:
        """Do what an administrator orders; [MS-MQMR] 3.1.4.2 R_QMMgmtAction (Opnum 1)."""
        _require_administrator(call)
        subject, action = request.pObjectFormat, request.lpwszAction.upper()
        if subject.type == MGMT_MACHINE and action in self._machine_actions:
            return self._machine_actions[action]()
        if subject.type == MGMT_QUEUE and action in self._queue_actions:
            queue = self._find(subject)
            if not isinstance(queue, OutgoingQueue):
                raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "not an outgoing queue")
            return self._queue_actions[action](queue)
        raise MQError(
            HResult.MQ_ERROR_INVALID_PARAMETER, f"{action!r} for an object of type {subject.type}"
        )

    def _connect(self) -> HResult:
        self._engine.bring_online()
        return HResult.MQ_OK

    def _disconnect(self) -> HResult:
        self._engine.take_offline()
        return HResult.MQ_OK

    def _tidy(self) -> Completion[None]:
        """Give back disk space; no message is removed (G31)."""
        return self._engine.store.compact()

    def _pause(self, queue: OutgoingQueue) -> HResult:
        self._engine.outgoing.admin_pause_queue(queue)
        return HResult.MQ_OK

    def _resume(self, queue: OutgoingQueue) -> HResult:
        self._engine.outgoing.admin_resume_queue(queue)
        return HResult.MQ_OK

    def _resend(self, queue: OutgoingQueue) -> HResult:
        """Transactional sequences are resent by the protocol that sends them."""
        self._engine.outgoing.resend(queue)
        return HResult.MQ_OK


def _require_administrator(call: Call) -> None:
    if not call.identity.is_administrator:
        raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, call.identity.name)


def _name_in(subject: MGMT_OBJECT) -> FormatName:
    if not isinstance(subject.u.value, QUEUE_FORMAT):
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "no queue format")
    return format_name_of(subject.u.value)


# Properties of the queue manager, [MS-MQMQ] 2.3.11


def _active_queues(engine: QueueManagerEngine) -> tuple[str, ...]:
    active = (queue for queue in engine.queue_manager.queue_collection.values() if queue.active)
    return tuple(format_name_text(engine, queue) for queue in active)


def _private_queues(engine: QueueManagerEngine) -> tuple[str, ...]:
    return tuple(
        queue.pathname
        for queue in engine.queue_manager.queue_collection.values()
        if queue.queue_type is QueueType.PRIVATE
        and queue.parent is None
        and not isinstance(queue, OutgoingQueue)
    )


def _directory_server(engine: QueueManagerEngine) -> str | None:
    servers = engine.queue_manager.directory_server_list
    return "\\\\" + servers[0] if servers else None


def _connected(engine: QueueManagerEngine) -> str:
    if engine.queue_manager.connection_active:
        return MsmqConnected.MSMQ_CONNECTED
    return MsmqConnected.MSMQ_DISCONNECTED


def _type(engine: QueueManagerEngine) -> str:
    queue_manager = engine.queue_manager
    texts = ("rpcqm", queue_manager.queue_manager_version, queue_manager.operating_system_version)
    return " ".join(filter(None, texts))


def _bytes_in_all_queues(engine: QueueManagerEngine) -> int:
    return sum(queue.total_bytes for queue in engine.queue_manager.queue_collection.values())


_MACHINE_READERS: dict[
    ManagementMachineProperty, Callable[[QueueManagerEngine], str | int | tuple[str, ...] | None]
] = {
    ManagementMachineProperty.PROPID_MGMT_MSMQ_ACTIVEQUEUES: _active_queues,
    ManagementMachineProperty.PROPID_MGMT_MSMQ_PRIVATEQ: _private_queues,
    ManagementMachineProperty.PROPID_MGMT_MSMQ_DSSERVER: _directory_server,
    ManagementMachineProperty.PROPID_MGMT_MSMQ_CONNECTED: _connected,
    ManagementMachineProperty.PROPID_MGMT_MSMQ_TYPE: _type,
    ManagementMachineProperty.PROPID_MGMT_MSMQ_BYTES_IN_ALL_QUEUES: _bytes_in_all_queues,
}
