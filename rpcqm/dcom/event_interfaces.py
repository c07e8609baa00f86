"""The interfaces by which clients' objects take events: IDispatch::Invoke, or methods."""

import copy
from collections.abc import Callable, Sequence
from typing import Protocol
from uuid import UUID, uuid4

from rpcqm.codec.automation.values import Variant
from rpcqm.codec.idl.tree import Integer, InterfacePointer, Type
from rpcqm.codec.interface import Interface, Value, load
from rpcqm.codec.types.dcom import COMVERSION, ORPCTHIS
from rpcqm.codec.types.oaut import DISPPARAMS, IDispatch_InvokeRequest
from rpcqm.codec.types.oautvalues import DISPATCH_METHOD
from rpcqm.dcom.com_object import ComObject
from rpcqm.dcom.object_interfaces import IDISPATCH, object_interfaces

_NO_INTERFACE = UUID(int=0)

Pass = Callable[[ComObject, UUID], bytes]
"""Makes a reference to an object of ours, by an interface of it."""


class EventInterface(Protocol):
    """An interface of a client's object; events are numbered, and have VARIANTs as arguments."""

    @property
    def iid(self) -> UUID: ...

    def interface(self) -> Interface:
        """The interface to bind."""

    def request(self, event: int, arguments: Sequence[Variant], passed: Pass) -> tuple[str, Value]:
        """The operation for an event, and its request."""


class Dispatched:
    """A dispinterface, whose members are called by Invoke."""

    def __init__(self, iid: UUID) -> None:
        self.iid = iid

    def interface(self) -> Interface:
        interface = copy.copy(load("oaut.IDispatch"))
        interface.uuid = self.iid
        return interface

    def request(self, event: int, arguments: Sequence[Variant], passed: Pass) -> tuple[str, Value]:
        """[MS-OAUT] 3.1.4.4: arguments are in reverse order."""
        parameters = DISPPARAMS(
            rgvarg=[_by_dispatch(each, passed) for each in reversed(arguments)],
            rgdispidNamedArgs=None,
            cArgs=len(arguments),
            cNamedArgs=0,
        )
        request = IDispatch_InvokeRequest(
            orpcthis=this(),
            dispIdMember=event,
            riid=_NO_INTERFACE,
            lcid=0,
            dwFlags=DISPATCH_METHOD,
            pDispParams=parameters,
            cVarRef=0,
            rgVarRefIdx=[],
            rgVarRef=[],
        )
        return "Invoke", request


class Methods:
    """An interface of the IDL with a method for each event, whose parameters are the event's."""

    def __init__(self, name: str, *methods: str) -> None:
        self._known = object_interfaces()[name]
        self._methods = methods

    @property
    def iid(self) -> UUID:
        return self._known.iid

    def interface(self) -> Interface:
        return self._known.load()

    def request(self, event: int, arguments: Sequence[Variant], passed: Pass) -> tuple[str, Value]:
        operation = self.interface().operation(self._methods[event])
        parameters = [each for each in operation.declaration.parameters if each.in_][1:]
        fields = {
            each.name: _value(each.type, argument.value, passed)
            for each, argument in zip(parameters, arguments, strict=True)
        }
        request: Value = operation.request_class(orpcthis=this(), **fields)
        return operation.name, request


def this() -> ORPCTHIS:
    """The ORPCTHIS of our calls."""
    return ORPCTHIS(version=COMVERSION(MajorVersion=5, MinorVersion=7), cid=uuid4())


def _by_dispatch(argument: Variant, passed: Pass) -> Variant:
    if not isinstance(argument.value, ComObject):
        return argument
    return Variant(argument.vt, passed(argument.value, IDISPATCH))


def _value(declared: Type, value: object, passed: Pass) -> object:
    """A VARIANT's value for a parameter; automation has signed numbers for HRESULTs."""
    if isinstance(declared, InterfacePointer) and isinstance(value, ComObject):
        return passed(value, object_interfaces()[declared.name].iid)
    if isinstance(declared, Integer) and isinstance(value, int) and not declared.signed:
        return value & ((1 << 8 * declared.size) - 1)
    return value
