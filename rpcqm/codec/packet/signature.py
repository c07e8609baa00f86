"""What a digital signature of a message covers ([MS-MQMQ] 2.5).

Fields are taken as they stand in the packet, so that sender and receiver see the same bytes; a
field that is not there contributes nothing.
"""

from rpcqm.codec.packet.enums import AuthenticationLevel
from rpcqm.codec.packet.multi_queue import locate_address
from rpcqm.codec.packet.user import queue_name_end
from rpcqm.codec.packet.user_message import NAMES_OFFSET, PacketLayout, UserMessage


def signed_properties(packet: UserMessage, level: AuthenticationLevel) -> bytes:
    """The bytes that a signature of this level is a hash of; raises DecodeError.

    Raises ValueError for a level without such a list.
    """
    if level == AuthenticationLevel.SIG10:
        return _common(packet)
    if level == AuthenticationLevel.SIG20:
        return _common(packet) + _origin(packet) + _destination(packet)
    if level == AuthenticationLevel.SIG30:
        return b"".join((_common(packet), _extension(packet), _names(packet), _origin(packet)))
    raise ValueError(f"{level!r} covers no fixed list of properties")


def _common(packet: UserMessage) -> bytes:
    """CorrelationID, ApplicationTag, MessageBody, Label, ResponseQueue, AdminQueue."""
    buffer, layout = packet.buffer, packet.layout
    properties = layout.properties
    return b"".join(
        (
            buffer[properties + 4 : properties + 24],
            buffer[properties + 28 : properties + 32],
            packet.body,
            buffer[layout.label : layout.extension],
            _response(packet, layout),
            buffer[layout.admin_queue : layout.response_queue],
        )
    )


def _response(packet: UserMessage, layout: PacketLayout) -> bytes:
    kind = packet.user_flags >> 16 & 7
    end = queue_name_end(packet.buffer, layout.response_queue, kind)
    return bytes(packet.buffer[layout.response_queue : end])


def _origin(packet: UserMessage) -> bytes:
    """SourceQueueManager to ConnectorType: source, options, class, type of the body."""
    buffer, layout, flags = packet.buffer, packet.layout, packet.user_flags
    properties, connector = layout.properties, layout.connector_type
    options = bytes(
        (
            flags >> 5 & 3,
            packet.base_flags & 7,
            (flags >> 9 & 1) << 1 | flags >> 8 & 1,
            buffer[properties] & 0x0F,
        )
    )
    return b"".join(
        (
            buffer[16:32],
            options,
            buffer[properties + 2 : properties + 4],
            buffer[properties + 24 : properties + 28],
            buffer[connector : connector + 16] if connector >= 0 else b"",
        )
    )


def _destination(packet: UserMessage) -> bytes:
    return bytes(packet.buffer[NAMES_OFFSET : packet.layout.admin_queue])


def _extension(packet: UserMessage) -> bytes:
    return bytes(packet.buffer[packet.layout.extension : packet.layout.body])


def _names(packet: UserMessage) -> bytes:
    """MultiQueueFormatHeader.FormatNameList: the one of the destinations."""
    offset = packet.layout.multi_queue
    if offset < 0:
        return b""
    end = locate_address(packet.buffer, offset)
    return bytes(packet.buffer[offset + 12 : end])
