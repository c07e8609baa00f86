"""Random values of any type of the IDL, with counts, tags and ranges that agree."""

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

from rpcqm.codec.idl.expression import evaluate, names_in
from rpcqm.codec.idl.nodes import Expression
from rpcqm.codec.idl.tree import (
    Array,
    ContextHandleType,
    Enumeration,
    Field,
    Float,
    Guid,
    Integer,
    InterfacePointer,
    OperationDeclaration,
    Parameter,
    Pointer,
    PointerKind,
    String,
    StructureType,
    Type,
    Union,
    WireMarshal,
)
from rpcqm.codec.ndr.classes import class_of, message
from rpcqm.codec.ndr.values import NULL, Value
from tests.support.dcom.variants import BSTRS, arrays, plain_variants, variants

Draw = Callable[[st.SearchStrategy[Any]], Any]
Members = list[Field] | list[Parameter]

_MOST = 5
_DEEPEST = 3

_WIDE = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
ARRAYS = st.none() | arrays(plain_variants())
_UNITS = st.characters(max_codepoint=0xD7FF)
_LATIN = st.characters(min_codepoint=1, max_codepoint=0xFF)


@st.composite
def messages(draw: Draw, operation: OperationDeclaration, response: bool) -> Value:
    """A request or a response of an operation."""
    made = message(operation, response)
    values = _Members(draw, list(made.parameters), 0)
    for extra in made.extras:
        values.chosen.setdefault(extra, draw(st.integers(_MOST, 2 * _MOST)))
    fields = values.all()
    fields.update({extra: values.chosen[extra] for extra in made.extras})
    return made.python_class(**fields)


@st.composite
def structures(draw: Draw, made: StructureType) -> Value:
    """A value of a structure."""
    return _structure(draw, made, 0)


def _structure(draw: Draw, made: StructureType, depth: int) -> Value:
    return class_of(made)(**_Members(draw, made.fields, depth).all())


class _Members:
    """Draws the members of a structure or a message: first counts and tags, then the rest."""

    def __init__(self, draw: Draw, members: Members, depth: int) -> None:
        self.draw = draw
        self.members = members
        self.depth = depth
        self.chosen: dict[str, int] = {}
        self.numbers = {m.name: m.type for m in members if isinstance(m.type, Integer)}

    def all(self) -> dict[str, Any]:
        self._choose_counts()
        self._choose_tags()
        return {m.name: self._member(m) for m in self.members}

    def _member(self, member: Field | Parameter) -> Any:
        if member.name in self.chosen:
            return self.chosen[member.name]
        if isinstance(member.type, Union):
            return self._union(member.type, member.switch)
        return self.value(member.type)

    def _choose_counts(self) -> None:
        """Sizes before lengths, which are at most as big."""
        for made in map(_array_in, (m.type for m in self.members)):
            for name in names_in(made.size) if made and made.size else ():
                low, high = self._limits(name)
                most = 1 if self.depth > _DEEPEST else _MOST
                self.chosen.setdefault(name, self.draw(st.integers(low, min(high, low + most))))
        for made in map(_array_in, (m.type for m in self.members)):
            if not isinstance(made, Array) or made.length is None:
                continue
            for name in names_in(made.length):
                most = self._number(made.size) if made.size else made.count or 0
                self.chosen.setdefault(name, self.draw(st.integers(0, most)))

    def _choose_tags(self) -> None:
        for member in self.members:
            if isinstance(member.type, Union) and member.switch is not None:
                (name,) = names_in(member.switch)
                low, high = self._limits(name)
                labels = [x for arm in self._arms(member.type) for x in arm.labels]
                allowed = [label for label in labels if low <= label <= high]
                self.chosen[name] = self.draw(st.sampled_from(allowed))

    def _limits(self, name: str) -> tuple[int, int]:
        made = self.numbers.get(name)
        return (made and made.limits) or (0, 0x7FFF)

    def _number(self, expression: Expression) -> int:
        return evaluate(without_stars(expression), self.chosen)

    def _arms(self, made: Union) -> list[Any]:
        """All arms, or those that do not go deeper."""
        if self.depth <= _DEEPEST:
            return made.arms
        return [arm for arm in made.arms if not _goes_on(arm.type)]

    def _union(self, made: Union, switch: Expression | None) -> Value:
        labels = [label for arm in self._arms(made) for label in arm.labels]
        tag = self.draw(st.sampled_from(labels)) if switch is None else self._number(switch)
        arm = next(arm for arm in made.arms if tag in arm.labels)
        value = None if arm.type is None else self.value(arm.type)
        return class_of(made)(tag, value)

    def value(self, made: Type) -> Any:
        """A value of a type, with the counts that were chosen."""
        match made:
            case Pointer():
                return self._pointer(made)
            case Array():
                return self._array(made)
            case String():
                return self._string(made)
            case StructureType():
                return _structure(self.draw, made, self.depth + 1)
            case Union():
                return self._union(made, None)
        return self.draw(scalars(made))

    def _pointer(self, made: Pointer) -> Any:
        inner = made.to
        if made.kind is not PointerKind.REF:
            if isinstance(inner, Pointer):
                state = self.draw(st.integers(0, 3))
                found = None if state == 0 else self._pointer(inner)
                return NULL if found is None and state else found
            must = isinstance(inner, Array | String) and inner.size and self._size(inner)
            deep = self.depth > 2 * _DEEPEST and isinstance(inner, StructureType)
            if deep or (not must and self.draw(st.integers(0, 3)) == 0):
                return None
        return self.value(inner)

    def _size(self, made: Array | String) -> int:
        if made.size is None:
            return 0
        known = set(names_in(made.size)) <= self.chosen.keys()
        return self._number(made.size) if known and set(names_in(made.size)) else 0

    def _count(self, made: Array) -> int:
        if made.length is not None and set(names_in(made.length)) <= self.chosen.keys():
            return self._number(made.length)
        if made.size is not None and set(names_in(made.size)) <= self.chosen.keys():
            return self._number(made.size)
        return made.count if made.count is not None else self.draw(st.integers(0, _MOST))

    def _array(self, made: Array) -> Any:
        count, element = self._count(made), made.element
        if isinstance(element, Integer) and element.octet:
            return self.draw(st.binary(min_size=count, max_size=count))
        if isinstance(element, Integer) and element.character:
            return self.draw(st.text(_UNITS, min_size=count, max_size=count))
        return [self.value(element) for _ in range(count)]

    def _string(self, made: String) -> str:
        most = made.count - 1 if made.count else 12
        if made.size is not None and set(names_in(made.size)) <= self.chosen.keys():
            most = self._number(made.size) - 1
        alphabet = _LATIN if made.character.size == 1 else _WIDE
        if most < 0:
            return ""
        shortest = self.draw(st.integers(0, min(most, 3)))
        text = self.draw(st.text(alphabet, min_size=shortest, max_size=min(most, 12)))
        assert isinstance(text, str)
        return text


def scalars(made: Type) -> st.SearchStrategy[Any]:
    """Values of a type that holds no other."""
    match made:
        case Integer(limits=(low, high)):
            return st.integers(low, high)
        case Integer(truth=True):
            return st.booleans()
        case Integer(size=size, signed=signed):
            bits = 8 * (size or 4)
            return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) if signed else _bits(bits)
        case Enumeration(values=values):
            return st.sampled_from(list(values.values())) | st.integers(0, 0x7FFF)
        case Float(size=size):
            return st.floats(width=32 if size == 4 else 64, allow_nan=False)
        case Guid():
            return st.builds(uuid.UUID, int=_bits(128))
        case ContextHandleType():
            return st.binary(min_size=20, max_size=20)
        case InterfacePointer():
            return st.none() | st.binary(max_size=40)
        case WireMarshal(name=name):
            return {"BSTR": BSTRS, "VARIANT": variants(), "SAFEARRAY": ARRAYS}[name]
    raise TypeError(made)


def _bits(bits: int) -> st.SearchStrategy[int]:
    return st.integers(0, (1 << bits) - 1)


def _array_in(made: Type) -> Array | String | None:
    while isinstance(made, Pointer):
        made = made.to
    return made if isinstance(made, Array | String) else None


def without_stars(expression: Expression) -> Expression:
    while getattr(expression, "operator", None) == "*" and hasattr(expression, "operand"):
        expression = expression.operand
    return expression


def _goes_on(made: Type | None) -> bool:
    """Whether a type leads to structures in arrays, and perhaps to itself."""
    if isinstance(made, StructureType):
        return any(_goes_on(field.type) for field in made.fields)
    array = _array_in(made) if made else None
    return isinstance(array, Array) and isinstance(array.element, StructureType)


def names_of(values: Mapping[str, Any]) -> list[str]:
    return sorted(values)
