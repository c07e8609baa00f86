"""What a remote reader gets: a message packet and the headers that [MS-MQRR] 2.2.5 adds."""

import ipaddress
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, NamedTuple, Self, TypeVar

from rpcqm.base.errors import DecodeError
from rpcqm.codec.layout import (
    BitField,
    Bits,
    Buffer,
    Structure,
    UInt16,
    UInt32,
    WireType,
    decode_text,
    encode_text,
    padded,
    require,
)
from rpcqm.codec.names.path_name import MAXIMUM_SUBQUEUE_NAME
from rpcqm.codec.packet.base import SESSION_HEADER_SIZE, BaseFlags
from rpcqm.codec.packet.fields import (
    DESTINATION_TYPE,
    QUEUE_MANAGER_ADDRESS,
    QUEUE_TYPE,
    SOURCE_QUEUE_MANAGER,
    TIME_TO_REACH_QUEUE,
    head_reader,
)
from rpcqm.codec.packet.patch import absolute_time_to_reach_queue
from rpcqm.codec.packet.user import QueueFormatType

IP_ADDRESS_TYPE = 0x0001
IPV6_ADDRESS_TYPE = 0x0006
_NAME_FIELD_SIZE = 64


def _name_to_wire(name: str) -> bytes:
    if len(name.encode("utf-16-le")) > 2 * MAXIMUM_SUBQUEUE_NAME:
        raise ValueError(f"{name!r} is longer than {MAXIMUM_SUBQUEUE_NAME} characters")
    return name.encode("utf-16-le").ljust(_NAME_FIELD_SIZE, b"\0")


def _name_from_wire(raw: bytes) -> str:
    text = raw.decode("utf-16-le", "surrogatepass")
    name, null, _ = text.partition("\0")
    if not null:
        raise DecodeError("subqueue name without its null character")
    return name


SubqueueName = Annotated[str, WireType("64s", _name_from_wire, _name_to_wire)]


class ExtensionFlags(Bits):
    """ExtensionHeader.Flags: dead-letter header, subqueue header, dead letter invalid, address."""

    DL = BitField(0)
    SQ = BitField(1)
    DI = BitField(3)
    EA = BitField(4)


@dataclass(frozen=True, slots=True)
class ExtensionHeader(Structure):
    """[MS-MQRR] 2.2.5.2."""

    header_size: UInt32
    remaining_headers_size: UInt32
    flags: Annotated[ExtensionFlags, WireType("B")]
    reserved: Annotated[bytes, WireType("3s")] = bytes(3)


class SubqueueFlags(Bits):
    """The four bytes behind SubqueueHeader.HeaderSize, from the least significant bit (G41)."""

    TM = BitField(0)
    ACKNOWLEDGEMENT_CLASS = BitField(1, 16)


NO_SUBQUEUE_FLAGS = SubqueueFlags(0)
SUBQUEUE_HEADER_SIZE = 148


@dataclass(frozen=True, slots=True)
class SubqueueHeader(Structure):
    """[MS-MQRR] 2.2.5.3; `last_move_time` in seconds since 1970 (G41), 0 for never."""

    header_size: UInt32 = SUBQUEUE_HEADER_SIZE
    flags: Annotated[SubqueueFlags, WireType("I")] = NO_SUBQUEUE_FLAGS
    abort_counter: UInt32 = 0
    move_counter: UInt32 = 0
    last_move_time: UInt32 = 0
    subqueue_name: SubqueueName = ""
    target_subqueue_name: SubqueueName = ""


@dataclass(frozen=True, slots=True)
class DeadLetterHeader:
    """The dead-letter queue that an application has chosen ([MS-MQRR] 2.2.5.4)."""

    dead_letter_path_name: str

    @classmethod
    def decode(cls, buffer: Buffer, offset: int = 0) -> tuple[Self, int]:
        """Read the header and tell where the next one starts; raises DecodeError."""
        require(buffer, offset, 4, "DeadLetterHeader")
        size = int.from_bytes(buffer[offset : offset + 4], "little")
        if size < 8 or size % 4:
            raise DecodeError(f"DeadLetterHeader of {size} bytes", offset)
        require(buffer, offset, size, "DeadLetterHeader")
        raw = bytes(buffer[offset + 4 : offset + size])
        if raw[-4:-2] == b"\0\0" and raw[-2:] == b"\0\0":
            raw = raw[:-2]
        return cls(decode_text(raw, "DeadLetterPathName", offset)), offset + size

    def encode(self) -> bytes:
        """The header's bytes, padded with zeros to a multiple of four."""
        raw = padded(encode_text(self.dead_letter_path_name))
        return (4 + len(raw)).to_bytes(4, "little") + raw


class HostAddress(NamedTuple):
    """Where a message came from: an IPv4 or IPv6 address, with a scope for the latter."""

    address: bytes
    scope: int = 0

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the usual text form; raises ValueError. Named scopes count as 0."""
        address = ipaddress.ip_address(text)
        if isinstance(address, ipaddress.IPv6Address):
            scope = address.scope_id or ""
            return cls(address.packed, int(scope) if scope.isdecimal() else 0)
        return cls(address.packed)

    @property
    def address_type(self) -> int:
        """AddressType on the wire."""
        return IP_ADDRESS_TYPE if len(self.address) == 4 else IPV6_ADDRESS_TYPE

    def __str__(self) -> str:
        text = str(ipaddress.ip_address(self.address))
        return f"{text}%{self.scope}" if self.scope else text


@dataclass(frozen=True, slots=True)
class AddressOverlay(Structure):
    """The sender's address in the place of QueueManagerAddress ([MS-MQRR] 2.2.5.1).

    It has room for eight bytes: half of an IPv6 address.
    """

    address_length: UInt16 = 0
    address_type: UInt16 = 0
    address_scope: UInt32 = 0
    address: Annotated[bytes, WireType("8s")] = bytes(8)

    @classmethod
    def of(cls, host: HostAddress) -> Self:
        """The overlay of an address; a longer one is cut."""
        return cls(len(host.address), host.address_type, host.scope, host.address[:8])


EXTENDED_ADDRESS_HEADER_SIZE = 28


@dataclass(frozen=True, slots=True)
class ExtendedAddressHeader(Structure):
    """The sender's whole address ([MS-MQRR] 2.2.5.5), to be ignored when its type is 0."""

    header_size: UInt32 = EXTENDED_ADDRESS_HEADER_SIZE
    address_length: UInt16 = 0
    address_type: UInt16 = 0
    address_scope: UInt32 = 0
    address: Annotated[bytes, WireType("16s")] = bytes(16)

    @classmethod
    def of(cls, host: HostAddress | None) -> Self:
        """The header for an address; None stands for an unknown address."""
        if host is None:
            return cls()
        raw = host.address.ljust(16, b"\0")
        size = EXTENDED_ADDRESS_HEADER_SIZE
        return cls(size, len(host.address), host.address_type, host.scope, raw)

    @property
    def host(self) -> HostAddress | None:
        """The address; None if its type or its length is unknown."""
        size = {IP_ADDRESS_TYPE: 4, IPV6_ADDRESS_TYPE: 16}.get(self.address_type)
        if size is None or self.address_length != size:
            return None
        return HostAddress(self.address[:size], self.address_scope)


_Header = TypeVar("_Header", SubqueueHeader, ExtendedAddressHeader)

EXTENSION_HEADER_SIZE = 12
_TIMES = struct.Struct("<I")
HEAD = head_reader(("flags", "packet_size", "time_to_reach_queue"), ("sent_time", "flags"))
_TIME_AT = TIME_TO_REACH_QUEUE.start
_BEHIND_ADDRESS = QUEUE_MANAGER_ADDRESS.stop
_DIRECT = int(QueueFormatType.DIRECT)
SESSION_HEADER_FLAG = BaseFlags.SH.bits


@dataclass(frozen=True, slots=True)
class MessagePacketExtension:
    """The headers behind the UserMessage, in wire order ([MS-MQRR] 2.2.5).

    `dead_letter_invalid` tells that the named dead-letter queue cannot be used.
    """

    subqueue: SubqueueHeader | None = None
    dead_letter: DeadLetterHeader | None = None
    extended_address: ExtendedAddressHeader | None = None
    dead_letter_invalid: bool = False

    def encode(self) -> bytes:
        """The bytes from ExtensionHeader on; subqueue and address are always there."""
        subqueue = self.subqueue or _NO_SUBQUEUE
        address = self.extended_address or _NO_ADDRESS
        dead_letter = self.dead_letter.encode() if self.dead_letter else b""
        rest = b"".join((subqueue.encode(), dead_letter, address.encode()))
        flags = ExtensionFlags.of(
            DL=bool(dead_letter), SQ=1, DI=bool(dead_letter) and self.dead_letter_invalid, EA=1
        )
        return ExtensionHeader(EXTENSION_HEADER_SIZE, len(rest), flags).encode() + rest

    @classmethod
    def decode(cls, buffer: Buffer, offset: int = 0) -> Self:
        """Read the headers from ExtensionHeader on; raises DecodeError.

        An empty rest, as older servers send it, has no headers.
        """
        if offset == len(buffer):
            return cls()
        header = ExtensionHeader.decode(buffer, offset)
        position = offset + header.header_size
        end = position + header.remaining_headers_size
        if header.header_size < EXTENSION_HEADER_SIZE or end > len(buffer):
            raise DecodeError("extension headers are cut off", offset)
        subqueue = dead_letter = address = None
        if header.flags.SQ:
            subqueue, position = _decode_sized(SubqueueHeader, buffer, position)
        if header.flags.DL:
            dead_letter, position = DeadLetterHeader.decode(buffer, position)
        if header.flags.EA:
            address, position = _decode_sized(ExtendedAddressHeader, buffer, position)
        if position > end:
            raise DecodeError("extension headers exceed their size", offset)
        return cls(subqueue, dead_letter, address, bool(header.flags.DL and header.flags.DI))


_NO_SUBQUEUE = SubqueueHeader()
_NO_ADDRESS = ExtendedAddressHeader()
PLAIN_EXTENSION = MessagePacketExtension().encode()
"""The extension of a message that is in no subqueue and came from this machine: 188 bytes."""


def _decode_sized(kind: type[_Header], buffer: Buffer, offset: int) -> tuple[_Header, int]:
    header = kind.decode(buffer, offset)
    if header.header_size < kind.size():
        raise DecodeError(f"{kind.__name__} of {header.header_size} bytes", offset)
    return header, offset + header.header_size


@lru_cache(maxsize=256)
def plain_extension(host: HostAddress) -> bytes:
    """The extension of a message from a host that nothing has happened to since."""
    return MessagePacketExtension(extended_address=ExtendedAddressHeader.of(host)).encode()


@lru_cache(maxsize=256)
def _overlay(host: HostAddress) -> bytes:
    return AddressOverlay.of(host).encode()


def reader_address(flags: int, host: HostAddress) -> bytes | None:
    """What overlays QueueManagerAddress, by UserHeader.Flags; None where it stays as it is."""
    direct = flags >> DESTINATION_TYPE & QUEUE_TYPE == _DIRECT
    return _overlay(host) if direct else None


def message_packet(
    buffer: Buffer, extension: bytes = PLAIN_EXTENSION, host: HostAddress | None = None
) -> bytes:
    """The Message Packet that a remote reader gets ([MS-MQRR] 2.2.5).

    The packet's time to reach its queue becomes absolute, and the address of `host`, from which
    the message came, overlays QueueManagerAddress where the destination is a direct name.
    `extension` are the bytes of a MessagePacketExtension. Body and trailers stay where they
    were: the offsets of a UserMessage in `buffer` hold for the result too.
    """
    base_flags, size, relative, sent, flags = HEAD.unpack_from(buffer)
    if base_flags & SESSION_HEADER_FLAG:
        size += SESSION_HEADER_SIZE
    overlaid = None if host is None else reader_address(flags, host)
    address = overlaid or buffer[QUEUE_MANAGER_ADDRESS]
    return joined(buffer, size, absolute_time_to_reach_queue(relative, sent), address, extension)


def joined(buffer: Buffer, size: int, expiry: int, address: Buffer, extension: bytes) -> bytes:
    """A message packet of so many octets, with what it gets for its reader."""
    rest = buffer[_BEHIND_ADDRESS:size]
    time, source = _TIMES.pack(expiry), buffer[SOURCE_QUEUE_MANAGER]
    return b"".join((buffer[:_TIME_AT], time, source, address, rest, extension))
