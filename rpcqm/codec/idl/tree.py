"""The typed tree of an IDL file, for the NDR compilers and other generators.

Names, typedefs, attributes and defaults are resolved: a pointer has its kind, an array its counts,
a union its labels as numbers. Top-level reference pointers leave no trace on the wire and are not
in the tree: a parameter has the type of the pointer's target.
"""

import enum
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field

from rpcqm.codec.idl.nodes import Expression, Node


class Integer(Node):
    """An integer of `size` octets; of 0: as wide as a pointer (`__int3264`).

    `octet` marks the one-octet types of which arrays are bytes, `character` wchar_t and
    char, of which strings are made, `truth` VARIANT_BOOL, which is True, all of its bits set, or
    False.  `limits` are those of [range].
    """

    name: str
    size: int
    signed: bool = False
    octet: bool = False
    character: bool = False
    limits: tuple[int, int] | None = None
    truth: bool = False

    def within(self, low: int, high: int) -> "Integer":
        return self.changed(limits=(low, high))


class Float(Node):
    name: str
    size: int


@dataclass(eq=False, slots=True)
class Enumeration:
    """An enumeration: 16 bits in NDR unless [v1_enum], 32 in NDR64."""

    name: str
    v1: bool = False
    values: dict[str, int] = field(default_factory=dict)
    aliases: list[str] = field(default_factory=list)


class Guid(Node):
    """A UUID: 16 octets in fields of 4, 2, 2 and 8, taken as one value."""


class ContextHandleType(Node):
    """A context handle type; `serialize` is None without an annotation for it."""

    name: str
    serialize: bool | None = None


class InterfacePointer(Node):
    """A pointer to an interface: on the wire an OBJREF in a counted array of octets."""

    name: str
    iid_is: Expression | None = None


class WireMarshal(Node):
    """BSTR, VARIANT or SAFEARRAY: a pointer to a structure with its own reader and writer in
    `codec.automation`."""

    name: str


class PointerKind(enum.Enum):
    REF = "ref"
    UNIQUE = "unique"
    FULL = "ptr"


class Pointer(Node):
    kind: PointerKind
    to: "Type"


class Array(Node):
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


class String(Node):
    """A varying array of characters that ends with NUL; conformant unless `count`."""

    character: Integer
    count: int | None = None
    size: Expression | None = None
    limits: tuple[int, int] | None = None

    @property
    def conformant(self) -> bool:
        return self.count is None


class Field(Node):
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


class UnionArm(Node):
    """The arm of `labels`; a `type` of None is an empty arm."""

    labels: tuple[int, ...]
    name: str
    type: "Type | None"


@dataclass(eq=False, slots=True)
class Union:
    """A union; its tag has the type `tag` and comes first on the wire.

    `default` is the arm for all other tags, or None if these are refused.
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
    | WireMarshal
    | Pointer
    | Array
    | String
    | StructureType
    | Union
)


class Parameter(Node):
    """`declared` is the type as written, as "IMSMQQueue4**"; `attributes` too, by name."""

    name: str
    type: Type
    in_: bool
    out: bool
    switch: Expression | None = None
    line: int = 0
    attributes: frozenset[str] = frozenset()
    declared: str = ""


class OperationDeclaration(Node):
    """A method; `result` is None for void; `attributes` as written, by name.

    A property's is called as in memory: get_X, put_X, putref_X.  `owner` is the interface that
    declares the method, for the methods of objects, and `member` its number in IDispatch, where
    it is written.
    """

    name: str
    opnum: int
    parameters: tuple[Parameter, ...]
    result: "Type | None"
    attributes: frozenset[str] = frozenset()
    line: int = 0
    owner: str = ""
    member: int | None = None

    @property
    def message_name(self) -> str:
        """The base name of its request's and response's classes."""
        return f"{self.owner}_{self.name}" if self.owner else self.name


class InterfaceDeclaration(Node):
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
    is_object: bool = False
    attributes: frozenset[str] = frozenset()

    @property
    def bases(self) -> Iterator["InterfaceDeclaration"]:
        """The interfaces that it is derived from, the nearest first."""
        base = self.base
        while base is not None:
            yield base
            base = base.base

    @property
    def automation(self) -> bool:
        """Whether the interface is derived from IDispatch."""
        return any(base.name == "IDispatch" for base in self.bases)

    @property
    def own(self) -> tuple[OperationDeclaration, ...]:
        """The operations that the interface itself declares."""
        inherited = len(self.base.operations) if self.base else 0
        return tuple(o for o in self.operations[inherited:] if o is not None)


class Dispinterface(Node):
    """An interface that is only called by IDispatch: methods with member numbers."""

    name: str
    uuid: uuid.UUID
    operations: tuple[OperationDeclaration, ...]


class Coclass(Node):
    """A class of objects: the interfaces that they have, and those that they call (`sources`)."""

    name: str
    uuid: uuid.UUID
    interfaces: tuple[str, ...]
    default: str
    sources: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class IdlFile:
    """One IDL file: its own types and constants, and the interfaces that it declares.

    `interface_names`: pointers to these are interface pointers.
    """

    name: str
    types: dict[str, Type] = field(default_factory=dict)
    constants: dict[str, int] = field(default_factory=dict)
    imports: list["IdlFile"] = field(default_factory=list)
    interfaces: dict[str, InterfaceDeclaration] = field(default_factory=dict)
    dispinterfaces: dict[str, Dispinterface] = field(default_factory=dict)
    coclasses: dict[str, Coclass] = field(default_factory=dict)
    interface_names: set[str] = field(default_factory=set)

    def files(self) -> list["IdlFile"]:
        """This file and all that it imports, each once."""
        found = [self]
        for file in found:
            found.extend(f for f in file.imports if f not in found)
        return found
