"""Our values in impacket's objects, and back."""

from typing import Any
from uuid import UUID

from impacket.dcerpc.v5.dtypes import GUID, NULL
from impacket.dcerpc.v5.ndr import NDRPOINTERNULL

from rpcqm.codec.idl.expression import evaluate, names_in
from rpcqm.codec.idl.nodes import Expression
from rpcqm.codec.idl.tree import (
    Array,
    ContextHandleType,
    Enumeration,
    Field,
    Float,
    Guid,
    Integer,
    OperationDeclaration,
    Parameter,
    Pointer,
    String,
    StructureType,
    Type,
    Union,
    UnionArm,
)
from rpcqm.codec.ndr import values as ndr_values
from rpcqm.codec.ndr.classes import class_of, message
from rpcqm.codec.ndr.values import Value
from tests.support.codec.idl_values import without_stars


def to_impacket(
    module: Any, operation: OperationDeclaration, value: Value, response: bool, ndr64: bool
) -> Any:
    """impacket's object of a request or a response."""
    made = message(operation, response)
    call = module.OPNUMS[operation.opnum][response](isNDR64=ndr64)
    _Writer(ndr64).members(call, made.parameters, value)
    return call


def from_impacket(operation: OperationDeclaration, call: Any, response: bool) -> Value:
    """The value that impacket's object holds."""
    made = message(operation, response)
    reader = _Reader()
    found = {p.name: reader.member(call, p) for p in made.parameters}
    for extra in made.extras:
        found[extra] = reader.maxima[extra]
    return made.python_class(**found)


def _key(name: str, container: Any) -> str:
    return "ErrorCode" if name == "result" and "ErrorCode" in container.fields else name


def _arm(made: Union, tag: int) -> UnionArm:
    return next(arm for arm in made.arms if tag in arm.labels)


class _Writer:
    def __init__(self, ndr64: bool) -> None:
        self.ndr64 = ndr64

    def members(self, to: Any, members: Any, value: Value) -> None:
        for member in members:
            self.set(to, _key(member.name, to), member.type, getattr(value, member.name), value)

    def set(self, to: Any, key: str, made: Type, value: Any, owner: Value) -> None:
        match made:
            case Integer() | Enumeration() | Float() | ContextHandleType():
                to[key] = value
            case Guid():
                to[key] = value.bytes_le
            case Pointer():
                self._pointer(to, key, made, value, owner)
            case Array():
                self._array(to, key, made, value, owner)
            case String():
                self._string(to, key, made, value, owner)
            case StructureType():
                self.members(to.fields[key], made.fields, value)
            case Union():
                to.fields[key]["tag"] = value.tag
                arm = _arm(made, value.tag)
                if arm.type is not None:
                    self.set(to.fields[key], arm.name, arm.type, value.value, value)

    def _pointer(self, to: Any, key: str, made: Pointer, value: Any, owner: Value) -> None:
        if value is None:
            to[key] = NULL
        elif value is ndr_values.NULL:
            to.fields[key]["Data"] = NULL
        else:
            self.set(to.fields[key], "Data", made.to, value, owner)

    def _array(self, to: Any, key: str, made: Array, value: Any, owner: Value) -> None:
        element = made.element
        if isinstance(element, Integer) and element.octet:
            to[key] = value
        elif isinstance(element, Integer) and element.character:
            to[key] = [ord(character) for character in value]
        elif isinstance(element, Integer):
            to[key] = value
        else:
            to[key] = [self._element(to.fields[key].item, element, v, owner) for v in value]
        if made.conformant and made.varying:
            self._maximum(to.fields[key], made.size, owner)

    def _maximum(self, to: Any, size: Expression | None, owner: Value) -> None:
        names = {n: getattr(owner, n, None) for n in names_in(size)} if size else {}
        if size is not None and None not in names.values():
            known = {n: v for n, v in names.items() if v is not None}
            to.fields["MaximumCount"] = evaluate(without_stars(size), known)

    def _element(self, item: Any, made: Type, value: Any, owner: Value) -> Any:
        if value is None:
            return NDRPOINTERNULL(isNDR64=self.ndr64)
        each = item(isNDR64=self.ndr64)
        match made:
            case StructureType(fields=fields):
                self.members(each, fields, value)
            case Pointer(to=to):
                self.set(each, "Data", to, value, owner)
            case Guid():
                each["Data"] = value.bytes_le
            case _:
                each["Data"] = value
        return each

    def _string(self, to: Any, key: str, made: String, value: str, owner: Value) -> None:
        if made.character.size == 2:
            to[key] = value + "\0"
        else:
            to[key] = value.encode("latin-1") + b"\0"
        if made.conformant and made.size is not None:
            if not getattr(owner, next(names_in(made.size)), 1):
                to[key] = b""
            self._maximum(to.fields[key], made.size, owner)


class _Reader:
    def __init__(self) -> None:
        self.maxima: dict[str, int] = {}

    def member(self, of: Any, member: Field | Parameter) -> Any:
        return self.get(of, _key(member.name, of), member.type)

    def get(self, of: Any, key: str, made: Type) -> Any:
        match made:
            case Guid():
                return UUID(bytes_le=of[key])
            case Pointer():
                return self._pointer(of, key, made)
            case Array():
                return self._array(of, key, made)
            case String():
                return self._string(of, key, made)
            case StructureType(fields=fields):
                inner = of.fields[key]
                return class_of(made)(**{f.name: self.member(inner, f) for f in fields})
            case Union():
                return self._union(of.fields[key], made)
        return of[key]

    def _union(self, of: Any, made: Union) -> Value:
        arm = _arm(made, of["tag"])
        value = None if arm.type is None else self.get(of, arm.name, arm.type)
        return class_of(made)(of["tag"], value)

    def _pointer(self, of: Any, key: str, made: Pointer) -> Any:
        pointer = of.fields[key]
        if isinstance(pointer, NDRPOINTERNULL) or pointer["ReferentID"] == 0:
            return None
        found = self.get(pointer, "Data", made.to)
        if found is None and isinstance(made.to, Pointer):
            return ndr_values.NULL
        return found

    def _note_maximum(self, of: Any, made: Array | String) -> None:
        for name in names_in(made.size) if made.size else ():
            self.maxima[name] = of.fields.get("MaximumCount") or 0

    def _array(self, of: Any, key: str, made: Array) -> Any:
        items, element = of[key], made.element
        self._note_maximum(of.fields[key], made)
        if isinstance(element, Integer) and element.octet:
            return items if isinstance(items, bytes) else b"".join(items)
        if isinstance(element, Integer) and element.character:
            return "".join(map(chr, items))
        if isinstance(element, Integer):
            return list(items)
        return [self._element(item, element) for item in items]

    def _element(self, item: Any, made: Type) -> Any:
        match made:
            case StructureType(fields=fields):
                return class_of(made)(**{f.name: self.member(item, f) for f in fields})
            case Pointer():
                return self._pointer(_Box(item), "Data", made)
            case Guid() if isinstance(item, GUID):
                return UUID(bytes_le=item["Data"])
        return item["Data"]

    def _string(self, of: Any, key: str, made: String) -> str:
        value = of[key]
        self._note_maximum(of.fields[key], made)
        if isinstance(value, list):
            value = b"".join(value)
        text = value.decode("latin-1") if isinstance(value, bytes) else value
        assert isinstance(text, str)
        return text.removesuffix("\0")


class _Box:
    """An element of an array, as if it were a field."""

    def __init__(self, item: Any) -> None:
        self.fields = {"Data": item}
