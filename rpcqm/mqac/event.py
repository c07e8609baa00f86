"""MSMQEvent: notifies clients of messages that wait to be read ([MC-MQAC] 3.16)."""

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.automation.values import Variant
from rpcqm.codec.types.oautvalues import VT_DISPATCH, VT_I4
from rpcqm.dcom.com_object import ComCall, ComObject, RemoteReference
from rpcqm.dcom.connection_points import EventSource
from rpcqm.mqac.arguments import signed
from rpcqm.mqac.notifications import ARRIVED, ARRIVED_ERROR, EVENTS, EventTarget


class MSMQEvent(EventSource, EventTarget):
    """Its connection point calls _DMSMQEventEvents at the connected clients."""

    INTERFACES = (
        "IMSMQEvent3",
        "IMSMQEvent2",
        "IMSMQEvent",
        "IMSMQPrivateEvent",
        "IConnectionPointContainer",
        "IConnectionPoint",
    )
    EVENTS = EVENTS

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
        self.raise_event(ARRIVED, _queue(pq), Variant(VT_I4, msgcursor))

    def FireArrivedErrorEvent(
        self,
        call: ComCall,
        pq: ComObject | RemoteReference | None,
        hrStatus: int,
        msgcursor: int,
    ) -> None:
        """[MC-MQAC] 3.16.4.3.3 FireArrivedErrorEvent (Opnum 9)."""
        error = Variant(VT_I4, signed(hrStatus))
        self.raise_event(ARRIVED_ERROR, _queue(pq), error, Variant(VT_I4, msgcursor))


def _queue(pq: ComObject | RemoteReference | None) -> Variant:
    """The queue of an event that a client raises itself, as an IDispatch."""
    if pq is None:
        raise MQError(HResult.E_POINTER, "no queue")
    return Variant(VT_DISPATCH, pq.objref if isinstance(pq, RemoteReference) else pq)
