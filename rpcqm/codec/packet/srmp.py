"""Headers of a message that came by HTTP, as a remote reader sees it ([MS-MQRR] 2.2.5.1.2)."""

import struct
from dataclasses import dataclass
from typing import Self

from rpcqm.base.errors import DecodeError
from rpcqm.codec.layout import Buffer, decode_text, encode_text, require

_ENVELOPE_START = struct.Struct("<HHI")
_COMPOUND_START = struct.Struct("<HHIII")


@dataclass(frozen=True, slots=True)
class SRMPEnvelopeHeader:
    """The SOAP envelope ([MS-MQRR] 2.2.5.1.2.1); its length on the wire counts characters.

    The specification gives `header_id` no value, and readers ignore it.
    """

    data: str
    header_id: int = 0

    @classmethod
    def decode(cls, buffer: Buffer, offset: int = 0) -> tuple[Self, int]:
        """Read the header and tell where it ends; raises DecodeError."""
        start, end = locate_envelope(buffer, offset)
        number = int.from_bytes(buffer[offset : offset + 2], "little")
        return cls(decode_text(buffer[start:end], "SOAP envelope", start), number), end

    def encode(self) -> bytes:
        """The header's bytes, without padding."""
        return encode_envelope(self.data, self.header_id)


def encode_envelope(data: str, header_id: int = 0) -> bytes:
    """An SRMPEnvelopeHeader without padding."""
    raw = encode_text(data)
    return _ENVELOPE_START.pack(header_id, 0, len(raw) // 2) + raw


def locate_envelope(buffer: Buffer, offset: int) -> tuple[int, int]:
    """Start and end of the envelope's text; raises DecodeError."""
    require(buffer, offset, _ENVELOPE_START.size, "SRMPEnvelopeHeader")
    size = 2 * int.from_bytes(buffer[offset + 4 : offset + 8], "little")
    start = offset + _ENVELOPE_START.size
    require(buffer, start, size, "SRMPEnvelopeHeader")
    return start, start + size


@dataclass(frozen=True, slots=True)
class CompoundMessageHeader:
    """The whole HTTP request ([MS-MQRR] 2.2.5.1.2.2), and where in it the body is."""

    data: bytes
    msg_body_size: int = 0
    msg_body_offset: int = 0
    header_id: int = 0

    @property
    def body(self) -> bytes:
        """The message's body within the request."""
        return self.data[self.msg_body_offset : self.msg_body_offset + self.msg_body_size]

    @classmethod
    def decode(cls, buffer: Buffer, offset: int = 0) -> tuple[Self, int]:
        """Read the header and tell where it ends; raises DecodeError."""
        start, end = locate_compound(buffer, offset)
        number = int.from_bytes(buffer[offset : offset + 2], "little")
        body, size = locate_attached_body(buffer, offset)
        return cls(bytes(buffer[start:end]), size, body - start, number), end

    def encode(self) -> bytes:
        """The header's bytes, without padding."""
        size, offset = self.msg_body_size, self.msg_body_offset
        return encode_compound(self.data, size, offset, self.header_id)


def encode_compound(
    data: bytes, body_size: int = 0, body_offset: int = 0, header_id: int = 0
) -> bytes:
    """A CompoundMessageHeader without padding."""
    return _COMPOUND_START.pack(header_id, 0, len(data), body_size, body_offset) + data


def locate_compound(buffer: Buffer, offset: int) -> tuple[int, int]:
    """Start and end of the HTTP request; raises DecodeError."""
    require(buffer, offset, _COMPOUND_START.size, "CompoundMessageHeader")
    size = int.from_bytes(buffer[offset + 4 : offset + 8], "little")
    start = offset + _COMPOUND_START.size
    require(buffer, start, size, "CompoundMessageHeader")
    return start, start + size


def locate_attached_body(buffer: Buffer, offset: int) -> tuple[int, int]:
    """Start and size of the message's body within the HTTP request; raises DecodeError."""
    start, end = locate_compound(buffer, offset)
    _, _, _, size, place = _COMPOUND_START.unpack_from(buffer, offset)
    if place + size > end - start:
        raise DecodeError("body lies outside of its HTTP request", offset)
    return start + place, size
