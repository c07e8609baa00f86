"""The typed tree of an IDL file: what the NDR compilers and other generators read.

Names, typedefs, attributes and defaults are resolved: a pointer has its kind, an array its
counts, a union its labels as numbers.  Top-level reference pointers leave no trace on the
wire and are not in the tree: a parameter has the type that the pointer points to.
"""

import enum
import uuid
from dataclasses import dataclass, field, replace

from rpcqm.codec.idl.nodes import Expression


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer of `size` octets; of 0: as wide as a pointer (`__int3264`).

    `octet` marks the one-octet types of which arrays are bytes, `character` wchar_t and
    char, of which strings are made.  `limits` are those of [range].
    """

    name: str
    size: int
    signed: bool = False
    octet: bool = False
    character: bool = False
    limits: tuple[int, int] | None = None

    def within(self, low: int, high: int) -> "Integer":
        return replace(self, limits=(low, high))


@dataclass(frozen=True, slots=True)
class Float:
    name: str
    size: int


@dataclass(eq=False, slots=True)
class Enumeration:
    """An enumeration: 16 bits in NDR unless [v1_enum], 32 in NDR64."""

    name: str
    v1: bool = False
    values: dict[str, int] = field(default_factory=dict)
    aliases: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Guid:
    """A UUID: 16 octets in fields of 4, 2, 2 and 8, taken as one value."""


@dataclass(frozen=True, slots=True)
class ContextHandleType:
    """A context handle type; `serialize` is None where no annotation says it."""

    name: str
    serialize: bool | None = None


@dataclass(frozen=True, slots=True)
class InterfacePointer:
    """A pointer to an interface: on the wire an OBJREF in a counted array of octets."""

    name: str
    iid_is: Expression | None = None


class PointerKind(enum.Enum):
    REF = "ref"
    UNIQUE = "unique"
    FULL = "ptr"


@dataclass(frozen=True, slots=True)
class Pointer:
    kind: PointerKind
    to: "Type"


@dataclass(frozen=True, slots=True)
class Array:
    """An array.

    `count` is its fixed number of elements; None: it is conformant, and `size` gives the
    number.  With `length` it is varying: only the first `length` elements are sent.
    `limits` are those of a [range] that stands beside [size_is].
    """

    element: "Type"
    count: int | None = None
    size: Expression | None = None
    length: Expression | None = None
    limits: tuple[int, int] | None = None

    @property
    def conformant(self) -> bool:
        return self.count is None

    @property
    def varying(self) -> bool:
        return self.length is not None


@dataclass(frozen=True, slots=True)
class String:
    """A varying array of characters that ends with NUL; conformant unless `count`."""

    character: Integer
    count: int | None = None
    size: Expression | None = None
    limits: tuple[int, int] | None = None

    @property
    def conformant(self) -> bool:
        return self.count is None


@dataclass(frozen=True, slots=True)
class Field:
    """A member of a structure; `switch` is a union's [switch_is]."""

    name: str
    type: "Type"
    switch: Expression | None = None
    line: int = 0


@dataclass(eq=False, slots=True)
class StructureType:
    """A structure; `nested` are the anonymous types declared within it, by member."""

    name: str
    fields: list[Field] = field(default_factory=list)
    nested: dict[str, "StructureType | Union"] = field(default_factory=dict)
    aliases: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class UnionArm:
    """The arm of `labels`; `type` of None: an empty arm, that carries nothing."""

    labels: tuple[int, ...]
    name: str
    type: "Type | None"


@dataclass(eq=False, slots=True)
class Union:
    """A union; its tag has the type `tag` and comes first on the wire.

    `default` is what any other tag selects, or None where any other tag is refused.
    """

    name: str
    tag: "Integer | Enumeration | None" = None
    arms: list[UnionArm] = field(default_factory=list)
    default: UnionArm | None = None
    encapsulated: bool = False
    ms_union: bool = False
    nested: dict[str, "StructureType | Union"] = field(default_factory=dict)
    aliases: list[str] = field(default_factory=list)


Type = (
    Integer
    | Float
    | Enumeration
    | Guid
    | ContextHandleType
    | InterfacePointer
    | Pointer
    | Array
    | String
    | StructureType
    | Union
)


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    type: Type
    in_: bool
    out: bool
    switch: Expression | None = None
    line: int = 0


@dataclass(frozen=True, slots=True)
class OperationDeclaration:
    """A method; `result` is None for void; `attributes` as written, by name."""

    name: str
    opnum: int
    parameters: tuple[Parameter, ...]
    result: "Type | None"
    attributes: frozenset[str] = frozenset()
    line: int = 0


@dataclass(frozen=True, slots=True)
class InterfaceDeclaration:
    """An interface; `operations` has None for each opnum not used on the wire."""

    name: str
    uuid: uuid.UUID
    version: tuple[int, int]
    operations: tuple[OperationDeclaration | None, ...]
    callbacks: tuple[OperationDeclaration, ...] = ()
    base: "InterfaceDeclaration | None" = None
    syntaxes: frozenset[str] = frozenset()
    strict_context_handle: bool = False
    type_strict_context_handle: bool = False


@dataclass(eq=False, slots=True)
class IdlFile:
    """One IDL file: its own types and constants, and the interface that it declares."""

    name: str
    types: dict[str, Type] = field(default_factory=dict)
    constants: dict[str, int] = field(default_factory=dict)
    imports: list["IdlFile"] = field(default_factory=list)
    interfaces: dict[str, InterfaceDeclaration] = field(default_factory=dict)
