"""What the three kinds of signatures cover ([MS-MQMQ] 2.5)."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import DeliveryGuarantee, MessageAuthenticationLevel
from rpcqm.codec.packet.message import MessageAttributes, MessageIdentifier, build_user_message
from rpcqm.codec.packet.signature import signed_properties
from rpcqm.codec.packet.user_message import UserMessage

GUID = UUID("00112233-4455-6677-8899-aabbccddeeff")
WIRE_GUID = GUID.bytes_le
MESSAGE = MessageAttributes(
    destination_queue_format_name=FormatName.parse(r"DIRECT=OS:h\q"),
    destination_multi_queue_format_name=(FormatName.parse(r"DIRECT=OS:h\q"),),
    identifier=MessageIdentifier(GUID, 7),
    administration_queue_format_name=FormatName.private(GUID, 5),
    response_queue_format_name=FormatName.private(UUID(int=1), 6),
    correlation_identifier=MessageIdentifier(GUID, 9),
    application_tag=0x01020304,
    body=b"body",
    label="ab",
    extension=b"ext",
    delivery_guarantee=DeliveryGuarantee.RECOVERABLE,
    priority=6,
    positive_journaling_requested=True,
    acknowledgements_requested=0x0E,
    message_class=0x0123,
    body_type=0x11,
    connector_type_identifier=GUID,
    sender_identifier=b"sid!",
    signature=b"signature",
)
COMMON = (
    WIRE_GUID
    + b"\x09\0\0\0"  # CorrelationID
    + b"\x04\x03\x02\x01"  # ApplicationTag
    + b"body"
    + b"a\0b\0\0\0"  # Label
    + UUID(int=1).bytes_le
    + b"\6\0\0\0"  # ResponseQueue
    + b"\5\0\0\0"  # AdminQueue
)
ORIGIN = (
    WIRE_GUID  # SourceQueueManager
    + b"\1"  # DM
    + b"\6"  # PR
    + b"\2"  # JP, JN
    + b"\x0e"  # acknowledgements
    + b"\x23\1"  # MessageClass
    + b"\x11\0\0\0"  # BodyType
    + WIRE_GUID  # ConnectorType
)
DIRECT_NAME = "OS:h\\q\0".encode("utf-16-le")
DESTINATION = b"\x0e\0" + DIRECT_NAME
NAMES = b"\3\0" + DIRECT_NAME


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        pytest.param(
            MessageAuthenticationLevel.SIG10,
            COMMON,
            marks=pytest.mark.conformance("MQMQ-rule-signature_1.0"),
        ),
        pytest.param(
            MessageAuthenticationLevel.SIG20,
            COMMON + ORIGIN + DESTINATION,
            marks=pytest.mark.conformance("MQMQ-rule-signature_2.0"),
        ),
        pytest.param(
            MessageAuthenticationLevel.SIG30,
            COMMON + b"ext" + NAMES + ORIGIN,
            marks=pytest.mark.conformance("MQMQ-rule-signature_3.0"),
        ),
    ],
)
def test_signature_covers_its_fields_in_order(
    level: MessageAuthenticationLevel, expected: bytes
) -> None:
    packet = UserMessage(build_user_message(MESSAGE))
    assert signed_properties(packet, level) == expected


def test_absent_fields_contribute_nothing() -> None:
    plain = replace(
        MESSAGE,
        administration_queue_format_name=None,
        response_queue_format_name=None,
        connector_type_identifier=None,
        destination_multi_queue_format_name=(),
        label="",
        extension=b"",
    )
    packet = UserMessage(build_user_message(plain))
    common = COMMON[:24] + b"body"
    assert signed_properties(packet, MessageAuthenticationLevel.SIG10) == common
    assert signed_properties(packet, MessageAuthenticationLevel.SIG30) == common + ORIGIN[:-16]


@pytest.mark.parametrize(
    "change",
    [
        {"time_to_reach_queue": 1},
        {"time_to_be_received": 1},
        {"sent_time": 1},
        {"hash_algorithm": 0x8004},
        {"signature": b"another"},
        {"tracing_requested": True},
        {"identifier": MessageIdentifier(GUID, 8)},
    ],
)
@pytest.mark.parametrize(
    "level",
    [
        MessageAuthenticationLevel.SIG10,
        MessageAuthenticationLevel.SIG20,
        MessageAuthenticationLevel.SIG30,
    ],
)
def test_what_routers_change_is_not_covered(
    level: MessageAuthenticationLevel, change: dict[str, Any]
) -> None:
    packet = UserMessage(build_user_message(MESSAGE))
    changed = UserMessage(build_user_message(replace(MESSAGE, **change)))
    assert signed_properties(packet, level) == signed_properties(changed, level)


@pytest.mark.parametrize(
    "level", [MessageAuthenticationLevel.NONE, MessageAuthenticationLevel.XMLSIG]
)
def test_level_without_a_list_is_refused(level: MessageAuthenticationLevel) -> None:
    with pytest.raises(ValueError, match="no fixed list"):
        signed_properties(UserMessage(build_user_message(MESSAGE)), level)
