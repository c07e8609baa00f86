"""MultiQueueFormatHeader: all queues that a message went to, and their companions."""

import struct
from dataclasses import dataclass
from typing import Self
from uuid import UUID

from rpcqm.base.errors import DecodeError
from rpcqm.codec.layout import (
    Buffer,
    align4,
    decode_text,
    encode_text,
    padded,
    require,
    take,
)
from rpcqm.codec.names.format_name import DistributionListName, FormatName, direct_from_wire
from rpcqm.codec.packet.user import PrivateQueueFormatName
from rpcqm.codec.types.mqvalues import FormatNameType

DESTINATION_ID = 0x0064
ADMIN_ID = 0x00C8
RESPONSE_ID = 0x012C
SIGNATURE_ID = 0x015E

ADDRESS_START = struct.Struct("<IHHI")
_SIGNATURE_START = struct.Struct("<HHI")
MAXIMUM_ELEMENTS = 4096  # our own bound: no application names so many queues

_PUBLIC = FormatNameType.QUEUE_FORMAT_TYPE_PUBLIC
_PRIVATE = FormatNameType.QUEUE_FORMAT_TYPE_PRIVATE
_DIRECT = FormatNameType.QUEUE_FORMAT_TYPE_DIRECT
_DL = FormatNameType.QUEUE_FORMAT_TYPE_DL


@dataclass(frozen=True, slots=True)
class MQFAddressHeader:
    """A list of queue names ([MS-MQMQ] 2.2.20.2); `header_id` tells what they are.

    Its elements are MQFFormatNameElements (2.2.18.1.4): a type, then the name, which starts at
    the next multiple of four for names with a GUID.
    """

    header_id: int
    format_name_list: tuple[FormatName, ...] = ()

    @classmethod
    def decode(cls, buffer: Buffer, offset: int = 0) -> tuple[Self, int]:
        """Read the header and tell where the next one starts; raises DecodeError."""
        end = locate_address(buffer, offset)
        size, number, _, count = ADDRESS_START.unpack_from(buffer, offset)
        raw = take(buffer, offset, size, "MQFAddressHeader")
        if count > MAXIMUM_ELEMENTS:
            raise DecodeError(f"{count} queue names", offset)
        position, names = ADDRESS_START.size, []
        for _ in range(count):
            name, position = _decode_element(raw, position)
            names.append(name)
        return cls(number, tuple(names)), end

    def encode(self) -> bytes:
        """The header's bytes; raises ValueError for names that no list can hold."""
        body = encode_format_name_list(self.format_name_list)
        size = ADDRESS_START.size + len(body)
        return ADDRESS_START.pack(size, self.header_id, 0, len(self.format_name_list)) + body


def encode_format_name_list(names: tuple[FormatName, ...]) -> bytes:
    """The bytes of FormatNameList, which starts at a multiple of four; raises ValueError."""
    raw = bytearray()
    for name in names:
        raw += _encode_element(name, len(raw))
    return padded(bytes(raw))


def locate_address(buffer: Buffer, offset: int) -> int:
    """Where the header ends, its padding included; raises DecodeError."""
    require(buffer, offset, ADDRESS_START.size, "MQFAddressHeader")
    size = int.from_bytes(buffer[offset : offset + 4], "little")
    if size < ADDRESS_START.size:
        raise DecodeError(f"MQFAddressHeader of {size} bytes", offset)
    require(buffer, offset, align4(size), "MQFAddressHeader")
    return offset + align4(size)


def _decode_element(raw: bytes, offset: int) -> tuple[FormatName, int]:
    kind = int.from_bytes(take(raw, offset, 2, "queue name"), "little")
    if kind == _DIRECT:
        return _decode_direct(raw, offset + 2)
    start = align4(offset + 2)
    guid = UUID(bytes_le=take(raw, start, 16, "queue name"))
    if kind == _PUBLIC:
        return FormatName(_PUBLIC, guid), start + 16
    if kind == _DL:
        return FormatName(_DL, DistributionListName(guid)), start + 16
    if kind == _PRIVATE:
        number = int.from_bytes(take(raw, start + 16, 4, "queue name"), "little")
        return FormatName(_PRIVATE, PrivateQueueFormatName(guid, number)), start + 20
    raise DecodeError(f"queue name of type {kind}", offset)


def _decode_direct(raw: bytes, offset: int) -> tuple[FormatName, int]:
    end = raw.find(b"\0\0", offset)
    while (end - offset) & 1 and end >= 0:
        end = raw.find(b"\0\0", end + 1)
    if end < 0:
        raise DecodeError("direct queue name without its end", offset)
    return direct_from_wire(decode_text(raw[offset : end + 2], "direct name", offset)), end + 2


def _encode_element(name: FormatName, offset: int) -> bytes:
    value = name.value
    if isinstance(value, str):
        return _DIRECT.to_bytes(2, "little") + encode_text(value)
    if isinstance(value, PrivateQueueFormatName):
        owner, number = value
        body = owner.bytes_le + number.to_bytes(4, "little")
    elif isinstance(value, DistributionListName):
        body = value.guid.bytes_le
    elif name.type == _PUBLIC and isinstance(value, UUID):
        body = value.bytes_le
    else:
        raise ValueError(f"{name} cannot stand in a list of queues")
    return name.type.to_bytes(2, "little") + bytes(-(offset + 2) & 3) + body


@dataclass(frozen=True, slots=True)
class MQFSignatureHeader:
    """A signature over a message with several destinations ([MS-MQMQ] 2.2.20.3)."""

    signature: bytes = b""

    @classmethod
    def decode(cls, buffer: Buffer, offset: int = 0) -> tuple[Self, int]:
        """Read the header and tell where it ends; raises DecodeError."""
        end = locate_signature(buffer, offset)
        return cls(bytes(buffer[offset + _SIGNATURE_START.size : end])), end

    def encode(self) -> bytes:
        """The header's bytes, without padding."""
        return _SIGNATURE_START.pack(SIGNATURE_ID, 0, len(self.signature)) + self.signature


def locate_signature(buffer: Buffer, offset: int) -> int:
    """Where the signature ends; raises DecodeError."""
    require(buffer, offset, _SIGNATURE_START.size, "MQFSignatureHeader")
    number = int.from_bytes(buffer[offset : offset + 2], "little")
    size = int.from_bytes(buffer[offset + 4 : offset + 8], "little")
    if number != SIGNATURE_ID:
        raise DecodeError(f"MQFSignatureHeader with the number 0x{number:04X}", offset)
    require(buffer, offset + _SIGNATURE_START.size, size, "MQFSignatureHeader")
    return offset + _SIGNATURE_START.size + size


@dataclass(frozen=True, slots=True)
class MultiQueueFormatHeader:
    """[MS-MQMQ] 2.2.20.1."""

    destination: tuple[FormatName, ...] = ()
    administration: tuple[FormatName, ...] = ()
    response: tuple[FormatName, ...] = ()
    signature: bytes = b""

    @classmethod
    def decode(cls, buffer: Buffer, offset: int = 0) -> tuple[Self, int]:
        """Read the header and tell where it ends; raises DecodeError."""
        names: list[tuple[FormatName, ...]] = []
        for number in (DESTINATION_ID, ADMIN_ID, RESPONSE_ID):
            header, end = MQFAddressHeader.decode(buffer, offset)
            if header.header_id != number:
                raise DecodeError(f"queue list 0x{header.header_id:04X}", offset)
            names.append(header.format_name_list)
            offset = end
        signature, end = MQFSignatureHeader.decode(buffer, offset)
        return cls(names[0], names[1], names[2], signature.signature), end

    def encode(self) -> bytes:
        """The header's bytes, without padding; raises ValueError for names it cannot hold."""
        return b"".join(
            (
                MQFAddressHeader(DESTINATION_ID, self.destination).encode(),
                MQFAddressHeader(ADMIN_ID, self.administration).encode(),
                MQFAddressHeader(RESPONSE_ID, self.response).encode(),
                MQFSignatureHeader(self.signature).encode(),
            )
        )


def locate_multi_queue(buffer: Buffer, offset: int) -> tuple[tuple[int, int, int, int], int]:
    """Where the three lists and the signature start and the header ends; raises DecodeError."""
    admin = locate_address(buffer, offset)
    response = locate_address(buffer, admin)
    signature = locate_address(buffer, response)
    return (offset, admin, response, signature), locate_signature(buffer, signature)
