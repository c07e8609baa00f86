"""The contents of an IDL file as written: the nodes that the grammar yields."""

from typing import Any, ClassVar, Self, dataclass_transform


class IdlError(Exception):
    """An IDL file that cannot be used; `file` and `line` say where."""

    def __init__(self, file: str, line: int, reason: str) -> None:
        super().__init__(f"{file}:{line}: {reason}")
        self.file = file
        self.line = line
        self.reason = reason


@dataclass_transform(frozen_default=True)
class Node:
    """Named values that do not change, and are compared one by one: a frozen dataclass.

    `dataclass` itself compiles six functions for each class. Every command loads these classes, and
    forty-five of them took 20 ms (G576).
    """

    __match_args__: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls) -> None:
        cls.__match_args__ = tuple(cls.__annotations__)  # type: ignore[misc]

    def __init__(self, *values: object, **named: object) -> None:
        kind, names = type(self), self.__match_args__
        given = dict(zip(names, values, strict=False), **named)
        if len(given) < len(names):
            usual = {name: getattr(kind, name) for name in names if hasattr(kind, name)}
            given = usual | given
        if len(values) + len(named) > len(names) or given.keys() != set(names):
            raise TypeError(f"{kind.__name__} has the fields {', '.join(names)}")
        self.__dict__.update(given)

    def changed(self, **named: Any) -> Self:
        """A copy with other values of the given fields."""
        return type(self)(**{**self.__dict__, **named})

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} does not change")

    def _values(self) -> tuple[object, ...]:
        return tuple([self.__dict__[name] for name in self.__match_args__])

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={self.__dict__[name]!r}" for name in self.__match_args__)
        return f"{type(self).__name__}({shown})"


class Number(Node):
    value: int


class Text(Node):
    """A quoted string, or a literal of a form of its own: a UUID, a version."""

    value: str


class Name(Node):
    text: str


class Unary(Node):
    """`operator` is one of + - ~ ! and * (the target of a pointer)."""

    operator: str
    operand: "Expression"


class Binary(Node):
    operator: str
    left: "Expression"
    right: "Expression"


class Conditional(Node):
    condition: "Expression"
    yes: "Expression"
    no: "Expression"


Expression = Number | Text | Name | Unary | Binary | Conditional


class BaseSpec(Node):
    """A type of the language itself: "long", "unsigned short", "void", …"""

    name: str


class NamedSpec(Node):
    name: str


class TagSpec(Node):
    """`struct tag`, `union tag` or `enum tag` without a body."""

    kind: str
    tag: str


class AttributeNode(Node):
    """One attribute; an omitted argument, as in size_is(,n), is None."""

    name: str
    arguments: tuple["Expression | TypeSpec | None", ...]
    line: int


Attributes = tuple[AttributeNode, ...]


class Enumerator(Node):
    name: str
    value: Expression | None


class EnumSpec(Node):
    tag: str | None
    enumerators: tuple[Enumerator, ...]
    line: int


class Declarator(Node):
    """`pointers` stars before the name, and after it array bounds (None: open)."""

    name: str
    pointers: int
    bounds: tuple[Expression | None, ...] = ()


class Member(Node):
    """A field; an anonymous struct or union has no declarator."""

    attributes: Attributes
    spec: "TypeSpec"
    declarator: Declarator | None
    line: int


class StructSpec(Node):
    tag: str | None
    members: tuple[Member, ...]
    line: int


class Arm(Node):
    """`labels` of None: the default arm; `member` of None: an empty arm."""

    labels: tuple[Expression, ...] | None
    member: Member | None
    line: int


class UnionSpec(Node):
    """`switch` is the type and the name of an encapsulated union's own tag."""

    tag: str | None
    switch: "tuple[TypeSpec, str] | None"
    arms: tuple[Arm, ...]
    line: int


TypeSpec = BaseSpec | NamedSpec | TagSpec | EnumSpec | StructSpec | UnionSpec


class Import(Node):
    files: tuple[str, ...]
    line: int


class ConstantNode(Node):
    name: str
    value: Expression
    line: int


class TypedefNode(Node):
    """A typedef, or (without declarators) the declaration of a tag alone."""

    attributes: Attributes
    spec: TypeSpec
    declarators: tuple[Declarator, ...]
    line: int


class ParameterNode(Node):
    attributes: Attributes
    spec: TypeSpec
    declarator: Declarator
    line: int


class OperationNode(Node):
    attributes: Attributes
    spec: TypeSpec
    pointers: int
    name: str
    parameters: tuple[ParameterNode, ...]
    line: int


class InterfaceNode(Node):
    """An interface; `body` of None is a forward declaration.

    `dispatch`: a dispinterface, whose methods have no opnums.
    """

    attributes: Attributes
    name: str
    base: str | None
    body: "tuple[Statement, ...] | None"
    line: int
    dispatch: bool = False


class CoclassMember(Node):
    attributes: Attributes
    name: str


class CoclassNode(Node):
    attributes: Attributes
    name: str
    members: tuple[CoclassMember, ...]
    line: int


Statement = Import | ConstantNode | TypedefNode | OperationNode | InterfaceNode | CoclassNode
