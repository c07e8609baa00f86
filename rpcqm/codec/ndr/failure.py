"""The response of a method that only has a status to report.

[in,out] parameters keep their values, [out] parameters are empty: zero, null, or as many zeros as
an array's size asks for.
"""

import uuid

from rpcqm.codec.idl.expression import evaluate, names_in
from rpcqm.codec.idl.nodes import Unary
from rpcqm.codec.idl.tree import (
    Array,
    ContextHandleType,
    Enumeration,
    Float,
    Guid,
    Integer,
    OperationDeclaration,
    Pointer,
    String,
    StructureType,
    Type,
    Union,
    UnionArm,
)
from rpcqm.codec.ndr.classes import class_of, message, nullable
from rpcqm.codec.ndr.values import Value

NULL_HANDLE = bytes(20)


def failure_response(operation: OperationDeclaration, request: object, result: int) -> Value:
    """The response to `request` whose return value is `result`, where there is one.

    Raises ValueError for a method with an [out] array whose size the request does not give.
    """
    made = message(operation, True)
    values: dict[str, object] = {extra: getattr(request, extra) for extra in made.extras}
    for parameter in made.parameters:
        if parameter.name == "result" and operation.result is not None:
            values["result"] = result
        elif parameter.in_:
            values[parameter.name] = getattr(request, parameter.name)
        else:
            values[parameter.name] = _empty(parameter.type, request)
    return made.python_class(**values)


def _empty(made: Type, request: object) -> object:
    """The empty value of a type."""
    match made:
        case _ if nullable(made):
            return None
        case Pointer(to=to):
            return _empty(to, request)
        case Integer() | Float() | Enumeration():
            return 0
        case Guid():
            return uuid.UUID(int=0)
        case ContextHandleType():
            return NULL_HANDLE
        case String():
            return ""
        case Array():
            return _empty_array(made, request)
        case StructureType(fields=fields):
            return class_of(made)(**{each.name: _empty(each.type, request) for each in fields})
        case Union(arms=arms, default=default):
            arm = default or arms[0]
            return class_of(made)(
                tag=arm.labels[0] if arm.labels else 0, value=_empty_arm(arm, request)
            )
    raise ValueError(f"no empty value of {made!r}")


def _empty_arm(arm: UnionArm, request: object) -> object:
    return None if arm.type is None else _empty(arm.type, request)


def _empty_array(made: Array, request: object) -> object:
    count = 0 if made.varying else _count(made, request)
    element = made.element
    if isinstance(element, Integer) and element.octet:
        return bytes(count)
    if isinstance(element, Integer) and element.character:
        return "\0" * count
    return [_empty(element, request) for _ in range(count)]


def _count(made: Array, request: object) -> int:
    if made.count is not None:
        return made.count
    if made.size is None:
        return 0
    size = made.size
    if isinstance(size, Unary) and size.operator == "*":
        size = size.operand
    known = {name: getattr(request, name, None) for name in names_in(size)}
    if any(value is None for value in known.values()):
        # The size is an [out] parameter as well, and as empty as the array.
        return 0
    return evaluate(size, {name: int(value or 0) for name, value in known.items()})
