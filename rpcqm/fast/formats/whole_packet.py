"""The packet for a remote reader of a message in one section, made in few steps.

`MessagePackets.sections` stays the only definition of it.
"""

from rpcqm.adm.message import Message, split_stored
from rpcqm.codec.layout import Buffer
from rpcqm.codec.packet.remote_read import message_packet, plain_extension
from rpcqm.codec.packet.user_message import is_srmp
from rpcqm.fast.formats.plain_packet import HeadersBefore, PlainPackets
from rpcqm.interfaces._message_packet import MessagePackets


class WholePackets:
    """Makes the packets of binary messages whose bodies fit the requested size.

    None for other messages, which `sections` may have to split. Raises DecodeError as it does.
    """

    def __init__(self, packets: MessagePackets) -> None:
        self._packets = packets
        self._headers, self._alike = HeadersBefore(), PlainPackets()

    def of(self, message: Message, maximum_body_size: int) -> bytes | None:
        """The packet of a message."""
        kind = self._class_of(message.packet, maximum_body_size)
        return None if kind is None else self._packets.message_packet(message, kind)

    def of_stored(self, stored: bytes, maximum_body_size: int) -> bytes | None:
        """`of` for a stored message to which nothing has happened since it came."""
        made = self._alike.packet(stored, maximum_body_size)
        if made is not None:
            return made
        packet, source = split_stored(stored)
        if self._class_of(packet, maximum_body_size) != 0:
            return None
        host = self._packets.source(source)
        extension = plain_extension(host)
        properties, behind = self._headers.properties, stored[len(packet) :]
        self._alike.learn(packet, properties, behind, host, extension)
        return message_packet(packet, extension, host)

    def _class_of(self, packet: Buffer, maximum_body_size: int) -> int | None:
        """The class of a binary message whose body fits the requested size; None otherwise."""
        if is_srmp(packet):
            return None
        kind, size = self._headers.class_and_body_size(packet)
        return kind if maximum_body_size >= size else None
