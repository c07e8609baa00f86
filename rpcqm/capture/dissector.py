"""A Wireshark dissector in Lua: the types of idl/ as tables, and a program that walks them."""

import struct
from collections.abc import Mapping, Sequence
from importlib.resources import files

from rpcqm.base.hresult import HResult, NtStatus
from rpcqm.capture.conversation.interfaces import known_interfaces, object_interfaces
from rpcqm.capture.marshalled import wire_form
from rpcqm.capture.packet_fields import HEADERS, Fields
from rpcqm.codec.idl.tree import (
    Array,
    ContextHandleType,
    Enumeration,
    Float,
    Guid,
    Integer,
    InterfacePointer,
    OperationDeclaration,
    Pointer,
    String,
    StructureType,
    Type,
    Union,
    UnionArm,
    WireMarshal,
)
from rpcqm.codec.interface import Interface
from rpcqm.codec.ndr.classes import message
from rpcqm.codec.ndr.layout import Wire, alignment, open_end, scalar

_NDR, _NDR64 = Wire(), Wire(ndr64=True)

Lua = str | int | None | Sequence["Lua"] | Mapping[str, "Lua"] | Mapping[int, "Lua"]
"""What is written as Lua; bool is a kind of int."""


def dissector() -> str:
    """The whole Lua script."""
    types = _Types()
    known = {**known_interfaces(), **object_interfaces()}.items()
    interfaces = {str(uuid): _interface(types, interface) for uuid, interface in known}
    statuses = {int(each): each.name for names in (NtStatus, HResult) for each in names}
    parts = (
        "-- Written by `rpcqm capture dissector`.",
        f"local TYPES = {_lua(types.tables)}",
        f"local INTERFACES = {_lua(interfaces)}",
        f"local STATUSES = {_lua(statuses)}",
        f"local HEADERS = {_lua({name: _header(fields) for name, fields in HEADERS.items()})}",
    )
    return "\n".join(parts) + "\n" + files(__package__).joinpath("dissector.lua").read_text("utf-8")


def _header(fields: Fields) -> list[Lua]:
    return [[field, struct.calcsize("<" + code), _kind(code)] for field, code in fields]


def _kind(code: str) -> str:
    if code == "16s":
        return "guid"
    return "octets" if code.endswith("s") else "number"


def _interface(types: "_Types", interface: Interface) -> Lua:
    every = (each for each in interface.operations if each is not None)
    operations: Lua = {each.opnum: _operation(types, each.declaration) for each in every}
    return {"name": interface.name, "operations": operations}


def _operation(types: "_Types", declaration: OperationDeclaration) -> dict[str, Lua]:
    return {
        "name": declaration.name,
        "request": _parameters(types, declaration, False),
        "response": _parameters(types, declaration, True),
    }


def _parameters(types: "_Types", declaration: OperationDeclaration, response: bool) -> list[Lua]:
    status = getattr(declaration.result, "name", "") == "long"
    return [
        [each.name, types.number(each.type), status]
        for each in message(declaration, response).parameters
    ]


class _Types:
    """Each type once, under a number; so types may hold themselves."""

    def __init__(self) -> None:
        self.tables: list[Lua] = []
        self._numbers: dict[int, int] = {}
        self._kept: list[Type] = []

    def number(self, made: Type) -> int:
        if isinstance(made, WireMarshal):
            made = wire_form(made)
        if id(made) not in self._numbers:
            self._kept.append(made)
            table: dict[str, Lua] = {}
            self.tables.append(table)
            self._numbers[id(made)] = len(self.tables)
            table.update(self._described(made))
            table["align"], table["align64"] = alignment(made, _NDR), alignment(made, _NDR64)
        return self._numbers[id(made)]

    def _described(self, made: Type) -> dict[str, Lua]:
        match made:
            case Pointer():
                return {"k": "pointer", "kind": made.kind.value, "to": self.number(made.to)}
            case Array():
                return {
                    "k": "array",
                    "element": self.number(made.element),
                    "count": made.count,
                    "conformant": made.conformant,
                    "varying": made.varying,
                }
            case String():
                return {
                    "k": "string",
                    "size": made.character.size,
                    "count": made.count,
                    "conformant": made.conformant,
                }
            case StructureType():
                fields: list[Lua] = [[field.name, self.number(field.type)] for field in made.fields]
                return {"k": "struct", "fields": fields, "open": bool(open_end(made))}
            case Union():
                return self._union(made)
        return _scalar(made)

    def _union(self, made: Union) -> dict[str, Lua]:
        arms = {label: self._arm(arm) for arm in made.arms for label in arm.labels}
        every = [arm.type for arm in made.arms if arm.type]
        return {
            "k": "union",
            "name": made.name,
            "tag": self.number(made.tag) if made.tag else None,
            "arms": arms,
            "default": self._arm(made.default) if made.default else None,
            "ms_union": made.ms_union,
            "arms_align": max((alignment(each, _NDR) for each in every), default=1),
            "arms_align64": max((alignment(each, _NDR64) for each in every), default=1),
        }

    def _arm(self, arm: UnionArm) -> list[Lua]:
        name = arm.name or "value"
        return [name, self.number(arm.type)] if arm.type else [name]


def _scalar(made: Type) -> dict[str, Lua]:
    if isinstance(made, InterfacePointer):
        return {"k": "interface"}
    sizes = [(scalar(made, wire) or ("", 0))[1] for wire in (_NDR, _NDR64)]
    found: dict[str, Lua] = {"k": "number", "size": sizes[0], "size64": sizes[1]}
    match made:
        case Integer():
            found |= {"octet": made.octet, "character": made.character}
        case Enumeration():
            found["names"] = {number: name for name, number in made.values.items()}
        case Guid():
            found["k"] = "guid"
        case ContextHandleType():
            found["k"] = "handle"
        case Float():
            found["k"] = "float"
    return found


def _lua(value: Lua) -> str:
    """A value as a Lua table; what is None or False is left out of tables."""
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, dict):
        kept = ((k, v) for k, v in value.items() if v is not None and v is not False)
        return "{" + ",".join(f"[{_lua(k)}]={_lua(v)}" for k, v in kept) + "}"
    return "{" + ",".join(map(_lua, value)) + "}"
