"""What BinaryFormatter of .NET has written, read as data ([MS-NRBF]).

Objects become dictionaries of their members with the name of their class under "$class"; no class
is ever looked for. Depth, sizes and references are bounded by what the body itself holds.
"""

import datetime
import enum
import struct
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from rpcqm.base.errors import DecodeError

CLASS = "$class"
_DEEPEST = 64
_TICKS = (1 << 62) - 1


class _Record(enum.IntEnum):
    SerializedStreamHeader = 0
    ClassWithId = 1
    SystemClassWithMembers = 2
    ClassWithMembers = 3
    SystemClassWithMembersAndTypes = 4
    ClassWithMembersAndTypes = 5
    BinaryObjectString = 6
    BinaryArray = 7
    MemberPrimitiveTyped = 8
    MemberReference = 9
    ObjectNull = 10
    MessageEnd = 11
    BinaryLibrary = 12
    ObjectNullMultiple256 = 13
    ObjectNullMultiple = 14
    ArraySinglePrimitive = 15
    ArraySingleObject = 16
    ArraySingleString = 17


class _Kind(enum.IntEnum):
    """BinaryTypeEnumeration ([MS-NRBF] 2.1.2.2)."""

    Primitive = 0
    String = 1
    Object = 2
    SystemClass = 3
    Class = 4
    ObjectArray = 5
    StringArray = 6
    PrimitiveArray = 7


class _Reference:
    """A member that stands for an object which may come later."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


class _Nulls(int):
    """So many nulls in a row."""


_PRIMITIVES = {
    1: "?",
    2: "B",
    6: "d",
    7: "h",
    8: "i",
    9: "q",
    10: "b",
    11: "f",
    14: "H",
    15: "I",
    16: "Q",
}
_Layout = tuple[str, list[str], list[tuple[_Kind, int]] | None]


def decode_binary(body: bytes) -> Any:
    """The value, or the object, that a body holds; raises DecodeError."""
    try:
        return _Reader(body).whole()
    except (struct.error, UnicodeDecodeError, ValueError, IndexError, RecursionError) as error:
        raise DecodeError(f"not what BinaryFormatter writes: {error}") from error


class _Reader:
    def __init__(self, body: bytes) -> None:
        self._body = body
        self._offset = 0
        self._objects: dict[int, Any] = {}
        self._layouts: dict[int, _Layout] = {}
        self._depth = 0
        self._resolved: dict[int, Any] = {}

    # Octets

    def _take(self, size: int) -> bytes:
        if size < 0 or size > len(self._body) - self._offset:
            raise DecodeError("the body is cut off", self._offset)
        self._offset += size
        return self._body[self._offset - size : self._offset]

    def _unpack(self, code: str) -> Any:
        return struct.unpack(f"<{code}", self._take(struct.calcsize(f"<{code}")))[0]

    def _int(self) -> int:
        return int(self._unpack("i"))

    def _string(self) -> str:
        """LengthPrefixedString: seven bits of the length per octet."""
        length = 0
        for shift in range(0, 35, 7):
            octet = self._take(1)[0]
            length |= (octet & 0x7F) << shift
            if octet < 0x80:
                return self._take(length).decode()
        raise DecodeError("a length of more than five octets", self._offset)

    def _count(self) -> int:
        """Of elements; each takes at least one octet, or is part of a run of nulls."""
        count = self._int()
        if not 0 <= count <= len(self._body) * 256:
            raise DecodeError(f"{count} elements", self._offset)
        return count

    # Records

    def whole(self) -> Any:
        if self._take(1)[0] != _Record.SerializedStreamHeader:
            raise DecodeError("no SerializationHeaderRecord")
        root, *_ = struct.unpack("<4i", self._take(16))
        while self._body[self._offset] != _Record.MessageEnd:
            self._record()
        if root not in self._objects:
            raise DecodeError("the root object is not there")
        return self._resolve(self._objects[root], 0)

    def _record(self) -> Any:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise DecodeError("nested too deeply", self._offset)
        kind = _Record(self._take(1)[0])
        try:
            reader = _READERS.get(kind)
            if reader is None:
                raise DecodeError(f"{kind.name} is not expected here", self._offset)
            return reader(self)
        finally:
            self._depth -= 1

    def _library(self) -> Any:
        self._int()
        self._string()
        return self._record()

    def _class(self, typed: bool, system: bool) -> Any:
        number, name = self._int(), self._string()
        members = [self._string() for _ in range(self._count())]
        types = self._types(len(members)) if typed else None
        if not system:
            self._int()  # the library
        self._layouts[number] = (name, members, types)
        return self._members(number, self._layouts[number])

    def _types(self, count: int) -> list[tuple[_Kind, int]]:
        kinds = [_Kind(self._take(1)[0]) for _ in range(count)]
        return [(kind, self._additional(kind)) for kind in kinds]

    def _additional(self, kind: _Kind) -> int:
        if kind in (_Kind.Primitive, _Kind.PrimitiveArray):
            return self._take(1)[0]
        if kind in (_Kind.SystemClass, _Kind.Class):
            self._string()
            if kind is _Kind.Class:
                self._int()
        return 0

    def _class_again(self) -> Any:
        number, layout = self._int(), self._layouts.get(self._int())
        if layout is None:
            raise DecodeError("of a class that was not described", self._offset)
        return self._members(number, layout)

    def _members(self, number: int, layout: _Layout) -> dict[str, Any]:
        name, members, types = layout
        made: dict[str, Any] = {CLASS: name}
        self._objects[number] = made
        for index, member in enumerate(members):
            kind, primitive = types[index] if types is not None else (_Kind.Object, 0)
            made[member] = self._member(kind, primitive)
        return made

    def _member(self, kind: _Kind, primitive: int) -> Any:
        if kind is _Kind.Primitive:
            return self._primitive(primitive)
        value = self._record()
        return None if isinstance(value, _Nulls) else value

    def _object_string(self) -> str:
        number = self._int()
        self._objects[number] = text = self._string()
        return text

    def _primitive_array(self) -> Any:
        number, count, primitive = self._int(), self._count(), self._take(1)[0]
        if primitive == 2:
            self._objects[number] = octets = self._take(count)
            return octets
        self._objects[number] = values = [self._primitive(primitive) for _ in range(count)]
        return values

    def _array(self) -> list[Any]:
        number, count = self._int(), self._count()
        return self._elements(number, count, _Kind.Object, 0)

    def _binary_array(self) -> list[Any]:
        number, shape, rank = self._int(), self._take(1)[0], self._int()
        if not 1 <= rank <= 32:
            raise DecodeError(f"an array of {rank} dimensions", self._offset)
        count = 1
        for _ in range(rank):
            count *= self._count()
        if shape >= 3:
            self._take(4 * rank)  # the lower bounds
        kind = _Kind(self._take(1)[0])
        return self._elements(number, count, kind, self._additional(kind))

    def _elements(self, number: int, count: int, kind: _Kind, primitive: int) -> list[Any]:
        values: list[Any] = []
        self._objects[number] = values
        while len(values) < count:
            value = self._primitive(primitive) if kind is _Kind.Primitive else self._record()
            if isinstance(value, _Nulls):
                if not 0 < value <= count - len(values):
                    raise DecodeError("more nulls than elements", self._offset)
                values += [None] * value
            else:
                values.append(value)
        return values

    def _primitive(self, kind: int) -> Any:
        if kind in _PRIMITIVES:
            return self._unpack(_PRIMITIVES[kind])
        match kind:
            case 3:
                return self._character()
            case 5:
                return self._decimal()
            case 12:
                return datetime.timedelta(microseconds=self._unpack("q") // 10)
            case 13:
                return self._date()
            case 17:
                return None
            case 18:
                return self._string()
        raise DecodeError(f"a primitive of type {kind}", self._offset)

    def _character(self) -> str:
        first = self._body[self._offset] if self._offset < len(self._body) else 0
        size = 1 if first < 0x80 else 2 if first < 0xE0 else 3
        return self._take(size).decode()

    def _decimal(self) -> Decimal:
        try:
            return Decimal(self._string())
        except InvalidOperation as error:
            raise DecodeError("no decimal number", self._offset) from error

    def _date(self) -> datetime.datetime:
        ticks = self._unpack("Q") & _TICKS
        try:
            return datetime.datetime(1, 1, 1) + datetime.timedelta(microseconds=ticks // 10)
        except OverflowError as error:
            raise DecodeError("no date", self._offset) from error

    # References

    def _resolve(self, value: Any, depth: int) -> Any:
        """Put objects in the place of references, each object once."""
        if depth > _DEEPEST:
            raise DecodeError("references nested too deeply")
        if isinstance(value, _Reference):
            if value.number not in self._objects:
                raise DecodeError(f"there is no object {value.number}")
            return self._resolve(self._objects[value.number], depth + 1)
        if not isinstance(value, list | dict):
            return value
        if id(value) not in self._resolved:
            self._resolved[id(value)] = value
            self._fill(value, depth + 1)
            if isinstance(value, dict) and set(value) == {CLASS, "m_value"}:
                self._resolved[id(value)] = value["m_value"]  # a boxed System.Int32 and the like
        return self._resolved[id(value)]

    def _fill(self, value: list[Any] | dict[str, Any], depth: int) -> None:
        if isinstance(value, list):
            value[:] = [self._resolve(each, depth) for each in value]
        else:
            value.update((name, self._resolve(each, depth)) for name, each in value.items())


_READERS: dict[_Record, Callable[[_Reader], Any]] = {
    _Record.ClassWithId: _Reader._class_again,
    _Record.SystemClassWithMembers: lambda reader: reader._class(False, True),
    _Record.ClassWithMembers: lambda reader: reader._class(False, False),
    _Record.SystemClassWithMembersAndTypes: lambda reader: reader._class(True, True),
    _Record.ClassWithMembersAndTypes: lambda reader: reader._class(True, False),
    _Record.BinaryObjectString: _Reader._object_string,
    _Record.BinaryArray: _Reader._binary_array,
    _Record.MemberPrimitiveTyped: lambda reader: reader._primitive(reader._take(1)[0]),
    _Record.MemberReference: lambda reader: _Reference(reader._int()),
    _Record.ObjectNull: lambda reader: _Nulls(1),
    _Record.BinaryLibrary: _Reader._library,
    _Record.ObjectNullMultiple256: lambda reader: _Nulls(reader._take(1)[0]),
    _Record.ObjectNullMultiple: lambda reader: _Nulls(reader._int()),
    _Record.ArraySinglePrimitive: _Reader._primitive_array,
    _Record.ArraySingleObject: _Reader._array,
    _Record.ArraySingleString: _Reader._array,
}
