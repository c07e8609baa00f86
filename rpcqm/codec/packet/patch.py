"""The few fields of a finished packet that a queue manager may change.

All but the last two work in place, on a bytearray; offsets are looked up in the packet.
"""

import struct

from rpcqm.base.errors import DecodeError
from rpcqm.codec.layout import Buffer
from rpcqm.codec.packet.base import INFINITE, SESSION_HEADER_SIZE, SessionHeader
from rpcqm.codec.packet.types import TxSequenceID
from rpcqm.codec.packet.user import MAXIMUM_HOP_COUNT
from rpcqm.codec.packet.user_message import UserMessage

_SESSION_HEADER_FLAG = 0x10
_SEQUENCE = struct.Struct("<QII")
_FIRST, _LAST = 0x04, 0x08
_AUTHENTICATED, _ENCRYPTED = 0x10, 0x20


def absolute_time_to_reach_queue(relative: int, sent_time: int) -> int:
    """When a message expires on its way, in seconds since 1970, all ones for never.

    Source: [MS-MQRR] 2.2.5.1 TimeToReachQueue; later than the field can tell is never.
    """
    return min(sent_time + relative, INFINITE)


def set_time_to_reach_queue(packet: bytearray, seconds: int) -> None:
    """BaseHeader.TimeToReachQueue."""
    packet[12:16] = seconds.to_bytes(4, "little")


def set_hop_count(packet: bytearray, count: int) -> None:
    """UserHeader.Flags.RC; raises ValueError beyond 29 ([MS-MQQB] 3.1.5.8.2)."""
    if not 0 <= count <= MAXIMUM_HOP_COUNT:
        raise ValueError(f"{count} routing servers")
    packet[60] = packet[60] & 0xE0 | count


def set_sequence(
    packet: bytearray, sequence: TxSequenceID, number: int, previous_number: int
) -> None:
    """The place of a transactional message in its stream ([MS-MQQB] 3.1.7.1.3).

    Raises DecodeError when the message is not transactional.
    """
    offset = _transaction_offset(packet)
    _SEQUENCE.pack_into(packet, offset + 4, sequence.value, number, previous_number)


def set_transaction_marks(packet: bytearray, first: bool, last: bool) -> None:
    """Whether a message is the first or the last of its transaction ([MS-MQDMPR] 3.1.4.3).

    Raises DecodeError when the message is not transactional.
    """
    offset = _transaction_offset(packet)
    marks = (_FIRST if first else 0) | (_LAST if last else 0)
    packet[offset] = packet[offset] & ~(_FIRST | _LAST) | marks


def set_authentication_level(packet: bytearray, level: int) -> None:
    """SecurityHeader.Flags.AS, what checking a signature has found ([MS-MQQB] 3.1.5.8.3).

    AU, which no sender may set ([MS-MQMQ] 2.2.20.6), is cleared. Raises DecodeError when the
    packet has no SecurityHeader.
    """
    offset = _security_offset(packet)
    packet[offset] &= ~_AUTHENTICATED
    packet[offset + 1] = packet[offset + 1] & 0xF0 | level


def clear_encrypted_flag(packet: bytearray) -> None:
    """SecurityHeader.Flags.EB: the body is in clear now.

    Raises DecodeError when the packet has no SecurityHeader.
    """
    packet[_security_offset(packet)] &= ~_ENCRYPTED


def _security_offset(packet: bytearray) -> int:
    offset = UserMessage(packet).layout.security
    if offset < 0:
        raise DecodeError("packet without a security header")
    return offset


def _transaction_offset(packet: bytearray) -> int:
    offset = UserMessage(packet).layout.transaction
    if offset < 0:
        raise DecodeError("message is not transactional")
    return offset


def with_session_header(packet: Buffer, header: SessionHeader) -> bytes:
    """A copy of a packet with this SessionHeader behind it ([MS-MQQB] 3.1.7.11)."""
    plain = without_session_header(packet)
    flags = bytes((plain[2] | _SESSION_HEADER_FLAG,))
    return b"".join((plain[:2], flags, plain[3:], header.encode()))


def without_session_header(packet: Buffer) -> bytes:
    """A copy of a packet without its SessionHeader."""
    if not packet[2] & _SESSION_HEADER_FLAG:
        return bytes(packet)
    flags = bytes((packet[2] & ~_SESSION_HEADER_FLAG,))
    return b"".join((packet[:2], flags, packet[3 : len(packet) - SESSION_HEADER_SIZE]))
