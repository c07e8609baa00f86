"""The Python classes of the structures, unions, enumerations and messages of the tree."""

import enum
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rpcqm.codec.idl.expression import names_in
from rpcqm.codec.idl.nodes import Name
from rpcqm.codec.idl.tree import (
    Array,
    Enumeration,
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
from rpcqm.codec.ndr.values import REQUIRED, OperationRequest, Value, union_class, value_class


def nullable(made: Type) -> bool:
    """Whether a value can be None: a null pointer."""
    if isinstance(made, Pointer):
        return made.kind is not PointerKind.REF
    return isinstance(made, InterfacePointer | WireMarshal)


def has_default(made: Type) -> bool:
    """Whether a structure's constructor may omit a field of that type."""
    return nullable(made) or isinstance(made, Integer | Enumeration)


def _default(made: Type) -> object:
    if nullable(made):
        return None
    return 0 if has_default(made) else REQUIRED


@functools.cache
def class_of(made: StructureType | Union) -> type[Value]:
    """The class of a structure's or a union's values."""
    if isinstance(made, Union):
        return union_class(made.name)
    return value_class(made.name, ((f.name, _default(f.type)) for f in made.fields))


@functools.cache
def enum_class(made: Enumeration) -> type[enum.IntEnum]:
    """The enumeration's names; values themselves are plain integers."""
    functional: Any = enum.IntEnum
    made_class: type[enum.IntEnum] = functional(made.name, made.values)
    return made_class


@dataclass(frozen=True, slots=True)
class OperationMessage:
    """A request or a response: the values on the wire, in order.

    `extras` are [in] parameters that give the maximum count of a varying [out] array: attributes of
    the response that are on the wire only as that count.
    """

    name: str
    operation: str
    parameters: tuple[Parameter, ...]
    extras: tuple[str, ...]
    python_class: type[Value]


@functools.cache
def message(operation: OperationDeclaration, response: bool) -> OperationMessage:
    """The request or the response of an operation."""
    if response:
        sent = tuple(p for p in operation.parameters if p.out)
        if operation.result is not None:
            sent = (*sent, Parameter("result", operation.result, False, True))
    else:
        sent = tuple(p for p in operation.parameters if p.in_)
    name = operation.message_name + ("Response" if response else "Request")
    extras = tuple(dict.fromkeys(_extras(sent)))
    fields = [(p.name, None if nullable(p.type) else REQUIRED) for p in sent]
    fields += [(extra, REQUIRED) for extra in extras]
    python_class = value_class(name, fields, Value if response else OperationRequest)
    return OperationMessage(name, operation.name, sent, extras, python_class)


def _extras(parameters: tuple[Parameter, ...]) -> Iterator[str]:
    names = {p.name for p in parameters}
    for parameter in parameters:
        made = parameter.type.to if isinstance(parameter.type, Pointer) else parameter.type
        if not isinstance(made, Array | String) or made.size is None:
            continue
        apart = isinstance(made, String) or made.length not in (None, made.size)
        unknown = set(names_in(made.size)) - names
        if apart and unknown and not isinstance(made.size, Name):
            raise ValueError(f"the size of {parameter.name} is no plain parameter")
        if apart:
            yield from unknown
