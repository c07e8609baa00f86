"""Data types that packets share ([MS-MQMQ] 2.2.18.1), and a structure of administration."""

import functools
import re
from dataclasses import dataclass
from typing import Self
from uuid import UUID

from rpcqm.base.text import cut
from rpcqm.codec.layout import (
    NULL_GUID,
    Guid,
    Int64,
    Structure,
    UInt32,
)

SEQUENTIAL_BITS = 56
"""A lookup identifier is 7 - priority in its high byte over a sequential identifier (G1)."""
SEQUENTIAL_MASK = (1 << SEQUENTIAL_BITS) - 1

_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")
_MESSAGE_IDENTIFIER = re.compile(r"\{?([0-9A-Fa-f-]{36})\}?\\([0-9]{1,10})")


@functools.lru_cache(maxsize=256)
def guid_text(guid: UUID) -> str:
    """A GUID as text: many messages have that of the same queue manager."""
    return str(guid)


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

    @classmethod
    def read(cls, text: str) -> Self:
        r"""Read {GUID}\ordinal or the 40 hexadecimal digits of one; raises ValueError."""
        try:
            return cls.parse(text)
        except ValueError:
            pass  # it may be written in digits
        digits = 2 * cls.size()
        if len(text) != digits or not set(text) <= _HEXADECIMAL:
            raise ValueError(
                rf"`{cut(text)}` is neither a message identifier like {{GUID}}\1 nor "
                f"{digits} hexadecimal digits"
            )
        return cls.decode(bytes.fromhex(text))

    def __str__(self) -> str:
        return f"{{{guid_text(self.queue_manager_guid)}}}\\{self.ordinal}"


NULL_IDENTIFIER = MessageIdentifier()


@dataclass(frozen=True, slots=True)
class SequenceInfo(Structure):
    """Place of a message in a stream, as administrators see it ([MS-MQMQ] 2.2.5)."""

    seq_id: Int64 = 0
    seq_no: UInt32 = 0
    prev_no: UInt32 = 0
