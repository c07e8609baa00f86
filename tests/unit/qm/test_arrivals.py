"""Messages from other queue managers ([MS-MQQB] 3.1.5.8)."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from rpcqm.adm.message import Message
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.base.errors import MQError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import (
    AcknowledgementsRequested,
    DeliveryGuarantee,
    MessageClass,
)
from rpcqm.codec.packet.patch import set_hop_count
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.codec.types.mqvalues import QueuePrivacyLevel
from rpcqm.qm import acknowledgements as acknowledgements_module
from rpcqm.qm.protection import RejectedError
from rpcqm.qm.protocol_records import Changes
from tests.support.qm.sending import ELSEWHERE, from_elsewhere, take
from tests.support.queue_manager import SETTINGS, RunningQueueManager

ORDERS = r"DIRECT=OS:workstation\private$\orders"
OTHER = UUID("11111111-2222-3333-4444-555555555555")
FULL_REACH = AcknowledgementsRequested.ACK_POS_ARRIVAL | AcknowledgementsRequested.ACK_NEG_ARRIVAL


def accepted(
    qm: RunningQueueManager, message: Message, changes: Changes | None = None, **proved: bool
) -> MessageClass | None:
    """Take a message or reject it, for the reason that is returned."""
    try:
        qm.done(take(qm.engine, message, changes, **proved))
    except RejectedError as error:
        qm.done(qm.engine.arrivals.reject(message, error.reason, changes))
        return error.reason
    return None


def asking(qm: RunningQueueManager) -> dict[str, Any]:
    name = FormatName.parse(rf"DIRECT=OS:{qm.settings.computer_name}\private$\acks")
    return {"acknowledgements_requested": FULL_REACH, "administration_queue_format_name": name}


def acknowledgements(qm: RunningQueueManager, queue: Queue) -> list[int]:
    keys = queue.message_position_list.page(None, 100)
    return [qm.engine.positions.message_at(queue, key).attributes.message_class for key in keys]


def test_a_message_for_a_queue_here_is_stored_and_acknowledged(qm: RunningQueueManager) -> None:
    queue, acks = qm.create(), qm.create(r"private$\acks")
    changes = {b"qb:history": b"1"}
    assert accepted(qm, from_elsewhere(qm, ORDERS, b"a", **asking(qm)), changes=changes) is None
    assert qm.bodies(queue) == [b"a"]
    assert acknowledgements(qm, acks) == [MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE]
    assert qm.engine.protocol_records.get(b"qb:history") == b"1"


def test_an_address_of_zero_is_here_whatever_the_host_is_called(qm: RunningQueueManager) -> None:
    """G21."""
    queue = qm.create()
    assert accepted(qm, from_elsewhere(qm, r"DIRECT=OS:an-alias\private$\orders", b"a")) is None
    assert qm.bodies(queue) == [b"a"]


@pytest.mark.parametrize(
    ("attributes", "more", "reason"),
    [
        ({}, {"destination": r"DIRECT=OS:workstation\private$\none"}, "BAD_DST_Q"),
        ({"transactional": True}, {}, "NOT_TRANSACTIONAL_MSG"),
        ({}, {"transaction_identifier": 3}, "NOT_TRANSACTIONAL_Q"),
        ({"authentication": True}, {}, "BAD_SIGNATURE"),
        ({"privacy_level": QueuePrivacyLevel.MQ_PRIV_LEVEL_BODY}, {}, "BAD_ENCRYPTION"),
        ({"quota": 1}, {"body": bytes(2000)}, "Q_EXCEED_QUOTA"),
        ({}, {"time_to_reach_queue": 5, "age": 6}, "REACH_QUEUE_TIMEOUT"),
        ({}, {"time_to_be_received": 5, "age": 6}, "REACH_QUEUE_TIMEOUT"),
        (
            {"security": parse_sddl("O:BAD:(A;;0x2;;;WD)").encode()},
            {},
            "ACCESS_DENIED",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_not_taken_is_refused_with_its_class(
    qm: RunningQueueManager, attributes: dict[str, Any], more: dict[str, Any], reason: str
) -> None:
    qm.restart(replace(SETTINGS, send_insecure_nacks=True))
    queue, acks = qm.create(**attributes), qm.create(r"private$\acks")
    destination = more.pop("destination", ORDERS)
    sent = qm.clock.now() // 1000 - more.pop("age", 0)
    message = from_elsewhere(qm, destination, sent_time=sent, **asking(qm), **more)
    refused = accepted(qm, message, changes={b"qb:next": b"2"})
    assert refused is not None
    assert refused.name == f"MQMSG_CLASS_NACK_{reason}"
    assert qm.bodies(queue) == []
    assert acknowledgements(qm, acks) == [refused]
    assert qm.engine.protocol_records.get(b"qb:next") == b"2"


def test_a_queue_without_encryption_refuses_encrypted_bodies(qm: RunningQueueManager) -> None:
    qm.create(privacy_level=QueuePrivacyLevel.MQ_PRIV_LEVEL_NONE)
    refused = accepted(qm, from_elsewhere(qm, ORDERS), encrypted=True)
    assert refused is MessageClass.MQMSG_CLASS_NACK_BAD_ENCRYPTION


def test_signed_and_encrypted_messages_get_where_they_must_be(qm: RunningQueueManager) -> None:
    queue = qm.create(authentication=True, privacy_level=QueuePrivacyLevel.MQ_PRIV_LEVEL_BODY)
    message = from_elsewhere(qm, ORDERS, b"a")
    assert accepted(qm, message, authenticated=True, encrypted=True) is None
    assert qm.bodies(queue) == [b"a"]


def test_over_the_quota_of_the_queue_manager_nothing_changes(qm: RunningQueueManager) -> None:
    """G59: the session ends, the sequence does not advance, nobody is told."""
    qm.create()
    acks = qm.create(r"private$\acks")
    qm.engine.begin_flow_control()
    with pytest.raises(MQError):
        accepted(qm, from_elsewhere(qm, ORDERS, **asking(qm)), changes={b"qb:next": b"2"})
    qm.settle()
    assert qm.engine.protocol_records.get(b"qb:next") is None
    assert acknowledgements(qm, acks) == []


def _classes_of_dead_letters(qm: RunningQueueManager) -> list[int]:
    deadletters = qm.engine.queue_manager.system_deadletter_queue
    assert deadletters is not None
    keys = deadletters.message_position_list.page(None, 100)
    at = qm.engine.positions.message_at
    return [int(at(deadletters, key).attributes.message_class) for key in keys]


def test_a_refused_message_is_a_dead_letter_here_that_says_why(qm: RunningQueueManager) -> None:
    qm.create(quota=1)
    qm.create(r"private$\stream", transactional=True)
    wanted = {"negative_journaling_requested": True}
    accepted(qm, from_elsewhere(qm, r"DIRECT=OS:x\private$\none", b"nowhere", **wanted))
    accepted(qm, from_elsewhere(qm, r"DIRECT=OS:x\private$\stream", b"not in one", **wanted))
    accepted(qm, from_elsewhere(qm, ORDERS, bytes(2000), **wanted))
    assert qm.bodies(qm.engine.queue_manager.system_deadletter_queue) == [
        b"nowhere",
        b"not in one",
        bytes(2000),
    ]
    assert _classes_of_dead_letters(qm) == [0x8000, 0x800A, 0x8003]


def test_the_packet_of_a_refused_message_is_kept_as_it_came(qm: RunningQueueManager) -> None:
    """G189: its signature covers the class, which tells beside the packet why it was refused."""
    wanted = {
        "negative_journaling_requested": True,
        "delivery_guarantee": DeliveryGuarantee.RECOVERABLE,
    }
    message = from_elsewhere(qm, r"DIRECT=OS:x\private$\none", b"nowhere", **wanted)
    came = message.packet
    accepted(qm, message)
    qm.restart()
    assert _classes_of_dead_letters(qm) == [0x8000]
    deadletters = qm.engine.queue_manager.system_deadletter_queue
    assert deadletters is not None
    (key,) = deadletters.message_position_list.page(None, 100)
    position = deadletters.message_position_list.position(key)
    assert position is not None
    assert qm.store.read_packet(position.serial).startswith(came)


def test_what_nobody_has_proved_to_be_the_sender_s_is_no_dead_letter(
    qm: RunningQueueManager,
) -> None:
    qm.create(authentication=True)
    wanted = {"negative_journaling_requested": True}
    refused = accepted(qm, from_elsewhere(qm, ORDERS, b"unsigned", **wanted))
    assert refused is MessageClass.MQMSG_CLASS_NACK_BAD_SIGNATURE
    assert _classes_of_dead_letters(qm) == []


@pytest.mark.bound("strangers.dead_letters")
def test_dead_letters_of_strangers_leave_room(
    qm: RunningQueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acknowledgements_module, "STRANGERS_DEAD_LETTERS", 1)
    wanted = {"negative_journaling_requested": True}
    message = from_elsewhere(qm, r"DIRECT=OS:x\private$\none", b"a", **wanted)
    size = len(message.packet)
    fits = from_elsewhere(qm, r"DIRECT=OS:x\private$\none", bytes(1025 - size), **wanted)
    assert len(fits.packet) == 1024
    accepted(qm, fits)
    assert _classes_of_dead_letters(qm) == [0x8000]
    accepted(qm, message)
    assert _classes_of_dead_letters(qm) == [0x8000]


@pytest.mark.parametrize("name", [r"private$\orders;sub", r"private$\orders;journal"])
def test_nothing_arrives_in_subqueues_and_journals(qm: RunningQueueManager, name: str) -> None:
    qm.subqueue(qm.create(), "sub")
    refused = accepted(qm, from_elsewhere(qm, rf"DIRECT=OS:workstation\{name}"))
    assert refused is MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q


# Forwarding


def forwarded(qm: RunningQueueManager, hops: int = 0) -> Message:
    message = from_elsewhere(
        qm, f"PRIVATE={OTHER}\\00000017", b"a", destination_queue_manager_identifier=OTHER
    )
    packet = bytearray(message.packet)
    set_hop_count(packet, hops)
    return Message(bytes(packet))


def test_only_a_routing_server_forwards(qm: RunningQueueManager) -> None:
    assert accepted(qm, forwarded(qm)) is MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q


def test_a_routing_server_counts_the_hops(qm: RunningQueueManager) -> None:
    qm.restart(replace(SETTINGS, routing_server=True))
    assert accepted(qm, forwarded(qm, hops=28)) is None
    (queue,) = qm.engine.outgoing.list()
    assert isinstance(queue, OutgoingQueue)
    taken = qm.engine.transfer.lock_next(queue, object())
    assert taken is not None
    assert taken.envelope.user_flags & 0x1F == 29
    refused = accepted(qm, forwarded(qm, hops=29))
    assert refused is MessageClass.MQMSG_CLASS_NACK_HOP_COUNT_EXCEEDED


@pytest.mark.conformance("MQDMPR-element-IncomingTransactionalTransferInfo")
def test_streams_of_senders_are_kept_apart_by_sender_and_name(qm: RunningQueueManager) -> None:
    """G55."""
    queue = qm.create()
    one = qm.engine.arrivals.transfer_info(queue, ORDERS, ELSEWHERE)
    assert qm.engine.arrivals.transfer_info(queue, ORDERS, ELSEWHERE) is one
    assert qm.engine.arrivals.transfer_info(queue, ORDERS, OTHER) is not one
    assert qm.engine.arrivals.transfer_info(queue, "DIRECT=TCP:192.0.2.7\\x", ELSEWHERE) is not one
    assert len(queue.incoming_transactional_transfer_info_collection) == 3
