"""The attributes of a declaration, and the types of the language itself."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from rpcqm.codec.idl.nodes import (
    AttributeNode,
    Attributes,
    Binary,
    Conditional,
    Expression,
    IdlError,
    Name,
    Number,
    Text,
    Unary,
)
from rpcqm.codec.idl.tree import Float, Integer, PointerKind

_POINTERS = frozenset({"unique", "ref", "ptr"})
_EXPRESSIONS = Number | Name | Unary | Binary | Conditional


class Void:
    """The type void, which only results and context handles can have."""


class BindingHandle:
    """The type handle_t: a binding, which is not on the wire."""


@dataclass(frozen=True, slots=True)
class InterfaceName:
    """An interface itself, which only pointers can have as their target."""

    name: str


_INTEGERS: dict[str, tuple[int, bool]] = {
    "boolean": (1, False),
    "byte": (1, False),
    "char": (1, True),
    "wchar_t": (2, False),
    "small": (1, True),
    "short": (2, True),
    "long": (4, True),
    "int": (4, True),
    "hyper": (8, True),
    "__int8": (1, True),
    "__int16": (2, True),
    "__int32": (4, True),
    "__int64": (8, True),
    "__int3264": (0, True),
}


def base_type(name: str) -> Integer | Float | Void | BindingHandle | None:
    """The type of the language called `name`, as "unsigned short", or None."""
    match name:
        case "void":
            return Void()
        case "handle_t":
            return BindingHandle()
        case "float" | "double":
            return Float(name, 4 if name == "float" else 8)
    words = [word for word in name.split() if word not in ("signed", "unsigned")] or ["int"]
    if len(words) == 2 and words[1] == "int":
        del words[1]
    if len(words) > 1 or words[0] not in _INTEGERS:
        return None
    size, signed = _INTEGERS[words[0]]
    octet = words[0] in ("byte", "char")
    character = words[0] in ("char", "wchar_t")
    return Integer(name, size, signed and "unsigned" not in name, octet, character)


class Marks:
    """The attributes of one declaration, by name; an attribute outside `known` is refused."""

    TYPES = _POINTERS | {
        *("context_handle", "context_handle_serialize", "context_handle_noserialize"),
        *(
            "disable_consistency_check",
            "guid",
            "hidden",
            "ms_union",
            "name",
            "objref",
            "public",
            "range",
            "string",
            "switch_type",
            "truth",
            "unsigned",
            "uuid",
            "v1_enum",
            "wire_marshal",
        ),
    }
    MEMBERS = _POINTERS | {
        *(
            "case",
            "default",
            "disable_consistency_check",
            "iid_is",
            "length_is",
            "max_is",
            "ms_union",
            "range",
            "size_is",
        ),
        *("string", "switch_is", "switch_type"),
    }
    PARAMETERS = MEMBERS | {
        *("context_handle", "defaultvalue", "in", "inner", "lcid", "optional", "out", "retval")
    }
    OPERATIONS = frozenset(
        {
            *(
                "broadcast",
                "callback",
                "helpstring",
                "hidden",
                "id",
                "idempotent",
                "local",
                "maybe",
            ),
            *("propget", "propput", "propputref", "restricted", "vararg"),
            "by_number",  # a number of an open object, which ends with its connection
            "harmless",  # nothing remains after a lost connection: locks are given back
            "repeatable",  # changes nothing, or only what ends with the connection; so harmless too
        }
    )
    INTERFACES = frozenset(
        {
            *("dual", "endpoint", "helpstring", "hidden", "local", "ms_union", "nonextensible"),
            *("object", "odl", "oleautomation", "pointer_default", "restricted"),
            *("strict_context_handle", "syntaxes", "type_strict_context_handle"),
            *("unique", "uuid", "version"),
        }
    )
    COCLASSES = frozenset({"appobject", "helpstring", "hidden", "noncreatable", "uuid", "version"})
    COCLASS_MEMBERS = frozenset({"default", "restricted", "source"})

    def __init__(self, file: str, attributes: Attributes, known: Iterable[str]) -> None:
        self.file = file
        self.by_name = {attribute.name: attribute for attribute in attributes}
        for attribute in attributes:
            if attribute.name not in known:
                raise IdlError(file, attribute.line, f"[{attribute.name}] is not understood here")

    def __contains__(self, name: str) -> bool:
        return name in self.by_name

    def get(self, name: str) -> AttributeNode | None:
        return self.by_name.get(name)

    def uuid(self) -> UUID | None:
        match self.by_name.get("uuid"):
            case AttributeNode(arguments=(Text(value),)):
                return UUID(value)
        return None

    def pointer_kind(self) -> PointerKind | None:
        """The kind that an explicit pointer attribute gives, or None."""
        return next((kind for kind in PointerKind if kind.value in self.by_name), None)

    def expressions(self, name: str) -> list[Expression | None]:
        """The arguments of size_is and its like, one for each dimension."""
        attribute = self.by_name.get(name)
        if attribute is None:
            return []
        return [self._expression(attribute, argument) for argument in attribute.arguments]

    def expression(self, name: str) -> Expression | None:
        """The argument of switch_is and its like, or None without the attribute."""
        return next(iter(self.expressions(name)), None)

    def _expression(self, attribute: AttributeNode, argument: object) -> Expression | None:
        if argument is None or isinstance(argument, _EXPRESSIONS):
            return argument
        raise IdlError(self.file, attribute.line, f"[{attribute.name}] takes expressions")
