"""ITypeInfo over the descriptions of interfaces ([MS-OAUT] 3.7).

A dual interface has two of them: the dispinterface of IDispatch, and its partner with the methods
as they are in memory. Questions that only a type library could answer get E_NOTIMPL (G263).
"""

import functools

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.automation.type_library import (
    Member,
    Parameter,
    TypeDescription,
    describe,
    described_names,
)
from rpcqm.codec.types.oaut import (
    ELEMDESC,
    FUNCDESC,
    PARAMDESC,
    PARAMDESCEX,
    TYPEATTR,
    TYPEDESC,
    TYPEDESC_tdUnion,
)
from rpcqm.codec.types.oautvalues import (
    CALLCONV,
    FUNCFLAGS,
    FUNCKIND,
    INVOKEKIND,
    PARAMFLAGS,
    TYPEFLAGS,
    TYPEKIND,
    VT_EMPTY,
    VT_HRESULT,
    VT_PTR,
    VT_SAFEARRAY,
    VT_USERDEFINED,
    VT_VOID,
)
from rpcqm.dcom.com_object import ComCall, ComObject, Outcome

_POINTER = 4
"""Octets of a pointer that member offsets count in: those of a 32-bit library, as Windows has."""
_MEMBERID_NIL = -1
_NAME, _TEXT = 1, 2
"""The requests to GetDocumentation: TYPEINFO_NameArg and TYPEINFO_DocStringArg."""
_PARTNER = 0xFFFFFFFF
_NOT_GIVEN = PARAMFLAGS.PARAMFLAG_FLCID | PARAMFLAGS.PARAMFLAG_FRETVAL
_NO_PARAMETER = PARAMDESC()
_DISPATCH_FUNCTIONS = 7
"""The methods of IDispatch with those of IUnknown."""


class TypeInfo(ComObject):
    """The description of an interface; `partner` is that of its methods in memory."""

    INTERFACES = ("ITypeInfo",)

    def __init__(self, name: str, partner: bool = False) -> None:
        self._described = found = describe(name)
        self._partner = partner
        self._members = found.own if partner else (*_inherited(), *found.members)

    def GetTypeAttr(self, call: ComCall) -> tuple[TYPEATTR, int]:
        """What the interface is ([MS-OAUT] 3.7.4.1, opnum 3)."""
        described = self._described
        methods, flags = _DISPATCH_FUNCTIONS, described.flags
        if self._partner:
            methods += len(described.members)
        else:
            flags &= ~TYPEFLAGS.TYPEFLAG_FOLEAUTOMATION
        attributes = TYPEATTR(
            guid=described.uuid,
            dwReserved2=0xFFFFFFFF,
            dwReserved3=0xFFFFFFFF,
            cbSizeInstance=_POINTER,
            typekind=TYPEKIND.TKIND_INTERFACE if self._partner else TYPEKIND.TKIND_DISPATCH,
            cFuncs=len(self._members),
            cImplTypes=1,
            cbSizeVft=methods * _POINTER,
            cbAlignment=_POINTER,
            wTypeFlags=flags,
            tdescAlias=_type(TypeDescription(VT_EMPTY)),
        )
        return attributes, 0

    def GetTypeComp(self, call: ComCall) -> object:
        """Binding by names (opnum 4): GetIDsOfNames does it."""
        raise MQError(HResult.E_NOTIMPL)

    def GetFuncDesc(self, call: ComCall, index: int) -> tuple[FUNCDESC, int]:
        """A method by its place ([MS-OAUT] 3.7.4.3, opnum 5)."""
        if index >= len(self._members):
            raise MQError(HResult.TYPE_E_ELEMENTNOTFOUND, f"method {index}")
        return _function(self._members[index], self._partner), 0

    def GetVarDesc(self, call: ComCall, index: int) -> object:
        """A data member (opnum 6): interfaces have none."""
        raise MQError(HResult.TYPE_E_ELEMENTNOTFOUND, f"data member {index}")

    def GetNames(self, call: ComCall, memid: int, cMaxNames: int) -> tuple[list[str], int]:
        """The names of a member and its parameters ([MS-OAUT] 3.7.4.5, opnum 7)."""
        member = self._member(memid)
        given = _given(member, self._partner)
        names = [member.name, *(each.name for each in given)][:cMaxNames]
        return names, len(names)

    def GetRefTypeOfImplType(self, call: ComCall, index: int) -> int:
        """The handle of the base, or for -1 that of the partner (opnum 8)."""
        if index == _PARTNER and self._described.flags & TYPEFLAGS.TYPEFLAG_FDUAL:
            return _reference(self._described.name, not self._partner)
        if index != 0:
            raise MQError(HResult.TYPE_E_ELEMENTNOTFOUND, f"interface {index}")
        if self._partner:
            return _reference(self._described.base, True)
        return _reference("IDispatch", False)

    def GetImplTypeFlags(self, call: ComCall, index: int) -> int:
        """The flags of a class's interface (opnum 9): 0 for a base."""
        if index != 0:
            raise MQError(HResult.TYPE_E_ELEMENTNOTFOUND, f"interface {index}")
        return 0

    def GetDocumentation(
        self, call: ComCall, memid: int, refPtrFlags: int
    ) -> tuple[str | None, str | None, int, str | None]:
        """The name of a member or of the interface ([MS-OAUT] 3.7.4.8, opnum 12)."""
        name = self._described.name
        if memid != _MEMBERID_NIL:
            name = self._member(memid).name
        return name if refPtrFlags & _NAME else None, None, 0, None

    def GetDllEntry(
        self, call: ComCall, memid: int, invKind: int, refPtrFlags: int
    ) -> tuple[str | None, str | None, int]:
        """The place of a function in a library (opnum 13): this is no module."""
        raise MQError(HResult.TYPE_E_BADMODULEKIND)

    def GetRefTypeInfo(self, call: ComCall, hRefType: int) -> "TypeInfo | None":
        """The description behind a handle, None if it is not one of ours (opnum 14)."""
        place, partner = divmod(hRefType, 2)
        names = _references()
        if not 0 < place <= len(names):
            return None
        return TypeInfo(names[place - 1], bool(partner))

    def CreateInstance(self, call: ComCall, riid: object) -> object:
        """Make an object (opnum 16): an interface is no class."""
        raise MQError(HResult.TYPE_E_BADMODULEKIND)

    def GetMops(self, call: ComCall, memid: int) -> None:
        """Nothing, across the wire ([MS-OAUT] 3.7.4.12, opnum 17)."""

    def GetContainingTypeLib(self, call: ComCall) -> Outcome:
        """The library of the interface (opnum 18): clients have it in their registry."""
        raise MQError(HResult.E_NOTIMPL)

    def _member(self, memid: int) -> Member:
        """A member by its number; for a property its getter, if there is one."""
        found = [each for each in self._members if each.dispid == memid]
        if not found:
            raise MQError(HResult.TYPE_E_ELEMENTNOTFOUND, f"member {memid}")
        found.sort(key=lambda each: each.invoke_kind != INVOKEKIND.INVOKE_PROPERTYGET)
        return found[0]


@functools.cache
def _references() -> tuple[str, ...]:
    """The interfaces that have handles: a handle is twice its place from 1, odd for a partner."""
    return tuple(sorted(described_names()))


def _reference(name: str, partner: bool) -> int:
    names = _references()
    return (names.index(name) + 1) * 2 + partner if name in names else 0


def _given(member: Member, partner: bool) -> list[Parameter]:
    """The parameters in a description: IDispatch has no [lcid] and no [retval]."""
    return [each for each in member.parameters if partner or not each.flags & _NOT_GIVEN]


def _function(member: Member, partner: bool) -> FUNCDESC:
    """[MS-OAUT] 2.2.42."""
    given = _given(member, partner)
    result = TypeDescription(VT_HRESULT) if partner else _result(member)
    return FUNCDESC(
        memid=member.dispid,
        lprgelemdescParam=[_element(each) for each in given] or None,
        funckind=FUNCKIND.FUNC_PUREVIRTUAL if partner else FUNCKIND.FUNC_DISPATCH,
        invkind=member.invoke_kind,
        callconv=CALLCONV.CC_STDCALL,
        cParams=len(given),
        cParamsOpt=_optional_at_the_end(given),
        oVft=member.opnum * _POINTER,
        elemdescFunc=ELEMDESC(tdesc=_type(result), paramdesc=_NO_PARAMETER),
        wFuncFlags=member.flags,
    )


def _optional_at_the_end(given: list[Parameter]) -> int:
    """cParamsOpt counts optional parameters without a default."""
    optional = PARAMFLAGS.PARAMFLAG_FOPT | PARAMFLAGS.PARAMFLAG_FHASDEFAULT
    return sum(each.flags & optional == PARAMFLAGS.PARAMFLAG_FOPT for each in given)


def _result(member: Member) -> TypeDescription:
    """The type of a member's result under IDispatch: that of its [retval], without the pointer."""
    for parameter in member.parameters:
        if parameter.flags & PARAMFLAGS.PARAMFLAG_FRETVAL and parameter.type.element is not None:
            return parameter.type.element
    return TypeDescription(VT_VOID)


def _element(parameter: Parameter) -> ELEMDESC:
    default = None
    if parameter.default is not None:
        # Three pointers and a VARIANT, in a compiler's layout: nobody reads it.
        default = PARAMDESCEX(cBytes=24, varDefaultValue=parameter.default)
    about = PARAMDESC(pparamdescex=default, wParamFlags=parameter.flags)
    return ELEMDESC(tdesc=_type(parameter.type), paramdesc=about)


def _type(described: TypeDescription) -> TYPEDESC:
    """[MS-OAUT] 2.2.37."""
    value: TYPEDESC | int | None = None
    if described.vt in (VT_PTR, VT_SAFEARRAY) and described.element is not None:
        value = _type(described.element)
    elif described.vt == VT_USERDEFINED:
        value = _reference(described.name, False)
    return TYPEDESC(_tdUnion=TYPEDESC_tdUnion(described.vt, value), vt=described.vt)


@functools.cache
def _inherited() -> tuple[Member, ...]:
    """The methods of IUnknown and IDispatch: a dispinterface has them too, restricted.

    Their numbers are those of the first and the second base, counted from each one's own zero.
    """
    names = (
        ("QueryInterface", 0x60000000),
        ("AddRef", 0x60000001),
        ("Release", 0x60000002),
        ("GetTypeInfoCount", 0x60010000),
        ("GetTypeInfo", 0x60010001),
        ("GetIDsOfNames", 0x60010002),
        ("Invoke", 0x60010003),
    )
    kind, hidden = INVOKEKIND.INVOKE_FUNC, FUNCFLAGS.FUNCFLAG_FRESTRICTED
    return tuple(
        Member(name, name, dispid, kind, opnum, (), hidden)
        for opnum, (name, dispid) in enumerate(names)
    )
