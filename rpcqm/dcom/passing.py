"""Objects as parameters: from the octets of references to objects, and back.

Which objects a parameter's type can hold is worked out once for each method; most hold none, and
are passed unchanged.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any
from uuid import UUID

from rpcqm.base.errors import DecodeError, HResult, MQError
from rpcqm.codec.automation.objref import ObjRefCustom, StdObjRef, unpack_objref
from rpcqm.codec.automation.values import SafeArray, Variant
from rpcqm.codec.idl.nodes import Name
from rpcqm.codec.idl.tree import Array, InterfacePointer, Pointer, StructureType, Type, WireMarshal
from rpcqm.codec.types.oautvalues import VT_DISPATCH, VT_UNKNOWN, VT_VARIANT
from rpcqm.dcom.bindings import Bindings
from rpcqm.dcom.com_object import ComObject, RemoteReference
from rpcqm.dcom.exporter import ObjectEntry, ObjectExporter
from rpcqm.dcom.object_interfaces import IDISPATCH, IUNKNOWN, object_interfaces
from rpcqm.rpc.call import Call

_VARTYPE = 0xFFF
"""The bits of a VARTYPE that are neither VT_ARRAY, nor VT_BYREF nor reserved."""
_POINTERS = {VT_UNKNOWN: IUNKNOWN, VT_DISPATCH: IDISPATCH}
_HEAD = b"MEOW\x01\x00\x00\x00"
"""Signature and flags of an OBJREF_STANDARD."""

_KEPT = 1024
"""Octets of references that are cached unpacked: those of clients have some 200."""
_unpacked = lru_cache(maxsize=256)(unpack_objref)
"""Cached: clients pass the same few references over and over, such as their queue."""

Convert = Callable[["Passing", Any], Any]
"""Replaces octets of references by objects, or objects by octets, in one value."""


class Passing:
    """The objects that one call passes, in either direction.

    `used` are the objects that came as arguments, until the call is over.
    """

    __slots__ = ("_bindings", "_exporter", "call", "given", "request", "used")

    def __init__(
        self, exporter: ObjectExporter, bindings: Bindings, call: Call, request: object
    ) -> None:
        self._exporter = exporter
        self._bindings = bindings
        self.call = call
        self.request = request
        self.used: list[ObjectEntry] = []
        self.given: list[StdObjRef] = []

    def object_of(self, octets: bytes | None) -> ComObject | RemoteReference | None:
        """The object for a reference: one of ours, or a remote one.

        Raises MQError: RPC_E_INVALID_OBJREF for malformed octets, E_NOINTERFACE for an object that
        is not here.
        """
        if octets is None:
            return None
        try:
            reference = _unpacked(octets) if len(octets) <= _KEPT else unpack_objref(octets)
        except DecodeError as error:
            raise MQError(HResult.RPC_E_INVALID_OBJREF, str(error)) from error
        if isinstance(reference, ObjRefCustom) or reference.std.oxid != self._exporter.oxid:
            return RemoteReference(octets)
        entry = self._exporter.unmarshal(reference.std)
        self.used.append(entry)
        return entry.com_object

    def reference_to(self, found: object, iid: UUID) -> bytes | None:
        """The octets of a reference with which a caller gets an object; MQError as `marshal`."""
        if isinstance(found, RemoteReference):
            return found.objref
        if not isinstance(found, ComObject):
            if found is None or isinstance(found, bytes):
                return found
            raise TypeError(f"a {type(found).__name__} is no object")
        call = self.call
        std = self._exporter.marshal(
            found, iid, call.identity.sid, admitted=True, client=call.association.group
        )
        self.given.append(std)
        address = self.call.local_address
        return _HEAD + iid.bytes_le + std.pack() + self._bindings.packed_resolver(address)

    def take_back(self) -> None:
        """Take the references back: the caller has not got them."""
        caller = self.call.identity.sid
        for std in self.given:
            self._exporter.release(std.ipid, std.public_refs, 0, caller)
        self.given.clear()

    def end(self) -> None:
        """End the call's use of its objects."""
        for entry in self.used:
            self._exporter.let_go(entry)
        self.used.clear()


def inward(made: Type) -> Convert | None:
    """Converts a parameter's references into objects; None if its type holds none."""
    return _conversion(made, lambda _: lambda passing, value: passing.object_of(value))


def outward(made: Type) -> Convert | None:
    """Converts a result's objects into references; None if its type holds none."""
    return _conversion(made, _reference)


def _conversion(made: Type, pointer: Callable[[InterfacePointer], Convert]) -> Convert | None:
    match made:
        case InterfacePointer():
            return pointer(made)
        case WireMarshal(name="VARIANT"):
            return _variant(pointer)
        case WireMarshal(name="SAFEARRAY"):
            return lambda passing, value: _array(passing, value, pointer)
        case Pointer(to=to):
            inner = _conversion(to, pointer)
            return inner and _unless_null(inner)
        case Array(element=element):
            inner = _conversion(element, pointer)
            return inner and _each(inner)
        case StructureType():
            return _structure(made, pointer)
    return None


def _reference(made: InterfacePointer) -> Convert:
    """Converts references to the interface that a method declares, or the caller names (iid_is)."""
    if isinstance(made.iid_is, Name):
        parameter = made.iid_is.text
        return lambda passing, value: passing.reference_to(
            value, getattr(passing.request, parameter)
        )
    iid = object_interfaces()[made.name].iid
    return lambda passing, value: passing.reference_to(value, iid)


def _variant(pointer: Callable[[InterfacePointer], Convert]) -> Convert:
    def convert(passing: Passing, value: Variant | None) -> Variant | None:
        if value is None or value.value is None:
            return value
        inside = value.value
        if isinstance(inside, Variant):
            return Variant(value.vt, convert(passing, inside))
        if isinstance(inside, SafeArray):
            array = _array(passing, inside, pointer)
            return value if array is inside else Variant(value.vt, array)
        if value.vt & _VARTYPE in _POINTERS:
            return Variant(value.vt, _pointed(passing, value.vt, inside, pointer))
        return value

    return convert


def _pointed(
    passing: Passing, vt: int, value: object, pointer: Callable[[InterfacePointer], Convert]
) -> object:
    name = "IDispatch" if vt & _VARTYPE == VT_DISPATCH else "IUnknown"
    return pointer(InterfacePointer(name))(passing, value)


def _array(
    passing: Passing, value: SafeArray | None, pointer: Callable[[InterfacePointer], Convert]
) -> SafeArray | None:
    if value is None or isinstance(value.values, bytes):
        return value
    kind = value.vt & _VARTYPE
    if kind == VT_VARIANT:
        convert = _variant(pointer)
    elif kind in _POINTERS:
        convert = pointer(InterfacePointer("IDispatch" if kind == VT_DISPATCH else "IUnknown"))
    else:
        return value
    return replace(value, values=[convert(passing, each) for each in value.values])


def _unless_null(inner: Convert) -> Convert:
    return lambda passing, value: None if value is None else inner(passing, value)


def _each(inner: Convert) -> Convert:
    return lambda passing, value: value and [inner(passing, each) for each in value]


def _structure(
    made: StructureType, pointer: Callable[[InterfacePointer], Convert]
) -> Convert | None:
    fields = [(each.name, _conversion(each.type, pointer)) for each in made.fields]
    inside = [(name, convert) for name, convert in fields if convert is not None]
    if not inside:
        return None

    def convert(passing: Passing, value: Any) -> Any:
        for name, inner in inside:
            setattr(value, name, inner(passing, getattr(value, name)))
        return value

    return convert
