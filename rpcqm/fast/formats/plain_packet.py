"""The packet for a remote reader of a message like the one before, made in few steps.

`message_packet` stays the only definition of it. Most messages that are read in a row have the same
headers and came from the same host; their results are kept from one to the next.
"""

from rpcqm.codec.layout import Buffer
from rpcqm.codec.packet.fields import QUEUE_MANAGER_ADDRESS, USER_FLAGS
from rpcqm.codec.packet.patch import absolute_time_to_reach_queue
from rpcqm.codec.packet.properties import (
    PROPERTIES_HEADER_SIZE,
    class_and_lengths,
    class_and_size,
)
from rpcqm.codec.packet.remote_read import (
    HEAD,
    SESSION_HEADER_FLAG,
    HostAddress,
    joined,
    reader_address,
)
from rpcqm.codec.packet.user_message import properties_start

_FLAGS_AT = USER_FLAGS.start
LONGEST_HEADERS = 4096
"""Where the properties start at most in packets whose headers are compared with the last.

Bound `packet.remembered_headers` [octets]: where its properties start is found each time.
"""


class HeadersBefore:
    """The place of the properties in packets of one sender, which mostly have the same headers.

    The octets from the flags on determine it; if they equal the last packet's, so is the place.
    """

    __slots__ = ("_end", "_octets", "properties")

    def __init__(self) -> None:
        self._octets: bytes | None = None
        self._end = 0
        self.properties = 0
        """The place in the last packet."""

    def class_and_body_size(self, buffer: Buffer) -> tuple[int, int]:
        """The results of `class_of` and `locate_body` in one; raises DecodeError as they do."""
        properties = self._end
        if buffer[_FLAGS_AT:properties] != self._octets:
            properties = properties_start(buffer)
            self._remember(buffer, properties)
        self.properties = properties
        return class_and_size(buffer, properties)

    def _remember(self, buffer: Buffer, properties: int) -> None:
        if properties <= LONGEST_HEADERS:
            self._octets, self._end = bytes(buffer[_FLAGS_AT:properties]), properties


class PlainPackets:
    """Makes the packets of stored messages like the last one that was `learned`.

    `behind` is the store's text behind a packet: the message's source address.
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
        """Keep the constants of a packet, whose properties begin there."""
        if properties > LONGEST_HEADERS:
            return
        self._headers, self._properties = packet[_FLAGS_AT:properties], properties
        self._behind, self._extension = behind, extension
        self._address = reader_address(HEAD.unpack_from(packet)[-1], host)

    def packet(self, stored: bytes, maximum_body_size: int) -> bytes | None:
        """The packet of an ordinary message with a body of at most that size; None for others."""
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
