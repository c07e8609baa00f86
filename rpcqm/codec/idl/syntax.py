"""The grammar of IDL ([C706] 4, [MS-RPCE] 2.2.4) and its parser.

Besides IDL proper the grammar has annotations: a comment /* rpcqm: string, strict_context_handle --
why */ may be in any place of an attribute list and is read as one. Annotations replace ACF files,
and correct the published text.
"""

import functools
import itertools
from typing import Any

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedToken
from lark.tree import Meta

from rpcqm.codec.idl.nodes import (
    Arm,
    AttributeNode,
    Attributes,
    BaseSpec,
    Binary,
    CoclassMember,
    CoclassNode,
    Conditional,
    ConstantNode,
    Declarator,
    Enumerator,
    EnumSpec,
    Expression,
    IdlError,
    Import,
    InterfaceNode,
    Member,
    Name,
    NamedSpec,
    Number,
    OperationNode,
    ParameterNode,
    Statement,
    StructSpec,
    TagSpec,
    Text,
    TypedefNode,
    TypeSpec,
    Unary,
    UnionSpec,
)

_GRAMMAR = r"""
start: statement*

?statement: import_
    | constant
    | typedef
    | declaration
    | operation
    | interface
    | dispinterface
    | coclass
    | "cpp_quote" "(" STRING+ ")" ";"? -> nothing
    | ";" -> nothing

import_: IMPORT STRING ("," STRING)* ";"
constant: CONST specifier star* NAME "=" expression ";"
typedef: TYPEDEF attributes "const"? specifier attributes declarators ";"
declaration: attributes body ";"
operation: attributes specifier stars NAME "(" (parameter ("," parameter)*)? ")" ";"
interface: attributes INTERFACE NAME base_name? "{" statement* "}"
    | attributes INTERFACE NAME ";" -> interface_ahead
base_name: ":" NAME
dispinterface: attributes DISPINTERFACE NAME "{" "properties" ":" "methods" ":" operation* "}"
    | attributes DISPINTERFACE NAME ";" -> interface_ahead
coclass: attributes COCLASS NAME "{" coclass_member* "}"
coclass_member: attributes (INTERFACE | DISPINTERFACE) NAME ";"

attributes: (attribute_list | annotation)*
attribute_list: "[" attribute ("," attribute)* ","? "]"
annotation: _ANNOTATION attribute ("," attribute)* _ANNOTATION_END
attribute: NAME ("(" argument ("," argument)* ")")?
argument: (expression | base | UUID | VERSION)?

?specifier: base | named | tag | body
base: BASE+
named: NAME
tag: (STRUCT | UNION | ENUM) NAME
?body: struct | union | encapsulated | enum
struct: STRUCT NAME? "{" member* "}"
union: UNION NAME? "{" arm* "}"
encapsulated: UNION NAME? switch NAME? "{" case* "}"
switch: "switch" "(" specifier NAME ")"
enum: ENUM NAME? "{" enumerator ("," enumerator)* ","? "}"
enumerator: NAME ("=" expression)?

member: attributes "const"? specifier attributes declarators ";"
    | attributes body ";" -> anonymous_member
arm: member
    | attributes SEMICOLON -> empty_arm
case: label+ (member | SEMICOLON)
label: "case" expression ("," expression)* ":"
    | "default" ":" -> default_label

declarators: declarator ("," declarator)*
declarator: stars NAME bound*
bound: "[" expression "]" | "[" star? "]" -> open_bound
stars: star*
star: "*" "const"?
parameter: attributes "const"? specifier attributes declarator?

?expression: disjunction
    | disjunction "?" expression ":" expression -> conditional
?disjunction: conjunction | disjunction OR conjunction -> binary
?conjunction: inclusive | conjunction AND inclusive -> binary
?inclusive: exclusive | inclusive BIT_OR exclusive -> binary
?exclusive: both | exclusive BIT_XOR both -> binary
?both: equality | both BIT_AND equality -> binary
?equality: relation | equality EQUALITY relation -> binary
?relation: shift | relation RELATION shift -> binary
?shift: sum | shift SHIFT sum -> binary
?sum: product | sum SIGN product -> binary
?product: unary | product DIVIDE unary -> binary | product "*" unary -> times
?unary: primary | (SIGN | NOT) unary -> unary | "*" unary -> dereference
?primary: NUMBER -> number
    | STRING -> text
    | NAME -> name
    | "(" expression ")"

IMPORT: "import"
CONST: "const"
TYPEDEF: "typedef"
INTERFACE: "interface"
DISPINTERFACE: "dispinterface"
COCLASS: "coclass"
STRUCT: "struct"
UNION: "union"
ENUM: "enum"
SEMICOLON: ";"
OR.2: "||"
AND.2: "&&"
BIT_OR: "|"
BIT_XOR: "^"
BIT_AND: "&"
EQUALITY: "==" | "!="
RELATION: "<=" | ">=" | "<" | ">"
SHIFT.2: "<<" | ">>"
SIGN: "+" | "-"
DIVIDE: "/" | "%"
NOT: "!" | "~"
BASE.2: /(unsigned|signed|small|short|long|hyper|int|__int(8|16|32|64|3264))\b/
    | /(void|char|wchar_t|byte|boolean|float|double|handle_t)\b/
UUID.4: /[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}/
VERSION.3: /[0-9]+\.[0-9]+/
NUMBER: /(0[xX][0-9A-Fa-f]+|[0-9]+)[uUlL]*/
STRING: /"([^"\\\n]|\\.)*"/
NAME: /[A-Za-z_][A-Za-z0-9_]*/
_ANNOTATION.5: /\/\*\s*rpcqm:/
_ANNOTATION_END.5: /(--([^*]|\*(?!\/))*)?\*\//
COMMENT.4: /\/\*(?!\s*rpcqm:)([^*]|\*(?!\/))*\*\// | /\/\/[^\n]*/
%import common.WS
%ignore WS
%ignore COMMENT
"""


_Transformer = Transformer[Token, Any]


def _line(meta: Meta) -> int:
    return 0 if meta.empty else meta.line


_Children = list[Any]
"""The results of the callbacks for a rule's parts; the grammar determines their types."""


def _first(children: _Children, kind: type | tuple[type, ...]) -> Any:
    return next((child for child in children if isinstance(child, kind)), None)


def _name(children: _Children) -> str | None:
    return next(
        (str(c) for c in children if isinstance(c, Token) and c.type == "NAME"),
        None,
    )


def _attributes(children: _Children) -> Attributes:
    """The attributes of all attribute lists among the children."""
    lists = (child.items for child in children if isinstance(child, _AttributeList))
    return tuple(itertools.chain.from_iterable(lists))


class _AttributeList:
    def __init__(self, items: Attributes) -> None:
        self.items = items


class _Switch:
    def __init__(self, spec: TypeSpec, name: str) -> None:
        self.spec, self.name = spec, name


_SPECS = (BaseSpec, NamedSpec, TagSpec, EnumSpec, StructSpec, UnionSpec)


class _Expressions(_Transformer):
    """The part of the builder that makes expressions."""

    def number(self, children: _Children) -> Number:
        digits = children[0].rstrip("uUlL")
        return Number(int(digits, 16 if digits[:2] in ("0x", "0X") else 10))

    def text(self, children: _Children) -> Text:
        return Text(str(children[0])[1:-1])

    def name(self, children: _Children) -> Name:
        return Name(str(children[0]))

    def unary(self, children: _Children) -> Unary:
        return Unary(str(children[0]), children[1])

    def dereference(self, children: _Children) -> Unary:
        return Unary("*", children[0])

    def binary(self, children: _Children) -> Binary:
        return Binary(str(children[1]), children[0], children[2])

    def times(self, children: _Children) -> Binary:
        return Binary("*", children[0], children[1])

    def conditional(self, children: _Children) -> Conditional:
        return Conditional(*children)


@v_args(meta=True)
class _Declarations(_Transformer):
    """The part of the builder that makes attributes, types and declarators."""

    def attributes(self, _meta: Meta, children: _Children) -> _AttributeList:
        return _AttributeList(tuple(itertools.chain.from_iterable(children)))

    def attribute_list(self, _meta: Meta, children: _Children) -> list[AttributeNode]:
        return children

    annotation = attribute_list

    def attribute(self, meta: Meta, children: _Children) -> AttributeNode:
        return AttributeNode(str(children[0]), tuple(children[1:]), _line(meta))

    def argument(self, _meta: Meta, children: _Children) -> Expression | TypeSpec | None:
        if not children:
            return None
        only = children[0]
        return Text(str(only)) if isinstance(only, Token) else only

    def base(self, _meta: Meta, children: _Children) -> BaseSpec:
        return BaseSpec(" ".join(children))

    def named(self, _meta: Meta, children: _Children) -> NamedSpec:
        return NamedSpec(str(children[0]))

    def tag(self, _meta: Meta, children: _Children) -> TagSpec:
        return TagSpec(str(children[0]), str(children[1]))

    def struct(self, meta: Meta, children: _Children) -> StructSpec:
        members = [m for child in children if isinstance(child, list) for m in child]
        return StructSpec(_name(children), tuple(members), _line(meta))

    def union(self, meta: Meta, children: _Children) -> UnionSpec:
        arms = tuple(child for child in children if isinstance(child, Arm))
        return UnionSpec(_name(children), None, arms, _line(meta))

    def encapsulated(self, meta: Meta, children: _Children) -> UnionSpec:
        switch = _first(children, _Switch)
        arms = tuple(child for child in children if isinstance(child, Arm))
        return UnionSpec(_name(children), (switch.spec, switch.name), arms, _line(meta))

    def switch(self, _meta: Meta, children: _Children) -> _Switch:
        return _Switch(children[0], str(children[1]))

    def enum(self, meta: Meta, children: _Children) -> EnumSpec:
        enumerators = tuple(child for child in children if isinstance(child, Enumerator))
        return EnumSpec(_name(children), enumerators, _line(meta))

    def enumerator(self, _meta: Meta, children: _Children) -> Enumerator:
        return Enumerator(str(children[0]), children[1] if len(children) > 1 else None)

    def member(self, meta: Meta, children: _Children) -> list[Member]:
        attributes, spec = _attributes(children), _first(children, _SPECS)
        return [Member(attributes, spec, d, _line(meta)) for d in children[-1]]

    def anonymous_member(self, meta: Meta, children: _Children) -> list[Member]:
        return [Member(_attributes(children), children[-1], None, _line(meta))]

    def declarators(self, _meta: Meta, children: _Children) -> list[Declarator]:
        return children

    def declarator(self, _meta: Meta, children: _Children) -> Declarator:
        bounds = tuple(bound for (bound,) in children[2:])
        return Declarator(str(children[1]), children[0], bounds)

    def bound(self, _meta: Meta, children: _Children) -> tuple[Expression]:
        return (children[0],)

    def open_bound(self, _meta: Meta, _children: _Children) -> tuple[None]:
        return (None,)

    def stars(self, _meta: Meta, children: _Children) -> int:
        return len(children)

    def star(self, _meta: Meta, _children: _Children) -> str:
        return "*"


@v_args(meta=True)
class _Arms(_Transformer):
    """The part of the builder that makes the arms of unions."""

    def arm(self, meta: Meta, children: _Children) -> Arm:
        (member,) = children[0]
        labels = _labels_of(member.attributes)
        return Arm(labels, member, _line(meta))

    def empty_arm(self, meta: Meta, children: _Children) -> Arm:
        return Arm(_labels_of(_attributes(children)), None, _line(meta))

    def case(self, meta: Meta, children: _Children) -> Arm:
        *labels, last = children
        member = last[0] if isinstance(last, list) else None
        if None in labels:
            return Arm(None, member, _line(meta))
        return Arm(tuple(itertools.chain.from_iterable(labels)), member, _line(meta))

    def label(self, _meta: Meta, children: _Children) -> tuple[Expression, ...]:
        return tuple(children)

    def default_label(self, _meta: Meta, _children: _Children) -> None:
        return None


def _labels_of(attributes: Attributes) -> tuple[Any, ...] | None:
    for attribute in attributes:
        if attribute.name == "case":
            return attribute.arguments
    return None


@v_args(meta=True)
class _Statements(_Transformer):
    """The part of the builder that makes statements."""

    def start(self, _meta: Meta, children: _Children) -> tuple[Statement, ...]:
        return tuple(child for child in children if child is not None)

    def nothing(self, _meta: Meta, _children: _Children) -> None:
        return None

    def import_(self, meta: Meta, children: _Children) -> Import:
        return Import(tuple(str(text)[1:-1] for text in children[1:]), _line(meta))

    def constant(self, meta: Meta, children: _Children) -> ConstantNode:
        return ConstantNode(str(children[-2]), children[-1], _line(meta))

    def typedef(self, meta: Meta, children: _Children) -> TypedefNode:
        attributes, spec = _attributes(children), _first(children, _SPECS)
        return TypedefNode(attributes, spec, tuple(children[-1]), _line(meta))

    def declaration(self, meta: Meta, children: _Children) -> TypedefNode:
        return TypedefNode(_attributes(children), children[-1], (), _line(meta))

    def operation(self, meta: Meta, children: _Children) -> OperationNode:
        attributes, spec, stars, name, *parameters = children
        return OperationNode(
            attributes.items,
            spec,
            stars,
            str(name),
            tuple(p for p in parameters if p is not None),
            _line(meta),
        )

    def parameter(self, meta: Meta, children: _Children) -> ParameterNode | None:
        spec, declarator = _first(children, _SPECS), _first(children, Declarator)
        if declarator is None and spec == BaseSpec("void"):
            return None
        declarator = declarator or Declarator("", 0)
        return ParameterNode(_attributes(children), spec, declarator, _line(meta))

    def base_name(self, _meta: Meta, children: _Children) -> Name:
        return Name(str(children[0]))

    def interface(self, meta: Meta, children: _Children) -> InterfaceNode:
        attributes, _keyword, name, *rest = children
        base = _first(rest, Name)
        body = tuple(s for s in rest if s is not None and s is not base)
        return InterfaceNode(
            attributes.items, str(name), base.text if base else None, body, _line(meta)
        )

    def interface_ahead(self, meta: Meta, children: _Children) -> InterfaceNode:
        return InterfaceNode(children[0].items, str(children[2]), None, None, _line(meta))

    def dispinterface(self, meta: Meta, children: _Children) -> InterfaceNode:
        attributes, _keyword, name, *body = children
        return InterfaceNode(
            attributes.items, str(name), None, tuple(body), _line(meta), dispatch=True
        )

    def coclass(self, meta: Meta, children: _Children) -> CoclassNode:
        attributes, _keyword, name, *members = children
        return CoclassNode(attributes.items, str(name), tuple(members), _line(meta))

    def coclass_member(self, _meta: Meta, children: _Children) -> CoclassMember:
        return CoclassMember(children[0].items, str(children[2]))


class _Builder(_Statements, _Arms, _Declarations, _Expressions):
    """Turns reductions of the grammar into nodes."""


@functools.cache
def _parser() -> Lark:
    return Lark(
        _GRAMMAR,
        parser="lalr",
        propagate_positions=True,
        maybe_placeholders=False,
    )


def parse_idl(text: str, file: str) -> tuple[Statement, ...]:
    """Parse the text of one IDL file; `file` is its name in errors.

    Raises IdlError with the file, the line and the expected symbols.
    """
    try:
        tree = _parser().parse(text)
    except UnexpectedCharacters as problem:
        raise IdlError(file, problem.line, f"unexpected {problem.char!r}") from None
    except UnexpectedEOF:
        raise IdlError(file, text.count("\n") + 1, "the file ends too early") from None
    except UnexpectedToken as problem:
        token = str(problem.token)
        what = f"unexpected {token!r}" if token else "the file ends too early"
        line = problem.line if problem.line > 0 else text.count("\n") + 1
        raise IdlError(file, line, what) from None
    statements: tuple[Statement, ...] = _Builder().transform(tree)
    return statements
