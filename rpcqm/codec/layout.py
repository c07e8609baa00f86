"""Building blocks of binary structures: bounded reading, bit fields and fixed layouts.

A fixed layout is a frozen, slotted dataclass whose annotations stand in wire order:

    @dataclass(frozen=True, slots=True)
    class TxSequenceID(Structure):
        ordinal: UInt32
        timestamp: UInt32

All of MSMQ's packets are little-endian ([MS-MQMQ] 2.2.18). Reading never looks beyond the
buffer: what is cut off or contradicts itself is a DecodeError.
"""

import struct
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, Self
from uuid import UUID

from rpcqm.base.errors import DecodeError

Buffer = bytes | bytearray | memoryview

NULL_GUID = UUID(int=0)


def require(buffer: Buffer, offset: int, size: int, what: str) -> None:
    """Raise DecodeError unless the buffer holds `size` bytes at `offset`."""
    if offset + size > len(buffer):
        raise DecodeError(f"{what} is cut off: {len(buffer) - offset} of {size} bytes", offset)


def take(buffer: Buffer, offset: int, size: int, what: str) -> bytes:
    """Copy `size` bytes at `offset`; raises DecodeError if the buffer ends before."""
    require(buffer, offset, size, what)
    return bytes(buffer[offset : offset + size])


def align4(offset: int) -> int:
    """The next multiple of four."""
    return (offset + 3) & ~3


def padded(data: bytes) -> bytes:
    """Zero bytes behind `data` up to the next multiple of four."""
    return data + bytes(-len(data) & 3)


def encode_text(text: str) -> bytes:
    """UTF-16 with its terminating null character."""
    return (text + "\0").encode("utf-16-le", "surrogatepass")


def decode_text(raw: Buffer, what: str, offset: int | None = None) -> str:
    """A string without its null character; raises DecodeError if it does not end with one.

    Characters behind the first null are refused as well, because no peer may see another name than
    we do.
    """
    try:
        text = bytes(raw).decode("utf-16-le", "surrogatepass")
    except UnicodeDecodeError as error:
        raise DecodeError(f"{what} is not UTF-16", offset) from error
    if text.find("\0") != len(text) - 1 or not text:
        raise DecodeError(f"{what} does not end with its only null character", offset)
    return text[:-1]


class BitField:
    """A field of `width` bits at bit `offset`, counted from the least significant bit."""

    __slots__ = ("bits", "mask", "offset")

    def __init__(self, offset: int, width: int = 1) -> None:
        self.offset = offset
        self.mask = (1 << width) - 1
        self.bits = self.mask << offset

    def octet(self, flags: "slice[int, int, None]") -> tuple[int, int]:
        """The octet that holds the field when its flags begin at `flags`, and its bits there."""
        octet, offset = divmod(self.offset, 8)
        return flags.start + octet, self.mask << offset

    @typing.overload
    def __get__(self, bits: None, owner: type) -> Self: ...
    @typing.overload
    def __get__(self, bits: int, owner: type) -> int: ...
    def __get__(self, bits: int | None, owner: type) -> "int | BitField":
        return self if bits is None else int(bits) >> self.offset & self.mask


class Bits(int):
    """An integer whose bit fields have names; subclasses list them as BitField attributes."""

    __slots__ = ()
    _fields: ClassVar[dict[str, BitField]] = {}

    def __init_subclass__(cls) -> None:
        members = vars(cls).items()
        cls._fields = {name: field for name, field in members if isinstance(field, BitField)}

    @classmethod
    def of(cls, **fields: int) -> Self:
        """Combine fields by name; raises ValueError for a value that does not fit."""
        return cls(0).replace(**fields)

    def replace(self, **fields: int) -> Self:
        """The same bits with some fields changed."""
        bits = int(self)
        for name, value in fields.items():
            field = self._fields[name]
            if not 0 <= value <= field.mask:
                raise ValueError(f"{type(self).__name__}.{name} cannot hold {value}")
            bits = bits & ~field.bits | value << field.offset
        return type(self)(bits)

    def __repr__(self) -> str:
        shown = [f"{name}={value}" for name in self._fields if (value := getattr(self, name))]
        return f"{type(self).__name__}({', '.join(shown)})"


_Convert = Callable[[Any], Any]


class WireType(NamedTuple):
    """A field's form on the wire: its `struct` format and its conversions."""

    format: str
    decode: _Convert | None = None
    encode: _Convert | None = None


def _guid_from_wire(raw: bytes) -> UUID:
    return UUID(bytes_le=raw)


def _guid_to_wire(value: UUID) -> bytes:
    return value.bytes_le


UInt8 = Annotated[int, WireType("B")]
UInt16 = Annotated[int, WireType("H")]
UInt32 = Annotated[int, WireType("I")]
Int64 = Annotated[int, WireType("q")]
Guid = Annotated[UUID, WireType("16s", _guid_from_wire, _guid_to_wire)]


class Structure:
    """A fixed layout, made from the annotations of a dataclass; see the module's text."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __init__(self, *values: object, **fields: object) -> None: ...

    @classmethod
    def size(cls) -> int:
        """Bytes on the wire."""
        return _layout_of(cls).packer.size

    @classmethod
    def formats(cls) -> dict[str, str]:
        """The `struct` formats of the fields by their names, in wire order."""
        return _layout_of(cls).formats

    @classmethod
    def place(cls, name: str, start: int = 0) -> "slice[int, int, None]":
        """The slice of a field in a buffer in which the structure begins at `start`."""
        formats = cls.formats()
        before = list(formats)[: list(formats).index(name)]
        begin = start + struct.calcsize("<" + "".join(formats[each] for each in before))
        return slice(begin, begin + struct.calcsize("<" + formats[name]))

    @classmethod
    def reading(cls, *names: str) -> str:
        """The `struct` format that reads these fields, or all, and skips the others."""
        return "".join(
            code if not names or name in names else f"{struct.calcsize('<' + code)}x"
            for name, code in cls.formats().items()
        )

    @classmethod
    def decode(cls, buffer: Buffer, offset: int = 0) -> Self:
        """Read one structure at `offset`; raises DecodeError when it is cut off."""
        layout = _layout_of(cls)
        require(buffer, offset, layout.packer.size, cls.__name__)
        values = list(layout.packer.unpack_from(buffer, offset))
        for index, convert in layout.decoders:
            values[index] = convert(values[index])
        return cls(*values)

    def encode(self) -> bytes:
        """The structure's bytes; raises ValueError for a value that its field cannot hold."""
        layout = _layout_of(type(self))
        values = [getattr(self, name) for name in layout.formats]
        for index, convert in layout.encoders:
            values[index] = convert(values[index])
        try:
            return layout.packer.pack(*values)
        except struct.error as error:
            raise ValueError(f"{type(self).__name__}: {error}") from error


class _Layout(NamedTuple):
    packer: struct.Struct
    formats: dict[str, str]
    decoders: tuple[tuple[int, _Convert], ...]
    encoders: tuple[tuple[int, _Convert], ...]


_layouts: dict[type, _Layout] = {}


def _layout_of(kind: type) -> _Layout:
    layout = _layouts.get(kind)
    if layout is None:
        layout = _layouts[kind] = _compile(kind)
    return layout


def _compile(kind: type) -> _Layout:
    hints = typing.get_type_hints(kind, include_extras=True)
    wire = [_wire_type(hint) for hint in hints.values()]
    return _Layout(
        struct.Struct("<" + "".join(field.format for field in wire)),
        {name: field.format for name, field in zip(hints, wire, strict=True)},
        tuple((index, field.decode) for index, field in enumerate(wire) if field.decode),
        tuple((index, field.encode) for index, field in enumerate(wire) if field.encode),
    )


def _wire_type(hint: Any) -> WireType:
    if isinstance(hint, type) and issubclass(hint, Structure):
        return WireType(f"{hint.size()}s", hint.decode, Structure.encode)
    wire = hint.__metadata__[0]
    if isinstance(wire, str):
        wire = WireType(wire)
    if wire.decode is None and hint.__origin__ not in (int, bytes):
        return WireType(wire.format, hint.__origin__)
    return typing.cast(WireType, wire)
