"""qmmgmt: administrators' questions and orders ([MS-MQMR] 3.1)."""

from collections.abc import Callable

from rpcqm.adm.queue import Queue
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.queue_format import format_name_of
from rpcqm.codec.properties import ManagementMachineProperty, ManagementQueueProperty, PropVariant
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
from rpcqm.operations.audit import RPC, ordered_from
from rpcqm.operations.management_orders import ManagementOrders
from rpcqm.qm.access import require_administrator, require_observer
from rpcqm.qm.management import Management
from rpcqm.rpc.call import Call
from rpcqm.rpc.interface_registry import InterfacePolicy

POLICY = InterfacePolicy(check_of=checks())
"""Callers must have logged on (G85), as administrators: each call checks that ([MS-MQMR] 3)."""

Outcome = HResult | Completion[None]


class QmMgmt:
    """The handlers of the interface."""

    def __init__(self, management: Management, admission: CallAdmission | None = None) -> None:
        self._management = management
        self._orders = ManagementOrders(management)
        self.admission = admission or CallAdmission()

    def R_QMMgmtGetInfo(
        self, call: Call, request: R_QMMgmtGetInfoRequest
    ) -> R_QMMgmtGetInfoResponse:
        """Properties of the queue manager, or of a queue.

        Source: [MS-MQMR] 3.1.4.1 R_QMMgmtGetInfo (Opnum 0).
        """
        require_observer(call.identity)
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

    def _machine_property(self, number: int) -> PropVariant:
        return self._management.machine_property(ManagementMachineProperty.of(number))

    def _queue_reader(self, subject: MGMT_OBJECT) -> Callable[[int], PropVariant]:
        queue, read = self._find(subject), self._management.queue_property
        return lambda number: read(queue, ManagementQueueProperty.of(number))

    def _find(self, subject: MGMT_OBJECT) -> Queue:
        return self._management.find(_name_in(subject))

    def R_QMMgmtAction(self, call: Call, request: R_QMMgmtActionRequest) -> Outcome:
        """Carry out an administrator's order; [MS-MQMR] 3.1.4.2 R_QMMgmtAction (Opnum 1)."""
        with ordered_from(call.peer, RPC):
            return self._act(call.identity, request.pObjectFormat, request.lpwszAction.upper())

    def _act(self, identity: Identity, subject: MGMT_OBJECT, action: str) -> Outcome:
        if subject.type == MGMT_MACHINE:
            return self._orders.of_machine(identity, action) or HResult.MQ_OK
        if subject.type == MGMT_QUEUE:
            return self._orders.of_queue(identity, _name_in(subject), action) or HResult.MQ_OK
        require_administrator(identity)
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, f"object of type {subject.type}")


def _name_in(subject: MGMT_OBJECT) -> FormatName:
    if not isinstance(subject.u.value, QUEUE_FORMAT):
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "no queue format")
    return format_name_of(subject.u.value)
