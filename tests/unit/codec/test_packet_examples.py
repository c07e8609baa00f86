"""The packets of [MS-MQQB] 4.1, field by field and byte by byte."""

from pathlib import Path
from uuid import UUID

import pytest

from rpcqm.base.errors import DecodeError
from rpcqm.codec.packet.acknowledgement import PacketKind, identify_packet
from rpcqm.codec.packet.base import BaseHeader, frame_size
from rpcqm.codec.packet.enums import (
    AcknowledgementsRequested,
    BodyType,
    DeliveryGuarantee,
    EncryptionAlgorithm,
    HashAlgorithm,
    MessageAuthenticationLevel,
    MessageClass,
    PrivacyLevel,
    SenderIdentifierType,
)
from rpcqm.codec.packet.internal import (
    ConnectionParametersHeader,
    ConnectionParametersPacket,
    EstablishConnectionHeader,
    EstablishConnectionPacket,
    PingFlags,
    PingPacket,
    SessionAckPacket,
    decode_internal_packet,
)
from rpcqm.codec.packet.message import PacketMessage, build_user_message, read_attributes
from rpcqm.codec.packet.properties import MessagePropertiesStart
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.packet.user_message import UserMessage, locate_body
from rpcqm.codec.security.identifier import Sid

VECTORS = Path(__file__).parents[2] / "vectors" / "packets"
INITIATOR = UUID(bytes_le=bytes.fromhex("d158735550919595499 7b6e611ea26c6".replace(" ", "")))
ACCEPTOR = UUID(bytes_le=bytes.fromhex("0789cd434c39118f44459078909ea0fc"))


def example(name: str) -> bytes:
    return bytes.fromhex((VECTORS / f"{name}.hex").read_text("ascii"))


PING_REQUEST = example("4.1.1_ping_request")
PING_RESPONSE = example("4.1.2_ping_response")
ESTABLISH_REQUEST = example("4.1.3_establish_connection_request")
ESTABLISH_RESPONSE = example("4.1.4_establish_connection_response")
PARAMETERS_REQUEST = example("4.1.5_connection_parameters_request")
PARAMETERS_RESPONSE = example("4.1.6_connection_parameters_response")
PRINTED_USER_MESSAGE = example("4.1.7_user_message")
USER_MESSAGE = PRINTED_USER_MESSAGE + b"a\0" * 286 + bytes(2)
SESSION_ACK = example("4.1.8_session_ack")
INTERNAL = [
    ESTABLISH_REQUEST,
    ESTABLISH_RESPONSE,
    PARAMETERS_REQUEST,
    PARAMETERS_RESPONSE,
    SESSION_ACK,
]


@pytest.mark.conformance("MQQB-packet-Ping")
def test_ping_request() -> None:
    ping = PingPacket.decode(PING_REQUEST)
    ping.validate()
    assert ping.flags == 0x7D01
    assert ping.flags.RC == 1
    assert ping.flags.RF == 0
    assert ping.signature == 0x5548
    assert ping.cookie == 4
    assert ping.qm_guid == INITIATOR
    assert ping.encode() == PING_REQUEST
    assert PingPacket.of(INITIATOR, 4, PingFlags(0x7D01)) == PING_REQUEST


@pytest.mark.conformance("MQQB-packet-Ping")
def test_ping_response() -> None:
    ping = PingPacket.decode(PING_RESPONSE)
    assert ping.flags == 0xB295
    assert (ping.flags.RC, ping.flags.RF) == (1, 0)
    assert ping.signature == 0x5548
    assert ping.cookie == 4
    assert ping.qm_guid == ACCEPTOR
    assert ping.encode() == PING_RESPONSE


def test_datagram_with_another_signature_is_no_ping() -> None:
    with pytest.raises(DecodeError):
        PingPacket.decode(PING_REQUEST.replace(b"HU", b"UH", 1)).validate()


@pytest.mark.conformance("MQQB-packet-EstablishConnection", "MQQB-header-EstablishConnectionHeader")
def test_establish_connection_request() -> None:
    packet = decode_internal_packet(ESTABLISH_REQUEST)
    assert isinstance(packet, EstablishConnectionPacket)
    base = packet.base_header
    assert base.version_number == 0x10
    assert base.reserved == 0xC0
    assert base.flags == 0x000B
    assert (base.flags.PR, base.flags.IN, base.flags.SH) == (3, 1, 0)
    assert (base.flags.DH, base.flags.TR) == (0, 0)
    assert base.signature == 0x524F494C
    assert base.packet_size == 572
    assert base.time_to_reach_queue == 0xFFFFFFFF
    assert packet.internal_header.reserved == 0
    assert packet.internal_header.flags.PT == 2
    assert packet.internal_header.flags.CS == 0
    header = packet.establish_connection_header
    assert header.client_guid == INITIATOR
    assert header.server_guid == ACCEPTOR
    assert header.timestamp == 501140046
    assert header.operating_system == 0x0310
    assert header.operating_system.RE == 0x10
    assert (header.operating_system.SE, header.operating_system.OS) == (1, 1)
    assert header.operating_system.QS == 0
    assert header.reserved == 0
    assert header.padding == b"\x5a" * 512
    assert packet.encode() == ESTABLISH_REQUEST


@pytest.mark.conformance("MQQB-packet-EstablishConnection")
def test_establish_connection_response() -> None:
    packet = decode_internal_packet(ESTABLISH_RESPONSE)
    assert isinstance(packet, EstablishConnectionPacket)
    assert packet.base_header.reserved == 0x5A
    assert packet.internal_header.flags.PT == 2
    header = packet.establish_connection_header
    assert header.client_guid == UUID("1f742305-be5e-4177-bc77-c4dd7719e474")
    assert header.server_guid == UUID("3c3a6aeb-f567-4143-87d3-85cf4d68ceb4")
    assert header.timestamp == 501140046
    assert header.operating_system == 0x0310
    assert header.padding == b"\x5a" * 512
    assert packet.encode() == ESTABLISH_RESPONSE


@pytest.mark.conformance("MQQB-packet-EstablishConnection", "MQQB-header-InternalHeader")
def test_establish_connection_is_written_as_printed_but_for_the_reserved_byte() -> None:
    header = EstablishConnectionHeader(INITIATOR, ACCEPTOR, 501140046)
    written = EstablishConnectionPacket.of(header)
    assert written[:1] + b"\xc0" + written[2:] == ESTABLISH_REQUEST
    refusal = decode_internal_packet(EstablishConnectionPacket.of(header, refused=True))
    assert refusal.internal_header.flags.CS == 1


@pytest.mark.conformance(
    "MQQB-packet-ConnectionParameters",
    "MQQB-header-ConnectionParametersHeader",
    "MQQB-header-InternalHeader",
)
@pytest.mark.parametrize("raw", [PARAMETERS_REQUEST, PARAMETERS_RESPONSE])
def test_connection_parameters(raw: bytes) -> None:
    packet = decode_internal_packet(raw)
    assert isinstance(packet, ConnectionParametersPacket)
    assert packet.base_header.packet_size == 32
    assert packet.internal_header.flags.PT == 3
    assert packet.internal_header.flags.CS == 0
    header = packet.connection_parameters_header
    header.validate()
    assert header.recoverable_ack_timeout == 1496
    assert header.ack_timeout == 120000
    assert header.reserved == 0
    assert header.window_size == 64
    assert packet.encode() == raw
    written = ConnectionParametersPacket.of(ConnectionParametersHeader(1496, 120000))
    assert written[:1] + b"\xc0" + written[2:] == raw


@pytest.mark.conformance("MQQB-header-ConnectionParametersHeader")
@pytest.mark.parametrize(("recoverable", "ack"), [(499, 20000), (120001, 20000), (500, 19999)])
def test_connection_parameters_outside_their_ranges_are_refused(recoverable: int, ack: int) -> None:
    with pytest.raises(DecodeError):
        ConnectionParametersHeader(recoverable, ack).validate()


@pytest.mark.conformance("MQQB-packet-SessionAck", "MQMQ-packet-SessionHeader")
def test_session_ack() -> None:
    packet = decode_internal_packet(SESSION_ACK)
    assert isinstance(packet, SessionAckPacket)
    assert packet.base_header.reserved == 0xCD
    assert packet.base_header.flags == 0x001B
    assert (packet.base_header.flags.IN, packet.base_header.flags.SH) == (1, 1)
    assert packet.base_header.packet_size == 36
    assert packet.internal_header.flags.PT == 1
    header = packet.session_header
    assert header.ack_sequence_number == 1
    assert header.recoverable_msg_ack_seq_number == 0
    assert header.recoverable_msg_ack_flags == 0
    assert header.user_msg_sequence_number == 0
    assert header.recoverable_msg_seq_number == 0
    assert header.window_size == 64
    assert header.reserved == 0
    assert packet.encode() == SESSION_ACK
    written = SessionAckPacket.of(header)
    assert written[:1] + b"\xcd" + written[2:] == SESSION_ACK


@pytest.mark.conformance("MQMQ-packet-UserMessage", "MQMQ-packet-BaseHeader")
def test_user_message_base_header() -> None:
    message = UserMessage(USER_MESSAGE)
    message.validate()
    base = BaseHeader.decode(message.buffer)
    assert base.version_number == 0x10
    assert base.reserved == 0
    assert base.flags == 3
    assert (base.flags.PR, base.flags.IN, base.flags.SH) == (3, 0, 0)
    assert (base.flags.DH, base.flags.TR) == (0, 0)
    assert base.signature == 0x524F494C
    assert base.packet_size == 2224
    assert base.time_to_reach_queue == 345600
    assert base.encode() == USER_MESSAGE[:16]


@pytest.mark.conformance("MQMQ-packet-UserHeader", "MQMQ-packet-DirectQueueFormatName")
def test_user_message_user_header() -> None:
    header = UserMessage(USER_MESSAGE).user_header
    assert header.source_queue_manager == INITIATOR
    assert header.queue_manager_address == UUID(int=0)
    assert header.time_to_be_received == 0xFFFFFFFF
    assert header.sent_time == int.from_bytes(b"LIOR", "little")
    assert header.message_id == 2286
    flags = header.flags
    assert flags == 0x281C00
    assert (flags.RC, flags.DM, flags.JN, flags.JP) == (0, 0, 0, 0)
    assert (flags.DQ, flags.AQ, flags.RQ) == (7, 0, 0)
    assert (flags.SH, flags.TH, flags.MP, flags.CQ, flags.MQ) == (1, 0, 1, 0, 0)
    assert (flags.AH, flags.HH) == (0, 0)
    assert header.destination_queue == r"OS:a04bm02\q"
    assert header.admin_queue is None
    assert header.response_queue is None
    assert header.connector_type is None
    header.validate()
    assert header.encode() == USER_MESSAGE[16:92]


@pytest.mark.conformance("MQMQ-packet-SecurityHeader")
def test_user_message_security_header() -> None:
    message = UserMessage(USER_MESSAGE)
    header = message.security_header
    assert header is not None
    assert header.flags == 1
    assert (header.flags.ST, header.flags.AU, header.flags.EB) == (1, 0, 0)
    assert (header.flags.DE, header.flags.AI, header.flags.AS) == (0, 0, 0)
    assert (
        header.security_id == Sid.parse("S-1-5-21-3181267629-1039849782-3663111779-1000").encode()
    )
    assert header.encryption_key == b""
    assert header.signature == b""
    assert header.sender_cert == b""
    assert header.provider is None
    header.validate()
    assert message.layout.security == 92
    assert header.encode() == USER_MESSAGE[92:136]


@pytest.mark.conformance("MQMQ-packet-MessagePropertiesHeader")
def test_user_message_properties_header() -> None:
    message = PacketMessage(USER_MESSAGE)
    header = MessagePropertiesStart.decode(message.buffer, message.layout.properties)
    assert header.flags == 0x0F
    assert header.message_class == 0
    assert header.correlation_id == bytes(20)
    assert header.body_type == 8
    assert header.application_tag == 0
    assert header.allocation_body_size == 2000
    assert header.privacy_level == 0
    assert header.hash_algorithm == 0x8004
    assert header.encryption_algorithm == 0x6801
    assert (header.label_length, header.message_size, header.extension_size) == (15, 2000, 0)
    assert message.label == "mqsender label"
    assert message.extension == b""
    assert message.body == b"a\0" * 1000
    assert message.layout.properties == 136
    assert header.encode() == USER_MESSAGE[136 : 136 + header.size()]


@pytest.mark.conformance("MQMQ-packet-UserMessage", "MQQB-packet-UserMessage")
def test_user_message_layout_and_attributes() -> None:
    message = PacketMessage(USER_MESSAGE)
    assert message.body_offset == 222
    assert message.body_size == 2000
    assert locate_body(USER_MESSAGE) == (222, 2000)
    assert message.trailer_offset == 2224
    assert message.size == frame_size(USER_MESSAGE) == 2224
    assert message.identifier == MessageIdentifier(INITIATOR, 2286)
    assert str(message.destination_queue_format_name) == r"DIRECT=OS:a04bm02\q"
    assert message.message_class is MessageClass.MQMSG_CLASS_NORMAL
    assert message.delivery_guarantee is DeliveryGuarantee.EXPRESS
    assert message.acknowledgements_requested == (
        AcknowledgementsRequested.ACK_FULL_RECEIVE | AcknowledgementsRequested.ACK_POS_ARRIVAL
    )
    assert message.body_type == BodyType.VT_BSTR
    assert message.privacy_level is PrivacyLevel.NONE
    assert message.hash_algorithm is HashAlgorithm.SHA1
    assert message.encryption_algorithm is EncryptionAlgorithm.RC4
    assert message.authentication_level is MessageAuthenticationLevel.NONE
    assert message.sender_identifier_type is SenderIdentifierType.SID
    assert message.label == "mqsender label"
    assert message.body.decode("utf-16-le") == "a" * 1000


@pytest.mark.conformance("MQMQ-packet-UserMessage")
def test_user_message_is_written_byte_for_byte() -> None:
    assert build_user_message(read_attributes(USER_MESSAGE)) == USER_MESSAGE


@pytest.mark.conformance("MQQB-rule-3.1.5.1.1")
@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (ESTABLISH_REQUEST, PacketKind.ESTABLISH_CONNECTION),
        (PARAMETERS_REQUEST, PacketKind.CONNECTION_PARAMETERS),
        (SESSION_ACK, PacketKind.SESSION_ACK),
        (USER_MESSAGE, PacketKind.USER_MESSAGE),
    ],
)
def test_packet_is_told_by_its_flags(raw: bytes, kind: PacketKind) -> None:
    assert identify_packet(raw) is kind
    assert frame_size(raw) == len(raw)


@pytest.mark.conformance("MQQB-rule-3.1.5.1.2")
@pytest.mark.parametrize(
    ("offset", "value"), [(0, 0x11), (4, 0x52), (7, 0x4C), (8, 15), (11, 0x01)]
)
def test_packet_with_wrong_version_signature_or_size_is_refused(offset: int, value: int) -> None:
    raw = bytearray(SESSION_ACK[:12] + SESSION_ACK[12:])
    raw[offset] = value
    with pytest.raises(DecodeError):
        BaseHeader.decode(raw).validate()
    with pytest.raises(DecodeError):
        frame_size(raw)


@pytest.mark.parametrize("raw", INTERNAL, ids=len)
def test_internal_packet_cut_anywhere_or_too_long_is_refused(raw: bytes) -> None:
    for length in range(len(raw)):
        with pytest.raises(DecodeError):
            decode_internal_packet(raw[:length])
    with pytest.raises(DecodeError):
        decode_internal_packet(raw + b"\0")


@pytest.mark.parametrize(
    ("raw", "offset", "value"),
    [
        (SESSION_ACK, 2, 0x13),
        (SESSION_ACK, 2, 0x0B),
        (SESSION_ACK, 2, 0x3B),
        (SESSION_ACK, 18, 0),
        (SESSION_ACK, 18, 4),
        (SESSION_ACK, 18, 2),
        (PARAMETERS_REQUEST, 2, 0x1B),
        (PARAMETERS_REQUEST, 18, 1),
        (PARAMETERS_REQUEST, 8, 36),
    ],
)
def test_internal_packet_that_contradicts_itself_is_refused(
    raw: bytes, offset: int, value: int
) -> None:
    changed = bytearray(raw)
    changed[offset] = value
    with pytest.raises(DecodeError):
        decode_internal_packet(changed)


def test_printed_part_of_the_user_message_is_cut_off() -> None:
    with pytest.raises(DecodeError):
        _ = UserMessage(PRINTED_USER_MESSAGE).layout


def test_user_message_cut_anywhere_is_a_decode_error() -> None:
    for length in range(len(USER_MESSAGE)):
        with pytest.raises(DecodeError):
            UserMessage(USER_MESSAGE[:length]).validate()
