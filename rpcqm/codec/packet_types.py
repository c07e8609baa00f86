"""Data types that packets share ([MS-MQMQ] 2.2.18.1), and two structures of administration."""

import functools
import ipaddress
import re
import struct
from dataclasses import dataclass
from typing import Annotated, Self
from uuid import UUID

from rpcqm.base.errors import DecodeError
from rpcqm.codec.layout import (
    NULL_GUID,
    Buffer,
    Guid,
    Int64,
    Structure,
    UInt32,
    WireType,
    require,
    take,
)

_MESSAGE_IDENTIFIER = re.compile(r"\{?([0-9A-Fa-f-]{36})\}?\\([0-9]{1,10})")


@functools.total_ordering
@dataclass(frozen=True, slots=True)
class TxSequenceID(Structure):
    """A sequence of transactional messages ([MS-MQMQ] 2.2.18.1.2).

    Sequences are ordered as one 64-bit number whose high half is the time stamp.
    """

    ordinal: UInt32 = 0
    timestamp: UInt32 = 0

    @property
    def value(self) -> int:
        """Both parts as one unsigned 64-bit number."""
        return self.timestamp << 32 | self.ordinal

    @classmethod
    def from_value(cls, value: int) -> Self:
        """The inverse of `value`."""
        return cls(value & 0xFFFFFFFF, value >> 32)

    def __lt__(self, other: "TxSequenceID") -> bool:
        return self.value < other.value


@dataclass(frozen=True, slots=True)
class MessageIdentifier(Structure):
    r"""Identifier of a message, {GUID of its source}\ordinal ([MS-MQMQ] 2.2.18.1.3).

    The same 20 bytes are an OBJECTID ([MS-MQMQ] 2.2.8): Lineage and Uniquifier.
    """

    queue_manager_guid: Guid = NULL_GUID
    ordinal: UInt32 = 0

    @classmethod
    def parse(cls, text: str) -> Self:
        r"""Read {GUID}\ordinal, its braces optional; raises ValueError."""
        match = _MESSAGE_IDENTIFIER.fullmatch(text)
        if not match or int(match[2]) > 0xFFFFFFFF:
            raise ValueError(f"{text!r} is no message identifier")
        return cls(UUID(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{{{self.queue_manager_guid}}}\\{self.ordinal}"


NULL_IDENTIFIER = MessageIdentifier()


@dataclass(frozen=True, slots=True)
class Xactuow(Structure):
    """Identifier of a transaction's unit of work ([MS-MQMQ] 2.2.18.1.8)."""

    rgb: Annotated[bytes, WireType("16s")]

    @property
    def is_null(self) -> bool:
        """Whether it stands for no transaction at all (G39)."""
        return not any(self.rgb)


@dataclass(frozen=True, slots=True)
class SequenceInfo(Structure):
    """Place of a message in a stream, as administrators see it ([MS-MQMQ] 2.2.5)."""

    seq_id: Int64 = 0
    seq_no: UInt32 = 0
    prev_no: UInt32 = 0


IP_ADDRESS_TYPE = 0x0001
IP_RAS_ADDRESS_TYPE = 0x0002
IPX_ADDRESS_TYPE = 0x0003
FOREIGN_ADDRESS_TYPE = 0x0005
_ADDRESS_SIZES = {
    IP_ADDRESS_TYPE: 4,
    IP_RAS_ADDRESS_TYPE: 4,
    IPX_ADDRESS_TYPE: 10,
    FOREIGN_ADDRESS_TYPE: 16,
}
_ADDRESS_HEADER = struct.Struct("<HH")


@dataclass(frozen=True, slots=True)
class TransportAddress:
    """One address of a queue manager, TA_ADDRESS ([MS-MQMQ] 2.2.4)."""

    address_type: int
    address: bytes

    @classmethod
    def ip(cls, text: str) -> Self:
        """An IPv4 address from its dotted form; raises ValueError."""
        return cls(IP_ADDRESS_TYPE, ipaddress.IPv4Address(text).packed)

    @classmethod
    def decode(cls, buffer: Buffer, offset: int = 0) -> tuple[Self, int]:
        """Read one address and tell where the next one starts; raises DecodeError."""
        require(buffer, offset, _ADDRESS_HEADER.size, "TA_ADDRESS")
        length, kind = _ADDRESS_HEADER.unpack_from(buffer, offset)
        if _ADDRESS_SIZES.get(kind) != length:
            raise DecodeError(f"TA_ADDRESS of type {kind} with {length} bytes", offset)
        start = offset + _ADDRESS_HEADER.size
        return cls(kind, take(buffer, start, length, "TA_ADDRESS")), start + length

    @classmethod
    def decode_all(cls, buffer: Buffer) -> tuple[Self, ...]:
        """Read a packed array, the layout of PROPID_QM_ADDRESS ([MS-MQMQ] 2.3.2.5)."""
        position, addresses = 0, []
        while position < len(buffer):
            address, position = cls.decode(buffer, position)
            addresses.append(address)
        return tuple(addresses)

    def encode(self) -> bytes:
        """The address's bytes; raises ValueError when its length does not fit its type."""
        if _ADDRESS_SIZES.get(self.address_type) != len(self.address):
            raise ValueError(f"{len(self.address)} bytes do not fit type {self.address_type}")
        return _ADDRESS_HEADER.pack(len(self.address), self.address_type) + self.address
