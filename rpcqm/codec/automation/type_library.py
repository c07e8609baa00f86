"""Descriptions of automation types: members, their numbers and their parameters ([MS-OAUT] 3.7.1).

They come from the IDL, so that IDispatch describes the interfaces as they are.
"""

import functools
import itertools
import operator
from dataclasses import dataclass
from uuid import UUID

from rpcqm.codec.automation.values import Variant
from rpcqm.codec.idl.load import load_idl
from rpcqm.codec.idl.tree import IdlFile, InterfaceDeclaration, OperationDeclaration
from rpcqm.codec.types import oautvalues


@dataclass(frozen=True, slots=True)
class TypeDescription:
    """A type of a parameter ([MS-OAUT] 2.2.37).

    `vt` is a VARENUM; VT_PTR and VT_SAFEARRAY have an `element`, VT_USERDEFINED the `name` of an
    interface or enumeration.
    """

    vt: int
    element: "TypeDescription | None" = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a member; `flags` are PARAMFLAGS, `default` is its [defaultvalue]."""

    name: str
    type: TypeDescription
    flags: int
    default: Variant | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A method, or one accessor of a property.

    `name` is the name in programs (`Label`), `operation` that in the interface (`get_Label`).
    """

    name: str
    operation: str
    dispid: int
    invoke_kind: int
    opnum: int
    parameters: tuple[Parameter, ...]
    flags: int = 0


@dataclass(frozen=True, slots=True)
class InterfaceDescription:
    """An interface: `members` are all that IDispatch reaches, inherited ones first.

    `inherited` counts the inherited ones.
    """

    name: str
    uuid: UUID
    members: tuple[Member, ...]
    flags: int = 0
    base: str = "IDispatch"
    inherited: int = 0

    @property
    def own(self) -> tuple[Member, ...]:
        return self.members[self.inherited :]


@functools.cache
def describe(name: str, file: str = "mqac") -> InterfaceDescription:
    """The description of an automation interface or dispinterface of idl/<file>.idl.

    Raises KeyError for any other name.
    """
    return describe_in(load_idl(file), name)


def describe_in(file: IdlFile, name: str) -> InterfaceDescription:
    """The description of an interface of a file that was read by other means."""
    if name in file.dispinterfaces:
        events = file.dispinterfaces[name]
        members = _members(events.operations)
        return InterfaceDescription(name, events.uuid, members, oautvalues.TYPEFLAG_FDISPATCHABLE)
    declared = file.interfaces[name]
    if not declared.automation:
        raise KeyError(name)
    members = _members(_reached(declared))
    return InterfaceDescription(
        name,
        declared.uuid,
        members,
        _flags(declared.attributes, _TYPE_FLAGS) | oautvalues.TYPEFLAG_FDISPATCHABLE,
        declared.base.name if declared.base else "",
        len(members) - len(declared.own),
    )


def described_names(file: str = "mqac") -> list[str]:
    """The names of all interfaces of a file that `describe` finds, without dispinterfaces."""
    return [name for name, each in load_idl(file).interfaces.items() if each.automation]


_TYPE_FLAGS = {
    "dual": oautvalues.TYPEFLAG_FDUAL | oautvalues.TYPEFLAG_FOLEAUTOMATION,
    "hidden": oautvalues.TYPEFLAG_FHIDDEN,
    "nonextensible": oautvalues.TYPEFLAG_FNONEXTENSIBLE,
    "oleautomation": oautvalues.TYPEFLAG_FOLEAUTOMATION,
    "restricted": oautvalues.TYPEFLAG_FRESTRICTED,
}
_FUNCTION_FLAGS = {
    "hidden": oautvalues.FUNCFLAG_FHIDDEN,
    "restricted": oautvalues.FUNCFLAG_FRESTRICTED,
}
_PARAMETER_FLAGS = {
    "in": oautvalues.PARAMFLAG_FIN,
    "out": oautvalues.PARAMFLAG_FOUT,
    "lcid": oautvalues.PARAMFLAG_FLCID,
    "optional": oautvalues.PARAMFLAG_FOPT,
    "retval": oautvalues.PARAMFLAG_FRETVAL,
}
_KINDS = {
    "propget": oautvalues.INVOKE_PROPERTYGET,
    "propput": oautvalues.INVOKE_PROPERTYPUT,
    "propputref": oautvalues.INVOKE_PROPERTYPUTREF,
}
_NUMBERS = {"_NewEnum": oautvalues.DISPID_NEWENUM, "Item": oautvalues.DISPID_VALUE}
"""Members that every collection has under these numbers."""

_SIMPLE = {
    "short": oautvalues.VT_I2,
    "SHORT": oautvalues.VT_I2,
    "long": oautvalues.VT_I4,
    "LONG": oautvalues.VT_I4,
    "DWORD": oautvalues.VT_UI4,
    "ULONG": oautvalues.VT_UI4,
    "float": oautvalues.VT_R4,
    "double": oautvalues.VT_R8,
    "BSTR": oautvalues.VT_BSTR,
    "DATE": oautvalues.VT_DATE,
    "CURRENCY": oautvalues.VT_CY,
    "HRESULT": oautvalues.VT_HRESULT,
    "VARIANT": oautvalues.VT_VARIANT,
    "VARIANT_BOOL": oautvalues.VT_BOOL,
    "IDispatch*": oautvalues.VT_DISPATCH,
    "IUnknown*": oautvalues.VT_UNKNOWN,
}


def _flags(attributes: frozenset[str], known: dict[str, int]) -> int:
    return functools.reduce(operator.or_, (known.get(each, 0) for each in attributes), 0)


def _reached(declared: InterfaceDeclaration) -> tuple[OperationDeclaration, ...]:
    """The operations behind IDispatch's own, those of bases first."""
    chain = [declared, *(base for base in declared.bases if base.automation)]
    return tuple(itertools.chain.from_iterable(each.own for each in reversed(chain)))


def _members(operations: tuple[OperationDeclaration, ...]) -> tuple[Member, ...]:
    """The members with their numbers (G246)."""
    numbers = dict(_NUMBERS) if _is_collection(operations) else {}
    free = itertools.count(1)
    members = []
    for operation in operations:
        name = written_name(operation)
        if operation.member is not None:
            numbers[name] = operation.member
        if name not in numbers:
            numbers[name] = next(free)
        members.append(_member(operation, name, numbers[name]))
    return tuple(members)


def _is_collection(operations: tuple[OperationDeclaration, ...]) -> bool:
    return any(operation.name == "_NewEnum" for operation in operations)


def written_name(operation: OperationDeclaration) -> str:
    """The name of a member in programs: for a property's accessors, that of the property."""
    is_property = not _KINDS.keys().isdisjoint(operation.attributes)
    return operation.name.partition("_")[2] if is_property else operation.name


def _member(operation: OperationDeclaration, name: str, number: int) -> Member:
    kind = next(
        (number for mark, number in _KINDS.items() if mark in operation.attributes),
        oautvalues.INVOKE_FUNC,
    )
    parameters = tuple(
        Parameter(p.name, described(p.declared), _flags(p.attributes, _PARAMETER_FLAGS))
        for p in operation.parameters
        if p.declared
    )
    flags = _flags(operation.attributes, _FUNCTION_FLAGS)
    return Member(name, operation.name, number, kind, operation.opnum, parameters, flags)


def described(declared: str) -> TypeDescription:
    """The description of a type as the IDL writes it, as "IMSMQQueue4**"."""
    if declared in _SIMPLE:
        return TypeDescription(_SIMPLE[declared])
    if declared.endswith("*"):
        return TypeDescription(oautvalues.VT_PTR, described(declared[:-1]))
    return TypeDescription(oautvalues.VT_USERDEFINED, name=declared)
