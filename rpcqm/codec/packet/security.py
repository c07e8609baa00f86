"""SecurityHeader: who sent a message, its signature and its encryption key."""

import struct
from dataclasses import dataclass
from typing import Annotated, NamedTuple, Self

from rpcqm.base.errors import DecodeError
from rpcqm.codec.layout import (
    BitField,
    Bits,
    Buffer,
    Structure,
    UInt16,
    UInt32,
    WireType,
    align4,
    decode_text,
    encode_text,
    padded,
    require,
)

_MAXIMUM_CERTIFICATE_SIZE = 0xFFFF


class SecurityFlags(Bits):
    """SecurityHeader.Flags ([MS-MQMQ] 2.2.20.6)."""

    ST = BitField(0, 4)
    AU = BitField(4)
    EB = BitField(5)
    DE = BitField(6)
    AI = BitField(7)
    AS = BitField(8, 4)


NO_SECURITY_FLAGS = SecurityFlags(0)


@dataclass(frozen=True, slots=True)
class SecurityHeaderStart(Structure):
    """The fields of SecurityHeader before its data."""

    flags: Annotated[SecurityFlags, WireType("H")]
    security_id_size: UInt16
    encryption_key_size: UInt16
    signature_size: UInt16
    sender_cert_size: UInt32
    provider_info_size: UInt32


_START = struct.Struct("<" + SecurityHeaderStart.reading())
SECURITY_HEADER_SIZE = _START.size


class ProviderInfo(NamedTuple):
    """The alternative cryptographic provider that made a signature."""

    provider_type: int
    provider_name: str

    @classmethod
    def decode(cls, raw: Buffer) -> Self:
        """Read SecurityData.ProviderInfo; raises DecodeError."""
        require(raw, 0, 4, "ProviderInfo")
        kind = int.from_bytes(raw[:4], "little")
        return cls(kind, decode_text(raw[4:], "ProviderName"))

    def encode(self) -> bytes:
        """The bytes of SecurityData.ProviderInfo."""
        return self.provider_type.to_bytes(4, "little") + encode_text(self.provider_name)


@dataclass(frozen=True, slots=True)
class SecurityHeader:
    """[MS-MQMQ] 2.2.20.6, its data in wire order.

    The sizes on the wire say which parts are there; Flags.AI does not (G20).
    """

    flags: SecurityFlags = NO_SECURITY_FLAGS
    security_id: bytes = b""
    encryption_key: bytes = b""
    signature: bytes = b""
    sender_cert: bytes = b""
    provider_info: bytes = b""

    @property
    def provider(self) -> ProviderInfo | None:
        """The alternative provider, None for the default one; raises DecodeError."""
        return ProviderInfo.decode(self.provider_info) if self.provider_info else None

    @classmethod
    def decode(cls, buffer: Buffer, offset: int = 0) -> tuple[Self, int]:
        """Read the header and tell where the next one starts; raises DecodeError."""
        parts = locate_security_data(buffer, offset)
        raw = (bytes(buffer[start : start + size]) for start, size in parts)
        flags = SecurityFlags.from_bytes(buffer[offset : offset + 2], "little")
        last_start, last_size = parts[-1]
        return cls(flags, *raw), align4(last_start + last_size)

    def encode(self) -> bytes:
        """The header's bytes; raises ValueError for parts that are too long."""
        parts = (
            self.security_id,
            self.encryption_key,
            self.signature,
            self.sender_cert,
            self.provider_info,
        )
        try:
            start = _START.pack(self.flags, *map(len, parts))
        except struct.error as error:
            raise ValueError(f"SecurityHeader: {error}") from error
        return start + b"".join(padded(part) for part in parts)

    def validate(self) -> None:
        """Refuse, with a DecodeError, what breaks the section's rules."""
        if self.flags.ST > 2 or (self.flags.ST == 0) != (not self.security_id):
            raise DecodeError(f"sender of type {self.flags.ST}, {len(self.security_id)} bytes")
        if self.flags.ST == 2 and len(self.security_id) != 16:
            raise DecodeError("sender's queue manager is no GUID")
        if len(self.sender_cert) > _MAXIMUM_CERTIFICATE_SIZE:
            raise DecodeError(f"certificate of {len(self.sender_cert)} bytes")
        parts = (self.security_id, self.encryption_key, self.signature, self.sender_cert)
        if not any((*parts, self.provider_info)):
            raise DecodeError("security header without any data")


def security_header_end(buffer: Buffer, offset: int) -> int:
    """Where the padded SecurityHeader ends; DecodeError when that is not within the buffer."""
    require(buffer, offset, SECURITY_HEADER_SIZE, "SecurityHeader")
    _, sender, key, signature, certificate, provider = _START.unpack_from(buffer, offset)
    total = (sender + 3 & -4) + (key + 3 & -4) + (signature + 3 & -4)
    size: int = total + SECURITY_HEADER_SIZE + (certificate + 3 & -4) + (provider + 3 & -4)
    require(buffer, offset, size, "security data")
    return offset + size


def locate_security_data(buffer: Buffer, offset: int) -> list[tuple[int, int]]:
    """Offset and size of sender, key, signature, certificate and provider.

    Raises DecodeError when they do not lie within the buffer.
    """
    require(buffer, offset, SECURITY_HEADER_SIZE, "SecurityHeader")
    _, *sizes = _START.unpack_from(buffer, offset)
    start = position = offset + SECURITY_HEADER_SIZE
    parts = []
    for size in sizes:
        parts.append((position, size))
        position += align4(size)
    require(buffer, start, position - start, "security data")
    return parts
