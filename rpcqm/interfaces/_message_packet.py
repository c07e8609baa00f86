"""What a remote reader gets of a message: its packet, whole or in two sections.

A packet is split where its body is cut. The second section starts right behind the body, with the
padding that MessagePropertiesHeader ends with, so that the sections make a valid packet when each
is placed at the sum of the SectionSizeAlloc of those before it ([MS-MQRR] 2.2.6).
"""

import ipaddress

from rpcqm.adm.message import Message
from rpcqm.codec.packet import UserMessage, locate_body
from rpcqm.codec.packet_remote_read import (
    IP_ADDRESS_TYPE,
    AddressOverlay,
    DeadLetterHeader,
    ExtendedAddressHeader,
    HostAddress,
    MessagePacketExtension,
    SectionType,
    SubqueueHeader,
    message_packet,
)
from rpcqm.codec.packet_srmp import locate_compound
from rpcqm.codec.packet_user import QueueFormatType
from rpcqm.codec.types.remoteread import SectionBuffer

_UNKNOWN_ADDRESS = bytes(16)


def own_address(addresses: tuple[str, ...]) -> HostAddress:
    """Of the addresses of this machine, the first that others can reach."""
    reachable = [text for text in addresses if not ipaddress.ip_address(text).is_loopback]
    return HostAddress.parse((reachable or list(addresses) or ["127.0.0.1"])[0])


class MessagePackets:
    """Makes the sections of messages ([MS-MQRR] 2.2.5 to 2.2.7).

    `local` is the address that messages sent on this machine came from.
    """

    def __init__(self, local: HostAddress) -> None:
        self._local = local
        self._plain = _extension(local, None)

    def sections(
        self, message: Message, maximum_body_size: int, maximum_compound_size: int
    ) -> list[SectionBuffer]:
        """The sections of a message: one, or two when the body is longer than asked for.

        The sizes are bytes: of the body of a binary message, of the CompoundMessageHeader of a
        message that came by HTTP. Raises DecodeError for a damaged packet.
        """
        packet = message.attributes
        octets = self._message_packet(message, packet)
        if packet.is_srmp:
            start = packet.layout.compound
            size = locate_compound(packet.buffer, start)[1] - start
            first, second = SectionType.stSrmpFirstSection, SectionType.stSrmpSecondSection
            maximum = maximum_compound_size
        elif maximum_body_size >= len(octets):
            return [_section(SectionType.stFullPacket, octets)]
        else:
            start, size = locate_body(packet.buffer)
            first, second = SectionType.stBinaryFirstSection, SectionType.stBinarySecondSection
            maximum = maximum_body_size
        if maximum >= size:
            return [_section(SectionType.stFullPacket, octets)]
        end = start + size
        beginning = _section(first, octets[: start + maximum])
        beginning.SectionSizeAlloc = end
        return [beginning, _section(second, octets[end:])]

    def _message_packet(self, message: Message, packet: UserMessage) -> bytes:
        host = self._source_of(packet)
        if message.abort_count or message.move_count or message.subqueue_name:
            return message_packet(packet, _extension(host, message), host)
        other = message.target_subqueue_name or message.application_deadletter_queue
        if other or host is not self._local:
            return message_packet(packet, _extension(host, message), host)
        return message_packet(packet, self._plain, host)

    def _source_of(self, packet: UserMessage) -> HostAddress | None:
        """The host that a message came from.

        A message that arrived from elsewhere has it in the place of QueueManagerAddress if it
        was sent to a direct name; an IPv6 address does not fit there and stays unknown.
        """
        if packet.user_flags >> 10 & 7 != QueueFormatType.DIRECT:
            return self._local
        raw = packet.buffer[32:48]
        if raw == _UNKNOWN_ADDRESS:
            return self._local
        overlay = AddressOverlay.decode(raw)
        if overlay.address_type == IP_ADDRESS_TYPE:
            return HostAddress(overlay.address[:4])
        return None


def _section(kind: SectionType, octets: bytes) -> SectionBuffer:
    size = len(octets)
    return SectionBuffer(
        SectionBufferType=kind, SectionSizeAlloc=size, SectionSize=size, pSectionBuffer=octets
    )


def _extension(host: HostAddress | None, message: Message | None) -> bytes:
    """The headers behind the UserMessage; no message is one that was never moved."""
    chosen = "" if message is None else message.application_deadletter_queue
    return MessagePacketExtension(
        subqueue=None if message is None else _subqueue_header(message),
        dead_letter=DeadLetterHeader(chosen) if chosen else None,
        extended_address=ExtendedAddressHeader.of(host),
    ).encode()


def _subqueue_header(message: Message) -> SubqueueHeader:
    """[MS-MQRR] 2.2.5.3; the time of the last move is in seconds (G41)."""
    return SubqueueHeader(
        abort_counter=message.abort_count,
        move_counter=message.move_count,
        last_move_time=message.last_move_time // 1000,
        subqueue_name=message.subqueue_name,
        target_subqueue_name=message.target_subqueue_name,
    )
