"""Sizes and alignments of types ([C706] 14.2.2 and 14.3, [MS-RPCE] 2.2.4 and 2.2.5)."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd

from rpcqm.codec.idl.tree import (
    Array,
    ContextHandleType,
    Enumeration,
    Float,
    Guid,
    Integer,
    InterfacePointer,
    Pointer,
    PointerKind,
    String,
    StructureType,
    Type,
    Union,
    UnionArm,
    WireMarshal,
)

_INTEGER_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}


@dataclass(frozen=True, slots=True)
class Wire:
    """A transfer syntax in one byte order.

    `ms_union` aligns the arm of a union to the largest of all arms in NDR (G29).
    """

    ndr64: bool = False
    big_endian: bool = False
    ms_union: bool = False

    @property
    def word(self) -> int:
        """The size of pointers and counts in octets."""
        return 8 if self.ndr64 else 4

    @property
    def word_code(self) -> str:
        return "Q" if self.ndr64 else "I"

    @property
    def order(self) -> str:
        return ">" if self.big_endian else "<"

    @property
    def utf16(self) -> str:
        return "utf-16-be" if self.big_endian else "utf-16-le"


@dataclass(slots=True)
class Position:
    """What is certain of an offset when code is generated: it is `residue` modulo `modulus`."""

    modulus: int = 8
    residue: int = 0

    def copy(self) -> "Position":
        return Position(self.modulus, self.residue)

    def padding(self, align: int) -> int | None:
        """The octets up to the next multiple of `align`; None if that is uncertain."""
        if align > self.modulus:
            return 0 if align == 1 else None
        return -self.residue % align

    def advance(self, size: int) -> None:
        self.residue = (self.residue + size) % self.modulus

    def set(self, modulus: int, residue: int = 0) -> None:
        self.modulus, self.residue = modulus, residue % modulus

    def advance_by_multiple(self, size: int) -> None:
        """Advance by a number of octets of which only a divisor is certain."""
        self.set(gcd(self.modulus, size), self.residue)

    def join(self, other: "Position") -> None:
        """Keep what is true in both positions, where two branches meet."""
        modulus = min(self.modulus, other.modulus)
        while (self.residue - other.residue) % modulus:
            modulus //= 2
        self.set(modulus, self.residue)


def scalar(made: Type, wire: Wire) -> tuple[str, int] | None:
    """The struct code and the size of a type of fixed size; None for others."""
    match made:
        case Integer(size=size, signed=signed):
            size = size or wire.word
            code = _INTEGER_CODES[size]
            return (code.lower() if signed else code), size
        case Float(size=size):
            return ("f" if size == 4 else "d"), size
        case Enumeration(v1=v1):
            return ("i", 4) if v1 or wire.ndr64 else ("H", 2)
        case Guid():
            return "16s", 16
        case ContextHandleType():
            return "20s", 20
    return None


def marshaller(made: InterfacePointer | WireMarshal) -> str:
    """The name of the functions that read and write the target of such a pointer."""
    return made.name if isinstance(made, WireMarshal) else "OBJREF"


def parts(made: Type) -> Iterator[Type]:
    """The types in place inside a type, without the targets of its pointers."""
    match made:
        case StructureType(fields=fields):
            yield from (field.type for field in fields)
        case Union(arms=arms, default=default):
            every = [*arms, default] if default else arms
            yield from (arm.type for arm in every if arm and arm.type is not None)
        case Array(element=element):
            yield element


def alignment(made: Type, wire: Wire) -> int:
    """The alignment of a type in place."""
    match made:
        case Guid() | ContextHandleType():
            return 4
        case Integer() | Float() | Enumeration():
            found = scalar(made, wire)
            return found[1] if found else 1
        case Array(element=element, length=length):
            return max(alignment(element, wire), wire.word if length is not None else 1)
        case StructureType():
            return max((alignment(part, wire) for part in parts(made)), default=1)
        case Union(tag=tag):
            tagged = [tag] if tag else []
            return max(alignment(part, wire) for part in [*tagged, *parts(made)])
    return wire.word


def minimum(made: Type, wire: Wire) -> int:
    """The least number of octets of a value in place."""
    found = scalar(made, wire)
    if found:
        return found[1]
    match made:
        case Array(element=element, count=count, length=length):
            if length is not None:
                return 2 * wire.word
            return (count or 0) * minimum(element, wire)
        case String():
            return 2 * wire.word
        case StructureType():
            return sum(minimum(part, wire) for part in parts(made))
        case Union(tag=tag):
            return minimum(tag, wire) if tag else 1
    return wire.word


def has_pointers(made: Type) -> bool:
    """Whether a type holds pointers in place, so that parts are deferred."""
    if scalar(made, Wire()) or isinstance(made, String):
        return False
    if isinstance(made, StructureType | Union | Array):
        return any(has_pointers(part) for part in parts(made))
    return True


def _below(made: Type) -> Iterator[Type]:
    if isinstance(made, Pointer):
        yield made.to
    yield from parts(made)


def reachable(made: Type) -> Iterator[Type]:
    """A type and every type below it, each once."""
    seen: set[int] = set()
    waiting = [made]
    while waiting:
        current = waiting.pop()
        if id(current) not in seen:
            seen.add(id(current))
            yield current
            waiting.extend(_below(current))


def recursive(structure: StructureType) -> bool:
    """Whether a structure can hold itself, through pointers."""
    return any(other is structure for part in parts(structure) for other in reachable(part))


def full_pointers(made: Type) -> bool:
    """Whether there are full pointers below a type, so that values can be aliased."""
    return any(
        isinstance(other, Pointer) and other.kind is PointerKind.FULL for other in reachable(made)
    )


def open_end(made: StructureType) -> Array | String | None:
    """The conformant array with which a structure ends, if it does."""
    last = made.fields[-1].type if made.fields else None
    return last if isinstance(last, Array | String) and last.conformant else None


def arms_by_condition(made: Union, tag: str) -> list[tuple[str, UnionArm]]:
    """Each arm of a union with the condition on the tag, as source; the default last."""
    found = [(_is_one_of(tag, arm.labels), arm) for arm in made.arms]
    if made.default:
        labels = tuple(label for arm in made.arms for label in arm.labels)
        found.append((f"{tag} not in {labels}", made.default))
    return found


def _is_one_of(tag: str, labels: tuple[int, ...]) -> str:
    return f"{tag} == {labels[0]}" if len(labels) == 1 else f"{tag} in {labels}"
