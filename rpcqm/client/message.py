"""Messages that were read from a queue manager."""

from functools import lru_cache
from uuid import UUID
from xml.etree.ElementTree import Element

from rpcqm.base.errors import DecodeError
from rpcqm.codec.bodies.described import text_of
from rpcqm.codec.bodies.formatters import Value, decode_body
from rpcqm.codec.bodies.xml_documents import parse_xml
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import AcknowledgementsRequested, DeliveryGuarantee
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.codec.packet.remote_read import MessagePacketExtension
from rpcqm.codec.packet.srmp import locate_compound
from rpcqm.codec.packet.trace_context import context_in
from rpcqm.codec.packet.types import SEQUENTIAL_BITS
from rpcqm.codec.types.mqvalues import (
    INFINITE,
)
from rpcqm.codec.types.remoteread import SectionBuffer, SectionType

_FIRST_SECTIONS = (SectionType.stBinaryFirstSection, SectionType.stSrmpFirstSection)


class ReceivedMessage(PacketMessage):
    """A message that was read: its packet, and what the queue manager tells about it.

    It has the attributes of OutgoingMessage under the same names. `arrival_time` is in seconds
    since 1970. `withheld` is the number of bytes at the end of the body that were not read; in
    `body`, zeros stand in their place.
    """

    __slots__ = ("arrival_time", "extensions", "lookup_identifier", "withheld")

    def __init__(
        self,
        packet: bytes,
        extensions: MessagePacketExtension,
        sequential_identifier: int,
        arrival_time: int,
        withheld: int = 0,
    ) -> None:
        super().__init__(packet)
        self.extensions = extensions
        self.arrival_time = arrival_time
        self.withheld = self._withheld_of_body(withheld)
        self.lookup_identifier = (7 - self.priority) << SEQUENTIAL_BITS | sequential_identifier

    def _withheld_of_body(self, withheld: int) -> int:
        """How much of the body was not read, where `withheld` octets of what holds it were not.

        The body of a message that came by HTTP is in its request, which may go on behind it.
        """
        compound = self.layout.compound
        if not withheld or compound < 0:
            return withheld
        start, size = self.body_span
        read_to = locate_compound(self.buffer, compound)[1] - withheld
        return min(size, max(0, start + size - read_to))

    @property
    def available_body(self) -> bytes:
        """The part of the body that was read."""
        return self.body[: self.body_size - self.withheld]

    @property
    def time_to_reach_queue(self) -> int:
        """Seconds from sending, though RemoteRead gives a point in time ([MS-MQRR] 2.2.5.1)."""
        told = self._number(12)
        return told if told == INFINITE or told < self.sent_time else told - self.sent_time

    @property
    def recoverable(self) -> bool:
        return self.delivery_guarantee is DeliveryGuarantee.RECOVERABLE

    @property
    def response_queue(self) -> FormatName | None:
        """The queue for an answer; the correlation identifier of that is this `identifier`."""
        return self.response_queue_format_name

    @property
    def administration_queue(self) -> FormatName | None:
        return self.administration_queue_format_name

    @property
    def acknowledgements(self) -> AcknowledgementsRequested:
        return self.acknowledgements_requested

    @property
    def dead_letter(self) -> bool:
        return self.negative_journaling_requested

    @property
    def journal(self) -> bool:
        return self.positive_journaling_requested

    @property
    def privacy(self) -> int:
        """The PrivacyLevel with which the body was encrypted on its way."""
        return self.privacy_level

    @property
    def connector_type(self) -> UUID | None:
        return self.connector_type_identifier

    @property
    def is_transactional(self) -> bool:
        return self.transaction_identifier is not None

    @property
    def subqueue(self) -> str:
        """The name of the message's subqueue; empty if the message is in no subqueue."""
        return self.extensions.subqueue.subqueue_name if self.extensions.subqueue else ""

    @property
    def traceparent(self) -> str:
        """The context of its sender's trace (W3C), if its extension carries one; else ""."""
        context = context_in(self.extension)
        return "" if context is None else str(context)

    @property
    def move_count(self) -> int:
        return self.extensions.subqueue.move_counter if self.extensions.subqueue else 0

    @property
    def abort_count(self) -> int:
        return self.extensions.subqueue.abort_counter if self.extensions.subqueue else 0

    @property
    def value(self) -> Value:
        """The body, decoded as its type says (`rpcqm.client.bodies`); raises DecodeError."""
        return decode_body(self.available_body, self.body_type)

    @property
    def xml(self) -> Element:
        """The root element of a body that is XML; raises DecodeError."""
        return parse_xml(self.available_body)

    @property
    def text(self) -> str | None:
        """The body as text: UTF-16 if its type says so, else UTF-8.

        None if the body is not text of that encoding, or has the type of a number or a date.
        """
        return text_of(self.available_body, self.body_type)


def from_sections(
    sections: list[SectionBuffer], sequential_identifier: int, arrival_time: int
) -> ReceivedMessage:
    """Put the sections of a message packet together ([MS-MQRR] 3.1.4.7, ppPacketSections).

    Raises DecodeError if they are not a message.
    """
    if not sections:
        raise DecodeError("no section of the message came")
    first = sections[0]
    withheld = first.SectionSizeAlloc - first.SectionSize
    if withheld and (first.SectionBufferType not in _FIRST_SECTIONS or withheld < 0):
        raise DecodeError(f"a section lacks {withheld} bytes")
    parts = [section.pSectionBuffer or b"" for section in sections]
    parts.insert(1, bytes(withheld))
    return from_packet(b"".join(parts), sequential_identifier, arrival_time, withheld)


@lru_cache(maxsize=256)  # most messages of a queue have come from few hosts
def _extension_of(octets: bytes) -> MessagePacketExtension:
    return MessagePacketExtension.decode(octets)


def from_packet(
    packet: bytes, sequential_identifier: int, arrival_time: int, withheld: int = 0
) -> ReceivedMessage:
    """The message of a MessagePacketStructure ([MS-MQRR] 2.2.5), of whose body octets are withheld.

    Raises DecodeError if it is not a message.
    """
    size = PacketMessage(packet).size
    extensions = _extension_of(packet[size:])
    message = ReceivedMessage(
        packet[:size], extensions, sequential_identifier, arrival_time, withheld
    )
    message.validate()
    return message
