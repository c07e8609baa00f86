"""Messages put together from sections, and messages as transfer buffers."""

from uuid import UUID, uuid4

import pytest

from rpcqm.base.errors import DecodeError, HResult, MQError
from rpcqm.client.message import from_sections
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.transfer_buffer import transfer_buffer_of
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.queue_format import format_name_of
from rpcqm.codec.packet.enums import (
    AcknowledgementsRequested,
    BodyType,
    SenderIdentifierType,
)
from rpcqm.codec.packet.message import (
    MessageAttributes,
    MessageIdentifier,
    build_user_message,
)
from rpcqm.codec.packet.remote_read import MessagePacketExtension, SubqueueHeader, message_packet
from rpcqm.codec.packet.security import SecurityHeader
from rpcqm.codec.packet.user_message import UserMessage
from rpcqm.codec.types.mqvalues import INFINITE
from rpcqm.codec.types.qmcomm import CACTransferBufferV1_Send
from rpcqm.codec.types.remoteread import SectionBuffer, SectionType

BODY = bytes(range(100))
ORDERS = FormatName.parse(r"DIRECT=OS:host\private$\orders")
EXTENSION = MessagePacketExtension(SubqueueHeader(move_counter=2, subqueue_name="late"))
NOW = 1_700_000_000


def whole(priority: int = 3) -> UserMessage:
    attributes = MessageAttributes(
        destination_queue_format_name=ORDERS, body=BODY, label="a label", priority=priority
    )
    packet = build_user_message(attributes)
    return UserMessage(message_packet(packet, EXTENSION.encode()))


def section(kind: SectionType, content: bytes, whole_size: int | None = None) -> SectionBuffer:
    size = len(content) if whole_size is None else whole_size
    return SectionBuffer(
        SectionBufferType=kind,
        SectionSizeAlloc=size,
        SectionSize=len(content),
        pSectionBuffer=content,
    )


def cut(size: int) -> list[SectionBuffer]:
    """The two sections of a packet of whose body `size` bytes were asked for."""
    packet = whole()
    behind = packet.body_offset + packet.body_size
    first = bytes(packet.buffer[: packet.body_offset + size])
    return [
        section(SectionType.stBinaryFirstSection, first, behind),
        section(SectionType.stBinarySecondSection, bytes(packet.buffer[behind:])),
    ]


def test_a_full_packet_is_the_message() -> None:
    buffer = bytes(whole().buffer)
    message = from_sections([section(SectionType.stFullPacket, buffer)], 7, NOW)
    assert (message.body, message.available_body, message.withheld) == (BODY, BODY, 0)
    assert (message.label, message.arrival_time) == ("a label", NOW)
    assert (message.subqueue, message.move_count) == ("late", 2)


@pytest.mark.parametrize("size", [0, 1, 50, 99])
def test_two_sections_are_a_message_with_a_part_of_its_body(size: int) -> None:
    message = from_sections(cut(size), 7, NOW)
    assert message.available_body == BODY[:size]
    assert (message.body_size, message.withheld) == (100, 100 - size)
    assert (message.label, message.move_count) == ("a label", 2)


@pytest.mark.parametrize(("priority", "high"), [(0, 7), (3, 4), (7, 0)])
def test_the_lookup_identifier_gets_its_high_byte_from_the_priority(
    priority: int, high: int
) -> None:
    buffer = bytes(whole(priority).buffer)
    message = from_sections([section(SectionType.stFullPacket, buffer)], 0x12345, NOW)
    assert message.lookup_identifier == high << 56 | 0x12345


@pytest.mark.parametrize(
    "sections",
    [
        [],
        [section(SectionType.stFullPacket, b"")],
        [section(SectionType.stFullPacket, bytes(40))],
        [section(SectionType.stFullPacket, bytes(whole().buffer)[:-200])],
        [section(SectionType.stFullPacket, bytes(whole().buffer), len(whole().buffer) + 4)],
        [section(SectionType.stBinaryFirstSection, bytes(whole().buffer), 4)],
    ],
    ids=["none", "empty", "zeros", "cut off", "short", "negative"],
)
def test_what_does_not_make_a_message_is_a_decode_error(sections: list[SectionBuffer]) -> None:
    with pytest.raises(DecodeError):
        look_at(sections)


def look_at(sections: list[SectionBuffer]) -> None:
    """Put a message together and decode what a reader would look at."""
    message = from_sections(sections, 7, NOW)
    assert message.body is not None
    assert message.label is not None
    assert message.subqueue == "late"


def test_what_is_not_given_is_not_sent() -> None:
    old = transfer_buffer_of(OutgoingMessage(), NOW).old
    assert (old.ppBody, old.ppTitle, old.ppMsgExtension, old.ppCorrelationID) == (None,) * 4
    assert (old.pPriority, old.pDelivery, old.pUow) == (3, 1, None)
    assert old.ulAbsoluteTimeToQueue == old.ulRelativeTimeToLive == INFINITE


def test_every_property_has_its_place_in_the_buffer() -> None:
    message = OutgoingMessage(
        body=BODY,
        label="Äpfel 🍎",
        priority=6,
        recoverable=False,
        body_type=BodyType.VT_LPWSTR,
        time_to_be_received=60,
        time_to_reach_queue=30,
        acknowledgements=AcknowledgementsRequested.ACK_FULL_RECEIVE,
        administration_queue=ORDERS,
        response_queue=ORDERS,
        correlation_identifier=MessageIdentifier(UUID(int=5), 9),
        application_tag=77,
        extension=b"more",
        connector_type=UUID(int=8),
    )
    transaction = UUID(int=1 << 100)
    old = transfer_buffer_of(message, NOW, transaction).old
    assert (old.ppBody, old.ulBodyBufferSizeInBytes, old.ulAllocBodyBufferInBytes) == (
        BODY,
        100,
        100,
    )
    assert (old.ppTitle, old.ulTitleBufferSizeInWCHARs) == ("Äpfel 🍎", 8)
    assert (old.pPriority, old.pDelivery, old.pulBodyType) == (6, 0, 31)
    assert (old.ulRelativeTimeToLive, old.ulAbsoluteTimeToQueue) == (60, NOW + 30)
    assert (old.pAcknowledge, old.pApplicationTag) == (0x0E, 77)
    assert (old.ppMsgExtension, old.ulMsgExtensionBufferInBytes) == (b"more", 4)
    assert old.ppCorrelationID == MessageIdentifier(UUID(int=5), 9).encode()
    assert old.ppConnectorType == UUID(int=8)
    assert old.pUow is not None
    assert old.pUow.rgb == transaction.bytes_le
    send = old.u.value
    assert isinstance(send, CACTransferBufferV1_Send)
    for queue in (send.pAdminQueueFormat, send.pResponseQueueFormat):
        assert queue is not None
        assert format_name_of(queue) == ORDERS


def test_what_no_message_has_room_for_is_refused() -> None:
    transfer_buffer_of(OutgoingMessage(bytes(0x400000)), NOW)
    with pytest.raises(MQError) as caught:
        transfer_buffer_of(OutgoingMessage(bytes(0x400000), extension=b"x"), NOW)
    assert caught.value.status is HResult.MQ_ERROR_INSUFFICIENT_RESOURCES


REQUEST = b"POST /msmq/private$/q HTTP/1.1\r\n\r\n" + BODY + b"--\r\nbehind the body"


def came_by_http() -> tuple[bytes, int, int]:
    """A message packet, and where its CompoundMessageHeader starts and ends."""
    attributes = MessageAttributes(
        body=BODY,
        label="a label",
        soap_envelope="<se:Envelope/>",
        soap_compound_message=REQUEST,
        soap_header="<h/>",
        soap_body="<b/>",
    )
    packet = message_packet(build_user_message(attributes))
    end = packet.index(REQUEST) + len(REQUEST)
    return packet, end - len(REQUEST) - 16, end


@pytest.mark.conformance("MQRR-section-stSrmpFirstSection", "MQRR-section-stSrmpSecondSection")
@pytest.mark.parametrize("size", range(16, 16 + len(REQUEST) + 1))
def test_a_message_that_came_by_http_has_the_part_of_its_body_that_was_read(size: int) -> None:
    packet, start, end = came_by_http()
    sections = [
        section(SectionType.stSrmpFirstSection, packet[: start + size], end),
        section(SectionType.stSrmpSecondSection, packet[end:]),
    ]
    message = from_sections(sections, 7, NOW)
    shown = min(max(size - 16 - REQUEST.index(BODY), 0), len(BODY))
    assert message.available_body == BODY[:shown]
    assert (message.body_size, message.withheld) == (len(BODY), len(BODY) - shown)
    assert (message.label, message.soap_envelope) == ("a label", "<se:Envelope/>")
    assert (message.soap_header, message.soap_body) == ("<h/>", "<b/>")
    if size == 16 + len(REQUEST):
        assert message.soap_compound_message == REQUEST


@pytest.mark.parametrize("size", [0, 3])
def test_a_request_that_was_cut_before_its_sizes_is_no_message(size: int) -> None:
    packet, start, end = came_by_http()
    sections = [
        section(SectionType.stSrmpFirstSection, packet[: start + size], end),
        section(SectionType.stSrmpSecondSection, packet[end:]),
    ]
    with pytest.raises(DecodeError):
        from_sections(sections, 7, NOW)


def test_what_many_messages_share_is_validated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The security header of an unsigned message is that of its sender; a broken one is refused."""
    decoded: list[bytes] = []
    decode = SecurityHeader.decode

    def counted(octets: bytes, offset: int = 0) -> tuple[SecurityHeader, int]:
        decoded.append(octets)
        return decode(octets, offset)

    monkeypatch.setattr(SecurityHeader, "decode", counted)
    sender = b"\1\2" + bytes(6) + uuid4().bytes
    sent = MessageAttributes(
        destination_queue_format_name=ORDERS,
        sender_identifier_type=SenderIdentifierType.SID,
        sender_identifier=sender,
    )
    for number in range(3):
        sent.body = b"%d" % number
        UserMessage(build_user_message(sent)).validate()
    assert len(decoded) == 1
    broken = bytearray(build_user_message(sent))
    flags = UserMessage(bytes(broken)).layout.security
    broken[flags] &= 0xF0
    for _ in range(2):
        with pytest.raises(DecodeError, match="sender of type 0"):
            UserMessage(bytes(broken)).validate()
