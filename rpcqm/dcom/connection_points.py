"""Objects that call their clients: connection points ([MC-MQAC] 3.16.4.5, 3.16.4.6)."""

from functools import partial
from typing import ClassVar, Self
from uuid import UUID

from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.automation.values import Variant
from rpcqm.codec.types.mqac import CONNECTDATA
from rpcqm.dcom.automation import Automation
from rpcqm.dcom.client import OutboundCalls, Sink, without_references
from rpcqm.dcom.com_object import ComCall, ComObject, RemoteReference
from rpcqm.dcom.enumerators import EnumConnectionPoints, EnumConnections

CONNECTION_LIMIT = 16
"""Sinks that one object tells of its events.

Far more than programs connect (ConnectionLimit, [MC-MQAC] 3.16.1).

Bound `dcom.sinks_of_an_object` [sinks]: more get CONNECT_E_ADVISELIMIT.
"""

LONGEST_REFERENCE = 4096
"""Size of a reference by which a client names an object that takes events.

It is kept; with many addresses it has some 2,000.

Bound `dcom.longest_reference_to_a_sink` [octets]: the call gets CONNECT_E_CANNOTCONNECT.
"""


class _Connection:
    """One sink and its client's reference."""

    __slots__ = ("objref", "sink")

    def __init__(self, sink: Sink, objref: bytes) -> None:
        self.sink = sink
        self.objref = objref


class EventSource(Automation):
    """An object that is its own connection point, for the interface `EVENTS`.

    A class of it also has IConnectionPointContainer and IConnectionPoint in `INTERFACES`.
    """

    EVENTS: ClassVar[UUID]

    def __init__(self, outbound: OutboundCalls) -> None:
        self._outbound = outbound
        self._connections: dict[int, _Connection] = {}
        self._connecting: set[Sink] = set()
        self._last_cookie = 0

    # IConnectionPointContainer.

    def EnumConnectionPoints(self, call: ComCall) -> EnumConnectionPoints:
        """[MC-MQAC] 3.16.4.6.1 EnumConnectionPoints (Opnum 3)."""
        return EnumConnectionPoints([self])

    def FindConnectionPoint(self, call: ComCall, riid: UUID) -> Self:
        """[MC-MQAC] 3.16.4.6.2 FindConnectionPoint (Opnum 4)."""
        if riid != self.EVENTS:
            raise MQError(HResult.CONNECT_E_NOCONNECTION, f"no events of {riid}")
        return self

    # IConnectionPoint.

    def GetConnectionInterface(self, call: ComCall) -> UUID:
        """[MC-MQAC] 3.16.4.5.1 GetConnectionInterface (Opnum 3)."""
        return self.EVENTS

    def GetConnectionPointContainer(self, call: ComCall) -> Self:
        """[MC-MQAC] 3.16.4.5.2 GetConnectionPointContainer (Opnum 4)."""
        return self

    def Advise(
        self, call: ComCall, pUnkSink: RemoteReference | ComObject | None
    ) -> Completion[int]:
        """[MC-MQAC] 3.16.4.5.3 Advise (Opnum 5)."""
        if pUnkSink is None:
            raise MQError(HResult.E_POINTER, "no sink")
        if len(self._connections) + len(self._connecting) >= CONNECTION_LIMIT:
            raise MQError(HResult.CONNECT_E_ADVISELIMIT, "too many sinks of one object")
        if isinstance(pUnkSink, RemoteReference) and len(pUnkSink.objref) > LONGEST_REFERENCE:
            raise MQError(HResult.CONNECT_E_CANNOTCONNECT, "a reference that is too long")
        if isinstance(pUnkSink, ComObject):
            raise MQError(HResult.CONNECT_E_CANNOTCONNECT, "an object of ours takes no events")
        sink = self._outbound.sink(pUnkSink.objref, call.call, self.EVENTS)
        self._connecting.add(sink)
        cookie: Completion[int] = Completion()
        connected = sink.connect()
        connected.add_done_callback(partial(self._connected, sink, pUnkSink.objref, cookie))
        return cookie

    def _connected(
        self, sink: Sink, objref: bytes, cookie: Completion[int], connected: Completion[None]
    ) -> None:
        self._connecting.discard(sink)
        if connected.error is not None:
            cookie.fail(connected.error)
            return
        self._last_cookie += 1
        self._connections[self._last_cookie] = _Connection(sink, objref)
        cookie.succeed(self._last_cookie)

    def Unadvise(self, call: ComCall, dwCookie: int) -> None:
        """[MC-MQAC] 3.16.4.5.4 Unadvise (Opnum 6)."""
        found = self._connections.pop(dwCookie, None)
        if found is None:
            raise MQError(HResult.CONNECT_E_NOCONNECTION, f"no connection {dwCookie}")
        found.sink.close()

    def EnumConnections(self, call: ComCall) -> EnumConnections:
        """[MC-MQAC] 3.16.4.5.5 EnumConnections (Opnum 7)."""
        return EnumConnections(
            [
                CONNECTDATA(pUnk=without_references(each.objref), dwCookie=cookie)
                for cookie, each in self._connections.items()
            ]
        )

    # Called by the class

    def raise_event(self, member: int, *arguments: Variant) -> None:
        """Call a member of the interface of events at every connected sink."""
        for each in self._connections.values():
            each.sink.fire(member, arguments)

    def released(self) -> None:
        """End the events: nobody holds the object."""
        for sink in [*self._connecting, *(each.sink for each in self._connections.values())]:
            sink.close()
        self._connections.clear()
        super().released()
