"""Calls of objects: from a request with an IPID to a method of a ComObject ([MS-DCOM] 3.1.1.5.4).

Each interface of the IDL becomes an interface of the RPC runtime, whose handlers are made here.
It is prepared when the first client binds it, and a method's codec compiled with its first call.
"""

import inspect
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any
from uuid import UUID

from rpcqm.base.completion import Completion
from rpcqm.base.errors import FaultStatus, HResult, MQError, RpcFault
from rpcqm.base.metrics import Histogram, Metrics
from rpcqm.codec.automation.values import Variant
from rpcqm.codec.idl.tree import InterfacePointer
from rpcqm.codec.interface import Operation, Value
from rpcqm.codec.types.dcom import ORPCTHIS
from rpcqm.dcom.access import CallerCheck
from rpcqm.dcom.automation import INVOKE_KINDS, called_operation
from rpcqm.dcom.bindings import Bindings
from rpcqm.dcom.com_object import ComCall, ComObject, Outcome, WaitingCalls
from rpcqm.dcom.exporter import ObjectEntry, ObjectExporter
from rpcqm.dcom.object_interfaces import (
    FIRST_METHOD,
    ObjectInterface,
    by_iid,
    method_names,
    object_interfaces,
)
from rpcqm.dcom.orpc_values import MAJOR, MINOR, THAT, CheckedRequest
from rpcqm.dcom.passing import Convert, Passing, inward, outward
from rpcqm.rpc.call import Call
from rpcqm.rpc.dispatch import log_refusal
from rpcqm.rpc.interface_registry import (
    InterfacePolicy,
    LazyTables,
    OperationEntry,
    RegisteredInterface,
    register,
    time_calls,
)
from rpcqm.rpc.pdu import SyntaxId
from rpcqm.rpc.presentation import NDR, NDR64


def check_this(this: ORPCTHIS) -> None:
    """Check what every call of an object carries; raises RpcFault.

    Extensions are ignored (G299), and calls are not kept in the order of their causality.
    """
    check_version(this)
    if this.flags:
        raise RpcFault(HResult.RPC_E_INVALID_HEADER, f"ORPCTHIS has the flags {this.flags:#x}")


def check_version(this: ORPCTHIS) -> None:
    """Raise RpcFault for a client of another or a later version ([MS-DCOM] 1.7)."""
    version = this.version
    if version.MajorVersion != MAJOR or version.MinorVersion > MINOR:
        asked = f"{version.MajorVersion}.{version.MinorVersion}"
        raise RpcFault(HResult.RPC_E_VERSION_MISMATCH, f"version {asked} of DCOM")


_AT_ONCE = frozenset({int, str, bool, bytes, tuple, list, type(None), Variant, UUID, Outcome})
"""Classes of results that are not awaited."""
new = object.__new__


INVOKE = "Invoke"
TIMED = "com"
"""The subject of the histograms of all calls of COM."""


def _waits(outcome: object) -> bool:
    """Whether a method answers later."""
    return isinstance(outcome, Completion) or inspect.iscoroutine(outcome)


class ObjectCalls:
    """Makes interfaces of the RPC runtime whose calls go to the exporter's objects."""

    def __init__(
        self,
        exporter: ObjectExporter,
        bindings: Bindings,
        check: CallerCheck,
        metrics: Metrics,
    ) -> None:
        self.exporter = exporter
        self.metrics = metrics
        self.bindings = bindings
        self.waiting = WaitingCalls(exporter.limits.waiting_calls_per_caller)
        self._policy = InterfacePolicy(check=check.check_access)
        self.shorten: Callable[[Operation, OperationEntry], None] | None = None
        """Lets an operation skip the codecs, in NDR; called before its interface is served."""

    def registered(self, without: Iterable[str] = ()) -> list[RegisteredInterface]:
        """Every interface of objects in the IDL, except those that another object serves."""
        others = set(without)
        return [
            self._registered(each)
            for each in object_interfaces().values()
            if each.name not in others
        ]

    def _registered(self, interface: ObjectInterface) -> RegisteredInterface:
        tables = LazyTables((NDR64, NDR), partial(self._prepared, interface))
        return RegisteredInterface(interface.name, SyntaxId(interface.iid), tables, self._policy)

    def _prepared(self, interface: ObjectInterface) -> RegisteredInterface:
        loaded = interface.load()
        handlers = _Handlers()
        for operation in loaded.operations[FIRST_METHOD:]:
            if operation is not None:
                method = _Method(self, interface, operation)
                handlers.__dict__[operation.name] = method.handle
        registered = register(loaded, handlers, self._policy)
        if self.shorten is not None:
            for operation, entry in zip(loaded.operations, registered.tables[NDR], strict=True):
                if operation is not None and entry is not None:
                    self.shorten(operation, entry)
        time_calls(registered, self.metrics, TIMED)
        return registered


class _Handlers:
    """The handlers of one interface, one attribute for each of its operations."""


class _Method:
    """One operation of one interface: finds the object, and calls the class's method."""

    __slots__ = (
        "_bindings",
        "_exporter",
        "_extras",
        "_gives",
        "_iid",
        "_in_names",
        "_ins",
        "_interface",
        "_interfaces",
        "_invoked",
        "_metrics",
        "_names",
        "_now",
        "_only",
        "_operation",
        "_outs",
        "_plain",
        "_response_class",
        "_silent",
        "_waiting",
    )

    def __init__(
        self, calls: ObjectCalls, interface: ObjectInterface, operation: Operation
    ) -> None:
        parameters = operation.declaration.parameters
        self._bindings = calls.bindings
        self._exporter = calls.exporter
        self._waiting = calls.waiting
        self._interface = interface
        self._iid = interface.iid
        self._operation = operation
        self._names: dict[type[ComObject], str] = {}
        self._response_class: type[Any] = operation.response_class
        self._ins = [(each.name, inward(each.type)) for each in parameters if each.in_][1:]
        self._outs = [(each.name, outward(each.type)) for each in parameters if each.out][1:]
        fields = {"orpcthat", "result", *(name for name, _ in self._outs)}
        self._extras = [each for each in operation.response_class.__slots__ if each not in fields]
        self._plain = all(convert is None for _, convert in self._ins + self._outs)
        self._gives = operation.name == INVOKE or any(
            isinstance(each.type, InterfacePointer) for each in parameters if each.out
        )
        self._in_names = [name for name, _ in self._ins]
        alone = len(self._outs) == 1 and not self._extras
        self._only = self._outs[0][0] if alone else None
        self._silent = not (self._outs or self._extras)
        self._interfaces = calls.exporter.by_ipid
        self._now = calls.exporter.clock.monotonic
        self._metrics = calls.metrics
        self._invoked: dict[tuple[type[ComObject], UUID, int, int], Histogram] = {}

    def handle(self, call: Call, request: Any) -> object:
        """Handle a call; the outcome is a response, or a coroutine of one."""
        if not isinstance(request, CheckedRequest):
            check_this(request.orpcthis)
        found = self._interfaces.get(call.object_octets)
        if found is None or not (found.iid == self._iid or self._is_base_of(found.iid)):
            raise RpcFault(HResult.RPC_E_DISCONNECTED, "no such IPID")
        entry = found.object
        entry.last_call = self._now()
        entry.client = call.association.group
        com_object = entry.com_object
        name = self._names.get(com_object.__class__) or self._name(com_object)
        if name == INVOKE:
            self._time_as_member(call, request, found.iid, com_object)
        method = getattr(com_object, name)
        com_call = ComCall(call, found.iid, self._waiting)
        if name in com_object.WAITING:
            com_call.check_waiting()
        if not self._plain:
            return self._handle_passing(method, com_call, request, entry)
        outcome = method(com_call, *[getattr(request, name) for name in self._in_names])
        if outcome.__class__ not in _AT_ONCE and _waits(outcome):
            return self._later(outcome, com_call, request, entry, self._passing(call, request))
        if self._only is None or outcome.__class__ is Outcome:
            return self._response(call, outcome, request, None)
        response = new(self._response_class)
        response.orpcthat, response.result = THAT, 0
        setattr(response, self._only, outcome)
        return response

    def _time_as_member(self, call: Call, request: Any, iid: UUID, com_object: ComObject) -> None:
        """Count the duration of a call by name under the called member, if there is one."""
        dispid, flags = request.dispIdMember, request.dwFlags & INVOKE_KINDS
        key = com_object.__class__, iid, dispid, flags
        durations = self._invoked.get(key)
        if durations is None:
            member = called_operation(com_object, iid, dispid, flags)
            if not member:
                return
            interface = by_iid()[iid].name
            durations = self._invoked[key] = self._metrics.histogram(TIMED, interface, member)
        call.durations = durations

    def _is_base_of(self, iid: UUID) -> bool:
        """Whether the interface of an IPID is derived from the one that the client has bound."""
        derived = by_iid().get(iid)
        return derived is not None and self._iid in derived.iids

    def _name(self, com_object: ComObject) -> str:
        """The class's name for the method; raises RpcFault if the class lacks it."""
        kind = com_object.__class__
        name = method_names(kind.INTERFACES, self._interface)[self._operation.opnum]
        if not hasattr(kind, name):
            text = f"opnum {self._operation.opnum} of {self._interface.name} is not served"
            raise RpcFault(FaultStatus.nca_s_op_rng_error, text)
        self._names[kind] = name
        return name

    def _passing(self, call: Call, request: object) -> Passing:
        return Passing(self._exporter, self._bindings, call, request)

    def _handle_passing(
        self, method: Callable[..., object], com_call: ComCall, request: Any, entry: ObjectEntry
    ) -> object:
        """Call a method whose parameters may hold objects."""
        if self._gives:
            # A message that Receive has taken must reach its caller: then it is too late to refuse.
            self._exporter.check_room(com_call.identity.sid)
        passing = self._passing(com_call.call, request)
        deferred = False
        try:
            outcome = method(com_call, *self._arguments(request, passing))
            deferred = _waits(outcome)
            if deferred:
                return self._later(outcome, com_call, request, entry, passing)
            return self._response(com_call.call, outcome, request, passing)
        finally:
            if not deferred:
                passing.end()

    def _arguments(self, request: Any, passing: Passing) -> list[object]:
        return [
            getattr(request, name) if convert is None else convert(passing, getattr(request, name))
            for name, convert in self._ins
        ]

    async def _later(
        self, outcome: Any, call: ComCall, request: Any, entry: ObjectEntry, passing: Passing
    ) -> Value:
        """The response of a call that waits; object and arguments stay until then."""
        caller = passing.call.identity.sid
        entry.used += 1
        if call.waits:
            self._waiting.begin(caller)
        try:
            return self._response(call.call, await outcome, request, passing)
        finally:
            if call.waits:
                self._waiting.end(caller)
            passing.end()
            self._exporter.let_go(entry)

    def _response(
        self, call: Call, outcome: object, request: Any, passing: Passing | None
    ) -> Value:
        """The response for a method's result; MQError if it cannot be marshalled."""
        status, outs = 0, self._outs
        response: Value
        if outcome is None and self._silent:
            response = new(self._response_class)
            response.orpcthat, response.result = THAT, 0  # type: ignore[attr-defined]
            return response
        if isinstance(outcome, Outcome):
            status, values = outcome.status, outcome.values
            for each in outcome.unused:
                self._exporter.discard(each)
            if outcome.error is not None:
                log_refusal(self._operation.name, call, outcome.error)
            if len(values) != len(outs):
                return self._operation.failure_response(request, status)
        elif len(outs) == 1:
            values = (outcome,)
        else:
            values = outcome if isinstance(outcome, tuple) else ()
        fields = {name: getattr(request, name) for name in self._extras}
        for (name, convert), value in zip(outs, values, strict=True):
            fields[name] = value
            if convert is not None and passing is not None:
                fields[name] = self._given(convert, passing, value)
        if passing is not None and passing.given:
            passing.call.on_delivery_failed(passing.take_back)
        response = self._response_class(orpcthat=THAT, result=status, **fields)
        return response

    @staticmethod
    def _given(convert: Convert, passing: Passing, value: object) -> object:
        """A value with references instead of objects; if one fails, all are taken back."""
        try:
            return convert(passing, value)
        except MQError:
            passing.take_back()
            raise
