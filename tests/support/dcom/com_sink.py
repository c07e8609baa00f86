"""A client's object that takes events: its resolver, its IRemUnknown and IDispatch, on loopback."""

import copy
import struct
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult
from rpcqm.codec.automation.objref import (
    NCACN_IP_TCP,
    DualStringArray,
    ObjRefStandard,
    StdObjRef,
    StringBinding,
)
from rpcqm.codec.automation.values import EMPTY, Variant
from rpcqm.codec.interface import Interface, load
from rpcqm.codec.types.dcom import (
    COMVERSION,
    DUALSTRINGARRAY,
    ORPCTHAT,
    REMQIRESULT,
    STDOBJREF,
    ComplexPingResponse,
    IRemUnknown_RemQueryInterfaceResponse,
    IRemUnknown_RemReleaseResponse,
    ResolveOxid2Response,
    SimplePingResponse,
)
from rpcqm.codec.types.oaut import EXCEPINFO, IDispatch_InvokeResponse
from rpcqm.rpc.call import Call
from rpcqm.rpc.server import RpcServer

IUNKNOWN = UUID("00000000-0000-0000-c000-000000000046")
THAT = ORPCTHAT(flags=0)


@dataclass
class ComSink:
    """The sink of events of `iid`; `told` are the members called, with their arguments.

    `elsewhere` is a host that its references name in place of its own. While `silent`, it
    does not answer events.
    """

    iid: UUID
    host: str = "127.0.0.1"
    silent: bool = False
    has_interface: bool = True
    told: list[tuple[int, list[Variant]]] = field(default_factory=list)
    released: list[tuple[UUID, int]] = field(default_factory=list)
    pinged: list[int] = field(default_factory=list)
    callers: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.unknown, self.events, self.remote_unknown = uuid4(), uuid4(), uuid4()
        self.oxid, self.oid = 0x1111, 0x2222
        self.port = self.resolver_port = 0
        self.waiting: list[Completion[Any]] = []

    def served_interface(self) -> Interface:
        """What events are called by."""
        events = copy.copy(load("oaut.IDispatch"))
        events.uuid = self.iid
        return events

    async def listen(self, server: RpcServer) -> None:
        """Serve the resolver at one port, and the object at another."""
        events = self.served_interface()
        resolver = server.register(load("dcom.IObjectExporter"), self)
        objects = [
            server.register(load("dcom.IRemUnknown"), self),
            server.register(events, self),
        ]
        self.resolver_port = (await server.listen_tcp("127.0.0.1", 0, [resolver])).port
        self.port = (await server.listen_tcp("127.0.0.1", 0, objects)).port

    def objref(self, host: str = "127.0.0.1") -> bytes:
        """The reference that its client hands over."""
        bindings = DualStringArray((StringBinding(NCACN_IP_TCP, f"{host}[{self.resolver_port}]"),))
        std = StdObjRef(0, 5, self.oxid, self.oid, self.unknown.bytes_le)
        return ObjRefStandard(IUNKNOWN, std, bindings).pack()

    # IObjectExporter.

    def ResolveOxid2(self, call: Call, request: Any) -> object:
        self.callers.append(call.identity.name)
        if request.pOxid != self.oxid:
            return 1910  # OR_INVALID_OXID
        place = StringBinding(NCACN_IP_TCP, f"{self.host}[{self.port}]")
        octets, offset = DualStringArray((place,)).entries
        words = list(struct.unpack(f"<{len(octets) // 2}H", octets))
        return ResolveOxid2Response(
            ppdsaOxidBindings=DUALSTRINGARRAY(
                wNumEntries=len(words), wSecurityOffset=offset, aStringArray=words
            ),
            pipidRemUnknown=self.remote_unknown,
            pAuthnHint=1,
            pComVersion=COMVERSION(MajorVersion=5, MinorVersion=7),
            result=0,
        )

    def ComplexPing(self, call: Call, request: Any) -> object:
        self.pinged += request.AddToSet
        return ComplexPingResponse(pSetId=7, pPingBackoffFactor=0, result=0)

    def SimplePing(self, call: Call, request: Any) -> object:
        self.pinged.append(-request.pSetId)
        return SimplePingResponse(result=0)

    # IRemUnknown.

    def RemQueryInterface(self, call: Call, request: Any) -> object:
        assert (call.object_uuid, request.ripid) == (self.remote_unknown, self.unknown)
        known = self.has_interface and request.iids == [self.iid]
        std = STDOBJREF(
            flags=0, cPublicRefs=request.cRefs, oxid=self.oxid, oid=self.oid, ipid=self.events
        )
        found = REMQIRESULT(hResult=0 if known else HResult.E_NOINTERFACE, std=std)
        return IRemUnknown_RemQueryInterfaceResponse(
            orpcthat=THAT, ppQIResults=[found], result=0 if known else HResult.E_NOINTERFACE
        )

    def RemRelease(self, call: Call, request: Any) -> object:
        self.released += [(each.ipid, each.cPublicRefs) for each in request.InterfaceRefs]
        return IRemUnknown_RemReleaseResponse(orpcthat=THAT, result=0)

    # IDispatch.

    def Invoke(self, call: Call, request: Any) -> object:
        assert call.object_uuid == self.events
        self.told.append((request.dispIdMember, list(reversed(request.pDispParams.rgvarg))))
        if self.silent:
            self.waiting.append(Completion())
            return self.waiting[-1]
        return IDispatch_InvokeResponse(
            orpcthat=THAT,
            pVarResult=EMPTY,
            pExcepInfo=EXCEPINFO(),
            pArgErr=0,
            rgVarRef=[],
            result=0,
        )


PRIVATE_EVENT = UUID("d7ab3341-c9d3-11d1-bb47-0080c7c5a2c0")


class PrivateEvent(ComSink):
    """An MSMQEvent that lives at the client: it has IMSMQPrivateEvent, and no dispinterface.

    `fired` are the queue, the code (None without one) and the cursor of each event.
    """

    def __init__(self) -> None:
        super().__init__(PRIVATE_EVENT)
        self.fired: list[tuple[bytes, int | None, int]] = []

    def served_interface(self) -> Interface:
        return load("mqac.IMSMQPrivateEvent")

    def FireArrivedEvent(self, call: Call, request: Any) -> object:
        self.fired.append((request.pq, None, request.msgcursor))
        return self._answer("FireArrivedEvent")

    def FireArrivedErrorEvent(self, call: Call, request: Any) -> object:
        self.fired.append((request.pq, request.hrStatus, request.msgcursor))
        return self._answer("FireArrivedErrorEvent")

    def _answer(self, operation: str) -> object:
        response: Any = self.served_interface().operation(operation).response_class
        return response(orpcthat=THAT, result=0)
