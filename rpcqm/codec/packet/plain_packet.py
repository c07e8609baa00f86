"""The packet that a remote reader gets of a message like the one before, made in few steps.

`message_packet` stays the only definition of it. Most messages that are read one behind the other
have the same headers and came from the same host; what these give is kept from one to the next.
"""

from rpcqm.codec.packet.fields import QUEUE_MANAGER_ADDRESS, USER_FLAGS
from rpcqm.codec.packet.patch import absolute_time_to_reach_queue
from rpcqm.codec.packet.properties import PROPERTIES_HEADER_SIZE, class_and_lengths
from rpcqm.codec.packet.remote_read import (
    HEAD,
    SESSION_HEADER_FLAG,
    HostAddress,
    joined,
    reader_address,
)
from rpcqm.codec.packet.user_message import LONGEST_HEADERS

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
        self._address = reader_address(HEAD.unpack_from(packet)[-1], host)

    def packet(self, stored: bytes, maximum_body_size: int) -> bytes | None:
        """The packet of an ordinary message with a body of that size at most; None for others."""
        properties = self._properties
        if stored[_FLAGS_AT:properties] != self._headers:
            return None
        flags, size, relative, sent, _ = HEAD.unpack_from(stored)
        if flags & SESSION_HEADER_FLAG or size > len(stored) or stored[size:] != self._behind:
            return None
        if properties + PROPERTIES_HEADER_SIZE > size:
            return None
        kind, body_size, rest = class_and_lengths(stored, properties)
        if kind or body_size > maximum_body_size or properties + rest > size:
            return None
        expiry = absolute_time_to_reach_queue(relative, sent)
        address = self._address or stored[QUEUE_MANAGER_ADDRESS]
        return joined(stored, size, expiry, address, self._extension)
