"""Packets that two queue managers exchange about their session ([MS-MQQB] 2.2)."""

import enum
import functools
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from rpcqm.base.errors import DecodeError
from rpcqm.codec.layout import (
    NULL_GUID,
    BitField,
    Bits,
    Buffer,
    Guid,
    Structure,
    UInt16,
    UInt32,
    WireType,
)
from rpcqm.codec.packet.base import (
    DEFAULT_PRIORITY,
    BaseFlags,
    BaseHeader,
    SessionHeader,
)
from rpcqm.codec.packet.types import TxSequenceID

DEFAULT_WINDOW_SIZE = 0x0040
RESPONSE_PADDING = b"\x5a" * 512
RESPONSE_RESERVED = 0x5A
"""BaseHeader.Reserved of an answer to EstablishConnection: any value is allowed, and inventories of
networks know Windows by this one (G466)."""
ORDER_QUEUE_IDENTIFIER = 4
ORDER_ACK_LABEL = "QM Ordering Ack"
PING_SIGNATURE = 0x5548


class PacketType(enum.IntEnum):
    """InternalHeader.Flags.PT."""

    SESSION_ACK = 1
    ESTABLISH_CONNECTION = 2
    CONNECTION_PARAMETERS = 3


class InternalFlags(Bits):
    """InternalHeader.Flags: packet type; connection refused."""

    PT = BitField(0, 4)
    CS = BitField(4)


@dataclass(frozen=True, slots=True)
class InternalHeader(Structure):
    """[MS-MQQB] 2.2.1."""

    reserved: UInt16
    flags: Annotated[InternalFlags, WireType("H")]


@dataclass(frozen=True, slots=True)
class ConnectionParametersHeader(Structure):
    """[MS-MQQB] 2.2.2.1; times in milliseconds."""

    recoverable_ack_timeout: UInt32
    ack_timeout: UInt32
    reserved: UInt16 = 0
    window_size: UInt16 = DEFAULT_WINDOW_SIZE

    def validate(self) -> None:
        """Refuse, with a DecodeError, times outside their ranges."""
        if not 0x1F4 <= self.recoverable_ack_timeout <= 0x1D4C0:
            raise DecodeError(f"RecoverableAckTimeout of {self.recoverable_ack_timeout} ms")
        if not 0x4E20 <= self.ack_timeout <= 0x1D4C0:
            raise DecodeError(f"AckTimeout of {self.ack_timeout} ms")


class OperatingSystemFlags(Bits):
    """EstablishConnectionHeader.OperatingSystem: reserved 0x10, no ping, server, QoS."""

    RE = BitField(0, 8)
    SE = BitField(8)
    OS = BitField(9)
    QS = BitField(10)


OPERATING_SYSTEM = OperatingSystemFlags.of(RE=0x10, SE=1, OS=1)


@dataclass(frozen=True, slots=True)
class EstablishConnectionHeader(Structure):
    """[MS-MQQB] 2.2.3.1; the time stamp in milliseconds since the system's start."""

    client_guid: Guid
    server_guid: Guid = NULL_GUID
    timestamp: UInt32 = 0
    operating_system: Annotated[OperatingSystemFlags, WireType("H")] = OPERATING_SYSTEM
    reserved: UInt16 = 0
    padding: Annotated[bytes, WireType("512s")] = RESPONSE_PADDING


_INTERNAL_FLAGS = BaseFlags.of(PR=DEFAULT_PRIORITY, IN=1)
_SESSION_ACK_FLAGS = BaseFlags.of(PR=DEFAULT_PRIORITY, IN=1, SH=1)


@dataclass(frozen=True, slots=True)
class EstablishConnectionPacket(Structure):
    """[MS-MQQB] 2.2.3, 572 bytes."""

    base_header: BaseHeader
    internal_header: InternalHeader
    establish_connection_header: EstablishConnectionHeader

    @classmethod
    def of(
        cls, header: EstablishConnectionHeader, refused: bool = False, reserved: int = 0
    ) -> bytes:
        """The bytes of a request or response; a response may refuse the connection."""
        flags = InternalFlags.of(PT=PacketType.ESTABLISH_CONNECTION, CS=refused)
        base = BaseHeader(reserved=reserved, flags=_INTERNAL_FLAGS, packet_size=cls.size())
        return cls(base, InternalHeader(0, flags), header).encode()


@dataclass(frozen=True, slots=True)
class ConnectionParametersPacket(Structure):
    """[MS-MQQB] 2.2.2, 32 bytes."""

    base_header: BaseHeader
    internal_header: InternalHeader
    connection_parameters_header: ConnectionParametersHeader

    @classmethod
    def of(cls, header: ConnectionParametersHeader, refused: bool = False) -> bytes:
        """The bytes of a request or response; a response may refuse the connection."""
        flags = InternalFlags.of(PT=PacketType.CONNECTION_PARAMETERS, CS=refused)
        base = BaseHeader(flags=_INTERNAL_FLAGS, packet_size=cls.size())
        return cls(base, InternalHeader(0, flags), header).encode()


@dataclass(frozen=True, slots=True)
class SessionAckPacket(Structure):
    """[MS-MQQB] 2.2.6, 36 bytes, its PacketSize with the SessionHeader (G18)."""

    base_header: BaseHeader
    internal_header: InternalHeader
    session_header: SessionHeader

    @classmethod
    def of(cls, header: SessionHeader) -> bytes:
        """The bytes of an acknowledgement."""
        return _session_ack_head() + header.encode()


@functools.cache
def _session_ack_head() -> bytes:
    """What is the same in every SessionAck: all but its SessionHeader."""
    flags = InternalFlags.of(PT=PacketType.SESSION_ACK)
    base = BaseHeader(flags=_SESSION_ACK_FLAGS, packet_size=SessionAckPacket.size())
    return base.encode() + InternalHeader(0, flags).encode()


InternalPacket = EstablishConnectionPacket | ConnectionParametersPacket | SessionAckPacket

_PACKETS: dict[int, type[InternalPacket]] = {
    PacketType.SESSION_ACK: SessionAckPacket,
    PacketType.ESTABLISH_CONNECTION: EstablishConnectionPacket,
    PacketType.CONNECTION_PARAMETERS: ConnectionParametersPacket,
}


_HEAD_SIZE = BaseHeader.size() + InternalHeader.size()


def check_internal_packet(buffer: Buffer) -> PacketType:
    """The type of a whole internal packet, when it is as it must be; raises DecodeError.

    Source: [MS-MQQB] 3.1.5.1.1.
    """
    return _kind_of(bytes(buffer[:_HEAD_SIZE]), len(buffer))


@functools.lru_cache(maxsize=64)
def _kind_of(head: bytes, size: int) -> PacketType:
    """That of a packet of `size` bytes by its first headers, which are nearly always the same."""
    base = BaseHeader.decode(head)
    base.validate()
    if not base.flags.IN or base.flags.DH:
        raise DecodeError("no internal packet")
    kind = InternalHeader.decode(head, BaseHeader.size()).flags.PT
    packet = _PACKETS.get(kind)
    if packet is None:
        raise DecodeError(f"internal packet of type {kind}")
    if bool(base.flags.SH) != (packet is SessionAckPacket):
        raise DecodeError(f"session header does not fit packet type {kind}")
    if not base.packet_size == size == packet.size():
        raise DecodeError(f"internal packet of {base.packet_size} bytes")
    return PacketType(kind)


def decode_internal_packet(buffer: Buffer) -> InternalPacket:
    """Read a whole internal packet and check what identifies it; raises DecodeError."""
    return _PACKETS[check_internal_packet(buffer)].decode(buffer)


@dataclass(frozen=True, slots=True)
class OrderAckBody(Structure):
    """What an OrderAck acknowledges ([MS-MQQB] 2.2.4.1)."""

    tx_sequence_id: TxSequenceID
    tx_sequence_number: UInt32
    tx_previous_sequence_number: UInt32
    reserved: Annotated[bytes, WireType("20s")] = bytes(20)


@dataclass(frozen=True, slots=True)
class FinalAckBody(Structure):
    """What a FinalAck acknowledges ([MS-MQQB] 2.2.5.1)."""

    tx_sequence_id: TxSequenceID
    tx_sequence_number: UInt32
    tx_previous_sequence_number: UInt32
    source_guid: Guid
    message_id: UInt32


class PingFlags(Bits):
    """Ping.Flags: the initiator is no server; a session would be refused."""

    RC = BitField(0)
    RF = BitField(1)


@dataclass(frozen=True, slots=True)
class PingPacket(Structure):
    """[MS-MQQB] 2.2.7, a datagram of 24 bytes."""

    flags: Annotated[PingFlags, WireType("H")]
    signature: UInt16
    cookie: UInt32
    qm_guid: Guid

    @classmethod
    def of(cls, queue_manager: UUID, cookie: int, flags: PingFlags) -> bytes:
        """The bytes of a request or response."""
        return cls(flags, PING_SIGNATURE, cookie, queue_manager).encode()

    def validate(self) -> None:
        """Refuse, with a DecodeError, another signature."""
        if self.signature != PING_SIGNATURE:
            raise DecodeError(f"datagram with the signature 0x{self.signature:04X}")
