"""UserHeader: where a message comes from, where it goes, and its queue names on the wire."""

import enum
import functools
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, NamedTuple, Self
from uuid import UUID

from rpcqm.base.errors import DecodeError
from rpcqm.codec.layout import (
    NULL_GUID,
    BitField,
    Bits,
    Buffer,
    Guid,
    Structure,
    UInt32,
    WireType,
    decode_text,
    encode_text,
    require,
    take,
)
from rpcqm.codec.types.mqvalues import INFINITE

MAXIMUM_HOP_COUNT = 0x1D
_COUNT = struct.Struct("<H")


class QueueFormatType(enum.IntEnum):
    """How a queue is named in a UserHeader: the values of Flags.DQ, AQ and RQ."""

    NONE = 0
    SAME_AS_ADMIN = 1
    PRIVATE_ON_SOURCE = 2
    PRIVATE_ON_DESTINATION = 3
    PRIVATE_ON_ADMIN_HOST = 4
    PUBLIC = 5
    PRIVATE_ON_OTHER = 6
    DIRECT = 7


class PrivateQueueFormatName(NamedTuple):
    """A private queue of some queue manager ([MS-MQMQ] 2.2.18.1.7.2)."""

    source_queue_manager: UUID
    private_queue_identifier: int


# None: no queue; int: PrivateQueueFormatNameId; UUID: PublicQueueFormatName; str: the text of a
# DirectQueueFormatName, which has no "DIRECT=" on the wire.
WireQueueName = None | int | UUID | PrivateQueueFormatName | str

DESTINATION_TYPES = frozenset({0, 3, 5, 7})
ADMIN_TYPES = frozenset({0, 2, 3, 5, 6, 7})

# Bytes of a name by its type; -1: a counted string. A response queue of type 1 takes none (G19).
NAME_SIZES = (0, 0, 4, 4, 4, 16, 20, -1)


class UserFlags(Bits):
    """UserHeader.Flags ([MS-MQMQ] 2.2.19.2)."""

    RC = BitField(0, 5)
    DM = BitField(5, 2)
    JN = BitField(8)
    JP = BitField(9)
    DQ = BitField(10, 3)
    AQ = BitField(13, 3)
    RQ = BitField(16, 3)
    SH = BitField(19)
    TH = BitField(20)
    MP = BitField(21)
    CQ = BitField(22)
    MQ = BitField(23)
    AH = BitField(25)
    HH = BitField(28)


DEFAULT_USER_FLAGS = UserFlags.of(MP=1)


@dataclass(frozen=True, slots=True)
class UserHeaderStart(Structure):
    """The fields that lie at the same place in every UserHeader."""

    source_queue_manager: Guid
    queue_manager_address: Guid
    time_to_be_received: UInt32
    sent_time: UInt32
    message_id: UInt32
    flags: Annotated[UserFlags, WireType("I")]


USER_HEADER_SIZE = UserHeaderStart.size()


@dataclass(frozen=True, slots=True)
class UserHeader:
    """[MS-MQMQ] 2.2.19.2; times in seconds, `sent_time` since 1970.

    The layout of the three names follows from flags.DQ, AQ and RQ; `connector_type` is there
    when flags.CQ is set. `queue_manager_address` is null for direct destinations.
    """

    source_queue_manager: UUID
    queue_manager_address: UUID = NULL_GUID
    time_to_be_received: int = INFINITE
    sent_time: int = 0
    message_id: int = 0
    flags: UserFlags = DEFAULT_USER_FLAGS
    destination_queue: WireQueueName = None
    admin_queue: WireQueueName = None
    response_queue: WireQueueName = None
    connector_type: UUID | None = None

    @classmethod
    def decode(cls, buffer: Buffer, offset: int = 0) -> tuple[Self, int]:
        """Read the header and tell where the next one starts; raises DecodeError."""
        start = UserHeaderStart.decode(buffer, offset)
        flags, position = start.flags, offset + USER_HEADER_SIZE
        destination, position = decode_queue_name(buffer, position, flags.DQ)
        admin, position = decode_queue_name(buffer, position, flags.AQ)
        response, position = decode_queue_name(buffer, position, flags.RQ)
        connector = None
        if flags.CQ:
            connector = UUID(bytes_le=take(buffer, position, 16, "ConnectorType"))
            position += 16
        header = cls(
            start.source_queue_manager,
            start.queue_manager_address,
            start.time_to_be_received,
            start.sent_time,
            start.message_id,
            flags,
            destination,
            admin,
            response,
            connector,
        )
        return header, position

    def encode(self) -> bytes:
        """The header's bytes; raises ValueError where a name does not fit its flag."""
        start = UserHeaderStart(
            self.source_queue_manager,
            self.queue_manager_address,
            self.time_to_be_received,
            self.sent_time,
            self.message_id,
            self.flags,
        )
        if bool(self.flags.CQ) != (self.connector_type is not None):
            raise ValueError("Flags.CQ tells whether there is a ConnectorType")
        return b"".join(
            (
                start.encode(),
                encode_queue_name(self.destination_queue, self.flags.DQ),
                encode_queue_name(self.admin_queue, self.flags.AQ),
                encode_queue_name(self.response_queue, self.flags.RQ),
                self.connector_type.bytes_le if self.connector_type is not None else b"",
            )
        )

    def validate(self) -> None:
        """Refuse, with a DecodeError, what breaks the section's rules."""
        flags = self.flags
        validate_flags(flags)
        if flags.DQ in (3, 5) and self.queue_manager_address == NULL_GUID:
            raise DecodeError("destination without its queue manager")


def validate_flags(flags: UserFlags) -> None:
    """Refuse, with a DecodeError, combinations that [MS-MQMQ] 2.2.19.2 rules out."""
    if flags.DQ not in DESTINATION_TYPES:
        raise DecodeError(f"destination queue of type {flags.DQ}")
    if flags.AQ not in ADMIN_TYPES:
        raise DecodeError(f"administration queue of type {flags.AQ}")
    if flags.RC > MAXIMUM_HOP_COUNT:
        raise DecodeError(f"{flags.RC} routing servers")
    if flags.DM > 1:
        raise DecodeError(f"delivery mode {flags.DM}")
    if flags.TH and not flags.DM:
        raise DecodeError("transactional message that is not recoverable")
    if not flags.MP:
        raise DecodeError("message without properties")


def queue_name_end(buffer: Buffer, offset: int, kind: int) -> int:
    """Where the queue name of this type that starts at `offset` ends; raises DecodeError.

    A direct name is padded to four bytes from the start of its header, which is itself aligned.
    """
    size = NAME_SIZES[kind]
    if size < 0:
        require(buffer, offset, 2, "direct queue name")
        size = buffer[offset] + 256 * buffer[offset + 1] + 5 & -4
    if offset + size > len(buffer):
        require(buffer, offset, size, "queue name")
    return offset + size


def decode_queue_name(buffer: Buffer, offset: int, kind: int) -> tuple[WireQueueName, int]:
    """Read a queue name and tell what follows it; raises DecodeError."""
    end = queue_name_end(buffer, offset, kind)
    if kind in (0, 1):
        return None, end
    if kind == QueueFormatType.DIRECT:
        (count,) = _COUNT.unpack_from(buffer, offset)
        raw = bytes(buffer[offset + 2 : offset + 2 + count])
        read = _decode_direct if count <= _USUAL_NAME else _decode_direct.__wrapped__
        return read(raw, offset), end
    if kind == QueueFormatType.PUBLIC:
        return UUID(bytes_le=bytes(buffer[offset:end])), end
    identifier = int.from_bytes(buffer[end - 4 : end], "little")
    if kind == QueueFormatType.PRIVATE_ON_OTHER:
        guid = UUID(bytes_le=bytes(buffer[offset : offset + 16]))
        return PrivateQueueFormatName(guid, identifier), end
    return identifier, end


_USUAL_NAME = 512
"""Octets of a name that is worth remembering."""


@functools.lru_cache(maxsize=1024)
def _decode_direct(raw: bytes, offset: int) -> str:
    """Most messages go to few queues."""
    return decode_text(raw, "direct queue name", offset)


def encode_queue_name(name: WireQueueName, kind: int) -> bytes:
    """The bytes of a queue name of this type; raises ValueError when it is of another."""
    if kind in (0, 1) and name is None:
        return b""
    if kind == QueueFormatType.DIRECT and isinstance(name, str):
        return encode_direct_name(name)
    if kind == QueueFormatType.PUBLIC and isinstance(name, UUID):
        return name.bytes_le
    if kind == QueueFormatType.PRIVATE_ON_OTHER and isinstance(name, PrivateQueueFormatName):
        return name.source_queue_manager.bytes_le + name.private_queue_identifier.to_bytes(
            4, "little"
        )
    if kind in (2, 3, 4) and isinstance(name, int):
        return name.to_bytes(4, "little")
    raise ValueError(f"{name!r} is no queue name of type {kind}")


@lru_cache(maxsize=1024)
def encode_direct_name(text: str) -> bytes:
    """DirectQueueFormatName ([MS-MQMQ] 2.2.18.1.5.2); raises ValueError when it is too long."""
    raw = encode_text(text)
    if len(raw) > 0xFFFF:
        raise ValueError("direct name is too long")
    return _COUNT.pack(len(raw)) + raw + bytes(-(2 + len(raw)) & 3)
