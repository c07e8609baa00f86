"""OrderAck and FinalAck, and how packets are told apart ([MS-MQQB] 2.2.4, 2.2.5, 3.1.5.1.1)."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from rpcqm.base.errors import DecodeError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.acknowledgement import (
    PacketKind,
    final_ack,
    identify_packet,
    order_ack,
)
from rpcqm.codec.packet.base import SessionHeader
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.internal import FinalAckBody, OrderAckBody
from rpcqm.codec.packet.message import MessageIdentifier, PacketMessage, build_user_message
from rpcqm.codec.packet.patch import with_session_header
from rpcqm.codec.packet.properties import MessagePropertiesStart
from rpcqm.codec.packet.types import TxSequenceID

PEER = UUID("c626ea11-e6b6-9749-9595-9150557358d1")
ORDER_QUEUE = FormatName.private(PEER, 4)
DIRECT_ORDER_QUEUE = FormatName.parse(r"DIRECT=TCP:10.0.0.1\PRIVATE$\order_queue$")
IDENTIFIER = MessageIdentifier(UUID(int=3), 5)
ORDER_BODY = OrderAckBody(TxSequenceID(1, 2), 9, 8)
FINAL_BODY = FinalAckBody(TxSequenceID(1, 2), 9, 8, PEER, 4711)


@pytest.mark.conformance("MQQB-packet-OrderAck")
@pytest.mark.parametrize("queue", [ORDER_QUEUE, DIRECT_ORDER_QUEUE])
def test_order_ack(queue: FormatName) -> None:
    packet = build_user_message(order_ack(queue, IDENTIFIER, 100, ORDER_BODY))
    message = PacketMessage(packet)
    message.validate()
    assert message.base_flags == 0
    flags = message.user_header.flags
    assert flags == flags.of(MP=1, DQ=3 if queue is ORDER_QUEUE else 7)
    assert message.destination_queue_format_name == queue
    properties = MessagePropertiesStart.decode(message.buffer, message.layout.properties)
    assert message.label == "QM Ordering Ack"
    assert properties.flags == 0
    assert properties.message_class == 0x00FF
    assert properties.body_type == 0
    assert properties.message_size == len(message.body) == 0x24
    assert OrderAckBody.decode(message.body) == ORDER_BODY
    assert identify_packet(packet) is PacketKind.ORDER_ACK


@pytest.mark.conformance("MQQB-packet-FinalAck")
@pytest.mark.parametrize(
    "message_class",
    [MessageClass.MQMSG_CLASS_ACK_RECEIVE, MessageClass.MQMSG_CLASS_NACK_Q_PURGED],
)
def test_final_ack(message_class: MessageClass) -> None:
    packet = build_user_message(final_ack(ORDER_QUEUE, IDENTIFIER, 100, FINAL_BODY, message_class))
    message = PacketMessage(packet)
    message.validate()
    assert message.base_flags == 0
    flags = message.user_header.flags
    assert flags == flags.of(MP=1, DM=1, DQ=3)
    assert message.user_header.queue_manager_address == PEER
    assert message.user_header.destination_queue == 4
    assert message.label == "QM Ordering Ack"
    assert message.message_class is message_class
    assert message.body_size == 0x24
    assert FinalAckBody.decode(message.body) == FINAL_BODY
    assert identify_packet(packet) is PacketKind.FINAL_ACK


@pytest.mark.conformance("MQQB-rule-3.1.5.1.1")
def test_piggybacked_session_header_changes_nothing() -> None:
    packet = build_user_message(order_ack(ORDER_QUEUE, IDENTIFIER, 100, ORDER_BODY))
    assert identify_packet(with_session_header(packet, SessionHeader())) is PacketKind.ORDER_ACK


@pytest.mark.conformance("MQQB-rule-3.1.5.1.1")
@pytest.mark.parametrize(
    "change",
    [
        {"priority": 3},
        {"label": "QM ordering ack"},
        {"body": bytes(35)},
        {"destination_queue_format_name": FormatName.private(PEER, 5)},
        {"destination_queue_format_name": FormatName.parse(r"DIRECT=OS:h\private$\q")},
        {"destination_queue_format_name": FormatName.parse(f"PUBLIC={PEER}")},
        {"destination_queue_format_name": None},
        {"message_class": 0},
    ],
)
def test_whatever_lacks_one_mark_is_a_user_message(change: dict[str, Any]) -> None:
    attributes = order_ack(ORDER_QUEUE, IDENTIFIER, 100, ORDER_BODY)
    packet = build_user_message(replace(attributes, **change))
    assert identify_packet(packet) is PacketKind.USER_MESSAGE


@pytest.mark.conformance("MQQB-rule-3.1.5.1.1")
def test_internal_packet_of_an_unknown_type_is_no_packet() -> None:
    raw = b"\x10\0\x0b\0LIOR\x20\0\0\0" + b"\xff" * 4 + b"\0\0\4\0" + bytes(12)
    with pytest.raises(DecodeError):
        identify_packet(raw)
