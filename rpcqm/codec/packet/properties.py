"""MessagePropertiesHeader: class, label, extension and body of a message; DebugHeader."""

import struct
from dataclasses import dataclass
from typing import Annotated, Self
from uuid import UUID

from rpcqm.base.errors import DecodeError
from rpcqm.codec.layout import (
    BitField,
    Bits,
    Buffer,
    Structure,
    UInt8,
    UInt16,
    UInt32,
    WireType,
    align4,
    decode_text,
    require,
    take,
)

MAXIMUM_LABEL_LENGTH = 249
_MAXIMUM_LABEL_ELEMENTS = MAXIMUM_LABEL_LENGTH + 1


@dataclass(frozen=True, slots=True)
class MessagePropertiesStart(Structure):
    """The fields of MessagePropertiesHeader before those that have no fixed size."""

    flags: UInt8
    label_length: UInt8
    message_class: UInt16
    correlation_id: Annotated[bytes, WireType("20s")]
    body_type: UInt32
    application_tag: UInt32
    message_size: UInt32
    allocation_body_size: UInt32
    privacy_level: UInt32
    hash_algorithm: UInt32
    encryption_algorithm: UInt32
    extension_size: UInt32


PROPERTIES_START = struct.Struct("<" + MessagePropertiesStart.reading())
PROPERTIES_HEADER_SIZE = PROPERTIES_START.size
_ALLOCATED = list(MessagePropertiesStart.formats()).index("allocation_body_size")
_SIZES = struct.Struct(
    "<" + MessagePropertiesStart.reading("label_length", "message_size", "extension_size")
)
_CLASS_AND_SIZES = struct.Struct(
    "<"
    + MessagePropertiesStart.reading(
        "label_length", "message_class", "message_size", "extension_size"
    )
)


def locate_properties(buffer: Buffer, offset: int) -> tuple[int, int, int, int, int]:
    """Where label, extension and body start, the body's size, where the padded header ends.

    Raises DecodeError when they do not lie within the buffer.
    """
    require(buffer, offset, PROPERTIES_HEADER_SIZE, "MessagePropertiesHeader")
    length, size, extension_size = _SIZES.unpack_from(buffer, offset)
    label = offset + PROPERTIES_HEADER_SIZE
    extension = label + 2 * length
    body = extension + extension_size
    end = align4(body + size - offset)
    require(buffer, offset, end, "MessagePropertiesHeader")
    return label, extension, body, size, offset + end


def class_and_size(buffer: Buffer, offset: int) -> tuple[int, int]:
    """The class and the body's size; raises DecodeError as `locate_properties` does."""
    require(buffer, offset, PROPERTIES_HEADER_SIZE, "MessagePropertiesHeader")
    kind, size, length = class_and_lengths(buffer, offset)
    require(buffer, offset, length, "MessagePropertiesHeader")
    return kind, size


def class_and_lengths(buffer: Buffer, offset: int) -> tuple[int, int, int]:
    """The class, the body's size, and that of the whole padded header, whose start is there."""
    length, kind, size, extension_size = _CLASS_AND_SIZES.unpack_from(buffer, offset)
    return kind, size, align4(PROPERTIES_HEADER_SIZE + 2 * length + extension_size + size)


def validate_properties(buffer: Buffer, offset: int) -> None:
    """Refuse, with a DecodeError, what breaks the rules of [MS-MQMQ] 2.2.19.3."""
    label, extension, _, size, _ = locate_properties(buffer, offset)
    if extension - label > 2 * _MAXIMUM_LABEL_ELEMENTS:
        raise DecodeError("label is too long", label)
    if extension > label:
        decode_text(buffer[label:extension], "label", label)
    if PROPERTIES_START.unpack_from(buffer, offset)[_ALLOCATED] < size:
        place = MessagePropertiesStart.place("allocation_body_size", offset)
        raise DecodeError("AllocationBodySize is smaller than MessageSize", place.start)


class DebugFlags(Bits):
    """DebugHeader.Flags: QT tells whether there is a queue."""

    QT = BitField(0, 2)


@dataclass(frozen=True, slots=True)
class DebugHeader:
    """The queue that trace messages go to ([MS-MQMQ] 2.2.20.8), there when QT is 1."""

    queue_identifier: UUID | None = None

    @classmethod
    def decode(cls, buffer: Buffer, offset: int = 0) -> tuple[Self, int]:
        """Read the header and tell where the next one starts; raises DecodeError."""
        require(buffer, offset, 4, "DebugHeader")
        kind = DebugFlags.from_bytes(buffer[offset : offset + 2], "little").QT
        if kind > 1:
            raise DecodeError(f"trace queue of type {kind}", offset)
        if kind == 0:
            return cls(), offset + 4
        guid = UUID(bytes_le=take(buffer, offset + 4, 16, "DebugHeader"))
        return cls(guid), offset + 20

    def encode(self) -> bytes:
        """The header's bytes."""
        if self.queue_identifier is None:
            return bytes(4)
        return b"\1\0\0\0" + self.queue_identifier.bytes_le
