"""Creating objects for clients: IActivation and IRemoteSCMActivator.

[MS-DCOM] 3.1.2.5.2, on the endpoint mapper's port.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from rpcqm.base.errors import DecodeError, HResult, MQError, RpcFault
from rpcqm.base.log import get_logger
from rpcqm.codec.automation.objref import ObjRefStandard, StdObjRef, unpack_objref
from rpcqm.codec.interface import load
from rpcqm.codec.types.dcom import (
    ORPCTHIS,
    PropsOutInfo,
    RemoteActivationRequest,
    RemoteActivationResponse,
    RemoteCreateInstanceRequest,
    RemoteCreateInstanceResponse,
    RemoteGetClassObjectRequest,
    RemoteGetClassObjectResponse,
    ScmReplyInfoData,
    customREMOTE_REPLY_SCM_INFO,
)
from rpcqm.dcom.access import CallerCheck
from rpcqm.dcom.activation_properties import (
    ANY_SESSION,
    USE_CONSOLE_SESSION,
    ActivationRequest,
    pack_reply,
    unpack_request,
)
from rpcqm.dcom.bindings import Bindings
from rpcqm.dcom.called_names import CalledNames
from rpcqm.dcom.class_factory import ClassFactory
from rpcqm.dcom.com_object import ComObject
from rpcqm.dcom.exporter import ObjectExporter
from rpcqm.dcom.orpc import check_version
from rpcqm.dcom.orpc_values import THAT
from rpcqm.dcom.resolver import VERSION, idl_version
from rpcqm.rpc.call import Call
from rpcqm.rpc.interface_registry import InterfacePolicy, RegisteredInterface, register

CO_S_NOTALLINTERFACES = 0x00080012
CLASS_OBJECT = 0xFFFFFFFF
"""The Mode of RemoteActivation that asks for the class's factory."""
ACTVFLAGS_ACTIVATE_32_BIT_SERVER = 0x04
_SERVICES_SESSION = 0

Coclasses = Mapping[UUID, Callable[[], ComObject]]
"""Makes a new object of a class, by its CLSID."""

_log = get_logger("dcom")


@dataclass(frozen=True, slots=True)
class Activated:
    """The results of an activation: a status and a reference for each requested interface."""

    iids: Sequence[UUID]
    statuses: list[int]
    references: list[StdObjRef | None]

    @property
    def overall(self) -> int:
        """S_OK, CO_S_NOTALLINTERFACES, or the reason for having no interface at all."""
        if not any(self.statuses):
            return 0
        return self.statuses[0] if all(self.statuses) else CO_S_NOTALLINTERFACES


class Activator:
    """The handlers of both interfaces over a table of classes."""

    def __init__(
        self,
        coclasses: Coclasses,
        exporter: ObjectExporter,
        bindings: Bindings,
        check: CallerCheck,
        called_names: CalledNames,
    ) -> None:
        self._coclasses = coclasses
        self._exporter = exporter
        self._bindings = bindings
        self._check = check
        self._called_names = called_names

    def registered(self) -> list[RegisteredInterface]:
        policy = InterfacePolicy(check=self._check.check_level)
        names = ("dcom.IActivation", "dcom.IRemoteSCMActivator")
        return [register(load(name), self, policy) for name in names]

    def RemoteActivation(
        self, call: Call, request: RemoteActivationRequest
    ) -> RemoteActivationResponse | int:
        """[MS-DCOM] 3.1.2.5.2.3.1 RemoteActivation (Opnum 0)."""
        try:
            self._check_caller(call, request.ORPCthis)
        except MQError as error:
            return int(error.status)
        iids = request.pIIDs or []
        try:
            if request.pwszObjectName is not None or request.pObjectStorage is not None:
                raise MQError(HResult.E_NOINTERFACE, "objects of a file are not served")
            class_object = request.Mode == CLASS_OBJECT
            activated = self._activate(call, request.Clsid, iids, class_object)
        except MQError as error:
            self._note(call, request.Clsid, error)
            return self._activation_response(call, request, int(error.status), None)
        status = activated.overall
        return self._activation_response(
            call, request, 0 if status == CO_S_NOTALLINTERFACES else status, activated
        )

    def _activation_response(
        self,
        call: Call,
        request: RemoteActivationRequest,
        status: int,
        activated: Activated | None,
    ) -> RemoteActivationResponse:
        """The response of RemoteActivation, which names the exporter even after a failure."""
        none = [0] * request.Interfaces
        statuses = none if activated is None or status else activated.statuses
        pointers: list[bytes | None] = [None] * request.Interfaces
        if activated is not None:
            pointers = self._pointers(call, activated)
        return RemoteActivationResponse(
            ORPCthat=THAT,
            pOxid=self._exporter.oxid,
            ppdsaOxidBindings=idl_version(self._bindings.exporter(call.local_address)),
            pipidRemUnknown=UUID(bytes_le=self._exporter.rem_unknown),
            pAuthnHint=self._check.permissions.minimum_level,
            pServerVersion=VERSION,
            phr=status,
            ppInterfaceData=pointers,
            pResults=statuses,
            result=0,
        )

    def RemoteGetClassObject(
        self, call: Call, request: RemoteGetClassObjectRequest
    ) -> RemoteGetClassObjectResponse:
        """[MS-DCOM] 3.1.2.5.2.3.2 RemoteGetClassObject (Opnum 3)."""
        octets, status = self._scm(call, request.orpcthis, request.pActProperties, True)
        return RemoteGetClassObjectResponse(orpcthat=THAT, ppActProperties=octets, result=status)

    def RemoteCreateInstance(
        self, call: Call, request: RemoteCreateInstanceRequest
    ) -> RemoteCreateInstanceResponse:
        """[MS-DCOM] 3.1.2.5.2.3.3 RemoteCreateInstance (Opnum 4)."""
        octets, status = self._scm(call, request.orpcthis, request.pActProperties, False)
        return RemoteCreateInstanceResponse(orpcthat=THAT, ppActProperties=octets, result=status)

    def _scm(
        self, call: Call, this: ORPCTHIS, properties: bytes | None, class_object: bool
    ) -> tuple[bytes | None, int]:
        """The properties in the answer of either activator, and the status."""
        self._check_caller(call, this)
        if properties is None:
            raise MQError(HResult.E_INVALIDARG, "no activation properties")
        try:
            asked = unpack_request(properties)
        except DecodeError as error:
            raise MQError(HResult.E_INVALIDARG, str(error)) from error
        _check_wishes(asked)
        wanted = asked.instantiation
        activated = self._activate(call, wanted.classId, wanted.pIID or [], class_object)
        status = activated.overall
        if status not in (0, CO_S_NOTALLINTERFACES):
            raise MQError(HResult(status), f"class {wanted.classId}")
        self._called_names.note(call, asked.server_name)
        return self._reply(call, activated), status

    def _reply(self, call: Call, activated: Activated) -> bytes:
        exporter_bindings = idl_version(self._bindings.exporter(call.local_address))
        scm = customREMOTE_REPLY_SCM_INFO(
            Oxid=self._exporter.oxid,
            pdsaOxidBindings=exporter_bindings,
            ipidRemUnknown=UUID(bytes_le=self._exporter.rem_unknown),
            authnHint=self._check.permissions.minimum_level,
            serverVersion=VERSION,
        )
        outcome = PropsOutInfo(
            cIfs=len(activated.iids),
            piid=list(activated.iids),
            phresults=activated.statuses,
            ppIntfData=self._pointers(call, activated),
        )
        return pack_reply(outcome, ScmReplyInfoData(pdwReserved=None, remoteReply=scm))

    def _check_caller(self, call: Call, this: ORPCTHIS) -> None:
        """Check version and permission; raises RpcFault or MQError."""
        try:
            check_version(this)
        except RpcFault as error:
            raise MQError(HResult.RPC_E_VERSION_MISMATCH, error.detail) from error
        if not self._check.may_launch(call.identity):
            raise MQError(HResult.E_ACCESSDENIED, "`dcom.launch` does not grant it")

    def _activate(
        self, call: Call, clsid: UUID, iids: Sequence[UUID], class_object: bool
    ) -> Activated:
        """Make an object, or its class's factory, with references to its interfaces."""
        make = self._coclasses.get(clsid)
        if make is None:
            raise MQError(HResult.REGDB_E_CLASSNOTREG, f"class {clsid}")
        if not iids:
            raise MQError(HResult.E_INVALIDARG, "no interface is asked for")
        made = ClassFactory(make) if class_object else make()
        caller, client = call.identity.sid, call.association.group
        statuses: list[int] = []
        references: list[StdObjRef | None] = []
        for iid in iids:
            try:
                references.append(self._exporter.marshal(made, iid, caller, client=client))
                statuses.append(0)
            except MQError as error:
                references.append(None)
                statuses.append(int(error.status))
        given = [each for each in references if each is not None]
        if not given:
            self._exporter.discard(made)
        else:
            call.on_delivery_failed(lambda: self._take_back(given, caller))
        return Activated(iids, statuses, references)

    def _take_back(self, given: list[StdObjRef], caller: str) -> None:
        """Take references back from a client that has gone without its object."""
        for std in given:
            self._exporter.release(std.ipid, std.public_refs, 0, caller)

    def _pointers(self, call: Call, activated: Activated) -> list[bytes | None]:
        resolver = self._bindings.resolver(call.local_address)
        return [
            None if std is None else ObjRefStandard(iid, std, resolver).pack()
            for iid, std in zip(activated.iids, activated.references, strict=True)
        ]

    @staticmethod
    def _note(call: Call, clsid: UUID, error: MQError) -> None:
        """Log a refusal that a parameter returns; refusals by status are logged elsewhere."""
        _log.info(
            "an activation was refused",
            peer=call.peer,
            identity=call.identity.name,
            authentication_level=call.authentication_level.name,
            clsid=str(clsid),
            status=error.status.name,
        )


def _check_wishes(asked: ActivationRequest) -> None:
    """Check the place that the client asks for ([MS-DCOM] 3.1.2.5.2.3); raises MQError (G253)."""
    console = asked.special_flags & USE_CONSOLE_SESSION
    if console or asked.session not in (ANY_SESSION, _SERVICES_SESSION):
        raise MQError(HResult.CO_E_RUNAS_LOGON_FAILURE, "there are no logon sessions here")
    if asked.instantiation.actvflags & ACTVFLAGS_ACTIVATE_32_BIT_SERVER:
        raise MQError(HResult.REGDB_E_CLASSNOTREG, "no server of 32 bits")
    if asked.instance is not None and (asked.instance.fileName or asked.instance.ifdStg):
        raise MQError(HResult.E_NOINTERFACE, "objects of a file are not served")
    if asked.context is not None:
        _check_context(asked.context.pIFDClientCtx)


def _check_context(objref: bytes | None) -> None:
    """Check the client context, which may be absent, as impacket omits it (G253)."""
    if objref is None:
        return
    try:
        unpack_objref(objref)
    except DecodeError as error:
        raise MQError(HResult.RPC_E_INVALID_OBJREF, str(error)) from error
