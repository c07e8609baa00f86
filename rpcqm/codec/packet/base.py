"""BaseHeader, the first sixteen bytes of every packet, and SessionHeader, its companion."""

import struct
from dataclasses import dataclass
from typing import Annotated

from rpcqm.base.errors import DecodeError, HResult, MQError
from rpcqm.codec.layout import (
    BitField,
    Bits,
    Buffer,
    Structure,
    UInt8,
    UInt16,
    UInt32,
    WireType,
)
from rpcqm.codec.types.mqvalues import INFINITE

VERSION = 0x10
SIGNATURE_OCTETS = b"LIOR"
SIGNATURE = int.from_bytes(SIGNATURE_OCTETS, "little")
MAXIMUM_PACKET_SIZE = 0x00400000


class PacketTooLargeError(MQError):
    """A message whose packet would be larger than one may be; another try does not help."""

    def __init__(self, size: int) -> None:
        detail = f"packet of {size:,} bytes, and {MAXIMUM_PACKET_SIZE:,} at most can be sent"
        super().__init__(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, detail)


LARGEST_BODY_BY_HTTP = 0x00400000
"""Body and extension of a message that comes by HTTP.

Bound `srmp.message` [B]: the request is answered with 400.
"""
LARGEST_KEPT_PACKET = 0x00540000
"""A message that came by HTTP is kept with its request and, in UTF-16, its envelope: 4 MiB have
room with all that a request may have around them (G235). No other packet may be so large."""
DEFAULT_PRIORITY = 3

BASE_HEADER_SIZE = 16


class BaseFlags(Bits):
    """BaseHeader.Flags: priority, internal, session, debug header, tracing."""

    PR = BitField(0, 3)
    IN = BitField(3)
    SH = BitField(4)
    DH = BitField(5)
    TR = BitField(8)


DEFAULT_BASE_FLAGS = BaseFlags.of(PR=DEFAULT_PRIORITY)


@dataclass(frozen=True, slots=True)
class BaseHeader(Structure):
    """[MS-MQMQ] 2.2.19.1; `time_to_reach_queue` in seconds, all ones for ever."""

    version_number: UInt8 = VERSION
    reserved: UInt8 = 0
    flags: Annotated[BaseFlags, WireType("H")] = DEFAULT_BASE_FLAGS
    signature: UInt32 = SIGNATURE
    packet_size: UInt32 = BASE_HEADER_SIZE
    time_to_reach_queue: UInt32 = INFINITE

    def validate(self, largest: int = MAXIMUM_PACKET_SIZE) -> None:
        """Refuse, with a DecodeError, what breaks the section's rules.

        The signature's bytes are little-endian, as the examples of [MS-MQQB] 4.1 show.
        """
        if self.version_number != VERSION:
            raise DecodeError(f"packet of version 0x{self.version_number:02X}", 0)
        if self.signature != SIGNATURE:
            raise DecodeError(f"packet with the signature 0x{self.signature:08X}", 4)
        if not BASE_HEADER_SIZE <= self.packet_size <= largest:
            raise DecodeError(f"packet of {self.packet_size} bytes", 8)
        if self.flags.TR and not self.flags.DH:
            raise DecodeError("tracing without a debug header", 2)

    @property
    def frame_size(self) -> int:
        """Bytes that the packet takes in a stream.

        PacketSize leaves the SessionHeader out, except in a SessionAck (G18).
        """
        if self.flags.SH and not self.flags.IN:
            return self.packet_size + SESSION_HEADER_SIZE
        return self.packet_size


@dataclass(frozen=True, slots=True)
class SessionHeader(Structure):
    """Acknowledges messages of a session ([MS-MQMQ] 2.2.20.4).

    All counters wrap at 16 bits. Bit k of `recoverable_msg_ack_flags` acknowledges the
    recoverable message number `recoverable_msg_ack_seq_number` + k.
    """

    ack_sequence_number: UInt16 = 0
    recoverable_msg_ack_seq_number: UInt16 = 0
    recoverable_msg_ack_flags: UInt32 = 0
    user_msg_sequence_number: UInt16 = 0
    recoverable_msg_seq_number: UInt16 = 0
    window_size: UInt16 = 0x0040
    reserved: UInt16 = 0


SESSION_HEADER_SIZE = SessionHeader.size()
MAXIMUM_FRAME_SIZE = MAXIMUM_PACKET_SIZE + SESSION_HEADER_SIZE

_START = struct.Struct(
    "<" + BaseHeader.reading("version_number", "flags", "signature", "packet_size")
)
_SESSION, _TRACING = BaseFlags.SH.bits, BaseFlags.TR.bits
_SESSION_OR_INTERNAL = _SESSION | BaseFlags.IN.bits


def frame_size(buffer: Buffer, largest: int = MAXIMUM_PACKET_SIZE) -> int:
    """Length of the packet that begins with these (at least sixteen) bytes.

    Raises DecodeError when they begin no packet ([MS-MQQB] 3.1.5.1.2). The fields are looked at
    without a BaseHeader, which says what is wrong where something is. PacketSize may be `largest`.
    """
    if len(buffer) >= BASE_HEADER_SIZE:
        size: int
        version, flags, signature, size = _START.unpack_from(buffer)
        if (
            version == VERSION
            and signature == SIGNATURE
            and BASE_HEADER_SIZE <= size <= largest
            and not flags & _TRACING
        ):
            return size + SESSION_HEADER_SIZE if flags & _SESSION_OR_INTERNAL == _SESSION else size
    header = BaseHeader.decode(buffer)
    header.validate(largest)
    return header.frame_size
