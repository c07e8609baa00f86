"""Attributes and packets: every row of the table, in both directions."""

import contextlib
from dataclasses import fields, replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpcqm.base.errors import DecodeError, HResult, MQError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.base import SessionHeader
from rpcqm.codec.packet.enums import (
    AcknowledgementsRequested,
    DeliveryGuarantee,
    EncryptionAlgorithm,
    HashAlgorithm,
    MessageAuthenticationLevel,
    MessageClass,
    PrivacyLevel,
    SenderIdentifierType,
)
from rpcqm.codec.packet.message import (
    PACKET_FIELDS,
    MessageAttributes,
    MessageIdentifier,
    PacketMessage,
    build_user_message,
    read_attributes,
)
from rpcqm.codec.packet.patch import (
    absolute_time_to_reach_queue,
    set_authentication_level,
    set_hop_count,
    set_sequence,
    set_time_to_reach_queue,
    with_session_header,
    with_transaction_marks,
    without_session_header,
)
from rpcqm.codec.packet.types import TxSequenceID
from rpcqm.codec.packet.user import QueueFormatType
from rpcqm.codec.packet.user_message import (
    UserMessage,
    class_of,
)

SOURCE = UUID("c626ea11-e6b6-9749-9595-9150557358d1")
OTHER = UUID("fca09e90-7890-4544-8f11-394c43cd8907")
THIRD = UUID("00112233-4455-6677-8899-aabbccddeeff")
DIRECT = FormatName.parse(r"DIRECT=OS:host\private$\orders")
REPLY = FormatName.parse(r"DIRECT=TCP:10.0.0.1\private$\reply")

PLAIN = MessageAttributes(
    destination_queue_format_name=DIRECT,
    identifier=MessageIdentifier(SOURCE, 4711),
    body=b"hello",
    sent_time=1700000000,
)
SENDER = bytes.fromhex("010100000000000100000000")

# Everything that one packet can have at once.
FULL = MessageAttributes(
    destination_queue_format_name=FormatName.private(OTHER, 4),
    destination_queue_manager_identifier=OTHER,
    identifier=MessageIdentifier(SOURCE, 0xFFFFFFFF),
    body=b"body!",
    label="Étiquette \U0001f4e6",
    message_class=MessageClass.MQMSG_CLASS_NACK_Q_PURGED,
    delivery_guarantee=DeliveryGuarantee.RECOVERABLE,
    priority=0,
    sent_time=0xFFFFFFFE,
    time_to_reach_queue=12,
    time_to_be_received=34,
    body_type=0x1011,
    application_tag=0xDEADBEEF,
    correlation_identifier=MessageIdentifier(THIRD, 9),
    extension=b"\1\2\3",
    acknowledgements_requested=AcknowledgementsRequested.ACK_FULL_RECEIVE,
    administration_queue_format_name=FormatName.private(THIRD, 5),
    response_queue_format_name=FormatName.private(SOURCE, 6),
    positive_journaling_requested=True,
    negative_journaling_requested=True,
    connector_type_identifier=UUID(int=77),
    privacy_level=PrivacyLevel.ADVANCED,
    hash_algorithm=HashAlgorithm.SHA_256,
    encryption_algorithm=EncryptionAlgorithm.AES256,
    sender_identifier_type=SenderIdentifierType.SID,
    sender_identifier=SENDER,
    symmetric_key=b"key",
    signature=b"signature",
    sender_certificate=b"certificate",
    authentication_provider_type=0x18,
    authentication_provider_name="A provider",
    transaction_identifier=0xABCDE,
    transactional_message_sequence_identifier=TxSequenceID(3, 4),
    transaction_sequence_number=8,
    transaction_previous_sequence_number=7,
    final_ack_required=True,
    first_in_transaction=True,
    last_in_transaction=True,
    connector_queue_manager_identifier=UUID(int=88),
    tracing_requested=True,
    tracing_queue_identifier=UUID(int=99),
    destination_multi_queue_format_name=(DIRECT, FormatName.private(OTHER, 4)),
    administration_multi_queue_format_name=(REPLY,),
    response_multi_queue_format_name=(FormatName.parse(f"PUBLIC={THIRD}"),),
    multiple_destination_signature=b"multiple",
    soap_header="<h/>",
    soap_body="<b/>",
    soap_envelope="<envelope/>",
    soap_compound_message=b"POST / HTTP/1.1\r\n\r\nbody!",
)
NOT_IN_PACKETS = {
    "lookup_identifier",
    "arrival_time",
    "allow_peek_when_locked",
    "application_deadletter_queue",
    "transaction_status_queue_format_name",
}


@pytest.mark.conformance(
    "MQDMPR-event-serialize_message_to_buffer", "MQDMPR-event-deserialize_message_from_buffer"
)
@pytest.mark.parametrize("name", PACKET_FIELDS)
def test_attribute_survives_its_packet(name: str) -> None:
    message = PacketMessage(build_user_message(FULL))
    expected = {
        "authentication_level": MessageAuthenticationLevel.NONE,
        "destination_queue_type": QueueFormatType.PRIVATE_ON_DESTINATION,
        "administration_queue_type": QueueFormatType.PRIVATE_ON_OTHER,
        "response_queue_type": QueueFormatType.PRIVATE_ON_SOURCE,
    }
    value = expected[name] if name in expected else getattr(FULL, name)
    assert getattr(message, name) == value


@pytest.mark.parametrize("name", PACKET_FIELDS)
def test_attribute_of_a_plain_message_has_its_default(name: str) -> None:
    message = PacketMessage(build_user_message(PLAIN))
    expected = {
        "destination_queue_type": QueueFormatType.DIRECT,
        "administration_queue_type": QueueFormatType.NONE,
        "response_queue_type": QueueFormatType.NONE,
        "sender_identifier_type": SenderIdentifierType.NONE,
    }
    value = expected[name] if name in expected else getattr(PLAIN, name)
    assert getattr(message, name) == value


def test_a_body_is_found_in_its_request_in_the_time_that_reading_takes() -> None:
    """Looking for it backwards would take the product of both lengths: hours, for these."""
    body = b"a" * 400_000 + b"b" + b"a" * 400_000
    compound = body + b"x" + b"a" * 2_000_000
    attributes = MessageAttributes(body=body, soap_envelope="<e/>", soap_compound_message=compound)
    assert PacketMessage(build_user_message(attributes)).body == body


def test_table_holds_every_attribute_of_the_data_model_but_the_position() -> None:
    assert len(PACKET_FIELDS) + len(NOT_IN_PACKETS) == 59
    derived = {
        "source_machine_identifier",
        "destination_queue_type",
        "administration_queue_type",
        "response_queue_type",
    }
    assert PACKET_FIELDS.keys() | NOT_IN_PACKETS == derived | {
        field.name for field in fields(MessageAttributes)
    }


@pytest.mark.parametrize("attributes", [PLAIN, FULL])
def test_all_attributes_survive_a_valid_packet(attributes: MessageAttributes) -> None:
    packet = build_user_message(attributes)
    message = PacketMessage(packet)
    message.validate()
    assert message.size == len(packet)
    expected = attributes
    if not attributes.sender_identifier:
        expected = replace(attributes, sender_identifier_type=SenderIdentifierType.NONE)
    assert read_attributes(packet) == expected
    assert read_attributes(memoryview(packet)) == expected
    assert build_user_message(read_attributes(packet)) == packet


@pytest.mark.conformance("MQDMPR-event-construct_a_usermessage_packet")
@pytest.mark.parametrize(
    ("change", "header"),
    [
        ({"transaction_identifier": 1}, "transaction_header"),
        ({"sender_identifier": SENDER}, "security_header"),
        ({"signature": b"s"}, "security_header"),
        ({"tracing_queue_identifier": THIRD}, "debug_header"),
        ({"tracing_requested": True}, "debug_header"),
        ({"destination_multi_queue_format_name": (DIRECT,)}, "multi_queue_format_header"),
        ({"soap_body": "<b/>"}, "soap"),
        ({"soap_header": "<h/>"}, "soap"),
        (
            {"soap_envelope": "<e/>", "soap_compound_message": b"x"},
            "compound_message_header",
        ),
    ],
)
def test_header_is_there_when_its_attribute_is_set(change: dict[str, Any], header: str) -> None:
    headers = {
        "transaction_header",
        "security_header",
        "debug_header",
        "multi_queue_format_header",
        "soap",
        "compound_message_header",
    }
    message = UserMessage(build_user_message(replace(PLAIN, **change)))
    message.validate()
    assert {name for name in headers if getattr(message, name) is not None} == {header}
    assert message.body == b"hello"


@pytest.mark.conformance("MQMQ-packet-UserMessage")
def test_headers_stand_in_their_order() -> None:
    layout = UserMessage(build_user_message(FULL)).layout
    order = [
        layout.admin_queue,
        layout.response_queue,
        layout.connector_type,
        layout.transaction,
        layout.security,
        layout.properties,
        layout.label,
        layout.extension,
        layout.body,
        layout.debug,
        layout.envelope,
        layout.compound,
        layout.soap,
        layout.multi_queue,
        layout.end,
    ]
    assert order == sorted(order)
    aligned = {layout.transaction, layout.security, layout.properties, layout.debug}
    aligned |= {layout.envelope, layout.compound, layout.soap, layout.multi_queue}
    assert all(offset % 4 == 0 for offset in aligned)


def test_transactional_message_is_recoverable_and_has_no_priority() -> None:
    attributes = replace(PLAIN, transaction_identifier=1, priority=5)
    message = PacketMessage(build_user_message(attributes))
    assert message.priority == 0
    assert message.delivery_guarantee is DeliveryGuarantee.RECOVERABLE


def test_response_queue_equal_to_the_administration_queue_takes_no_space() -> None:
    attributes = replace(
        PLAIN, administration_queue_format_name=REPLY, response_queue_format_name=REPLY
    )
    message = PacketMessage(build_user_message(attributes))
    assert message.response_queue_type is QueueFormatType.SAME_AS_ADMIN
    assert message.response_queue_format_name == REPLY
    assert message.user_header.response_queue is None


def test_response_queue_on_the_host_of_the_administration_queue() -> None:
    attributes = replace(
        PLAIN,
        administration_queue_format_name=FormatName.private(THIRD, 1),
        response_queue_format_name=FormatName.private(THIRD, 2),
    )
    message = PacketMessage(build_user_message(attributes))
    assert message.response_queue_type is QueueFormatType.PRIVATE_ON_ADMIN_HOST
    assert message.response_queue_format_name == FormatName.private(THIRD, 2)


CLASSES = {
    "NORMAL": 0x0000,
    "REPORT": 0x0001,
    "ACK_REACH_QUEUE": 0x0002,
    "ORDER_ACK": 0x00FF,
    "ACK_RECEIVE": 0x4000,
    "NACK_BAD_DST_Q": 0x8000,
    "NACK_DELETED": 0x8001,
    "NACK_REACH_QUEUE_TIMEOUT": 0x8002,
    "NACK_Q_EXCEED_QUOTA": 0x8003,
    "NACK_ACCESS_DENIED": 0x8004,
    "NACK_HOP_COUNT_EXCEEDED": 0x8005,
    "NACK_BAD_SIGNATURE": 0x8006,
    "NACK_BAD_ENCRYPTION": 0x8007,
    "NACK_NOT_TRANSACTIONAL_Q": 0x8009,
    "NACK_NOT_TRANSACTIONAL_MSG": 0x800A,
    "NACK_UNSUPPORTED_CRYPTO_PROVIDER": 0x800B,
    "NACK_Q_DELETED": 0xC000,
    "NACK_Q_PURGED": 0xC001,
    "NACK_RECEIVE_TIMEOUT": 0xC002,
    "NACK_RECEIVE_REJECTED": 0xC004,
}
SENT_BY_NOBODY = "NACK_UNSUPPORTED_CRYPTO_PROVIDER"  # G177


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param(name, value, id=name, marks=pytest.mark.conformance(f"MQMQ-class-{name}"))
        for name, value in CLASSES.items()
        if name != SENT_BY_NOBODY
    ]
    + [(SENT_BY_NOBODY, CLASSES[SENT_BY_NOBODY])],
)
def test_message_class_on_the_wire(name: str, value: int) -> None:
    member = MessageClass[f"MQMSG_CLASS_{name}"]
    packet = build_user_message(replace(PLAIN, message_class=member))
    message = PacketMessage(packet)
    offset = message.layout.properties + 2
    assert packet[offset : offset + 2] == value.to_bytes(2, "little")
    assert message.message_class is member


def test_three_more_classes_and_custom_ones() -> None:
    assert len(MessageClass) == 23
    assert MessageClass(0x8008).name == "MQMSG_CLASS_NACK_COULD_NOT_ENCRYPT"
    assert MessageClass(0x800C).name == "MQMSG_CLASS_NACK_SOURCE_COMPUTER_GUID_CHANGED"
    assert MessageClass(0xC003).name == "MQMSG_CLASS_NACK_RECEIVE_TIMEOUT_AT_SENDER"
    message = PacketMessage(build_user_message(replace(PLAIN, message_class=0x0123)))
    assert message.message_class == 0x0123


def test_hash_of_8003_is_md5() -> None:
    """(G16)"""
    message = PacketMessage(build_user_message(replace(PLAIN, hash_algorithm=0x8003)))
    assert message.hash_algorithm is HashAlgorithm.MD5


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"label": "x" * 250}, HResult.MQ_ERROR_LABEL_TOO_LONG),
        ({"body": bytes(0x400000)}, HResult.MQ_ERROR_INSUFFICIENT_RESOURCES),
        (
            {"destination_queue_format_name": FormatName.parse("MULTICAST=234.1.1.1:1")},
            HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION,
        ),
        ({"sent_time": -1}, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ({"application_tag": 1 << 32}, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ({"transaction_identifier": 1 << 20}, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
        ({"sender_identifier": bytes(1 << 16)}, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
    ],
)
def test_message_that_no_packet_can_hold_is_refused(
    change: dict[str, Any], status: HResult
) -> None:
    with pytest.raises(MQError) as refusal:
        build_user_message(replace(PLAIN, **change))
    assert refusal.value.status is status


def test_longest_label_and_largest_packet() -> None:
    message = PacketMessage(build_user_message(replace(PLAIN, label="x" * 249)))
    assert message.label == "x" * 249
    overhead = len(build_user_message(replace(PLAIN, body=b"")))
    largest = build_user_message(replace(PLAIN, body=bytes(0x400000 - overhead)))
    assert len(largest) == 0x400000
    PacketMessage(largest).validate()


# Changing finished packets.


def test_relative_expiry_becomes_absolute_and_never_wraps() -> None:
    assert absolute_time_to_reach_queue(10, 100) == 110
    assert absolute_time_to_reach_queue(0xFFFFFFFF, 100) == 0xFFFFFFFF
    assert absolute_time_to_reach_queue(0xFFFFFFF0, 100) == 0xFFFFFFFF


def test_fields_of_a_packet_are_changed_in_place() -> None:
    packet = bytearray(build_user_message(FULL))
    set_time_to_reach_queue(packet, 99)
    set_hop_count(packet, 29)
    set_sequence(packet, TxSequenceID(11, 12), 14, 13)
    packet = bytearray(with_transaction_marks(UserMessage(packet), first=False, last=False))
    set_authentication_level(packet, MessageAuthenticationLevel.SIG20)
    changed = read_attributes(packet)
    assert changed == replace(
        FULL,
        time_to_reach_queue=99,
        transactional_message_sequence_identifier=TxSequenceID(11, 12),
        transaction_sequence_number=14,
        transaction_previous_sequence_number=13,
        first_in_transaction=False,
        last_in_transaction=False,
        authentication_level=MessageAuthenticationLevel.SIG20,
    )
    assert UserMessage(packet).user_header.flags.RC == 29
    marked = PacketMessage(with_transaction_marks(UserMessage(packet), first=True, last=False))
    assert marked.first_in_transaction
    assert not marked.last_in_transaction
    assert with_transaction_marks(marked, first=True, last=False) is marked.buffer


def test_change_that_the_packet_has_no_place_for_is_refused() -> None:
    packet = bytearray(build_user_message(PLAIN))
    with pytest.raises(DecodeError):
        set_sequence(packet, TxSequenceID(1, 1), 1, 0)
    with pytest.raises(DecodeError):
        with_transaction_marks(UserMessage(packet), first=True, last=True)
    with pytest.raises(DecodeError):
        set_authentication_level(packet, 3)
    with pytest.raises(ValueError, match="30 routing servers"):
        set_hop_count(packet, 30)


@pytest.mark.conformance("MQMQ-packet-SessionHeader")
@pytest.mark.parametrize("attributes", [PLAIN, FULL])
def test_session_header_comes_behind_the_packet_and_goes_again(
    attributes: MessageAttributes,
) -> None:
    packet = build_user_message(attributes)
    header = SessionHeader(1, 2, 3, 4, 5)
    longer = with_session_header(packet, header)
    message = PacketMessage(longer)
    message.validate()
    assert len(longer) == len(packet) + 16
    assert message.packet_size == len(packet)
    assert message.session_header == header
    assert read_attributes(longer) == read_attributes(packet)
    again = UserMessage(with_session_header(longer, SessionHeader(9)))
    assert again.session_header == SessionHeader(9)
    assert without_session_header(longer) == packet
    assert without_session_header(packet) == packet
    assert UserMessage(packet).session_header is None


# Whatever bytes come, a DecodeError is the worst.


def look_at_everything(raw: bytes | bytearray) -> None:
    """Read every attribute, each on its own, and check the packet as a door does."""
    with contextlib.suppress(DecodeError):
        message = PacketMessage(raw)
        for name in PACKET_FIELDS:
            with contextlib.suppress(DecodeError):
                getattr(message, name)
        _ = message.session_header
        message.validate()


def test_packet_cut_anywhere_is_a_decode_error() -> None:
    packet = build_user_message(FULL)
    for length in range(len(packet)):
        with pytest.raises(DecodeError):
            PacketMessage(packet[:length]).validate()
        look_at_everything(packet[:length])
    with pytest.raises(DecodeError):
        PacketMessage(packet + b"\0").validate()


@given(st.lists(st.tuples(st.integers(0, 0xFFFF), st.integers(0, 255)), min_size=1, max_size=4))
def test_corrupted_packet_is_read_or_a_decode_error(changes: list[tuple[int, int]]) -> None:
    packet = bytearray(build_user_message(FULL))
    for at, value in changes:
        packet[at % len(packet)] = value
    look_at_everything(packet)


@given(st.integers(0, 0xFFFFFFFF), st.integers(0, 0xFFFF), st.binary(max_size=200))
def test_any_flags_over_any_bytes_are_read_or_a_decode_error(
    user_flags: int, base_flags: int, rest: bytes
) -> None:
    head = b"\x10\0" + base_flags.to_bytes(2, "little") + b"LIOR" + bytes(52)
    look_at_everything(head + user_flags.to_bytes(4, "little") + rest)


@pytest.mark.parametrize(
    ("offset", "value"),
    [
        (2, 0x0B),  # internal
        (3, 0x01),  # tracing without a debug header
        (8, 0xFF),  # PacketSize
        (60, 0x1E),  # routing servers
        (60, 0x40),  # delivery mode 2
        (61, 0x04),  # destination of type 1
        (62, 0x00),  # no properties
    ],
)
def test_packet_that_breaks_a_rule_is_refused(offset: int, value: int) -> None:
    packet = bytearray(build_user_message(PLAIN))
    packet[offset] = value
    with pytest.raises(DecodeError):
        UserMessage(packet).validate()


def test_rules_of_the_properties_are_checked() -> None:
    packet = build_user_message(replace(PLAIN, label="label", body=bytes(600)))
    properties = UserMessage(packet).layout.properties
    for offset, value in ((1, 251), (1, 5), (36, 1), (32, 0xFF)):
        changed = bytearray(packet)
        changed[properties + offset] = value
        with pytest.raises(DecodeError):
            UserMessage(changed).validate()


texts = st.text(st.characters(min_codepoint=1), max_size=10)
queue_names = st.none() | st.sampled_from(
    [DIRECT, REPLY, FormatName.private(SOURCE, 3), FormatName.private(THIRD, 3)]
)


@given(
    st.builds(
        MessageAttributes,
        destination_queue_format_name=st.just(DIRECT),
        identifier=st.builds(MessageIdentifier, st.uuids(), st.integers(0, 0xFFFFFFFF)),
        body=st.binary(max_size=20),
        label=texts,
        extension=st.binary(max_size=5),
        priority=st.integers(0, 7),
        sender_identifier=st.just(SENDER),
        administration_queue_format_name=queue_names,
        response_queue_format_name=queue_names,
        connector_type_identifier=st.none() | st.uuids(),
        soap_header=texts,
        soap_body=texts,
        soap_envelope=texts,
        soap_compound_message=st.binary(min_size=1, max_size=9),
        destination_multi_queue_format_name=st.lists(
            st.sampled_from([DIRECT, REPLY, FormatName.private(THIRD, 3)]), max_size=3
        ).map(tuple),
        multiple_destination_signature=st.binary(max_size=3),
    )
)
def test_message_survives_its_packet(attributes: MessageAttributes) -> None:
    packet = build_user_message(attributes)
    PacketMessage(packet).validate()
    expected = attributes
    if not attributes.soap_envelope:
        expected = replace(expected, soap_compound_message=b"")
    if not attributes.destination_multi_queue_format_name:
        expected = replace(expected, multiple_destination_signature=b"")
    assert read_attributes(packet) == expected


OF_A_CLASS = [
    replace(message, message_class=MessageClass.MQMSG_CLASS_REPORT)
    for message in (
        PLAIN,
        replace(PLAIN, sender_identifier_type=SenderIdentifierType.SID, sender_identifier=SENDER),
        replace(PLAIN, response_queue_format_name=REPLY),
        replace(PLAIN, connector_type_identifier=UUID(int=77)),
        replace(PLAIN, destination_queue_format_name=FormatName.private(OTHER, 4)),
        FULL,
    )
]


@pytest.mark.parametrize("message", OF_A_CLASS)
def test_the_class_of_a_message_is_found_without_its_other_fields(
    message: MessageAttributes,
) -> None:
    packet = build_user_message(message)
    assert class_of(packet) == MessageClass.MQMSG_CLASS_REPORT
    properties = PacketMessage(packet).layout.properties
    for size in range(76, properties + 4):
        with pytest.raises(DecodeError):
            class_of(packet[:size])


def test_the_body_of_a_message_that_came_by_http_is_in_its_packet_once() -> None:
    body = b"attached" * 500
    attributes = MessageAttributes(
        body=body,
        soap_envelope="<se:Envelope/>",
        soap_compound_message=b"POST / HTTP/1.1\r\n\r\n" + body + b"--\r\n",
    )
    packet = PacketMessage(build_user_message(attributes))
    assert bytes(packet.buffer).count(body) == 1
    assert packet.layout.body_size == 0
    assert (packet.body, packet.body_size) == (body, len(body))
