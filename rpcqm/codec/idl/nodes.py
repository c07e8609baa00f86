"""What an IDL file says, as written: the nodes that the grammar yields."""

from dataclasses import dataclass


class IdlError(Exception):
    """An IDL file that cannot be used; `file` and `line` say where."""

    def __init__(self, file: str, line: int, reason: str) -> None:
        super().__init__(f"{file}:{line}: {reason}")
        self.file = file
        self.line = line
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Number:
    value: int


@dataclass(frozen=True, slots=True)
class Text:
    """A quoted string, or a literal of a form of its own: a UUID, a version."""

    value: str


@dataclass(frozen=True, slots=True)
class Name:
    text: str


@dataclass(frozen=True, slots=True)
class Unary:
    """`operator` is one of + - ~ ! and * (the value that a pointer points to)."""

    operator: str
    operand: "Expression"


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Conditional:
    condition: "Expression"
    yes: "Expression"
    no: "Expression"


Expression = Number | Text | Name | Unary | Binary | Conditional


@dataclass(frozen=True, slots=True)
class BaseSpec:
    """A type of the language itself: "long", "unsigned short", "void", …"""

    name: str


@dataclass(frozen=True, slots=True)
class NamedSpec:
    name: str


@dataclass(frozen=True, slots=True)
class TagSpec:
    """`struct tag`, `union tag` or `enum tag` without a body."""

    kind: str
    tag: str


@dataclass(frozen=True, slots=True)
class AttributeNode:
    """One attribute; an argument that is left out, as in size_is(,n), is None."""

    name: str
    arguments: tuple["Expression | TypeSpec | None", ...]
    line: int


Attributes = tuple[AttributeNode, ...]


@dataclass(frozen=True, slots=True)
class Enumerator:
    name: str
    value: Expression | None


@dataclass(frozen=True, slots=True)
class EnumSpec:
    tag: str | None
    enumerators: tuple[Enumerator, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Declarator:
    """`pointers` stars before the name, and after it array bounds (None: open)."""

    name: str
    pointers: int
    bounds: tuple[Expression | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Member:
    """A field; an anonymous struct or union has no declarator."""

    attributes: Attributes
    spec: "TypeSpec"
    declarator: Declarator | None
    line: int


@dataclass(frozen=True, slots=True)
class StructSpec:
    tag: str | None
    members: tuple[Member, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Arm:
    """`labels` of None: the default arm; `member` of None: an empty arm."""

    labels: tuple[Expression, ...] | None
    member: Member | None
    line: int


@dataclass(frozen=True, slots=True)
class UnionSpec:
    """`switch` is the type and the name of an encapsulated union's own tag."""

    tag: str | None
    switch: "tuple[TypeSpec, str] | None"
    arms: tuple[Arm, ...]
    line: int


TypeSpec = BaseSpec | NamedSpec | TagSpec | EnumSpec | StructSpec | UnionSpec


@dataclass(frozen=True, slots=True)
class Import:
    files: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class ConstantNode:
    name: str
    value: Expression
    line: int


@dataclass(frozen=True, slots=True)
class TypedefNode:
    """A typedef, or (without declarators) the declaration of a tag alone."""

    attributes: Attributes
    spec: TypeSpec
    declarators: tuple[Declarator, ...]
    line: int


@dataclass(frozen=True, slots=True)
class ParameterNode:
    attributes: Attributes
    spec: TypeSpec
    declarator: Declarator
    line: int


@dataclass(frozen=True, slots=True)
class OperationNode:
    attributes: Attributes
    spec: TypeSpec
    pointers: int
    name: str
    parameters: tuple[ParameterNode, ...]
    line: int


@dataclass(frozen=True, slots=True)
class InterfaceNode:
    """An interface; `body` of None is a forward declaration.

    `dispatch`: a dispinterface, whose methods have no opnums.
    """

    attributes: Attributes
    name: str
    base: str | None
    body: "tuple[Statement, ...] | None"
    line: int
    dispatch: bool = False


@dataclass(frozen=True, slots=True)
class CoclassMember:
    attributes: Attributes
    name: str


@dataclass(frozen=True, slots=True)
class CoclassNode:
    attributes: Attributes
    name: str
    members: tuple[CoclassMember, ...]
    line: int


Statement = Import | ConstantNode | TypedefNode | OperationNode | InterfaceNode | CoclassNode
