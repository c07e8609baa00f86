"""MSMQEvent: tells clients of messages that wait to be read ([MC-MQAC] 3.16)."""

from typing import TYPE_CHECKING

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.automation.type_library import describe
from rpcqm.codec.automation.values import Variant
from rpcqm.codec.types.oautvalues import VT_DISPATCH, VT_I4
from rpcqm.dcom.com_object import ComCall, ComObject, RemoteReference
from rpcqm.dcom.connection_points import EventSource
from rpcqm.mqac.notifications import EventTarget

if TYPE_CHECKING:
    from rpcqm.mqac.queue import MSMQQueue

_ARRIVED, _ARRIVED_ERROR = (member.dispid for member in describe("_DMSMQEventEvents").members)


class MSMQEvent(EventSource, EventTarget):
    """Its connection point calls _DMSMQEventEvents at the clients that have asked for it."""

    INTERFACES = (
        "IMSMQEvent3",
        "IMSMQEvent2",
        "IMSMQEvent",
        "IMSMQPrivateEvent",
        "IConnectionPointContainer",
        "IConnectionPoint",
    )
    EVENTS = describe("_DMSMQEventEvents").uuid

    def get_Properties(self, call: ComCall) -> None:
        """[MC-MQAC] 3.16.4.1.1 Properties (Opnum 7)."""
        raise MQError(HResult.E_NOTIMPL)

    # IMSMQPrivateEvent.

    def get_Hwnd(self, call: ComCall) -> int:
        """[MC-MQAC] 3.16.4.3.1 Hwnd (Opnum 7): there are no windows."""
        return 0

    def FireArrivedEvent(
        self, call: ComCall, pq: ComObject | RemoteReference | None, msgcursor: int
    ) -> None:
        """[MC-MQAC] 3.16.4.3.2 FireArrivedEvent (Opnum 8)."""
        self.raise_event(_ARRIVED, _queue(pq), Variant(VT_I4, msgcursor))

    def FireArrivedErrorEvent(
        self,
        call: ComCall,
        pq: ComObject | RemoteReference | None,
        hrStatus: int,
        msgcursor: int,
    ) -> None:
        """[MC-MQAC] 3.16.4.3.3 FireArrivedErrorEvent (Opnum 9)."""
        error = Variant(VT_I4, _signed(hrStatus))
        self.raise_event(_ARRIVED_ERROR, _queue(pq), error, Variant(VT_I4, msgcursor))

    # What queues raise.

    def arrived(self, queue: "MSMQQueue", cursor: int) -> None:
        """[MC-MQAC] 3.16.4.4.1 Arrived (Opnum 7), at every sink."""
        self.raise_event(_ARRIVED, Variant(VT_DISPATCH, queue), Variant(VT_I4, cursor))

    def arrived_error(self, queue: "MSMQQueue", error: int, cursor: int) -> None:
        """[MC-MQAC] 3.16.4.4.2 ArrivedError (Opnum 8), at every sink."""
        code = Variant(VT_I4, _signed(error))
        self.raise_event(_ARRIVED_ERROR, Variant(VT_DISPATCH, queue), code, Variant(VT_I4, cursor))


def _queue(pq: ComObject | RemoteReference | None) -> Variant:
    """The queue of an event that a client raises itself, as an IDispatch."""
    if pq is None:
        raise MQError(HResult.E_POINTER, "no queue")
    return Variant(VT_DISPATCH, pq.objref if isinstance(pq, RemoteReference) else pq)


def _signed(status: int) -> int:
    """An HRESULT as the long that automation has for it."""
    return status - (1 << 32) if status >= 1 << 31 else status
