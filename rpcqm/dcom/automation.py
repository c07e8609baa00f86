"""IDispatch for every object whose interface the IDL describes ([MS-OAUT] 3.1)."""

import functools
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError, NtStatus
from rpcqm.codec.automation.type_library import InterfaceDescription, describe, described_names
from rpcqm.codec.automation.values import EMPTY, Variant
from rpcqm.codec.types.oaut import DISPPARAMS, EXCEPINFO
from rpcqm.codec.types.oautvalues import (
    DISPATCH_METHOD,
    DISPATCH_PROPERTYGET,
    DISPATCH_PROPERTYPUT,
    DISPATCH_PROPERTYPUTREF,
    DISPID_UNKNOWN,
    DISPATCH_zeroArgErr,
    DISPATCH_zeroExcepInfo,
    DISPATCH_zeroVarResult,
)
from rpcqm.dcom.arguments import ArgumentError, Binding, with_references
from rpcqm.dcom.com_object import ComCall, ComObject, Outcome
from rpcqm.dcom.orpc_values import NO_EXCEPTION
from rpcqm.dcom.type_info import TypeInfo

_NULL = UUID(int=0)
_ASSIGN = DISPATCH_PROPERTYPUT | DISPATCH_PROPERTYPUTREF
_READ = DISPATCH_METHOD | DISPATCH_PROPERTYGET
INVOKE_KINDS = _READ | _ASSIGN
"""The flags of Invoke that select the member."""
_KINDS = frozenset({1, 2, 3, 4, 8, 12})
"""The combinations of flags in one call.

[MS-OAUT] 3.1.4.4 wants one of four bits; Basic does not tell a method from a property (3), nor an
assignment from one of a reference (12).
"""
_FACILITY_NT_BIT = 0x1000_0000
"""Marks an NTSTATUS that is returned as an HRESULT ([MS-ERREF] 2.1)."""


class Vocabulary:
    """The members of a class by names and numbers, for one of its interfaces."""

    def __init__(self, described: InterfaceDescription, newest: InterfaceDescription) -> None:
        operations = {member.opnum: member.operation for member in newest.members}
        self._members: dict[tuple[int, int], tuple[str, Binding]] = {}
        self._names: dict[str, list[Binding]] = {}
        for member in described.members:
            binding = Binding(member)
            key = member.dispid, int(member.invoke_kind)
            self._members[key] = operations[member.opnum], binding
            self._names.setdefault(member.name.lower(), []).append(binding)

    def numbers(self, names: Sequence[str | None]) -> list[int]:
        """The DISPIDs of a member and of its parameters; DISPID_UNKNOWN for an unknown name."""
        bindings = self._names.get((names[0] or "").lower(), [])
        found = [bindings[0].member.dispid if bindings else DISPID_UNKNOWN]
        known: dict[str, int] = {}
        for binding in bindings:
            known |= binding.names
        found += [known.get((name or "").lower(), DISPID_UNKNOWN) for name in names[1:]]
        return found

    def find(self, dispid: int, flags: int) -> tuple[str, Binding] | None:
        """The method of the class and its binding; either kind of assignment fits the other."""
        for kind in (1, 2, 4, 8):
            if flags & kind and (dispid, kind) in self._members:
                return self._members[dispid, kind]
        if flags & _ASSIGN:
            return self._members.get((dispid, _ASSIGN & ~flags))
        return None


@functools.cache
def vocabulary(interfaces: tuple[str, ...], iid: UUID) -> Vocabulary:
    """The members of a class with these interfaces, for a caller by `iid`; IDispatch: the newest.

    The class has the methods of the newest revision of each interface, which stands first.
    """
    known = described_names()
    found = [describe(name) for name in interfaces if name in known]
    asked = next((each for each in found if each.uuid == iid), found[0])
    newest = next(each for each in found if _family(each) == _family(asked))
    return Vocabulary(asked, newest)


def _family(described: InterfaceDescription) -> str:
    """The common name of an interface's revisions: IMSMQQueue of IMSMQQueue4."""
    return described.name.rstrip("0123456789")


@dataclass(slots=True)
class _Invocation:
    """One Invoke: the member that it calls, and the places of its results."""

    binding: Binding
    flags: int
    places: list[int | None]
    indices: Sequence[int]
    references: list[Variant]


class Automation(ComObject):
    """An object that programs call by names: IDispatch over the methods of its class.

    Each of its first interfaces is described by the IDL, the newest first.
    """

    def GetTypeInfoCount(self, call: ComCall) -> int:
        """The number of descriptions, 1 ([MS-OAUT] 3.1.4.1, opnum 3)."""
        return 1

    def GetTypeInfo(self, call: ComCall, iTInfo: int, lcid: int) -> TypeInfo:
        """The description of the newest interface ([MS-OAUT] 3.1.4.2, opnum 4)."""
        if iTInfo != 0:
            raise MQError(HResult.DISP_E_BADINDEX, f"type information {iTInfo}")
        return TypeInfo(self.interfaces[0])

    def GetIDsOfNames(
        self, call: ComCall, riid: UUID, rgszNames: Sequence[str | None], cNames: int, lcid: int
    ) -> Outcome:
        """The numbers of a member and its parameters ([MS-OAUT] 3.1.4.3, opnum 5)."""
        if riid != _NULL:
            error = MQError(HResult.DISP_E_UNKNOWNINTERFACE, str(riid))
            return Outcome(error.status, ([DISPID_UNKNOWN] * cNames,), error=error)
        found = vocabulary(self.interfaces, call.iid).numbers(rgszNames) if rgszNames else []
        if DISPID_UNKNOWN not in found:
            return Outcome(HResult.MQ_OK, (found,))
        error = MQError(HResult.DISP_E_UNKNOWNNAME, str(rgszNames[found.index(DISPID_UNKNOWN)]))
        return Outcome(error.status, (found,), error=error)

    def Invoke(
        self,
        call: ComCall,
        dispIdMember: int,
        riid: UUID,
        lcid: int,
        dwFlags: int,
        pDispParams: DISPPARAMS,
        cVarRef: int,
        rgVarRefIdx: Sequence[int] | None,
        rgVarRef: Sequence[Variant] | None,
    ) -> "Outcome | Coroutine[Completion[Any], None, Outcome]":
        """Call a member by its number ([MS-OAUT] 3.1.4.4, opnum 6)."""
        references = list(rgVarRef or ())
        indices = rgVarRefIdx or ()
        places: list[int | None] = []
        try:
            if riid != _NULL:
                raise MQError(HResult.DISP_E_UNKNOWNINTERFACE, str(riid))
            operation, binding = self._member(call, dispIdMember, dwFlags)
            rgvarg = with_references(pDispParams.rgvarg or (), indices, references)
            arguments = binding.arguments(rgvarg, pDispParams.rgdispidNamedArgs or (), places)
        except MQError as error:
            return _refused(error, references, dwFlags)
        if operation in self.WAITING:
            call.check_waiting()
        invocation = _Invocation(binding, dwFlags, places, indices, references)
        try:
            value = getattr(self, operation)(call, *arguments)
        except MQError as error:
            return self._failed(error, invocation)
        if isinstance(value, Completion | Coroutine):
            return self._finish(value, invocation)
        return self._done(value, invocation)

    def _member(self, call: ComCall, dispid: int, flags: int) -> tuple[str, Binding]:
        asked = flags & (_READ | _ASSIGN)
        if asked not in _KINDS:
            raise MQError(HResult.E_INVALIDARG, f"flags {flags:#x}")
        found = vocabulary(self.interfaces, call.iid).find(dispid, asked)
        if found is None:
            raise MQError(HResult.DISP_E_MEMBERNOTFOUND, f"member {dispid}")
        return found

    async def _finish(self, value: Any, invocation: _Invocation) -> Outcome:
        try:
            return self._done(await value, invocation)
        except MQError as error:
            return self._failed(error, invocation)

    def _done(self, value: object, invocation: _Invocation) -> Outcome:
        if isinstance(value, Outcome):
            if value.status & 0x8000_0000:
                return self._failed(MQError(HResult(value.status)), invocation)
            values: Sequence[object] = value.values
        else:
            values = value if isinstance(value, tuple) and invocation.binding.outs > 1 else (value,)
        result, others = invocation.binding.results(values[: invocation.binding.outs])
        references = invocation.references
        try:
            if others:
                invocation.binding.write_back(
                    references, invocation.indices, invocation.places, others
                )
        except MQError as error:
            return _refused(error, references, invocation.flags)
        unused: tuple[ComObject, ...] = ()
        if invocation.flags & DISPATCH_zeroVarResult:
            unused = (result.value,) if isinstance(result.value, ComObject) else ()
            result = EMPTY
        return Outcome(HResult.MQ_OK, (result, NO_EXCEPTION, 0, references), unused)

    def _failed(self, error: MQError, invocation: _Invocation) -> Outcome:
        """The exception of a member that has failed ([MS-OAUT] 2.2.34)."""
        exception = NO_EXCEPTION
        if not invocation.flags & DISPATCH_zeroExcepInfo:
            source, meaning = type(self).__name__, error.status.meaning
            exception = EXCEPINFO(
                bstrSource=source, bstrDescription=meaning, scode=hresult_of(error.status)
            )
        values = (EMPTY, exception, 0, invocation.references)
        name = invocation.binding.member.name
        refused = MQError(error.status, f"{name}: {error.detail}" if error.detail else name)
        return Outcome(HResult.DISP_E_EXCEPTION, values, error=refused)


def called_operation(com_object: ComObject, iid: UUID, dispid: int, flags: int) -> str:
    """The method of a class that Invoke of an interface calls; "" if there is no such method."""
    found = vocabulary(com_object.interfaces, iid).find(dispid, flags & INVOKE_KINDS)
    return "" if found is None else found[0]


def _refused(error: MQError, references: list[Variant], flags: int) -> Outcome:
    """The answer to an Invoke that calls nothing; pArgErr is the index of the wrong argument.

    It is 0 if the client does not ask ([MS-OAUT] 3.1.4.4).
    """
    asks = not flags & DISPATCH_zeroArgErr
    argument = error.argument if asks and isinstance(error, ArgumentError) else 0
    return Outcome(error.status, (EMPTY, NO_EXCEPTION, argument, references), error=error)


def hresult_of(status: HResult | NtStatus) -> int:
    """A refusal as an HRESULT ([MS-ERREF] 2.1)."""
    return status | _FACILITY_NT_BIT if isinstance(status, NtStatus) else status
