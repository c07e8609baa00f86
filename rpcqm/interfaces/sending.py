"""rpcqm_sending: choices of MSMQ's senders that qmcomm and qmcomm2 cannot express."""

from dataclasses import dataclass

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.names.queue_format import format_name_of
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.codec.types.rpcqm_sending import (
    R_AddDestinationRequest,
    R_SetDeadLetterQueueRequest,
)
from rpcqm.interfaces._authentication import checks
from rpcqm.interfaces._client_handles import ClientHandles
from rpcqm.qm.opening import Opening
from rpcqm.rpc.call import Call
from rpcqm.rpc.interface_registry import InterfacePolicy

POLICY = InterfacePolicy(check_of=checks())
"""As qmcomm, whose handles it shares."""


@dataclass(eq=False, repr=False)
class Sending:
    """The handlers of the interface; `handles` are those of qmcomm."""

    _opening: Opening
    _handles: ClientHandles

    def __post_init__(self) -> None:
        self.admission = self._handles.admission

    def R_SetDeadLetterQueue(self, call: Call, request: R_SetDeadLetterQueueRequest) -> HResult:
        """Choose the dead-letter queue of messages sent from now on (Opnum 0).

        The queue is one of this queue manager that the caller may send to; NULL is the system's
        own. It is the ApplicationDeadletterQueue of [MS-MQDMPR] 3.1.1.12 (G71).
        """
        self._handles.admit(call)
        descriptor = self._handles.find_local(call, request.dwQMContext)
        if descriptor.access_type != QueueAccessType.SEND_ACCESS:
            raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, "not opened for sending")
        chosen = request.pDeadLetterQueue
        path = ""
        if chosen is not None:
            path = self._opening.dead_letter_place(format_name_of(chosen), call.identity)
        descriptor.application_deadletter_queue = path
        return HResult.MQ_OK

    def R_AddDestination(self, call: Call, request: R_AddDestinationRequest) -> HResult:
        """Send messages from now on to one more queue (Opnum 1, G74)."""
        self._handles.admit(call)
        descriptor = self._handles.find_local(call, request.dwQMContext)
        if descriptor.access_type != QueueAccessType.SEND_ACCESS:
            raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, "not opened for sending")
        name = format_name_of(request.pQueueFormat)
        self._opening.add_destination(descriptor, name, call.identity)
        return HResult.MQ_OK
