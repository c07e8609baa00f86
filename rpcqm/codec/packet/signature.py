"""What a digital signature of a message covers ([MS-MQMQ] 2.5).

Fields are taken as they stand in the packet, so that sender and receiver see the same bytes; a
field that is not there contributes nothing.
"""

from rpcqm.codec.layout import Buffer
from rpcqm.codec.packet.base import BaseFlags
from rpcqm.codec.packet.enums import EVERY_ACKNOWLEDGEMENT, MessageAuthenticationLevel
from rpcqm.codec.packet.fields import (
    ACKNOWLEDGEMENTS,
    APPLICATION_TAG,
    BODY_TYPE,
    CLASS,
    CORRELATION_ID,
    NAMES_OFFSET,
    QUEUE_TYPE,
    RESPONSE_TYPE,
    SOURCE_QUEUE_MANAGER,
)
from rpcqm.codec.packet.multi_queue import ADDRESS_START, locate_address
from rpcqm.codec.packet.user import UserFlags, queue_name_end
from rpcqm.codec.packet.user_message import PacketLayout, UserMessage


def signed_properties(packet: UserMessage, level: MessageAuthenticationLevel) -> bytes:
    """The bytes that a signature of this level is a hash of; raises DecodeError.

    Raises ValueError for a level without such a list.
    """
    if level == MessageAuthenticationLevel.SIG10:
        return _common(packet)
    if level == MessageAuthenticationLevel.SIG20:
        return _common(packet) + _origin(packet) + _destination(packet)
    if level == MessageAuthenticationLevel.SIG30:
        return b"".join((_common(packet), _extension(packet), _names(packet), _origin(packet)))
    raise ValueError(f"{level!r} covers no fixed list of properties")


def _common(packet: UserMessage) -> bytes:
    """CorrelationID, ApplicationTag, MessageBody, Label, ResponseQueue, AdminQueue."""
    buffer, layout = packet.buffer, packet.layout
    return b"".join(
        (
            _property(packet, CORRELATION_ID),
            _property(packet, APPLICATION_TAG),
            packet.body,
            buffer[layout.label : layout.extension],
            _response(packet, layout),
            buffer[layout.admin_queue : layout.response_queue],
        )
    )


def _property(packet: UserMessage, place: "slice[int, int, None]") -> Buffer:
    start = packet.layout.properties
    return packet.buffer[start + place.start : start + place.stop]


def _response(packet: UserMessage, layout: PacketLayout) -> bytes:
    kind = packet.user_flags >> RESPONSE_TYPE & QUEUE_TYPE
    end = queue_name_end(packet.buffer, layout.response_queue, kind)
    return bytes(packet.buffer[layout.response_queue : end])


def _origin(packet: UserMessage) -> bytes:
    """SourceQueueManager to ConnectorType: source, options, class, type of the body."""
    buffer, connector = packet.buffer, packet.layout.connector_type
    flags = UserFlags(packet.user_flags)
    options = bytes(
        (
            flags.DM,
            BaseFlags(packet.base_flags).PR,
            flags.JP << 1 | flags.JN,
            _property(packet, ACKNOWLEDGEMENTS)[0] & EVERY_ACKNOWLEDGEMENT,
        )
    )
    return b"".join(
        (
            buffer[SOURCE_QUEUE_MANAGER],
            options,
            _property(packet, CLASS),
            _property(packet, BODY_TYPE),
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
    return bytes(packet.buffer[offset + ADDRESS_START.size : end])
