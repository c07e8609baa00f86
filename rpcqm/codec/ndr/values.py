"""The classes of decoded values, and what generated codecs call at run time."""

import enum
import functools
import itertools
import struct
import uuid
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar, dataclass_transform

from rpcqm.codec.idl.tree import OperationDeclaration


class NullPointer(enum.Enum):
    """The value of a pointer that is there and points to a null pointer."""

    NULL = 0

    def __repr__(self) -> str:
        return "NULL"


NULL: Final = NullPointer.NULL


@dataclass_transform(kw_only_default=True)
class Value:
    """A structure, a union, a request or a response: attributes named as in the IDL."""

    __slots__: tuple[str, ...] = ()

    if TYPE_CHECKING:

        def __init__(self, *tag_and_value: object, **fields: object) -> None: ...

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __repr__(self) -> str:
        parts = (f"{name}={getattr(self, name, ...)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({', '.join(parts)})"


class Result(Value):
    """For type checkers: a response that has nothing but what the operation returns."""

    result: int


ResponseT = TypeVar("ResponseT", bound=Value, covariant=True)


class OperationRequest(Value, Generic[ResponseT]):
    """What a call sends; `ResponseT` is what comes back.

    `interface_name` and `operation` are known for the requests of idl/, by `codec.types`.
    """

    __slots__ = ()
    interface_name: ClassVar[str]
    operation: ClassVar[OperationDeclaration]


REQUIRED: Final = object()


def value_class(
    name: str, fields: Iterable[tuple[str, object]], base: type[Value] = Value
) -> type[Value]:
    """A slotted class; its constructor takes each field by keyword.

    `fields` are pairs of a name and a default, or REQUIRED.
    """
    known = dict(fields)
    arguments = [n if d is REQUIRED else f"{n}={d!r}" for n, d in known.items()]
    signature = ", ".join(["self", *(["*", *arguments] if arguments else [])])
    body = "".join(f"\n    self.{n} = {n}" for n in known) or "\n    pass"
    return _make(name, tuple(known), f"def __init__({signature}):{body}\n", base)


def union_class(name: str) -> type[Value]:
    """A class of unions: `tag` and the `value` of the arm that it selects."""
    source = "def __init__(self, tag, value=None):\n    self.tag = tag\n    self.value = value\n"
    return _make(name, ("tag", "value"), source)


def _make(name: str, slots: tuple[str, ...], source: str, base: type[Value] = Value) -> type[Value]:
    """A class whose constructor is compiled when it is first called.

    Of the hundreds of classes a process makes objects of a few; decoders call no constructor.
    """

    def construct(value: Value, /, *positional: object, **named: object) -> None:
        members: dict[str, Any] = {}
        exec(compile(source, f"<{name}>", "exec"), {}, members)
        made.__init__ = members["__init__"]  # type: ignore[method-assign]
        made.__init__(value, *positional, **named)

    made: type[Value] = type(name, (base,), {"__slots__": slots, "__init__": construct})
    return made


@functools.lru_cache(maxsize=4096)
def guid(octets: bytes) -> uuid.UUID:
    """The UUID of 16 octets with little-endian fields."""
    return uuid.UUID(bytes_le=octets)


@functools.lru_cache(maxsize=256)
def guid_big_endian(octets: bytes) -> uuid.UUID:
    """The UUID of 16 octets with big-endian fields."""
    return uuid.UUID(bytes=octets)


def _swapped(source: str, target: str) -> Callable[[bytes], bytes]:
    unpack, pack = struct.Struct(source).unpack_from, struct.Struct(target).pack

    def swap(octets: bytes) -> bytes:
        return pack(*unpack(octets)) + octets[12:]

    return swap


# A context handle is attributes (4) and a UUID (4, 2, 2, 8): data with a byte order.  It is
# handed on in the form in which it was given out.
handle_big_endian = _swapped(">IIHH", "<IIHH")
handle_to_big_endian = _swapped("<IIHH", ">IIHH")


def referents() -> Callable[[], int]:
    """A source of referent identifiers, distinct within one stub."""
    return itertools.count(0x00020000, 4).__next__


class FullPointers:
    """Which values full pointers of one stub point to, so that aliases share an identifier."""

    __slots__ = ("_following", "_identifiers", "_unwritten")

    def __init__(self, following: Callable[[], int]) -> None:
        self._identifiers: dict[int, int] = {}
        self._unwritten: set[int] = set()
        self._following = following

    def refer(self, value: Value) -> int:
        """The identifier of a value, the same each time."""
        key = id(value)
        if key not in self._identifiers:
            self._identifiers[key] = self._following()
            self._unwritten.add(key)
        return self._identifiers[key]

    def first(self, value: Value) -> bool:
        """Whether the value has still to be written; true once."""
        if id(value) not in self._unwritten:
            return False
        self._unwritten.discard(id(value))
        return True
