"""Converts arguments of IDispatch::Invoke to parameters of a member, and back.

Source: [MS-OAUT] 3.1.4.4.2.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rpcqm.base.errors import HResult, MQError, NtStatus
from rpcqm.codec.automation.coercion import INTEGERS, coerce, dereferenced, is_missing
from rpcqm.codec.automation.type_library import Member, Parameter, TypeDescription
from rpcqm.codec.automation.values import EMPTY, MISSING, Variant
from rpcqm.codec.types.oautvalues import (
    DISPID_PROPERTYPUT,
    INVOKEKIND,
    PARAMFLAGS,
    VT_BOOL,
    VT_BYREF,
    VT_DISPATCH,
    VT_EMPTY,
    VT_HRESULT,
    VT_I4,
    VT_PTR,
    VT_USERDEFINED,
    VT_VARIANT,
)
from rpcqm.dcom.com_object import ComObject

_NOT_GIVEN = PARAMFLAGS.PARAMFLAG_FLCID | PARAMFLAGS.PARAMFLAG_FRETVAL
_MAY_MISS = PARAMFLAGS.PARAMFLAG_FOPT | PARAMFLAGS.PARAMFLAG_FHASDEFAULT
_PUT = INVOKEKIND.INVOKE_PROPERTYPUT | INVOKEKIND.INVOKE_PROPERTYPUTREF
_ANY_OBJECT = frozenset({"", "IUnknown", "IDispatch"})


class ArgumentError(MQError):
    """A refusal of one argument; `argument` is its index in rgvarg."""

    def __init__(self, status: HResult | NtStatus, argument: int, detail: str = "") -> None:
        super().__init__(status, detail)
        self.argument = argument


@dataclass(frozen=True, slots=True)
class Formal:
    """A parameter that clients give: its type without pointers, and the value if it is absent.

    `interface` is the one that an object must have, or empty.
    """

    name: str
    vt: int
    interface: str
    flags: int
    default: Variant | None

    @classmethod
    def of(cls, parameter: Parameter) -> "Formal":
        vt, interface = value_type(parameter)
        return cls(parameter.name, vt, interface, parameter.flags, parameter.default)

    @property
    def absent(self) -> object:
        """The value of a missing argument; DISP_E_PARAMNOTOPTIONAL if it is required."""
        if not self.flags & _MAY_MISS:
            if self.flags & PARAMFLAGS.PARAMFLAG_FIN:
                raise MQError(HResult.DISP_E_PARAMNOTOPTIONAL, f"{self.name} is missing")
            return None
        if self.default is not None:
            return coerce(self.default, self.vt)
        if self.vt == VT_VARIANT:
            return MISSING
        if self.vt == VT_BOOL:
            return False
        return 0 if self.vt in INTEGERS else None

    def value(self, argument: Variant) -> object:
        """An argument converted for this parameter; MQError with the code of the refusal."""
        if is_missing(argument) and (self.vt != VT_VARIANT or not self.flags & _MAY_MISS):
            return self.absent
        value = coerce(argument, self.vt)
        if self.interface and isinstance(value, ComObject) and not _has(value, self.interface):
            raise MQError(HResult.DISP_E_TYPEMISMATCH, f"{self.name} is no {self.interface}")
        return value


def _has(value: ComObject, interface: str) -> bool:
    return interface in _ANY_OBJECT or interface in value.INTERFACES


def value_type(parameter: Parameter) -> tuple[int, str]:
    """The VARENUM of a parameter's value, without pointers, and the name of its interface.

    A pointer to a type of our own is an interface; without one it is an enumeration, and an [out]
    parameter has one pointer more.
    """
    pointers, type_ = _without_pointers(parameter.type)
    if parameter.flags & PARAMFLAGS.PARAMFLAG_FOUT:
        pointers -= 1
    if type_.vt == VT_USERDEFINED:
        return (VT_DISPATCH, type_.name) if pointers > 0 else (VT_I4, "")
    return (VT_I4 if type_.vt == VT_HRESULT else type_.vt), type_.name


def _without_pointers(type_: TypeDescription) -> tuple[int, TypeDescription]:
    pointers = 0
    while type_.vt == VT_PTR and type_.element is not None:
        pointers, type_ = pointers + 1, type_.element
    return pointers, type_


class Binding:
    """The mapping of arguments to the parameters of one member, computed once."""

    def __init__(self, member: Member) -> None:
        self.member = member
        given = [each for each in member.parameters if not each.flags & _NOT_GIVEN]
        self.formals = tuple(Formal.of(each) for each in given)
        self.names = {formal.name.lower(): n for n, formal in enumerate(self.formals)}
        self._passed = [
            (n, formal)
            for n, formal in enumerate(self.formals)
            if formal.flags & PARAMFLAGS.PARAMFLAG_FIN
        ]
        outs = [each for each in member.parameters if each.flags & PARAMFLAGS.PARAMFLAG_FOUT]
        self._outs = [(each, value_type(each)[0]) for each in outs]
        self._is_put = bool(member.invoke_kind & _PUT)

    def arguments(
        self, rgvarg: Sequence[Variant], named: Sequence[int], places: list[int | None]
    ) -> list[object]:
        """The [in] parameters in the order of the IDL; `places` gets each one's index in rgvarg.

        Raises MQError, and ArgumentError where it is one argument's fault.
        """
        if not rgvarg and not self._passed:
            return []
        self._place(len(rgvarg), named, places)
        return [self._argument(formal, places[n], rgvarg) for n, formal in self._passed]

    def _place(self, count: int, named: Sequence[int], places: list[int | None]) -> None:
        """Find the argument of each parameter: named ones first, the others reversed (G261)."""
        if count > len(self.formals) or len(named) > count:
            raise MQError(HResult.DISP_E_BADPARAMCOUNT, f"{self.member.name} got {count}")
        places.extend([None] * len(self.formals))
        for position in range(count - len(named)):
            places[position] = count - 1 - position
        for index, dispid in enumerate(named):
            formal = len(self.formals) - 1 if self._is_put_value(dispid) else dispid
            if not 0 <= formal < len(self.formals) or places[formal] is not None:
                raise ArgumentError(HResult.DISP_E_PARAMNOTFOUND, index, f"parameter {dispid}")
            places[formal] = index
        self._refuse_too_few(places, named)

    def _is_put_value(self, dispid: int) -> bool:
        return dispid == DISPID_PROPERTYPUT and self._is_put

    def _refuse_too_few(self, places: list[int | None], named: Sequence[int]) -> None:
        if named:
            return
        for n, formal in self._passed:
            if places[n] is None and not formal.flags & _MAY_MISS:
                raise MQError(HResult.DISP_E_BADPARAMCOUNT, f"{formal.name} is missing")

    def _argument(self, formal: Formal, place: int | None, rgvarg: Sequence[Variant]) -> object:
        if place is None:
            return formal.absent
        try:
            return formal.value(rgvarg[place])
        except MQError as error:
            raise ArgumentError(error.status, place, error.detail) from None

    # Results

    def results(self, values: Sequence[object]) -> tuple[Variant, dict[str, Variant]]:
        """The member's result, and its other [out] parameters by name, as VARIANTs."""
        result, others = EMPTY, {}
        for (parameter, vt), value in zip(self._outs, values, strict=True):
            if parameter.flags & PARAMFLAGS.PARAMFLAG_FRETVAL:
                result = as_variant(vt, value)
            else:
                others[parameter.name.lower()] = as_variant(vt, value)
        return result, others

    @property
    def outs(self) -> int:
        """How many [out] parameters the member has."""
        return len(self._outs)

    def write_back(
        self,
        references: list[Variant],
        indices: Sequence[int],
        places: Sequence[int | None],
        outs: dict[str, Variant],
    ) -> None:
        """Put [out] parameters into the client's references."""
        by_index = dict(zip(indices, range(len(references)), strict=True))
        for n, formal in enumerate(self.formals):
            out, place = outs.get(formal.name.lower()), places[n] if places else None
            if out is not None and place in by_index:
                which = by_index[place]
                references[which] = _referring(references[which], out, place)


def _referring(reference: Variant, out: Variant, place: int) -> Variant:
    """A reference of the client's type to a new value."""
    vt = reference.vt & ~VT_BYREF
    try:
        return Variant(reference.vt, coerce(out, vt))
    except MQError as error:
        raise ArgumentError(error.status, place, error.detail) from None


def as_variant(vt: int, value: object) -> Variant:
    """A parameter's value as a VARIANT; a VARIANT stays unchanged."""
    if vt == VT_VARIANT:
        return value if isinstance(value, Variant) else EMPTY
    return Variant(vt, value)


def with_references(
    rgvarg: Sequence[Variant], indices: Sequence[int], references: Sequence[Variant]
) -> Sequence[Variant]:
    """The arguments, with those passed by reference at their places.

    [MS-OAUT] 3.1.4.4.1: E_INVALIDARG where the two arrays do not fit together (G262).
    """
    if not (indices or references):
        return rgvarg
    if len(indices) != len(references) or len(set(indices)) != len(indices):
        raise MQError(HResult.E_INVALIDARG, "references that do not fit their indices")
    arguments = list(rgvarg)
    for index, reference in zip(indices, references, strict=True):
        if index >= len(arguments) or arguments[index].vt != VT_EMPTY:
            raise MQError(HResult.E_INVALIDARG, f"a reference for argument {index}")
        if not reference.vt & VT_BYREF:
            raise ArgumentError(HResult.DISP_E_TYPEMISMATCH, index, "no reference")
        arguments[index] = _referred(reference, index)
    return arguments


def _referred(reference: Variant, index: int) -> Variant:
    try:
        return dereferenced(reference)
    except MQError as error:
        raise ArgumentError(error.status, index, error.detail) from None
