"""The packet of a message for a remote reader, whole or in two sections.

A packet is split where its body is cut. The second section starts right behind the body, with the
padding that MessagePropertiesHeader ends with, so that the sections make a valid packet when each
is placed at the sum of the SectionSizeAlloc of those before it ([MS-MQRR] 2.2.6).
"""

import ipaddress
import socket
from functools import lru_cache

from rpcqm.adm.message import FLAG_ALLOW_PEEK_WHEN_LOCKED, Message
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.adm.transaction import TransactionalOperation
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.codec.packet.remote_read import (
    DeadLetterHeader,
    ExtendedAddressHeader,
    HostAddress,
    MessagePacketExtension,
    SubqueueFlags,
    SubqueueHeader,
    message_packet,
    plain_extension,
)
from rpcqm.codec.packet.srmp import locate_compound
from rpcqm.codec.packet.user_message import class_of, locate_body
from rpcqm.codec.types.remoteread import SectionBuffer, SectionType
from rpcqm.qm.acknowledgements import Acknowledgements


def own_address(addresses: tuple[str, ...]) -> HostAddress:
    """Of the addresses of this machine, the first that others can reach."""
    reachable = [text for text in addresses if not ipaddress.ip_address(text).is_loopback]
    return host_of((reachable or list(addresses) or ["127.0.0.1"])[0])


@lru_cache(maxsize=256)  # cached, because few queue managers send most messages
def host_of(text: str) -> HostAddress:
    """The address in a socket's text; an IPv4 address mapped into IPv6 becomes IPv4 again."""
    plain, _, scope = text.partition("%")
    address = ipaddress.ip_address(plain)
    mapped = getattr(address, "ipv4_mapped", None)
    return HostAddress((mapped or address).packed, _scope_number(scope))


def _scope_number(scope: str) -> int:
    """The index of a network adapter; 0 if none is named."""
    if not scope or scope.isdecimal():
        return int(scope or 0)
    try:
        return socket.if_nametoindex(scope)
    except OSError:  # the adapter has been removed; the address is usable without it
        return 0


class MessagePackets:
    """Makes the sections of messages ([MS-MQRR] 2.2.5 to 2.2.7).

    Messages that were sent on this machine came from an address of its own.
    """

    def __init__(
        self,
        queue_manager: QueueManager,
        acknowledgements: Acknowledgements,
        addresses: tuple[str, ...],
    ) -> None:
        self._queue_manager = queue_manager
        self._acknowledgements = acknowledgements
        self._local = own_address(addresses)

    def sections(
        self, message: Message, maximum_body_size: int, maximum_compound_size: int
    ) -> list[SectionBuffer]:
        """The sections of a message: one, or two when the body is longer than asked for.

        The sizes are bytes: of the body of a binary message, of the CompoundMessageHeader of a
        message that came by HTTP. Raises DecodeError for a damaged packet.
        """
        packet = message.attributes
        octets = self.message_packet(message, class_of(packet.buffer))
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

    def message_packet(self, message: Message, kind: int) -> bytes:
        """The whole MessagePacketStructure of a message of a class ([MS-MQRR] 2.2.5)."""
        host = self.source(message.source_address)
        plain = not (
            message.abort_count
            or message.move_count
            or message.subqueue_name
            or message.application_deadletter_queue
            or message.kept_flags & FLAG_ALLOW_PEEK_WHEN_LOCKED
            or kind
        )
        if plain:
            extension = plain_extension(host)
        else:
            extension = self._extension(message, message.attributes, host)
        return message_packet(message.packet, extension, host)

    def source(self, address: str) -> HostAddress:
        """The host that a message was received from ([MS-MQRR] 2.2.5.1, G125)."""
        return host_of(address) if address else self._local

    def _extension(self, message: Message, packet: PacketMessage, host: HostAddress) -> bytes:
        """The headers behind the UserMessage ([MS-MQRR] 2.2.5.2 to 2.2.5.5)."""
        chosen = message.application_deadletter_queue
        return MessagePacketExtension(
            subqueue=self._subqueue_header(message, packet),
            dead_letter=DeadLetterHeader(chosen) if chosen else None,
            extended_address=ExtendedAddressHeader.of(host),
            dead_letter_invalid=self._acknowledgements.application_deadletter(message) is None,
        ).encode()

    def _subqueue_header(self, message: Message, packet: PacketMessage) -> SubqueueHeader:
        """[MS-MQRR] 2.2.5.3; the time of the last move is in seconds (G41)."""
        operation = self._operation_on(message)
        kind, target = packet.message_class, None
        if operation is not None:
            kind = operation.dequeue_reason or kind
            target = operation.target_queue_reference
        return SubqueueHeader(
            flags=SubqueueFlags.of(ACKNOWLEDGEMENT_CLASS=kind),
            abort_counter=message.abort_count,
            move_counter=message.move_count,
            last_move_time=message.last_move_time // 1000,
            subqueue_name=message.subqueue_name,
            target_subqueue_name="" if target is None else target.subqueue_name,
        )

    def _operation_on(self, message: Message) -> TransactionalOperation | None:
        """The transaction's operation on a message that can still be peeked."""
        if not message.kept_flags & FLAG_ALLOW_PEEK_WHEN_LOCKED:
            return None
        for transaction in self._queue_manager.transaction_collection.values():
            for operation in transaction.transactional_operation_collection:
                place = operation.queue, operation.lookup_identifier
                if place == (message.queue, message.lookup_identifier):
                    return operation
        return None


def _section(kind: SectionType, octets: bytes) -> SectionBuffer:
    size = len(octets)
    return SectionBuffer(
        SectionBufferType=kind, SectionSizeAlloc=size, SectionSize=size, pSectionBuffer=octets
    )
