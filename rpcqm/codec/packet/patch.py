"""The few fields of a finished packet that a queue manager may change.

Those called `set_…` work in place, on a bytearray; offsets are looked up in the packet.
"""

import struct

from rpcqm.base.errors import DecodeError
from rpcqm.codec.layout import Buffer
from rpcqm.codec.packet.base import SESSION_HEADER_SIZE, SessionHeader
from rpcqm.codec.packet.fields import CLASS, HOP_COUNT, SESSION_HEADER, TIME_TO_REACH_QUEUE
from rpcqm.codec.packet.security import SecurityFlags, SecurityHeaderStart
from rpcqm.codec.packet.transaction import TransactionFlags, TransactionHeaderStart
from rpcqm.codec.packet.types import TxSequenceID
from rpcqm.codec.packet.user import MAXIMUM_HOP_COUNT
from rpcqm.codec.packet.user_message import UserMessage
from rpcqm.codec.types.mqvalues import INFINITE

_FLAGS_AT, _SESSION_HEADER_FLAG = SESSION_HEADER
_HOPS_AT, _HOPS = HOP_COUNT
_TRANSACTION = struct.Struct("<" + TransactionHeaderStart.reading())
_FIRST, _LAST = TransactionFlags.FM.bits, TransactionFlags.LM.bits
_SECURITY_FLAGS = SecurityHeaderStart.place("flags")
_AUTHENTICATED_AT, _AUTHENTICATED = SecurityFlags.AU.octet(_SECURITY_FLAGS)
_LEVEL_AT, _LEVEL = SecurityFlags.AS.octet(_SECURITY_FLAGS)
_ENCRYPTED_AT, _ENCRYPTED = SecurityFlags.EB.octet(_SECURITY_FLAGS)


def absolute_time_to_reach_queue(relative: int, sent_time: int) -> int:
    """When a message expires on its way, in seconds since 1970, all ones for never.

    Source: [MS-MQRR] 2.2.5.1 TimeToReachQueue; later than the field can tell is never.
    """
    return min(sent_time + relative, INFINITE)


def set_time_to_reach_queue(packet: bytearray, seconds: int) -> None:
    """BaseHeader.TimeToReachQueue."""
    packet[TIME_TO_REACH_QUEUE] = seconds.to_bytes(4, "little")


def set_hop_count(packet: bytearray, count: int) -> None:
    """UserHeader.Flags.RC; raises ValueError beyond 29 ([MS-MQQB] 3.1.5.8.2)."""
    if not 0 <= count <= MAXIMUM_HOP_COUNT:
        raise ValueError(f"{count} routing servers")
    packet[_HOPS_AT] = packet[_HOPS_AT] & ~_HOPS | count


def set_sequence(
    packet: bytearray, sequence: TxSequenceID, number: int, previous_number: int
) -> None:
    """The place of a transactional message in its stream ([MS-MQQB] 3.1.7.1.3).

    Raises DecodeError when the message is not transactional.
    """
    offset = _transaction_offset(UserMessage(packet))
    flags = _TRANSACTION.unpack_from(packet, offset)[0]
    _TRANSACTION.pack_into(packet, offset, flags, sequence.value, number, previous_number)


def with_message_class(packet: bytes, message_class: int) -> bytes:
    """A copy of a packet that has another MessagePropertiesHeader.MessageClass."""
    changed = bytearray(packet)
    offset = UserMessage(packet).layout.properties
    changed[offset + CLASS.start : offset + CLASS.stop] = message_class.to_bytes(2, "little")
    return bytes(changed)


def with_transaction_marks(message: UserMessage, first: bool, last: bool) -> bytes:
    """The packet that says whether a message is its transaction's first or last.

    It is the message's own buffer where that says so already. Raises DecodeError when the message
    is not transactional. Source: [MS-MQDMPR] 3.1.4.3.
    """
    offset = _transaction_offset(message)
    marks = (_FIRST if first else 0) | (_LAST if last else 0)
    packet = message.buffer
    if packet[offset] & (_FIRST | _LAST) != marks:
        packet = bytearray(packet)
        packet[offset] = packet[offset] & ~(_FIRST | _LAST) | marks
    return bytes(packet)


def set_authentication_level(packet: bytearray, level: int) -> None:
    """SecurityHeader.Flags.AS, what checking a signature has found ([MS-MQQB] 3.1.5.8.3).

    AU, which no sender may set ([MS-MQMQ] 2.2.20.6), is cleared. Raises DecodeError when the
    packet has no SecurityHeader.
    """
    offset = _security_offset(packet)
    packet[offset + _AUTHENTICATED_AT] &= ~_AUTHENTICATED
    place = offset + _LEVEL_AT
    packet[place] = packet[place] & ~_LEVEL | level


def clear_encrypted_flag(packet: bytearray) -> None:
    """SecurityHeader.Flags.EB: the body is in clear now.

    Raises DecodeError when the packet has no SecurityHeader.
    """
    packet[_security_offset(packet) + _ENCRYPTED_AT] &= ~_ENCRYPTED


def _security_offset(packet: bytearray) -> int:
    offset = UserMessage(packet).layout.security
    if offset < 0:
        raise DecodeError("packet without a security header")
    return offset


def _transaction_offset(message: UserMessage) -> int:
    offset = message.layout.transaction
    if offset < 0:
        raise DecodeError("message is not transactional")
    return offset


def with_session_header(packet: Buffer, header: SessionHeader) -> bytes:
    """A copy of a packet with this SessionHeader behind it ([MS-MQQB] 3.1.7.11)."""
    plain = without_session_header(packet)
    flags = bytes((plain[_FLAGS_AT] | _SESSION_HEADER_FLAG,))
    return b"".join((plain[:_FLAGS_AT], flags, plain[_FLAGS_AT + 1 :], header.encode()))


def without_session_header(packet: Buffer) -> bytes:
    """A copy of a packet without its SessionHeader."""
    if not packet[_FLAGS_AT] & _SESSION_HEADER_FLAG:
        return bytes(packet)
    flags = bytes((packet[_FLAGS_AT] & ~_SESSION_HEADER_FLAG,))
    rest = packet[_FLAGS_AT + 1 : len(packet) - SESSION_HEADER_SIZE]
    return b"".join((packet[:_FLAGS_AT], flags, rest))
