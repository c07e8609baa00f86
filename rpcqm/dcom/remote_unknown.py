"""IRemUnknown and IRemUnknown2: clients ask for interfaces and count references.

[MS-DCOM] 3.1.1.5.6, 3.1.1.5.7. One IPID, which activation and resolution return, answers on both.
"""

from uuid import UUID

from rpcqm.base.errors import HResult, MQError, RpcFault
from rpcqm.codec.automation.objref import ObjRefStandard, StdObjRef
from rpcqm.codec.interface import load
from rpcqm.codec.types.dcom import (
    ORPCTHIS,
    REMQIRESULT,
    STDOBJREF,
    IRemUnknown2_RemQueryInterface2Request,
    IRemUnknown2_RemQueryInterface2Response,
    IRemUnknown_RemAddRefRequest,
    IRemUnknown_RemAddRefResponse,
    IRemUnknown_RemQueryInterfaceRequest,
    IRemUnknown_RemQueryInterfaceResponse,
    IRemUnknown_RemReleaseRequest,
    IRemUnknown_RemReleaseResponse,
)
from rpcqm.dcom.access import CallerCheck
from rpcqm.dcom.bindings import Bindings
from rpcqm.dcom.exporter import INITIAL_REFERENCES, ObjectExporter
from rpcqm.dcom.orpc import check_this
from rpcqm.dcom.orpc_values import THAT
from rpcqm.rpc.call import Call
from rpcqm.rpc.interface_registry import InterfacePolicy, RegisteredInterface, register

NAMES = ("IRemUnknown", "IRemUnknown2")

_NO_REFERENCE = STDOBJREF(flags=0, cPublicRefs=0, oxid=0, oid=0, ipid=UUID(int=0))


class RemoteUnknown:
    """The handlers of both interfaces over an exporter."""

    def __init__(self, exporter: ObjectExporter, bindings: Bindings) -> None:
        self._exporter = exporter
        self._bindings = bindings

    def registered(self, check: CallerCheck) -> list[RegisteredInterface]:
        policy = InterfacePolicy(check=check.check_access)
        return [register(load(f"dcom.{name}"), self, policy) for name in NAMES]

    def RemQueryInterface(
        self, call: Call, request: IRemUnknown_RemQueryInterfaceRequest
    ) -> IRemUnknown_RemQueryInterfaceResponse:
        """[MS-DCOM] 3.1.1.5.6.1.1 RemQueryInterface (Opnum 3).

        Raises MQError: RPC_E_INVALID_OBJECT for an IPID that is not there.
        """
        self._check(call, request.orpcthis)
        found = self._queried(call, request.ripid, request.iids, request.cRefs)
        results = [
            REMQIRESULT(hResult=status, std=_NO_REFERENCE if std is None else _on_the_wire(std))
            for status, std in found
        ]
        status = _overall([status for status, _ in found])
        return IRemUnknown_RemQueryInterfaceResponse(
            orpcthat=THAT, ppQIResults=results, result=status
        )

    def RemAddRef(
        self, call: Call, request: IRemUnknown_RemAddRefRequest
    ) -> IRemUnknown_RemAddRefResponse:
        """[MS-DCOM] 3.1.1.5.6.1.2 RemAddRef (Opnum 4)."""
        self._check(call, request.orpcthis)
        caller, results = call.identity.sid, []
        for asked in request.InterfaceRefs:
            try:
                self._exporter.add_references(
                    asked.ipid.bytes_le, asked.cPublicRefs, asked.cPrivateRefs, caller
                )
            except MQError as error:
                results.append(int(error.status))
            else:
                results.append(0)
        return IRemUnknown_RemAddRefResponse(orpcthat=THAT, pResults=results, result=0)

    def RemRelease(
        self, call: Call, request: IRemUnknown_RemReleaseRequest
    ) -> IRemUnknown_RemReleaseResponse:
        """[MS-DCOM] 3.1.1.5.6.1.3 RemRelease (Opnum 5)."""
        self._check(call, request.orpcthis)
        caller = call.identity.sid
        for given in request.InterfaceRefs:
            self._exporter.release(
                given.ipid.bytes_le, given.cPublicRefs, given.cPrivateRefs, caller
            )
        return IRemUnknown_RemReleaseResponse(orpcthat=THAT, result=0)

    def RemQueryInterface2(
        self, call: Call, request: IRemUnknown2_RemQueryInterface2Request
    ) -> IRemUnknown2_RemQueryInterface2Response:
        """[MS-DCOM] 3.1.1.5.7.1.1 RemQueryInterface2 (Opnum 6), as RemQueryInterface."""
        self._check(call, request.orpcthis)
        found = self._queried(call, request.ripid, request.iids, INITIAL_REFERENCES)
        resolver = self._bindings.resolver(call.local_address)
        statuses = [status for status, _ in found]
        pointers = [
            None if std is None else ObjRefStandard(iid, std, resolver).pack()
            for iid, (_, std) in zip(request.iids, found, strict=True)
        ]
        return IRemUnknown2_RemQueryInterface2Response(
            orpcthat=THAT, phr=statuses, ppMIF=pointers, result=_overall(statuses)
        )

    def _check(self, call: Call, this: ORPCTHIS) -> None:
        """Check the common parts of a call; raises RpcFault."""
        check_this(this)
        if call.object_octets != self._exporter.rem_unknown:
            raise RpcFault(HResult.RPC_E_DISCONNECTED, "the IPID is not of IRemUnknown")

    def _queried(
        self, call: Call, ripid: UUID, iids: list[UUID], references: int
    ) -> list[tuple[int, StdObjRef | None]]:
        """The status and the reference of each requested interface."""
        ipid = ripid.bytes_le
        self._exporter.entry_of(ipid)
        found: list[tuple[int, StdObjRef | None]] = []
        for iid in iids:
            try:
                found.append((0, self._exporter.query(ipid, iid, references)))
            except MQError as error:
                found.append((int(error.status), None))
        return found


def _on_the_wire(std: StdObjRef) -> STDOBJREF:
    return STDOBJREF(
        flags=std.flags,
        cPublicRefs=std.public_refs,
        oxid=std.oxid,
        oid=std.oid,
        ipid=UUID(bytes_le=std.ipid),
    )


def _overall(statuses: list[int]) -> int:
    """S_OK unless nothing was found: then the first reason (G252)."""
    return statuses[0] if statuses and all(statuses) else int(HResult.MQ_OK)
