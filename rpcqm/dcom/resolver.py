"""IObjectExporter: the bindings of objects, and signs of life of clients and servers.

[MS-DCOM] 3.1.2.5.1, on the endpoint mapper's port.
"""

import struct
from uuid import UUID

from rpcqm.codec.automation.objref import DualStringArray
from rpcqm.codec.interface import load
from rpcqm.codec.types.dcom import (
    COMVERSION,
    DUALSTRINGARRAY,
    ComplexPingRequest,
    ComplexPingResponse,
    ResolveOxid2Request,
    ResolveOxid2Response,
    ResolveOxidRequest,
    ResolveOxidResponse,
    ServerAlive2Request,
    ServerAlive2Response,
    ServerAliveRequest,
    ServerAliveResponse,
    SimplePingRequest,
)
from rpcqm.dcom.access import CallerCheck
from rpcqm.dcom.bindings import Bindings
from rpcqm.dcom.exporter import ObjectExporter
from rpcqm.dcom.orpc_values import MAJOR, MINOR
from rpcqm.dcom.ping_sets import PingSets
from rpcqm.rpc.call import Call
from rpcqm.rpc.interface_registry import (
    CallCheck,
    InterfacePolicy,
    RegisteredInterface,
    register,
)

OR_INVALID_OXID = 1910

_FOR_EVERYBODY = ("ServerAlive", "ServerAlive2")
"""Clients ask these before they log on; no permission may be checked."""

VERSION = COMVERSION(MajorVersion=MAJOR, MinorVersion=MINOR)


class Resolver:
    """The handlers of IObjectExporter over the one exporter."""

    def __init__(
        self, exporter: ObjectExporter, pings: PingSets, bindings: Bindings, check: CallerCheck
    ) -> None:
        self._exporter = exporter
        self._pings = pings
        self._bindings = bindings
        self._check = check

    def registered(self) -> RegisteredInterface:
        policy = InterfacePolicy(check_of=self._check_of)
        return register(load("dcom.IObjectExporter"), self, policy)

    def _check_of(self, _: object, method: str) -> CallCheck | None:
        return None if method in _FOR_EVERYBODY else self._check.check_access

    def ResolveOxid(self, call: Call, request: ResolveOxidRequest) -> ResolveOxidResponse | int:
        """[MS-DCOM] 3.1.2.5.1.1 ResolveOxid (Opnum 0)."""
        if request.pOxid != self._exporter.oxid:
            return OR_INVALID_OXID
        return ResolveOxidResponse(
            ppdsaOxidBindings=idl_version(self._bindings.exporter(call.local_address)),
            pipidRemUnknown=UUID(bytes_le=self._exporter.rem_unknown),
            pAuthnHint=self._check.permissions.minimum_level,
            result=0,
        )

    def SimplePing(self, call: Call, request: SimplePingRequest) -> int:
        """[MS-DCOM] 3.1.2.5.1.2 SimplePing (Opnum 1)."""
        return self._pings.simple_ping(request.pSetId)

    def ComplexPing(self, call: Call, request: ComplexPingRequest) -> ComplexPingResponse:
        """[MS-DCOM] 3.1.2.5.1.3 ComplexPing (Opnum 2)."""
        set_id, status = self._pings.complex_ping(
            request.pSetId,
            request.SequenceNum,
            request.AddToSet or (),
            request.DelFromSet or (),
            call.identity.sid,
        )
        return ComplexPingResponse(pSetId=set_id, pPingBackoffFactor=0, result=status)

    def ServerAlive(self, call: Call, request: ServerAliveRequest) -> ServerAliveResponse:
        """[MS-DCOM] 3.1.2.5.1.4 ServerAlive (Opnum 3)."""
        return ServerAliveResponse(result=0)

    def ResolveOxid2(self, call: Call, request: ResolveOxid2Request) -> ResolveOxid2Response | int:
        """[MS-DCOM] 3.1.2.5.1.5 ResolveOxid2 (Opnum 4)."""
        if request.pOxid != self._exporter.oxid:
            return OR_INVALID_OXID
        return ResolveOxid2Response(
            ppdsaOxidBindings=idl_version(self._bindings.exporter(call.local_address)),
            pipidRemUnknown=UUID(bytes_le=self._exporter.rem_unknown),
            pAuthnHint=self._check.permissions.minimum_level,
            pComVersion=VERSION,
            result=0,
        )

    def ServerAlive2(self, call: Call, request: ServerAlive2Request) -> ServerAlive2Response:
        """[MS-DCOM] 3.1.2.5.1.6 ServerAlive2 (Opnum 5)."""
        return ServerAlive2Response(
            pComVersion=VERSION,
            ppdsaOrBindings=idl_version(self._bindings.resolver(call.local_address)),
            pReserved=0,
            result=0,
        )


def idl_version(bindings: DualStringArray) -> DUALSTRINGARRAY:
    """Bindings as a parameter ([MS-DCOM] 2.2.19.2)."""
    octets, offset = bindings.entries
    units = list(struct.unpack(f"<{len(octets) // 2}H", octets))
    return DUALSTRINGARRAY(wNumEntries=len(units), wSecurityOffset=offset, aStringArray=units)
