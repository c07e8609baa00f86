"""The packet that a remote reader gets of a message like the one before, made in few steps.

`message_packet` stays the only definition of it. Most messages that are read one behind the other
have the same headers and came from the same host; what these give is kept from one to the next.
"""

import struct

from rpcqm.codec.layout import align4
from rpcqm.codec.packet.fields import (
    QUEUE_MANAGER_ADDRESS,
    SOURCE_QUEUE_MANAGER,
    TIME_TO_REACH_QUEUE,
    USER_FLAGS,
    head_reader,
)
from rpcqm.codec.packet.patch import absolute_time_to_reach_queue
from rpcqm.codec.packet.properties import CLASS_AND_SIZES, PROPERTIES_HEADER_SIZE
from rpcqm.codec.packet.remote_read import SESSION_HEADER_FLAG, HostAddress, reader_address
from rpcqm.codec.packet.user_message import LONGEST_HEADERS

_HEAD = head_reader(("flags", "packet_size", "time_to_reach_queue"), ("sent_time", "flags"))
_TIME = struct.Struct("<I").pack
_BEFORE_TIME = slice(0, TIME_TO_REACH_QUEUE.start)
_BEHIND_ADDRESS = QUEUE_MANAGER_ADDRESS.stop
_FLAGS_AT = USER_FLAGS.start


class PlainPackets:
    """Makes the packets of messages as they are stored, like the last one that was `learned`.

    `behind` is what the store keeps behind a packet: where the message came from.
    """

    __slots__ = ("_address", "_behind", "_extension", "_headers", "_properties")

    def __init__(self) -> None:
        self._headers: bytes | None = None
        self._properties = 0
        self._behind = self._extension = b""
        self._address: bytes | None = None

    def learn(
        self, packet: bytes, properties: int, behind: bytes, host: HostAddress, extension: bytes
    ) -> None:
        """Keep what a packet, whose properties start there, has in common with those like it."""
        if properties > LONGEST_HEADERS:
            return
        self._headers, self._properties = packet[_FLAGS_AT:properties], properties
        self._behind, self._extension = behind, extension
        self._address = reader_address(_HEAD.unpack_from(packet)[-1], host)

    def packet(self, stored: bytes, maximum_body_size: int) -> bytes | None:
        """The packet of an ordinary message with a body of that size at most; None for others."""
        properties = self._properties
        if stored[_FLAGS_AT:properties] != self._headers:
            return None
        flags, size, relative, sent, _ = _HEAD.unpack_from(stored)
        if flags & SESSION_HEADER_FLAG or size > len(stored) or stored[size:] != self._behind:
            return None
        if properties + PROPERTIES_HEADER_SIZE > size:
            return None
        length, kind, body_size, extension_size = CLASS_AND_SIZES.unpack_from(stored, properties)
        rest = align4(PROPERTIES_HEADER_SIZE + 2 * length + extension_size + body_size)
        if kind or body_size > maximum_body_size or properties + rest > size:
            return None
        return b"".join(
            (
                stored[_BEFORE_TIME],
                _TIME(absolute_time_to_reach_queue(relative, sent)),
                stored[SOURCE_QUEUE_MANAGER],
                self._address or stored[QUEUE_MANAGER_ADDRESS],
                stored[_BEHIND_ADDRESS:size],
                self._extension,
            )
        )
