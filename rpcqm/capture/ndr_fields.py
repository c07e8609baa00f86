"""Every field of a stub with its offset: NDR read by walking the tree of the IDL.

Slower than the compiled codecs and independent of them; used to show stubs to people.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from rpcqm.base.errors import DecodeError
from rpcqm.capture.marshalled import wire_form
from rpcqm.codec.idl.tree import (
    Array,
    Enumeration,
    Guid,
    Integer,
    InterfacePointer,
    Pointer,
    PointerKind,
    String,
    StructureType,
    Type,
    Union,
    WireMarshal,
)
from rpcqm.codec.interface import Operation, TransferSyntax
from rpcqm.codec.ndr.classes import message
from rpcqm.codec.ndr.layout import Wire, alignment, open_end, scalar

MAXIMUM_FIELDS = 100_000
_MAXIMUM_DEPTH = 64
"""Bounds for forged stubs: no real one has as many fields, or nests as deep."""


@dataclass(frozen=True, slots=True)
class StubField:
    """One value: `offset` and `size` are in the stub data, `path` as one would write it in C."""

    offset: int
    size: int
    path: str
    value: Any


class StubWalk:
    """Walks over a stub, type by type; subclasses may look at more than `fields`."""

    def __init__(self, stub: bytes, wire: Wire) -> None:
        self.stub = stub
        self.wire = wire
        self.at = 0
        self.fields: list[StubField] = []
        self._deferred: list[Callable[[], None]] = []
        self._seen: set[int] = set()
        self._depth = 0

    # Plain values.

    def align(self, to: int) -> None:
        self.at = -(-self.at // to) * to

    def number(self, code: str, size: int) -> Any:
        if self.at + size > len(self.stub):
            raise DecodeError("the stub data end too early", self.at)
        (value,) = struct.unpack_from(self.wire.order + code, self.stub, self.at)
        self.at += size
        return value

    def word(self, path: str) -> int:
        """A count or a referent identifier."""
        self.align(self.wire.word)
        start = self.at
        value = int(self.number(self.wire.word_code, self.wire.word))
        self.add(start, path, value)
        return value

    def add(self, start: int, path: str, value: object) -> None:
        if len(self.fields) >= MAXIMUM_FIELDS:
            raise DecodeError("too many fields", start)
        self.fields.append(StubField(start, self.at - start, path, value))

    def octets(self, count: int, path: str) -> bytes:
        start = self.at
        if count < 0 or start + count > len(self.stub):
            raise DecodeError(f"{path} ends too early", start)
        self.at += count
        return self.stub[start : self.at]

    # Types.

    def message(self, operation: Operation, response: bool) -> None:
        """All parameters of a request or a response; raises DecodeError."""
        for parameter in message(operation.declaration, response).parameters:
            self.whole(parameter.type, parameter.name)

    def whole(self, made: Type, path: str) -> None:
        """An outermost value, and then what its pointers point to."""
        self._depth += 1
        if self._depth > _MAXIMUM_DEPTH:
            raise DecodeError("nested too deeply", self.at)
        outer, self._deferred = self._deferred, []
        if isinstance(made, StructureType) and open_end(made):
            self.structure(made, path, self.word(f"{path}.#maximum"))
        elif isinstance(made, Array | String) and made.conformant:
            self.counted(made, path, self.word(f"{path}.#maximum"))
        else:
            self.inline(made, path)
        while self._deferred:
            waiting, self._deferred = self._deferred, []
            for each in waiting:
                each()
        self._deferred = outer
        self._depth -= 1

    def inline(self, made: Type, path: str) -> None:
        """What stands in place of a value."""
        match made:
            case StructureType():
                self.structure(made, path, None)
            case Union():
                self.union(made, path)
            case Pointer():
                self.pointer(made, path)
            case InterfacePointer():
                self.interface_pointer(path)
            case WireMarshal():
                self.pointer(wire_form(made), path)
            case Array():
                self.counted(made, path, made.count or 0)
            case String():
                self.counted(made, path, made.count or 0)
            case _:
                self.scalar(made, path)

    def scalar(self, made: Type, path: str) -> None:
        code, size = scalar(made, self.wire) or ("B", 1)
        self.align(alignment(made, self.wire))
        start = self.at
        value = self.number(code, size)
        self.add(start, path, _shown(made, value, self.wire))

    def structure(self, made: StructureType, path: str, maximum: int | None) -> None:
        self.align(alignment(made, self.wire))
        for field in made.fields:
            inner = f"{path}.{field.name}"
            last = field is made.fields[-1]
            if last and maximum is not None and isinstance(field.type, Array | String):
                self.counted(field.type, inner, maximum)
            else:
                self.inline(field.type, inner)
        if self.wire.ndr64 and maximum is None:
            self.align(alignment(made, self.wire))

    def union(self, made: Union, path: str) -> None:
        if made.tag is None:
            raise DecodeError(f"{made.name} has no tag", self.at)
        if self.wire.ndr64:
            self.align(alignment(made, self.wire))
        code, size = scalar(made.tag, self.wire) or ("I", 4)
        self.align(alignment(made.tag, self.wire))
        start = self.at
        tag = self.number(code, size)
        self.add(start, f"{path}.#tag", tag)
        arms = [arm for arm in made.arms if tag in arm.labels]
        arm = arms[0] if arms else made.default
        if arm is None:
            raise DecodeError(f"no arm of {made.name} has the tag {tag}", start)
        if self.wire.ndr64 or self.wire.ms_union or made.ms_union:
            every = [each.type for each in made.arms if each.type]
            self.align(max((alignment(each, self.wire) for each in every), default=1))
        if arm.type is not None:
            self.inline(arm.type, f"{path}.{arm.name or 'value'}")

    def pointer(self, made: Pointer, path: str) -> None:
        identifier = self.word(f"{path}.#pointer")
        self._deferred.append(lambda: self.referent(made, identifier, path))

    def referent(self, made: Pointer, identifier: int, path: str) -> None:
        if made.kind is not PointerKind.REF and not identifier:
            return
        if made.kind is PointerKind.FULL:
            if identifier in self._seen:
                return
            self._seen.add(identifier)
        if isinstance(made.to, Pointer):
            inner = made.to
            following = self.word(f"{path}.#pointer")
            self.referent(inner, following, f"*{path}")
        else:
            self.whole(made.to, path)

    def interface_pointer(self, path: str) -> None:
        octets = Array(Integer("byte", 1, octet=True))
        size = Integer("unsigned long", 4)

        def referent() -> None:
            if identifier:
                maximum = self.word(f"{path}.#maximum")
                self.scalar(size, f"{path}.size")
                self.counted(octets, f"{path}.data", maximum)

        identifier = self.word(f"{path}.#pointer")
        self._deferred.append(referent)

    def counted(self, made: Array | String, path: str, count: int) -> None:
        """An array or string whose maximum count is known."""
        if isinstance(made, String) or made.varying:
            first = self.word(f"{path}.#offset")
            actual = self.word(f"{path}.#actual")
            if first or actual > max(count, 0):
                raise DecodeError(f"the counts of {path} are wrong", self.at)
            count = actual
        if isinstance(made, String):
            self.text(made.character.size, path, count, terminated=True)
        else:
            self.elements(made.element, path, count)

    def text(self, size: int, path: str, count: int, terminated: bool = False) -> None:
        start = self.at
        octets = self.octets(count * size, path)
        codec = "latin-1" if size == 1 else self.wire.utf16
        value = octets.decode(codec, "replace")
        self.add(start, path, value.removesuffix("\0") if terminated else value)

    def elements(self, element: Type, path: str, count: int) -> None:
        self.align(alignment(element, self.wire))
        start = self.at
        if isinstance(element, Integer) and element.octet:
            octets = self.octets(count, path)
            self.add(start, path, octets)
        elif isinstance(element, Integer) and element.character:
            self.text(element.size, path, count)
        else:
            for index in range(count):
                if self.at > len(self.stub):
                    raise DecodeError(f"{path} ends too early", self.at)
                self.inline(element, f"{path}[{index}]")


def _shown(made: Type, value: Any, wire: Wire) -> object:
    if isinstance(made, Guid):
        return UUID(bytes=value) if wire.big_endian else UUID(bytes_le=value)
    if isinstance(made, Enumeration):
        names = {number: name for name, number in made.values.items()}
        return names.get(value, value)
    return value


def stub_fields(
    operation: Operation,
    response: bool,
    syntax: TransferSyntax,
    stub: bytes,
    big_endian: bool = False,
) -> tuple[list[StubField], str]:
    """The fields of a stub in their order, and why there are no more, if something is wrong."""
    wire = Wire(syntax is TransferSyntax.NDR64, big_endian)
    walk = StubWalk(stub, wire)
    why = ""
    try:
        walk.message(operation, response)
    except DecodeError as error:
        why = str(error)
    if not why and walk.at < len(stub):
        rest, start = stub[walk.at :], walk.at
        walk.at = len(stub)
        walk.add(start, "#rest", rest)
    return walk.fields, why


Walk = TypeVar("Walk", bound=StubWalk)


def walked(
    make: Callable[[bytes, Wire], Walk],
    operation: Operation,
    response: bool,
    syntax: TransferSyntax,
    stub: bytes,
) -> Walk | None:
    """A walk over a whole little-endian stub; None if the stub is damaged."""
    walk = make(stub, Wire(syntax is TransferSyntax.NDR64))
    try:
        walk.message(operation, response)
    except DecodeError:
        return None
    return walk
