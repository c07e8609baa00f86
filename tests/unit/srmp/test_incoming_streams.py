"""Streams that others send here ([MC-MQSRM] 3.1.5.1.6.3, .4, 3.1.6.3, 3.1.7.3.3)."""

from typing import Any
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from rpcqm.codec.packet.types import TxSequenceID
from rpcqm.srmp.elements import StreamId
from tests.support.srmp.srmp_door import (
    HERE,
    ORDER_QUEUE,
    PEER,
    SENDER,
    SRMP,
    STREAM,
    Door,
    msmq,
)
from tests.support.srmp.srmp_text import Elements, durable, in_stream, message

COALESCING = SRMP.receipt_coalescing


def send(
    door: Door,
    number: int,
    *more: str,
    stream: int = 7,
    start: bool | None = None,
    previous: int | None = None,
    to: str = STREAM,
    guid: str = SENDER,
    ordinal: int = 0,
    receipts_to: str = ORDER_QUEUE,
    **elements: Any,
) -> int:
    """A message of a stream; its body is its number."""
    begins = number == 1 if start is None else start
    place = in_stream(guid, number, receipts_to if begins else "", previous, stream)
    elements.setdefault("services", durable())
    return door.send(
        to,
        b"%d" % number,
        stream=place,
        ordinal=ordinal or stream * 1000 + number,
        guid=SENDER,
        msmq=msmq(*more, priority=0),
        **elements,
    )


def acknowledged(door: Door) -> list[int]:
    """The numbers of the stream receipts that have left."""
    receipts = [each.stream_receipt for each in door.receipts]
    return [receipt.last_ordinal for receipt in receipts if receipt is not None]


def contents(door: Door) -> str:
    return b"".join(door.contents("stream")).decode()


pytestmark = pytest.mark.conformance("MQSRM-rule-3.1.5.1.6.3", "MQSRM-element-Stream")


def test_messages_are_taken_in_order(door: Door) -> None:
    for number in (1, 2, 3):
        assert send(door, number) == 200
    assert contents(door) == "123"


def test_repetitions_and_gaps_are_answered_with_200_and_dropped(door: Door) -> None:
    for number in (1, 2, 2, 1, 4, 5, 3):
        assert send(door, number) == 200
    assert contents(door) == "123"


def test_the_first_message_in_a_row_that_is_out_of_order_is_logged(door: Door) -> None:
    with capture_logs() as lines:
        for number in (1, 2, 2, 1, 3, 7, 8):
            send(door, number)
    told = [line for line in lines if line["event"] == "a message in a stream was dropped"]
    assert [(line["reason"], line["number"], line["last_number"]) for line in told] == [
        ("it was taken before", 2, 2),
        ("messages before it are missing", 7, 3),
    ]


def test_a_stream_begins_with_its_start_only(door: Door) -> None:
    for number, start in ((2, False), (1, False), (2, True)):
        assert send(door, number, start=start) == 200
    assert contents(door) == ""
    send(door, 1)
    assert contents(door) == "1"


def test_a_gap_that_its_sender_has_bridged_is_none(door: Door) -> None:
    send(door, 1)
    send(door, 5, previous=2)
    assert contents(door) == "1"
    send(door, 5, previous=1)
    send(door, 6)
    assert contents(door) == "156"


def test_a_stream_whose_first_messages_are_gone_begins_later(door: Door) -> None:
    """Nothing is before it, and it has a start (G226)."""
    send(door, 3, start=True, previous=0)
    send(door, 4)
    assert contents(door) == "34"


def test_another_stream_replaces_the_present_one(door: Door) -> None:
    send(door, 1)
    send(door, 2)
    send(door, 1, stream=8)
    send(door, 3)
    send(door, 2, stream=8)
    assert contents(door) == "1212"


def test_a_late_repetition_of_an_earlier_start_begins_nothing(door: Door) -> None:
    send(door, 1)
    send(door, 1, stream=8)
    send(door, 1)
    send(door, 2, stream=8)
    assert contents(door) == "112"


def test_streams_are_kept_apart_by_sender_and_destination(door: Door) -> None:
    door.create(r"private$\second", transactional=True)
    other = "dc1cd9a6-8130-4504-88d2-851707fe4632"
    send(door, 1)
    send(door, 1, to=f"{HERE}/second")
    send(door, 1, guid=other, ordinal=90)
    send(door, 2)
    send(door, 2, to=f"{HERE}/second")
    send(door, 2, guid=other, ordinal=91)
    assert contents(door) == "1122"
    assert door.contents("second") == [b"1", b"2"]


def test_a_stream_goes_on_after_a_restart(door: Door) -> None:
    send(door, 1)
    door.restart()
    send(door, 2)
    assert contents(door) == "12"
    for number in (1, 2):
        send(door, number)
    door.crash()
    for number in (2, 4, 3):
        send(door, number)
    assert contents(door) == "123"


def test_what_was_not_answered_before_a_crash_comes_again(door: Door) -> None:
    """The message and the state of its stream are on the disk together, or neither is (G58)."""
    send(door, 1)
    place = in_stream(SENDER, 2)
    door.begin(
        message(STREAM, b"2", Elements(stream=place, services=durable(), ordinal=7002, msmq=msmq()))
    )
    door.crash()
    assert contents(door) == "1"
    send(door, 2)
    assert contents(door) == "12"


def test_a_message_of_a_stream_is_durable_without_saying_so(door: Door) -> None:
    send(door, 1, services="")
    door.restart()
    assert contents(door) == "1"
    (got,) = door.messages("stream")
    assert got.transactional_message_sequence_identifier == TxSequenceID.from_value(7)
    assert got.transaction_sequence_number == 1


# Receipts


@pytest.mark.conformance("MQSRM-timer-stream_receipt_coalescing", "MQSRM-element-streamReceipt")
def test_a_receipt_follows_half_a_second_after_the_last_message(door: Door) -> None:
    for number in (1, 2, 3):
        send(door, number)
        door.advance(COALESCING - 1)
    assert acknowledged(door) == []
    door.advance(1)
    assert acknowledged(door) == [3]
    (receipt,) = door.receipts
    assert receipt.to == ORDER_QUEUE
    assert receipt.action == "MSMQ:QM Ordering Ack"
    assert receipt.via == STREAM.replace("HTTP", "http")
    assert receipt.stream_receipt is not None
    assert receipt.stream_receipt.stream_id == StreamId(UUID(SENDER), 7)
    assert receipt.msmq is not None
    assert receipt.msmq.message_class == 0xFF
    door.advance(60_000)
    assert acknowledged(door) == [3]


@pytest.mark.conformance("MQSRM-timer-stream_receipt_coalescing")
def test_a_receipt_waits_for_ten_seconds_at_most(door: Door) -> None:
    number = 0
    while not acknowledged(door):
        number += 1
        send(door, number)
        door.advance(400)
    assert number == SRMP.maximum_receipt_delay // 400
    assert acknowledged(door) == [number]


def test_a_repetition_is_acknowledged_again(door: Door) -> None:
    """Else a receipt that was lost would stall its sender (G214)."""
    send(door, 1)
    door.advance(COALESCING)
    send(door, 1)
    door.advance(COALESCING)
    assert acknowledged(door) == [1, 1]


def test_a_repetition_is_acknowledged_after_a_restart_as_well(door: Door) -> None:
    send(door, 1)
    send(door, 2)
    door.crash()
    send(door, 2)
    door.advance(COALESCING)
    assert acknowledged(door) == [2]
    assert door.receipts[0].to == ORDER_QUEUE


def test_another_url_for_receipts_holds_from_a_repeated_start_on(door: Door) -> None:
    """Its sender has been mended; nobody else knows the number of the stream (G169)."""
    mended = f"http://{PEER}/msmq/private$/mended"
    send(door, 1)
    send(door, 2)
    send(door, 1, receipts_to=mended)
    door.crash()
    send(door, 3)
    door.advance(COALESCING)
    assert contents(door) == "123"
    assert [(each.to, acknowledged(door)) for each in door.receipts] == [(mended, [3])]


def test_a_start_of_another_stream_that_comes_again_leads_no_receipt_away(door: Door) -> None:
    send(door, 1, stream=7)
    send(door, 1, stream=8)
    send(door, 1, stream=7, receipts_to=f"http://{PEER}/msmq/private$/elsewhere")
    door.advance(COALESCING)
    assert [each.to for each in door.receipts] == [ORDER_QUEUE]


def test_nothing_is_acknowledged_before_it_is_durable(door: Door) -> None:
    send(door, 1)
    place = in_stream(SENDER, 2)
    door.begin(
        message(STREAM, b"2", Elements(stream=place, services=durable(), ordinal=7002, msmq=msmq()))
    )
    door.clock.advance(COALESCING)
    door.settle()
    assert acknowledged(door) == [1]
    door.advance(COALESCING)
    assert acknowledged(door) == [1, 2]


def test_what_has_expired_on_arrival_counts_and_is_acknowledged(door: Door) -> None:
    send(door, 1)
    send(door, 2, expires="20260601T115959")
    send(door, 3)
    door.advance(COALESCING)
    assert contents(door) == "13"
    assert acknowledged(door) == [3]


def test_a_full_queue_manager_takes_nothing_of_a_stream_but_later(door: Door) -> None:
    send(door, 1)
    machine = door.engine.queue_manager
    quota, machine.queue_manager_quota = machine.queue_manager_quota, 1
    assert send(door, 2) == 500
    machine.queue_manager_quota = quota
    assert send(door, 2) == 200
    assert contents(door) == "12"


# What administrators see


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.6.4")
def test_administrators_see_how_far_a_stream_has_come(door: Door) -> None:
    for number in (1, 2, 2, 5):
        send(door, number)
    for restarted in (False, True):
        if restarted:
            door.restart()
        (info,) = door.queue("stream").incoming_transactional_transfer_info_collection
        assert info.queue_reference is door.queue("stream")
        assert info.format_name.lower() == f"direct={STREAM}"
        assert info.sender_identifier == UUID(SENDER)
        assert (info.sequence_identifier, info.sequence_number) == (7, 2)
        assert info.last_access_time == door.clock.now() // 1000
        assert info.reject_count == 2
    send(door, 3)
    assert info.reject_count == 0
    door.restart()
    (info,) = door.queue("stream").incoming_transactional_transfer_info_collection
    assert (info.sequence_number, info.reject_count) == (3, 0)


# Final receipts


def read(door: Door) -> None:
    door.receive(door.open(door.queue("stream")))
    door.settle()


@pytest.mark.conformance("MQSRM-rule-3.1.7.3.3", "MQSRM-packet-final_stream_receipt")
def test_the_sender_learns_that_its_message_was_received_where_it_keeps_dead_letters(
    door: Door,
) -> None:
    send(door, 1, "<DeadLetter/>")
    send(door, 2)
    door.advance(COALESCING)
    door.peers.posted.clear()
    door.restart()
    read(door)
    read(door)
    (receipt,) = door.receipts
    assert receipt.to == ORDER_QUEUE
    assert receipt.action == "MSMQ:QM Ordering Ack"
    assert receipt.stream_receipt is not None
    assert receipt.stream_receipt.stream_id == StreamId(UUID(SENDER), 7)
    assert receipt.stream_receipt.last_ordinal == 1
    assert receipt.commitment_receipt is not None
    assert receipt.commitment_receipt.positive
    assert (receipt.commitment_receipt.id.guid, receipt.commitment_receipt.id.ordinal) == (
        UUID(SENDER),
        7001,
    )
    assert receipt.msmq is not None
    assert receipt.msmq.message_class == 0x4000


@pytest.mark.conformance("MQSRM-rule-3.1.7.3.3")
@pytest.mark.parametrize("how", ["purge", "delete", "expire", "refuse"])
def test_the_sender_learns_that_its_message_was_not_received(door: Door, how: str) -> None:
    if how == "refuse":
        door.queue("stream").quota = 1
    expires = "20260601T120010" if how == "expire" else "20370101T000000"
    send(door, 1, "<DeadLetter/>", expires=expires, label="x" * 200)
    queue = door.queue("stream")
    if how == "purge":
        door.done(door.engine.queues.purge_queue(queue))
    elif how == "delete":
        door.done(door.engine.queues.delete_queue(queue))
    elif how == "expire":
        door.advance(11_000)
    door.settle()
    classes = [
        each.msmq.message_class
        for each in door.receipts
        if each.commitment_receipt is not None
        and not each.commitment_receipt.positive
        and each.msmq is not None
    ]
    expected = {"purge": 0xC001, "delete": 0xC000, "expire": 0xC002, "refuse": 0x8001}
    assert classes == [expected[how]]


def test_a_receipt_for_this_machine_itself_needs_no_network(door: Door) -> None:
    place = in_stream(SENDER, 1, f"{HERE}/order_queue$")
    assert door.send(STREAM, stream=place, services=durable(), ordinal=3, msmq=msmq()) == 200
    door.advance(COALESCING)
    assert door.peers.posted == []


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.6", "MQSRM-rule-3.1.5.1.11")
@pytest.mark.parametrize("restarts", [False, True])
def test_what_was_taken_in_another_stream_counts_and_is_not_stored_again(
    door: Door, *, restarts: bool
) -> None:
    """Its sender was restored from a backup: it does not know that it has been taken."""
    send(door, 1, ordinal=41)
    if restarts:
        door.restart()
    send(door, 1, ordinal=41, stream=8)
    door.restart()
    send(door, 2, ordinal=42, stream=8)
    assert contents(door) == "12"
    door.advance(COALESCING)
    assert acknowledged(door)[-1] == 2


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.11")
def test_nobody_uses_up_the_number_of_a_message_whose_content_is_not_known_to_him(
    door: Door,
) -> None:
    """A stranger sends the identifier of somebody's next message in a stream of his own."""
    stranger = "11111111-57b2-43e5-9d34-f1d8b2b8950a"
    send(door, 1, ordinal=41)
    door.send(
        STREAM,
        b"forged",
        stream=in_stream(stranger, 1, ORDER_QUEUE, None, 9),
        services=durable(),
        ordinal=42,
        guid=SENDER,
        msmq=msmq(priority=0),
    )
    send(door, 2, ordinal=42)
    door.advance(COALESCING)
    assert 2 not in acknowledged(door)
