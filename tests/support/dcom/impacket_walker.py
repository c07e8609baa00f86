"""Objects that impacket calls, by their opnums and by their names, and what it has called.

    with connected(port) as connection:
        walker = Walker(connection, Way.NAMES)
        info = walker.create(MSMQ_QUEUE_INFO, "IMSMQQueueInfo4")
        walker.call(info, "put_PathName", ".\\private$\\orders")

The stubs are impacket's NDR, its connections, security and references its dcomrt. What a method
returns is its [out, retval]; an HRESULT of failure is a ComError. `succeeded` and `refused`
(with the codes) are what has been called, under the names of the table of methods (`methods`).
"""

import enum
import functools
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from impacket.dcerpc.v5 import dcomrt
from impacket.dcerpc.v5.dcom import oaut
from impacket.dcerpc.v5.dtypes import GUID, LONG, NULL, SHORT, ULONG, USHORT
from impacket.uuid import uuidtup_to_bin

from rpcqm.base.errors import HResult
from rpcqm.codec.automation.values import EMPTY, MISSING, Variant
from rpcqm.codec.idl.tree import OperationDeclaration, Parameter
from rpcqm.codec.types.mqvalues import VARENUM, QueueAccessType
from rpcqm.codec.types.oautvalues import DISPID_PROPERTYPUT
from rpcqm.dcom.object_interfaces import IDISPATCH, ObjectInterface, object_interfaces
from tests.support.dcom import clsids
from tests.support.dcom.dcom_client import ComError
from tests.support.dcom.dcom_impacket import create, iid_of
from tests.support.dcom.impacket_variants import (
    VARIANT,
    VARIANTS,
    PVariants,
    made_variant,
    read_objref,
    read_text,
    read_variant,
    write_objref,
    write_variant,
)

ENGLISH = 0x409


class Way(enum.Enum):
    OPNUMS = "by opnum"
    NAMES = "by name"


@functools.cache
def methods() -> frozenset[str]:
    """Every method of the objects: Interface.method, without the interface's revision."""
    return frozenset(
        f"{family}.{operation.name}"
        for family, newest in newest_interfaces().items()
        for operation in newest.load().operations
        if operation is not None and family_of(operation.declaration) == family
    )


@functools.cache
def newest_interfaces() -> dict[str, ObjectInterface]:
    found: dict[str, ObjectInterface] = {}
    for name, each in sorted(object_interfaces().items()):
        if name.startswith("IMSMQ"):
            found[each.family] = each
    return found


def family_of(declaration: OperationDeclaration) -> str:
    """The interface that declares a method, without its revision."""
    return object_interfaces()[declaration.owner].family


@dataclass(frozen=True)
class Held:
    """An object that impacket holds: `interface` has its methods, `iid` is that of its IPID."""

    reference: Any
    interface: str
    iid: bytes

    def objref(self) -> bytes:
        """The octets of an OBJREF that hands no references over."""
        made = dcomrt.OBJREF_STANDARD()
        made["iid"] = self.iid[:16]
        made["std"]["flags"] = made["std"]["cPublicRefs"] = 0
        made["std"]["oxid"] = self.reference.get_oxid()
        made["std"]["oid"] = self.reference.get_oid()
        made["std"]["ipid"] = self.reference.get_iPid()
        made["saResAddr"] = bytes(4)
        octets: bytes = made.getData()
        return octets


_IN = {
    "long": LONG,
    "HRESULT": LONG,
    "DWORD": ULONG,
    "REFIID": GUID,
    "BSTR": oaut.BSTR,
    "VARIANT": VARIANT,
    "VARIANT*": VARIANT,
}
_OUT = {
    "long*": LONG,
    "short*": SHORT,
    "DWORD*": ULONG,
    "VARIANT_BOOL*": USHORT,
    "BSTR*": oaut.BSTR,
    "VARIANT*": VARIANT,
}


@functools.cache
def _request_class(interface: str, operation: str) -> Any:
    made = object_interfaces()[interface].load().operation(operation)
    structure = tuple(
        (p.name, _IN.get(p.declared, dcomrt.PMInterfacePointer)) for p in _ins(made.declaration)
    )
    return type(operation, (dcomrt.DCOMCALL,), {"opnum": made.opnum, "structure": structure})


@functools.cache
def _response_class(interface: str, operation: str) -> Any:
    made = object_interfaces()[interface].load().operation(operation)
    returned = _returned(made.declaration)
    out = []
    if returned is not None:
        out = [(returned.name, _OUT.get(returned.declared, dcomrt.PMInterfacePointer))]
    structure = (*out, ("ErrorCode", ULONG))
    return type(f"{operation}Response", (dcomrt.DCOMANSWER,), {"structure": structure})


def _ins(declaration: OperationDeclaration) -> list[Parameter]:
    return [p for p in declaration.parameters if p.in_ and p.name != "orpcthis"]


def _returned(declaration: OperationDeclaration) -> Parameter | None:
    return next((p for p in declaration.parameters if p.out and p.name != "orpcthat"), None)


class _Parameters(oaut.DISPPARAMS):  # type: ignore[misc]
    structure = (("rgvarg", PVariants), *oaut.DISPPARAMS.structure[1:])


class Invoke(oaut.IDispatch_Invoke):  # type: ignore[misc]
    structure = tuple(
        (name, _Parameters if name == "pDispParams" else kind)
        for name, kind in oaut.IDispatch_Invoke.structure
    )


class InvokeResponse(dcomrt.DCOMANSWER):  # type: ignore[misc]
    structure = (
        ("pVarResult", VARIANT),
        ("pExcepInfo", oaut.EXCEPINFO),
        ("pArgErr", oaut.UINT),
        ("rgVarRef", VARIANTS),
        ("ErrorCode", ULONG),
    )


_VT_OF = {"long": VARENUM.VT_I4, "HRESULT": VARENUM.VT_I4, "BSTR": VARENUM.VT_BSTR}
_VT_OUT = {
    "long*": VARENUM.VT_I4,
    "short*": VARENUM.VT_I2,
    "VARIANT_BOOL*": VARENUM.VT_BOOL,
    "BSTR*": VARENUM.VT_BSTR,
}
_FLAGS = {
    "get": oaut.DISPATCH_PROPERTYGET,
    "put": oaut.DISPATCH_PROPERTYPUT,
    "putref": oaut.DISPATCH_PROPERTYPUTREF,
}


def _declaration(interface: str, operation: str) -> OperationDeclaration:
    return object_interfaces()[interface].load().operation(operation).declaration


def _plain(value: object) -> Variant:
    """A VARIANT that is an argument, with an object's OBJREF in its place."""
    if value is None:
        return MISSING
    assert isinstance(value, Variant)
    held = value.value
    return Variant(value.vt, held.objref()) if isinstance(held, Held) else value


def _write(request: Any, parameter: Parameter, value: object) -> None:
    """Put an argument into a request of impacket."""
    name = parameter.name
    if parameter.declared.startswith("VARIANT"):
        write_variant(request[name], _plain(value))
    elif parameter.declared == "BSTR":
        request[name]["asData"] = value
    elif parameter.declared == "REFIID":
        assert isinstance(value, UUID)
        request[name] = value.bytes_le
    elif parameter.declared in _IN:
        request[name] = value
    elif value is None:
        request[name] = NULL
    else:
        octets = value.objref() if isinstance(value, Held) else value
        write_objref(request.fields[name], octets)


def _in_variant(parameter: Parameter, value: object) -> Variant:
    """An argument for Invoke."""
    if parameter.declared.startswith("VARIANT"):
        return _plain(value)
    if parameter.declared in _VT_OF:
        return Variant(_VT_OF[parameter.declared], value)
    octets = value.objref() if isinstance(value, Held) else value
    return Variant(VARENUM.VT_DISPATCH, octets)


def _arguments(declaration: OperationDeclaration, arguments: tuple[object, ...]) -> list[Variant]:
    ins = zip(_ins(declaration), arguments, strict=True)
    return [_in_variant(parameter, value) for parameter, value in ins]


def _parameters(arguments: list[Variant], put: bool) -> Any:
    """DISPPARAMS, the last argument first."""
    found = _Parameters(None, False)
    found["cArgs"], found["cNamedArgs"] = len(arguments), int(put)
    for each in reversed(arguments):
        found["rgvarg"].append(made_variant(each))
    if not arguments:
        found["rgvarg"] = NULL
    if put:
        found["rgdispidNamedArgs"].append(DISPID_PROPERTYPUT & 0xFFFFFFFF)
    else:
        found["rgdispidNamedArgs"] = NULL
    return found


@dataclass
class Walker:
    connection: Any
    way: Way
    succeeded: set[str] = field(default_factory=set)
    refused: dict[str, set[int]] = field(default_factory=dict)
    _first: Any = None
    _numbers: dict[tuple[str, str], int] = field(default_factory=dict)

    def create(self, clsid: UUID, interface: str) -> Held:
        wire = "IDispatch" if self.way is Way.NAMES else interface
        made = create(self.connection, clsid, wire)
        self._first = made
        return Held(made, interface, iid_of(wire))

    def query(self, held: Held, interface: str) -> Held:
        """Another interface of an object, by RemQueryInterface."""
        found = held.reference.RemQueryInterface(1, (iid_of(interface),))
        return Held(found, interface, iid_of(interface))

    def known_as(self, held: Held, interface: str) -> Held:
        """The interface behind an IDispatch; by names it needs no other."""
        if self.way is Way.NAMES:
            return Held(held.reference, interface, held.iid)
        return self.query(held, interface)

    def queue_info(self, name: str) -> Held:
        """An MSMQQueueInfo for a path name, or a format name."""
        made = self.create(clsids.MSMQ_QUEUE_INFO, "IMSMQQueueInfo4")
        self.put(made, "FormatName" if "=" in name else "PathName", name)
        return made

    def open(self, name: str, access: QueueAccessType) -> Held:
        found: Held = self.call(self.queue_info(name), "Open", int(access), 0)
        return found

    def message(self) -> Held:
        return self.create(clsids.MSMQ_MESSAGE, "IMSMQMessage4")

    def destination(self, name: str) -> Held:
        """An open MSMQDestination for a format name."""
        made = self.create(clsids.MSMQ_DESTINATION, "IMSMQDestination")
        self.put(made, "FormatName", name)
        self.call(made, "Open")
        return made

    def get(self, held: Held, name: str) -> Any:
        return self.call(held, f"get_{name}")

    def put(self, held: Held, name: str, value: object) -> None:
        self.call(held, f"put_{name}", value)

    def call(self, held: Held, operation: str, *arguments: object) -> Any:
        """Call a method in the walker's way; what it returns."""
        declaration = _declaration(held.interface, operation)
        name = f"{family_of(declaration)}.{operation}"
        try:
            if self.way is Way.NAMES and _has_names(held.interface):
                returned = self._by_name(held, declaration, arguments)
            else:
                returned = self._by_opnum(held, operation, arguments)
        except ComError as failed:
            self.refused.setdefault(name, set()).add(failed.status)
            raise
        self.succeeded.add(name)
        return returned

    def refusal(self, held: Held, operation: str, *arguments: object) -> int:
        """The HRESULT with which a method fails."""
        with pytest.raises(ComError) as refused:
            self.call(held, operation, *arguments)
        return refused.value.status

    def held(self, octets: bytes | None, interface: str) -> Held | None:
        """The object that an OBJREF refers to."""
        if octets is None:
            return None
        made = dcomrt.INTERFACE(
            self._first.get_cinstance(),
            octets,
            self._first.get_ipidRemUnknown(),
            target=self._first.get_target(),
        )
        iid = UUID(bytes_le=octets[8:24])
        return Held(dcomrt.IRemUnknown2(made), interface, uuidtup_to_bin((str(iid), "0.0")))

    def _by_opnum(self, held: Held, operation: str, arguments: tuple[object, ...]) -> Any:
        declaration = _declaration(held.interface, operation)
        request = _request_class(held.interface, operation)()
        for parameter, value in zip(_ins(declaration), arguments, strict=True):
            _write(request, parameter, value)
        response = self._answer(held, request, _response_class(held.interface, operation))
        if response["ErrorCode"] & 0x80000000:
            raise ComError(response["ErrorCode"], operation)
        returned = _returned(declaration)
        return None if returned is None else self._read(returned, response[returned.name])

    def _read(self, returned: Parameter, value: Any) -> Any:
        """What impacket has decoded, as a value."""
        if returned.declared == "BSTR*":
            return read_text(value)
        if returned.declared == "VARIANT*":
            return read_variant(value)
        if returned.declared.endswith("**"):
            return self._declared(read_objref(value), returned)
        if returned.declared == "VARIANT_BOOL*":
            assert value in (0, 0xFFFF)
            return value != 0
        return value

    def _declared(self, octets: bytes | None, returned: Parameter) -> Held | None:
        """An object with the interface that a method declares to return."""
        interface = returned.declared.removesuffix("**")
        found = self.held(octets, interface)
        assert found is None or self.way is Way.NAMES or found.iid == iid_of(interface)
        return found

    def _answer(self, held: Held, request: Any, response_class: Any) -> Any:
        """Call with a request of impacket's classes, over its connection."""
        reference = held.reference
        request["ORPCthis"] = reference.get_cinstance().get_ORPCthis()
        request["ORPCthis"]["flags"] = 0
        reference.connect(held.iid)
        dce = reference.get_dce_rpc()
        dce.call(request.opnum, request, reference.get_iPid())
        return response_class(dce.recv())

    def _by_name(
        self, held: Held, declaration: OperationDeclaration, arguments: tuple[object, ...]
    ) -> Any:
        kind, _, member = declaration.name.partition("_")
        if kind not in _FLAGS:
            kind, member = "method", declaration.name
        request = Invoke()
        request["dispIdMember"] = self._number_of(held, member)
        request["riid"], request["lcid"] = oaut.IID_NULL, ENGLISH
        request["dwFlags"] = _FLAGS.get(kind, oaut.DISPATCH_METHOD)
        values = _arguments(declaration, arguments)
        request["pDispParams"] = _parameters(values, kind.startswith("put"))
        request["cVarRef"], request["rgVarRefIdx"], request["rgVarRef"] = 0, [], []
        response = self._answer(held, request, InvokeResponse)
        return self._returned_by_name(declaration, response)

    def _number_of(self, held: Held, member: str) -> int:
        """GetIDsOfNames of impacket, once for each interface."""
        key = (held.interface, member)
        if key not in self._numbers:
            dispatch = oaut.IDispatch(held.reference)
            dispatch._iid = held.iid
            (number,) = dispatch.GetIDsOfNames((member,))
            self._numbers[key] = (number ^ 1 << 31) - (1 << 31)  # impacket reads them unsigned
        return self._numbers[key]

    def _returned_by_name(self, declaration: OperationDeclaration, response: Any) -> Any:
        code = response["ErrorCode"]
        if code == HResult.DISP_E_EXCEPTION:
            code = response["pExcepInfo"]["scode"] & 0xFFFFFFFF
        if code & 0x80000000:
            raise ComError(code, declaration.name)
        returned, value = _returned(declaration), read_variant(response["pVarResult"])
        if returned is None:
            assert value == EMPTY
            return None
        if returned.declared == "VARIANT*":
            return value
        if returned.declared.endswith("**"):
            assert isinstance(value.value, bytes | None)
            return self._declared(value.value, returned)
        assert value.vt == _VT_OUT[returned.declared]
        return value.value


def _has_names(interface: str) -> bool:
    return IDISPATCH in object_interfaces()[interface].iids
