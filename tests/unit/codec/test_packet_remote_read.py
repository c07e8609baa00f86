"""The Message Packet of [MS-MQRR] 2.2.5: what a remote reader gets besides the message."""

import contextlib
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpcqm.base.errors import DecodeError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.message import (
    MessageAttributes,
    MessageIdentifier,
    PacketMessage,
    build_user_message,
)
from rpcqm.codec.packet.remote_read import (
    PLAIN_EXTENSION,
    AddressOverlay,
    DeadLetterHeader,
    ExtendedAddressHeader,
    ExtensionFlags,
    ExtensionHeader,
    HostAddress,
    MessagePacketExtension,
    SubqueueFlags,
    SubqueueHeader,
    message_packet,
)
from rpcqm.codec.packet.user_message import UserMessage
from rpcqm.codec.types.remoteread import SectionType
from tests.support.codec.packets import split_message_packet

MESSAGE = MessageAttributes(
    destination_queue_format_name=FormatName.parse(r"DIRECT=OS:host\private$\orders"),
    identifier=MessageIdentifier(UUID(int=5), 7),
    body=b"0123456789",
    sent_time=1000,
    time_to_reach_queue=60,
    soap_body="<b/>",
)
IPV4 = HostAddress.parse("10.0.0.1")
IPV6 = HostAddress.parse("fe80::1:2:3:4%3")


def from_hex(text: str) -> bytes:
    return bytes.fromhex("".join(text.split()))


@pytest.mark.conformance("MQRR-header-ExtensionHeader")
def test_extension_header_on_the_wire() -> None:
    header = ExtensionHeader(12, 176, ExtensionFlags.of(SQ=1, EA=1))
    assert header.encode() == from_hex("0c000000 b0000000 12 000000")
    assert ExtensionHeader.decode(header.encode()) == header
    flags = ExtensionFlags.of(DL=1, DI=1)
    assert flags == 0x09


@pytest.mark.conformance("MQRR-header-SubqueueHeader")
def test_subqueue_header_on_the_wire() -> None:
    header = SubqueueHeader(
        flags=SubqueueFlags.of(ACKNOWLEDGEMENT_CLASS=0xC004),
        abort_counter=1,
        move_counter=2,
        last_move_time=3,
        subqueue_name="late",
        target_subqueue_name="x" * 31,
    )
    raw = (
        from_hex("94000000 08800100 01000000 02000000 03000000 6c00610074006500")
        + bytes(56)
        + b"x\0" * 31
        + bytes(2)
    )
    assert len(raw) == 148
    assert header.encode() == raw
    assert SubqueueHeader.decode(raw) == header
    assert header.flags.TM == 0


@pytest.mark.conformance("MQRR-header-SubqueueHeader")
def test_subqueue_name_longer_than_its_field_is_refused() -> None:
    with pytest.raises(ValueError, match="31 characters"):
        SubqueueHeader(subqueue_name="x" * 32).encode()
    with pytest.raises(DecodeError):
        SubqueueHeader.decode(SubqueueHeader().encode()[:20] + b"x\0" * 64)


@pytest.mark.conformance("MQRR-header-DeadLetterHeader")
@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("a", "08000000 61000000"),
        ("ab", "0c000000 610062000000 0000"),
        ("", "08000000 00000000"),
    ],
)
def test_dead_letter_header_on_the_wire(name: str, raw: str) -> None:
    header = DeadLetterHeader(name)
    assert header.encode() == from_hex(raw)
    assert DeadLetterHeader.decode(from_hex(raw)) == (header, len(from_hex(raw)))


@pytest.mark.conformance("MQRR-header-DeadLetterHeader")
@pytest.mark.parametrize(
    "raw", ["04000000", "09000000 6100000000", "08000000 61006200", "0c000000 61000000"]
)
def test_dead_letter_header_that_contradicts_itself_is_refused(raw: str) -> None:
    with pytest.raises(DecodeError):
        DeadLetterHeader.decode(from_hex(raw))


@pytest.mark.conformance("MQRR-header-ExtendedAddressHeader")
def test_extended_address_header_on_the_wire() -> None:
    four = ExtendedAddressHeader.of(IPV4)
    assert four.encode() == from_hex("1c000000 0400 0100 00000000 0a000001" + "00" * 12)
    six = ExtendedAddressHeader.of(IPV6)
    assert six.encode() == from_hex("1c000000 1000 0600 03000000 fe80000000000000 0001000200030004")
    for header, host in ((four, IPV4), (six, IPV6)):
        assert ExtendedAddressHeader.decode(header.encode()).host == host
    assert ExtendedAddressHeader.of(None).encode() == from_hex("1c000000" + "00" * 24)
    assert ExtendedAddressHeader().host is None
    assert ExtendedAddressHeader(address_length=3, address_type=1).host is None


def test_host_address_as_text() -> None:
    assert str(IPV4) == "10.0.0.1"
    assert str(IPV6) == "fe80::1:2:3:4%3"
    assert HostAddress.parse("fe80::1%eth0").scope == 0


@pytest.mark.conformance("MQRR-packet-MessagePacket")
def test_extension_holds_its_headers_in_order() -> None:
    extension = MessagePacketExtension(
        SubqueueHeader(subqueue_name="late"),
        DeadLetterHeader(r"DIRECT=OS:h\private$\dead"),
        ExtendedAddressHeader.of(IPV4),
        dead_letter_invalid=True,
    )
    raw = extension.encode()
    header = ExtensionHeader.decode(raw)
    assert header.header_size == 12
    assert header.remaining_headers_size == len(raw) - 12
    assert header.flags == ExtensionFlags.of(DL=1, SQ=1, DI=1, EA=1)
    assert raw[12:16] == (148).to_bytes(4, "little")
    assert raw[-28:] == ExtendedAddressHeader.of(IPV4).encode()
    assert MessagePacketExtension.decode(raw) == extension


@pytest.mark.conformance("MQRR-packet-MessagePacket")
def test_plain_extension_has_an_empty_subqueue_and_no_address() -> None:
    assert len(PLAIN_EXTENSION) == 12 + 148 + 28
    extension = MessagePacketExtension.decode(PLAIN_EXTENSION)
    assert extension.subqueue == SubqueueHeader()
    assert extension.extended_address is not None
    assert extension.extended_address.host is None
    assert extension.dead_letter is None
    assert not extension.dead_letter_invalid


@pytest.mark.conformance("MQRR-packet-MessagePacket")
def test_message_of_a_server_without_extension_headers() -> None:
    packet = build_user_message(MESSAGE)
    message, extension = split_message_packet(packet)
    assert message.buffer == packet
    assert extension == MessagePacketExtension()


def test_extension_cut_anywhere_is_a_decode_error() -> None:
    raw = MessagePacketExtension(dead_letter=DeadLetterHeader("abc")).encode()
    for length in range(1, len(raw)):
        with pytest.raises(DecodeError):
            MessagePacketExtension.decode(raw[:length])


@given(st.integers(0, 200), st.integers(0, 255), st.integers(0, 20), st.integers(0, 255))
def test_corrupted_extension_is_read_or_a_decode_error(
    at: int, value: int, at2: int, value2: int
) -> None:
    raw = bytearray(MessagePacketExtension(dead_letter=DeadLetterHeader("abc")).encode())
    raw[at % len(raw)] = value
    raw[at2] = value2
    with contextlib.suppress(DecodeError):
        MessagePacketExtension.decode(raw)


@pytest.mark.parametrize(
    ("offset", "value"),
    [(0, 11), (4, 0xFF), (12, 147), (12 + 148 + 12, 27), (4, 100)],
)
def test_extension_whose_sizes_disagree_is_refused(offset: int, value: int) -> None:
    raw = bytearray(MessagePacketExtension(dead_letter=DeadLetterHeader("abc")).encode())
    raw[offset] = value
    with pytest.raises(DecodeError):
        MessagePacketExtension.decode(raw)


@pytest.mark.conformance("MQRR-packet-UserMessage")
def test_reader_gets_an_absolute_expiry_and_the_message_as_it_is_else() -> None:
    packet = build_user_message(MESSAGE)
    whole = message_packet(packet)
    assert whole[12:16] == (1060).to_bytes(4, "little")
    assert whole[:12] + packet[12:16] + whole[16 : len(packet)] == packet
    assert whole[len(packet) :] == PLAIN_EXTENSION
    endless = build_user_message(replace(MESSAGE, time_to_reach_queue=0xFFFFFFFF))
    assert message_packet(endless)[12:16] == b"\xff" * 4


@pytest.mark.conformance("MQRR-packet-UserMessage")
def test_address_of_the_sender_overlays_the_queue_manager_of_a_direct_destination() -> None:
    packet = build_user_message(MESSAGE)
    four = message_packet(packet, host=IPV4)
    assert four[32:48] == from_hex("0400 0100 00000000 0a00000100000000")
    six = message_packet(packet, host=IPV6)
    assert six[32:48] == from_hex("1000 0600 03000000 fe80000000000000")
    assert AddressOverlay.decode(six, 32).address_scope == 3
    assert message_packet(packet)[32:48] == bytes(16)


@pytest.mark.conformance("MQRR-packet-UserMessage")
def test_queue_manager_of_any_other_destination_stays() -> None:
    name = FormatName.private(UUID(int=9), 4)
    packet = build_user_message(replace(MESSAGE, destination_queue_format_name=name))
    assert message_packet(packet, host=IPV4)[32:48] == packet[32:48]


@pytest.mark.conformance("MQRR-packet-UserMessage")
def test_message_that_came_by_http_has_its_envelope_and_request() -> None:
    attributes = replace(
        MESSAGE, soap_envelope="<e/>", soap_compound_message=b"POST\r\n\r\n0123456789"
    )
    message = PacketMessage(build_user_message(attributes))
    message.validate()
    assert message.is_srmp
    assert message.srmp_envelope_header is not None
    assert message.srmp_envelope_header.data == "<e/>"
    compound = message.compound_message_header
    assert compound is not None
    assert (compound.msg_body_size, compound.msg_body_offset) == (10, 8)
    assert compound.body == b"0123456789"
    plain = PacketMessage(build_user_message(replace(attributes, soap_envelope="")))
    assert not plain.is_srmp
    assert plain.compound_message_header is None


def test_offsets_cut_a_packet_into_its_sections() -> None:
    packet = UserMessage(build_user_message(MESSAGE))
    whole = message_packet(packet.buffer)
    first = whole[: packet.body_offset + 4]
    second = whole[packet.trailer_offset :]
    assert first == whole[: -len(PLAIN_EXTENSION)][: len(first)]
    assert first.endswith(b"0123")
    assert second.startswith(b"\x20\x03\0\0")
    assert second.endswith(PLAIN_EXTENSION)
    withheld = whole[len(first) : packet.trailer_offset]
    assert withheld == b"456789\0\0"
    assert packet.body_size - 4 == 6
    assert [int(kind) for kind in SectionType] == [0, 1, 2, 3, 4]


@pytest.mark.conformance("MQRR-packet-MessagePacket")
def test_received_packet_is_taken_apart() -> None:
    extension = MessagePacketExtension(
        SubqueueHeader(move_counter=3, subqueue_name="late"), None, ExtendedAddressHeader.of(IPV4)
    )
    whole = message_packet(build_user_message(MESSAGE), extension.encode(), IPV4)
    message, read = split_message_packet(whole)
    message.validate()
    assert message.body == b"0123456789"
    assert read == extension


def test_received_packet_cut_anywhere_is_a_decode_error() -> None:
    packet = UserMessage(build_user_message(MESSAGE))
    whole = message_packet(packet.buffer)
    for length in range(len(whole)):
        if length != len(packet.buffer):
            with pytest.raises(DecodeError):
                split_message_packet(whole[:length])
