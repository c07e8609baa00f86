"""A client of COM objects, for tests: our own codecs over our own RPC client, in blocking calls.

    with served() as server, DcomClient(server.endpoint("epm")) as com:
        info = com.create(MSMQ_QUEUE_INFO, "IMSMQQueueInfo4")
        com.call(info, "put_PathName", ".\\private$\\orders")
        queue = com.call(info, "Open", 2, 0)

`served` runs `rpcqm serve` with DCOM on loopback and an account alice (PASSWORD). What a method
returns is nothing, its one [out] parameter, or a tuple of several. Interface pointers are
Reference, also as arguments and inside of a Variant that is an argument; `reference` makes one of
the octets inside of a Variant that was returned. An HRESULT of failure is raised as ComError, a
fault as RpcFault.
"""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, Self
from uuid import UUID, uuid4

from rpcqm.base.errors import HResult
from rpcqm.codec.automation.objref import (
    DualStringArray,
    ObjRefCustom,
    ObjRefStandard,
    StdObjRef,
    unpack_objref,
)
from rpcqm.codec.automation.values import SafeArray, Variant
from rpcqm.codec.idl.tree import InterfacePointer, Parameter
from rpcqm.codec.interface import Operation, TransferSyntax, Value, load
from rpcqm.codec.types.dcom import (
    COMVERSION,
    COSERVERINFO,
    DUALSTRINGARRAY,
    ORPCTHIS,
    REMINTERFACEREF,
    ActivationContextInfoData,
    InstantiationInfoData,
    IRemUnknown_RemAddRefRequest,
    IRemUnknown_RemQueryInterfaceRequest,
    IRemUnknown_RemReleaseRequest,
    LocationInfoData,
    RemoteActivationRequest,
    RemoteCreateInstanceRequest,
    RemoteGetClassObjectRequest,
    ScmRequestInfoData,
    SecurityInfoData,
    customREMOTE_REQUEST_SCM_INFO,
)
from rpcqm.dcom.activation_properties import (
    ACTIVATION_CONTEXT_INFO,
    CLSID_ACTIVATION_PROPERTIES_IN,
    INSTANTIATION_INFO,
    SCM_REQUEST_INFO,
    SECURITY_INFO,
    SERVER_LOCATION_INFO,
    pack_blob,
    unpack_reply,
)
from rpcqm.dcom.object_interfaces import by_iid, object_interfaces
from rpcqm.rpc.client import Binding, RpcClient
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.security.context import PKT_PRIVACY, Credentials
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.accounts import PASSWORD
from tests.support.loop_thread import LoopThread

ENABLED = '[dcom]\nenabled = true\n[logging]\nformat = "json"\n[storage]\nreserve = 1\n'
ALICE = NtlmCredentials("alice", PASSWORD)
CONTEXT = ObjRefCustom(
    UUID("000001c0-0000-0000-c000-000000000046"),
    UUID("0000033b-0000-0000-c000-000000000046"),
    b"",
).pack()
_NCACN_IP_TCP = 7


@contextlib.contextmanager
def served(
    configuration: str = ENABLED,
    *options: str,
    environment: Mapping[str, str] | None = None,
) -> Iterator[PrivateQueueManager]:
    """`rpcqm serve` on free ports of loopback, with DCOM and the account alice."""
    with private_queue_manager(options, configuration, environment) as running:
        running.run("user", "add", "alice", "--password-stdin", input=PASSWORD + "\n")
        yield running


class ComError(Exception):
    """A method has returned an HRESULT of failure."""

    def __init__(self, status: int, operation: str) -> None:
        super().__init__(f"{operation}: {status:#010x}")
        self.status = HResult(status) if status in HResult._value2member_map_ else status


@dataclass(frozen=True)
class Reference:
    """An interface of an object that the client holds."""

    interface: str
    std: StdObjRef

    @property
    def ipid(self) -> bytes:
        return self.std.ipid

    def pack(self, references: int = 0) -> bytes:
        """The octets of an OBJREF that hands `references` over."""
        iid = object_interfaces()[self.interface].iid
        return ObjRefStandard(iid, replace(self.std, public_refs=references)).pack()


def orpcthis(minor: int = 7, flags: int = 0, major: int = 5) -> ORPCTHIS:
    version = COMVERSION(MajorVersion=major, MinorVersion=minor)
    return ORPCTHIS(version=version, flags=flags, reserved1=0, cid=uuid4(), extensions=None)


def pack_request(properties: list[tuple[UUID, Value]]) -> bytes:
    """ActivationPropertiesIn."""
    iid = UUID("000001a2-0000-0000-c000-000000000046")
    return ObjRefCustom(iid, CLSID_ACTIVATION_PROPERTIES_IN, pack_blob(properties)).pack()


def security_info(called: str) -> SecurityInfoData:
    """What Windows adds to an activation: the name of the server that the program has used."""
    server = COSERVERINFO(dwReserved1=0, pwszName=called, pdwReserved=None, dwReserved2=0)
    return SecurityInfoData(dwAuthnFlags=0, pServerInfo=server, pdwReserved=None)


def activation_properties(
    clsid: UUID, iids: list[UUID], called: str | None = None, **fields: Any
) -> bytes:
    """What RemoteCreateInstance is asked with; `fields` are others of InstantiationInfoData.

    `called` is the name of the server that the program has used, as Windows tells it.
    """
    version = COMVERSION(MajorVersion=5, MinorVersion=7)
    info = {"classCtx": 0x10, "actvflags": 0, "fIsSurrogate": 0, "instFlag": 0, "thisSize": 0}
    request = customREMOTE_REQUEST_SCM_INFO(
        ClientImpLevel=2, cRequestedProtseqs=1, pRequestedProtseqs=[_NCACN_IP_TCP]
    )
    return pack_request(
        [
            (
                INSTANTIATION_INFO,
                InstantiationInfoData(
                    classId=clsid,
                    cIID=len(iids),
                    pIID=iids,
                    clientCOMVersion=version,
                    **(info | fields),
                ),
            ),
            (
                ACTIVATION_CONTEXT_INFO,
                ActivationContextInfoData(
                    clientOK=0,
                    bReserved1=0,
                    dwReserved1=0,
                    dwReserved2=0,
                    pIFDClientCtx=CONTEXT,
                    pIFDPrototypeCtx=None,
                ),
            ),
            (
                SERVER_LOCATION_INFO,
                LocationInfoData(machineName=None, processId=0, apartmentId=0, contextId=0),
            ),
            (SCM_REQUEST_INFO, ScmRequestInfoData(pdwReserved=None, remoteRequest=request)),
            *([] if called is None else [(SECURITY_INFO, security_info(called))]),
        ]
    )


class DcomClient:
    """A client with one connection to the activators and one to the objects.

    `level` None means no authentication at all. `this` is what the ORPCTHIS of its calls has that
    others have not.
    """

    def __init__(
        self,
        activators: tuple[str, int],
        credentials: Credentials = ALICE,
        level: AuthenticationLevel | None = PKT_PRIVACY,
        syntax: TransferSyntax = TransferSyntax.NDR,
    ) -> None:
        self._loop = LoopThread(asyncio.new_event_loop())
        self._activators = activators
        self._credentials = None if level is None else credentials
        self._level = level
        self.syntax = syntax
        self.this: dict[str, int] = {}
        self.oxid = 0
        self.exporter: tuple[str, int] | None = None
        self.rem_unknown = bytes(16)
        self.bindings = DualStringArray()
        self.authn_hint = 0
        self._connections: dict[tuple[str, int], RpcClient] = {}
        self._bound: dict[tuple[tuple[str, int], str], Binding] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.drop()
        self._loop.end()

    def drop(self) -> None:
        """Close every connection, as a client that dies; calls afterwards connect anew."""
        for client in self._connections.values():
            self._loop.do(client.close)
            self._loop.run(client.wait_closed())
        self._connections.clear()
        self._bound.clear()

    # Activation.

    def create(self, clsid: UUID, interface: str) -> Reference:
        """A new object by RemoteCreateInstance."""
        (found,) = self.create_with(clsid, [object_interfaces()[interface].iid])
        assert isinstance(found, Reference)
        return found

    def create_with(
        self, clsid: UUID, iids: list[UUID], *, class_object: bool = False, **fields: Any
    ) -> list[Reference | int]:
        """The same for several interfaces: a reference or the status of each."""
        properties = activation_properties(clsid, iids, **fields)
        if class_object:
            request: Value = RemoteGetClassObjectRequest(
                orpcthis=orpcthis(flags=1), pActProperties=properties
            )
        else:
            request = RemoteCreateInstanceRequest(
                orpcthis=orpcthis(flags=1), pUnkOuter=None, pActProperties=properties
            )
        name = "RemoteGetClassObject" if class_object else "RemoteCreateInstance"
        response = self.ask("dcom.IRemoteSCMActivator", name, request)
        self.status = response.result
        if response.result & 0x80000000:
            raise ComError(response.result, name)
        outcome, scm = unpack_reply(response.ppActProperties)
        reply = scm.remoteReply
        assert reply is not None
        self._learn(reply.Oxid, reply.pdsaOxidBindings, reply.ipidRemUnknown, reply.authnHint)
        pairs = zip(outcome.phresults or [], outcome.ppIntfData or [], strict=True)
        return [status if octets is None else self.reference(octets) for status, octets in pairs]

    def remote_activation(self, clsid: UUID, iids: list[UUID], **fields: Any) -> Any:
        """The response of IActivation::RemoteActivation, whose exporter is then known."""
        request = RemoteActivationRequest(
            **{
                "ORPCthis": orpcthis(flags=1),
                "Clsid": clsid,
                "pwszObjectName": None,
                "pObjectStorage": None,
                "ClientImpLevel": 2,
                "Mode": 0,
                "Interfaces": len(iids),
                "pIIDs": iids,
                "cRequestedProtseqs": 1,
                "aRequestedProtseqs": [_NCACN_IP_TCP],
                **fields,
            }
        )
        response = self.ask("dcom.IActivation", "RemoteActivation", request)
        if response.result == 0:
            self._learn(
                response.pOxid,
                response.ppdsaOxidBindings,
                response.pipidRemUnknown,
                response.pAuthnHint,
            )
        return response

    def _learn(
        self, oxid: int, bindings: DUALSTRINGARRAY | None, rem_unknown: UUID, hint: int
    ) -> None:
        assert bindings is not None
        octets = b"".join(unit.to_bytes(2, "little") for unit in bindings.aStringArray)
        self.bindings = DualStringArray.of_entries(octets, bindings.wSecurityOffset)
        host, _, port = self.bindings.strings[0].address.partition("[")
        self.oxid, self.exporter = oxid, (host, int(port.removesuffix("]")))
        self.rem_unknown, self.authn_hint = rem_unknown.bytes_le, hint

    @staticmethod
    def reference(octets: bytes) -> Reference:
        """The reference that octets of an OBJREF are."""
        found = unpack_objref(octets)
        assert isinstance(found, ObjRefStandard)
        return Reference(by_iid()[found.iid].name, found.std)

    # Calls of objects.

    def call(self, reference: Reference, operation: str, *arguments: object) -> Any:
        """Call a method; see the module's text."""
        return self.start(reference, operation, *arguments).result(30)

    def start(self, reference: Reference, operation: str, *arguments: object) -> "Future[Any]":
        """Begin a call, for methods that wait."""
        return asyncio.run_coroutine_threadsafe(
            self._call(reference, operation, arguments), self._loop.loop
        )

    async def _call(
        self, reference: Reference, operation: str, arguments: tuple[object, ...]
    ) -> Any:
        response, made = await self._respond(reference, operation, arguments)
        if response.result & 0x80000000:
            raise ComError(response.result, operation)
        outs = [
            _returned(each, getattr(response, each.name))
            for each in made.declaration.parameters
            if each.out and each.name != "orpcthat"
        ]
        return None if not outs else outs[0] if len(outs) == 1 else tuple(outs)

    def response(self, reference: Reference, operation: str, *arguments: object) -> Any:
        """The whole response of a call, whatever its HRESULT is."""
        return self._loop.run(self._respond(reference, operation, arguments))[0]

    async def _respond(
        self, reference: Reference, operation: str, arguments: tuple[object, ...]
    ) -> tuple[Any, Operation]:
        assert self.exporter is not None, "activate an object first"
        place = object_interfaces()[reference.interface].place
        binding = await self._binding(self.exporter, place)
        made = binding.interface.operation(operation)
        ins = [p.name for p in made.declaration.parameters if p.in_ and p.name != "orpcthis"]
        fields = dict(zip(ins, map(_sent, arguments), strict=True))
        request = made.request_class(orpcthis=orpcthis(**self.this), **fields)
        response = await binding.call(operation, request, UUID(bytes_le=reference.ipid))
        return response, made

    # References.

    def query_interface(self, reference: Reference, interface: str) -> Reference:
        """Another interface of an object, by RemQueryInterface; ComError if it has none."""
        response = self.unknown(
            "RemQueryInterface",
            IRemUnknown_RemQueryInterfaceRequest(
                orpcthis=orpcthis(),
                ripid=UUID(bytes_le=reference.ipid),
                cRefs=5,
                cIids=1,
                iids=[object_interfaces()[interface].iid],
            ),
        )
        if response.result & 0x80000000:
            raise ComError(response.result, "RemQueryInterface")
        (found,) = response.ppQIResults
        if found.hResult:
            raise ComError(found.hResult, "RemQueryInterface")
        std = found.std
        return Reference(
            interface,
            StdObjRef(std.flags, std.cPublicRefs, std.oxid, std.oid, std.ipid.bytes_le),
        )

    def release(self, reference: Reference, public: int = 5, private: int = 0) -> int:
        """Give references back; the HRESULT of RemRelease."""
        request = IRemUnknown_RemReleaseRequest(
            orpcthis=orpcthis(),
            cInterfaceRefs=1,
            InterfaceRefs=[_counted(reference, public, private)],
        )
        result: int = self.unknown("RemRelease", request).result
        return result

    def add_references(self, reference: Reference, public: int, private: int = 0) -> int:
        """Ask for more references; the HRESULT of this one interface."""
        request = IRemUnknown_RemAddRefRequest(
            orpcthis=orpcthis(),
            cInterfaceRefs=1,
            InterfaceRefs=[_counted(reference, public, private)],
        )
        (result,) = self.unknown("RemAddRef", request).pResults
        return int(result)

    def unknown(self, operation: str, request: Value, interface: str = "IRemUnknown") -> Any:
        """The response of IRemUnknown or IRemUnknown2."""
        assert self.exporter is not None, "activate an object first"
        return self._loop.run(
            self._asked(self.exporter, f"dcom.{interface}", operation, request, self.rem_unknown)
        )

    # Anything else.

    def ask(self, place: str, operation: str, request: Value) -> Any:
        """The response of an interface of the activators' port, as "dcom.IObjectExporter"."""
        return self._loop.run(self._asked(self._activators, place, operation, request))

    async def _asked(
        self,
        address: tuple[str, int],
        place: str,
        operation: str,
        request: Value,
        ipid: bytes = b"",
    ) -> Any:
        binding = await self._binding(address, place)
        object_uuid = UUID(bytes_le=ipid) if ipid else None
        return await binding.call(operation, request, object_uuid)

    async def _binding(self, address: tuple[str, int], place: str) -> Binding:
        client = self._connections.get(address)
        if client is None:
            client = await RpcClient.connect_tcp(
                *address, credentials=self._credentials, level=self._level
            )
            self._connections[address] = client
        bound = self._bound.get((address, place))
        if bound is None:
            bound = self._bound[address, place] = await client.bind(load(place), self.syntax)
        return bound


def _counted(reference: Reference, public: int, private: int) -> REMINTERFACEREF:
    ipid = UUID(bytes_le=reference.ipid)
    return REMINTERFACEREF(ipid=ipid, cPublicRefs=public, cPrivateRefs=private)


def _sent(value: object) -> object:
    """An argument with octets in the place of references."""
    match value:
        case Reference():
            return value.pack()
        case Variant(value=inside):
            return replace(value, value=_sent(inside))
        case SafeArray(values=list()):
            return replace(value, values=[_sent(each) for each in value.values])
    return value


def _returned(parameter: Parameter, value: Any) -> Any:
    if isinstance(parameter.type, InterfacePointer) and value is not None:
        return DcomClient.reference(value)
    return value
