"""Bodies written by BinaryFormatter of .NET, read as data ([MS-NRBF]).

Objects become dictionaries of their members with the name of their class under "$class"; no class
is ever looked up. Objects that wrap one value, such as a DateTime, become that value (G444). An
object that holds itself has a number under "$id", and is {"$ref": number} within itself (G444).
Size is bounded before anything is decoded (G102, G395): a few octets can name an array of billions
of nulls, or objects that refer to each other without end.
"""

import enum
import struct
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from rpcqm.base.errors import DecodeError
from rpcqm.codec.bodies.budget import BudgetError, DecodeBudget, told_size
from rpcqm.codec.bodies.dotnet_values import CLASS as CLASS
from rpcqm.codec.bodies.dotnet_values import date_of, duration_of, value_of_object

IDENTIFIER, REFERENCE = "$id", "$ref"
MAXIMUM_DEPTH = 64
"""Objects and arrays of .NET within each other.

Bound `body.dotnet_depth` [levels]: the body is refused with an error before anything is made of it.
"""
_DECIMAL_DIGITS = 29


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
    """A member that refers to an object which may come later."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


class _Nulls(int):
    """A number of nulls in a row."""


class _Whole(NamedTuple):
    """An object without references; the values and octets of its JSON, and its depth.

    Numbers and the like count as values alone, since each has a few octets.
    """

    value: Any
    values: int
    octets: int
    height: int


_UNDERWAY = _Whole(None, 0, 0, 0)
"""Marks an object that is being put together."""


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
_STRUCTS = {kind: struct.Struct(f"<{code}") for kind, code in _PRIMITIVES.items()}
_INT, _TICK_COUNT, _DATE = struct.Struct("<i"), struct.Struct("<q"), struct.Struct("<Q")
_Layout = tuple[str, list[str], list[tuple[_Kind, int]] | None]
_NULL_OCTETS = len("null,")


def decode_binary(body: bytes, budget: DecodeBudget | None = None) -> Any:
    """The value, or the object, in a body.

    Raises DecodeError, also for a body with more than MAXIMUM_DEPTH levels or with an array that
    holds itself (G102), and BudgetError for one that exceeds its `budget`.
    """
    try:
        return _DotNetReader(body, budget or DecodeBudget(len(body))).whole()
    except (struct.error, ValueError, IndexError, OverflowError, RecursionError) as error:
        raise DecodeError(f"not what BinaryFormatter writes: {error}") from error


class _DotNetReader:
    def __init__(self, body: bytes, budget: DecodeBudget) -> None:
        self._body = body
        self._offset = 0
        self._objects: dict[int, object] = {}
        self._layouts: dict[int, _Layout] = {}
        self._depth = 0
        self._budget = budget
        self._resolved: dict[int, _Whole] = {}
        self._identified: dict[int, int] = {}

    # Octets

    def _take(self, size: int) -> bytes:
        if size < 0 or size > len(self._body) - self._offset:
            raise DecodeError("the body is cut off", self._offset)
        self._offset += size
        return self._body[self._offset - size : self._offset]

    def _unpack(self, layout: struct.Struct) -> Any:
        return layout.unpack(self._take(layout.size))[0]

    def _int(self) -> int:
        return int(self._unpack(_INT))

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
        """A number of elements that the rest of the body can hold."""
        count = self._int()
        if count < 0:
            raise DecodeError(f"{count} elements", self._offset)
        self._check_room(count)
        return count

    def _check_room(self, count: int) -> None:
        if count > self._budget.left:
            raise BudgetError(f"it has {count} elements, more than are made of a body of its size")

    def _enter(self) -> None:
        """Enter an object or an array; its end restores `_depth`."""
        self._depth += 1
        if self._depth > MAXIMUM_DEPTH:
            raise DecodeError("nested too deeply", self._offset)

    # Records

    def whole(self) -> Any:
        if self._take(1)[0] != _Record.SerializedStreamHeader:
            raise DecodeError("no SerializationHeaderRecord")
        root, *_ = struct.unpack("<4i", self._take(16))
        while self._body[self._offset] != _Record.MessageEnd:
            self._budget.spend(1)
            self._record()
        if root not in self._objects:
            raise DecodeError("the root object is not there")
        return self._resolve(self._objects[root], 0).value

    def _record(self) -> object:
        kind = self._take(1)[0]
        while kind == _Record.BinaryLibrary:
            self._budget.spend(1)
            self._int()
            self._string()
            kind = self._take(1)[0]
        reader = _READERS.get(kind)
        if reader is None:
            raise DecodeError(f"{_Record(kind).name} is not expected here", self._offset)
        return reader(self)

    def _class(self, typed: bool, system: bool) -> object:
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

    def _class_again(self) -> object:
        number, layout = self._int(), self._layouts.get(self._int())
        if layout is None:
            raise DecodeError("of a class that was not described", self._offset)
        return self._members(number, layout)

    def _members(self, number: int, layout: _Layout) -> dict[str, object]:
        name, members, types = layout
        self._budget.spend(len(members) + 1)
        self._enter()
        made: dict[str, object] = {CLASS: name}
        self._objects[number] = made
        for index, member in enumerate(members):
            kind, primitive = types[index] if types is not None else (_Kind.Object, 0)
            made[member] = self._member(kind, primitive)
        self._depth -= 1
        return made

    def _member(self, kind: _Kind, primitive: int) -> object:
        if kind is _Kind.Primitive:
            return self._primitive(primitive)
        value = self._record()
        return None if isinstance(value, _Nulls) else value

    def _object_string(self) -> str:
        number = self._int()
        self._objects[number] = text = self._string()
        return text

    def _primitive_array(self) -> object:
        number, count, primitive = self._int(), self._int(), self._take(1)[0]
        if primitive == _OCTET:
            self._objects[number] = octets = self._take(count)
            return octets
        if count < 0:
            raise DecodeError(f"{count} elements", self._offset)
        self._budget.spend(count)
        values: list[object]
        if code := _PRIMITIVES.get(primitive):
            octets = self._take(count * _STRUCTS[primitive].size)
            values = list(struct.unpack(f"<{count}{code}", octets))
        else:
            values = [self._primitive(primitive) for _ in range(count)]
        self._objects[number] = values
        return values

    def _array(self) -> list[object]:
        number, count = self._int(), self._count()
        return self._elements(number, count, _Kind.Object, 0)

    def _binary_array(self) -> list[object]:
        number, shape, rank = self._int(), self._take(1)[0], self._int()
        if not 1 <= rank <= 32:
            raise DecodeError(f"an array of {rank} dimensions", self._offset)
        count = 1
        for _ in range(rank):
            count *= self._count()
            self._check_room(count)
        if shape >= 3:
            self._take(4 * rank)  # the lower bounds
        kind = _Kind(self._take(1)[0])
        return self._elements(number, count, kind, self._additional(kind))

    def _elements(self, number: int, count: int, kind: _Kind, primitive: int) -> list[object]:
        self._budget.spend(count + 1)
        self._enter()
        values: list[object] = []
        self._objects[number] = values
        while len(values) < count:
            value = self._primitive(primitive) if kind is _Kind.Primitive else self._record()
            if isinstance(value, _Nulls):
                if not 0 < value <= count - len(values):
                    raise DecodeError("more nulls than elements", self._offset)
                values += [None] * value
            else:
                values.append(value)
        self._depth -= 1
        return values

    def _primitive(self, kind: int) -> object:
        if kind in _STRUCTS:
            return self._unpack(_STRUCTS[kind])
        match kind:
            case 3:
                return self._character()
            case 5:
                return self._decimal()
            case 12:
                return duration_of(self._unpack(_TICK_COUNT))
            case 13:
                return date_of(self._unpack(_DATE))
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
        """A System.Decimal: 29 digits at most, never an exponent that takes memory to write out."""
        try:
            number = Decimal(self._string())
        except InvalidOperation as error:
            raise DecodeError("no decimal number", self._offset) from error
        if not number.is_finite() or abs(number.adjusted()) > _DECIMAL_DIGITS:
            raise DecodeError("no decimal number", self._offset)
        return number

    # References

    def _resolve(self, value: object, depth: int) -> _Whole:
        """Replace references by objects, each object once.

        An object counts as often as it is referred to, because JSON repeats it.
        """
        number = 0
        if isinstance(value, _Reference):
            number = value.number
            if number not in self._objects:
                raise DecodeError(f"there is no object {number}")
            value = self._objects[number]
        if isinstance(value, str | bytes):
            return self._resolved_text(value)
        if not isinstance(value, list | dict):
            return _Whole(value, 1, 0, 0)
        found = self._resolved.get(id(value))
        if found is _UNDERWAY:
            return self._reference_back(value, number)
        if found is None:
            self._resolved[id(value)] = _UNDERWAY
            found = self._resolved[id(value)] = self._filled(value, depth + 1)
        if depth + found.height > MAXIMUM_DEPTH:
            raise DecodeError("references nested too deeply")
        return found

    def _resolved_text(self, value: str | bytes) -> _Whole:
        """A text, or octets, which become Base64; each is measured once."""
        found = self._resolved.get(id(value))
        if found is None:
            octets = told_size(value) if isinstance(value, str) else 4 * len(value) // 3
            found = self._resolved[id(value)] = _Whole(value, 1, octets, 0)
        return found

    def _filled(self, value: Any, depth: int) -> _Whole:
        """A list or a dictionary whose members have been resolved in their places."""
        if depth > MAXIMUM_DEPTH:
            raise DecodeError("references nested too deeply")
        values, octets, height = 1 + len(value), 0, 0
        if isinstance(value, dict):
            octets = sum(map(len, value))
        else:
            octets = _NULL_OCTETS * value.count(None)
        for place, each in enumerate(value) if isinstance(value, list) else value.items():
            if type(each) in _MEASURED:
                inner = self._resolve(each, depth)
                value[place] = inner.value
                values, octets = values + inner.values - 1, octets + inner.octets
                height = max(height, inner.height)
        self._budget.check(values, octets)
        if isinstance(value, dict):
            value = self._finished(value)
        return _Whole(value, values, octets, height + 1)

    def _reference_back(self, value: object, number: int) -> _Whole:
        """The marker for an object within itself."""
        if not isinstance(value, dict):
            raise DecodeError("an array holds itself")
        self._identified[id(value)] = number
        return _Whole({REFERENCE: number}, 3, len(REFERENCE), 1)

    def _finished(self, members: dict[str, object]) -> object:
        """An object with all its members, or the value that it wraps."""
        number = self._identified.get(id(members))
        if number is None:
            return value_of_object(members)
        others = members.copy()
        members.clear()
        members.update({CLASS: others.pop(CLASS), IDENTIFIER: number, **others})
        return members


_MEASURED = frozenset({list, dict, str, bytes, _Reference})
_OCTET = 2
"""Byte ([MS-NRBF] 2.1.2.3): arrays of it are octets."""

_READERS: dict[int, Callable[[_DotNetReader], object]] = {
    _Record.ClassWithId: _DotNetReader._class_again,
    _Record.SystemClassWithMembers: lambda reader: reader._class(False, True),
    _Record.ClassWithMembers: lambda reader: reader._class(False, False),
    _Record.SystemClassWithMembersAndTypes: lambda reader: reader._class(True, True),
    _Record.ClassWithMembersAndTypes: lambda reader: reader._class(True, False),
    _Record.BinaryObjectString: _DotNetReader._object_string,
    _Record.BinaryArray: _DotNetReader._binary_array,
    _Record.MemberPrimitiveTyped: lambda reader: reader._primitive(reader._take(1)[0]),
    _Record.MemberReference: lambda reader: _Reference(reader._int()),
    _Record.ObjectNull: lambda reader: _Nulls(1),
    _Record.ObjectNullMultiple256: lambda reader: _Nulls(reader._take(1)[0]),
    _Record.ObjectNullMultiple: lambda reader: _Nulls(reader._int()),
    _Record.ArraySinglePrimitive: _DotNetReader._primitive_array,
    _Record.ArraySingleObject: _DotNetReader._array,
    _Record.ArraySingleString: _DotNetReader._array,
}
