"""Messages to HTTP names that are posted again until a receipt frees them ([MC-MQSRM] 3.1.6.2)."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.support.srmp.http_network import SETTINGS, http_simulation
from tests.support.srmp.http_sending import Sending, send_three

REFUSED = ConnectionRefusedError(111, "refused")


@pytest.fixture
def sending() -> Iterator[Sending]:
    with http_simulation() as simulation:
        yield Sending(simulation)


@pytest.mark.conformance("MQSRM-timer-stream_receipt_wait")
def test_what_is_not_acknowledged_is_sent_again_by_the_ladder(sending: Sending) -> None:
    send_three(sending)
    at: list[int] = []
    start = sending.simulation.clock.monotonic()
    seen = 3
    while len(at) < 12:
        sending.simulation.advance(10_000)
        if len(sending.numbers) > seen:
            assert sending.numbers[seen:] == [1, 2, 3]
            seen = len(sending.numbers)
            at.append((sending.simulation.clock.monotonic() - start) // 30_000)
    ladder = [1, 1, 1, 10, 10, 10, 60, 60, 60, 720, 720, 720]
    assert at == [sum(ladder[:rung]) for rung in range(1, 13)]


def test_the_first_rung_is_a_setting(sending: Sending) -> None:
    sending.alice.adjust(replace(SETTINGS, stream_receipt_wait=1_000))
    sending.send_in_order()
    sending.settle(3.5)
    assert sending.numbers == [1] * 4
    sending.settle(9)
    assert sending.numbers == [1] * 4
    sending.settle(1)
    assert sending.numbers == [1] * 5


def test_a_receipt_begins_the_ladder_anew(sending: Sending) -> None:
    send_three(sending)
    sending.settle(95)
    assert len(sending.numbers) == 12
    sending.receipt(1)
    sending.settle(31)
    assert sending.numbers[12:] == [2, 3]


def test_a_receipt_that_says_nothing_new_does_not(sending: Sending) -> None:
    send_three(sending)
    sending.receipt(1)
    sending.settle(25)
    sending.receipt(1)
    sending.settle(6)
    assert sending.numbers[3:] == [2, 3]


def test_what_follows_during_the_wait_is_sent_at_once(sending: Sending) -> None:
    send_three(sending)
    sending.settle(100)
    sent = len(sending.numbers)
    sending.send_in_order(b"4")
    sending.settle(1)
    assert sending.numbers[sent:] == [4]


def test_a_failure_ends_the_wait_until_the_next_message_is_accepted(sending: Sending) -> None:
    sending.send_in_order(b"1")
    sending.settle(1)
    sending.shop.usual = REFUSED
    sending.send_in_order(b"2")
    sending.settle(45)
    assert sending.numbers == [1, 2, 2, 2]
    sending.shop.usual = 200
    sending.settle(50)
    assert sending.numbers[4:] == [2, 1, 2]


def test_an_administrator_can_have_it_sent_again(sending: Sending) -> None:
    send_three(sending)
    sending.alice.engine.outgoing.resend(sending.queue)
    sending.settle(1)
    assert sending.numbers == [1, 2, 3] * 2


def test_a_resumed_queue_sends_everything_again_that_is_not_acknowledged(sending: Sending) -> None:
    send_three(sending)
    outgoing = sending.alice.engine.outgoing
    outgoing.admin_pause_queue(sending.queue)
    sending.settle(100)
    assert sending.numbers == [1, 2, 3]
    outgoing.admin_resume_queue(sending.queue)
    sending.settle(1)
    assert sending.numbers == [1, 2, 3] * 2


@pytest.mark.conformance("MQSRM-event-pause_queue")
def test_what_awaits_receipts_can_be_purged_on_hold(sending: Sending) -> None:
    send_three(sending)
    sending.alice.engine.outgoing.admin_pause_queue(sending.queue)
    sending.alice.engine.queues.purge_queue(sending.queue)
    sending.settle(1)
    assert sending.alice.unsent == 0
    sending.alice.engine.outgoing.admin_resume_queue(sending.queue)
    sending.send_in_order(b"next")
    sending.settle(60)
    last = sending.streams[-1]
    assert (last.current, last.previous) == (1, 0)
    assert sending.receipt(1)
    assert sending.alice.unsent == 0


@pytest.mark.parametrize("offline", [False, True])
def test_what_is_accepted_during_a_pause_waits_for_its_end(sending: Sending, offline: bool) -> None:
    engine = sending.alice.engine
    sending.send_in_order()
    engine.take_offline() if offline else engine.outgoing.admin_pause_queue(sending.queue)
    sending.settle(1000)
    assert sending.numbers == [1]
    assert sending.info.eod_resend_time is None
    assert sending.info.eod_resend_count == 0
    engine.outgoing.resend(sending.queue)
    assert sending.info.eod_resend_time is None
    engine.bring_online() if offline else engine.outgoing.admin_resume_queue(sending.queue)
    sending.settle(1)
    assert sending.numbers == [1, 1]


def test_a_receipt_during_a_pause_counts_and_starts_nothing(sending: Sending) -> None:
    send_three(sending)
    sending.alice.engine.outgoing.admin_pause_queue(sending.queue)
    assert sending.receipt(2)
    sending.settle(1)
    assert sending.alice.unsent == 1
    assert sending.info.eod_resend_time is None


@pytest.mark.conformance("MQSRM-timer-stream_receipt_wait")
def test_what_left_before_a_failure_is_sent_again_though_what_failed_is_gone(
    sending: Sending,
) -> None:
    sending.send_in_order(b"1")
    sending.settle(1)
    sending.shop.answers = [REFUSED]
    sending.send_in_order(b"expires", time_to_reach_queue=5)
    sending.settle(100)
    assert sending.numbers[-1] == 1
    assert len(sending.numbers) > 2


def test_the_first_that_is_left_says_where_receipts_go(sending: Sending) -> None:
    sending.send_in_order(b"expires", time_to_reach_queue=5)
    sending.send_in_order(b"2")
    sending.settle(100)
    last = sending.streams[-1]
    assert (last.current, last.previous) == (2, 0)
    assert last.send_receipts_to == "http://alice/msmq/private$/order_queue$"


def test_nothing_is_kept_of_what_was_purged_while_http_was_off(sending: Sending) -> None:
    send_three(sending)
    alice = sending.alice
    alice.engine.outgoing.admin_pause_queue(sending.queue)
    alice.srmp.stop()
    alice.engine.positions.deleted_hooks.remove(alice.srmp._message_position_deleted)
    alice.engine.queues.purge_queue(sending.queue)
    sending.settle(1)
    alice.restart()
    sending.settle(1)
    records = alice.engine.protocol_records
    assert list(records.records(b"srmp sent ")) == []


@pytest.mark.conformance("MQSRM-element-Stream")
def test_the_stream_of_a_queue_that_is_deleted_while_http_is_off_is_forgotten(
    sending: Sending,
) -> None:
    send_three(sending)
    alice = sending.alice
    alice.srmp.stop()
    alice.engine.positions.deleted_hooks.remove(alice.srmp._message_position_deleted)
    alice.engine.queues.delete_queue(sending.queue)
    sending.settle(1)
    alice.restart()
    sending.settle(1)
    assert list(alice.engine.protocol_records.records(b"srmp sent ")) == []


def test_another_url_for_receipts_holds_for_the_stream_under_way(sending: Sending) -> None:
    send_three(sending)
    sending.alice.adjust(replace(SETTINGS, default_stream_receipt_url="http://mended/x"))
    sending.settle(1)
    assert [each.send_receipts_to for each in sending.streams[3:6]] == [
        "http://mended/x",
        None,
        None,
    ]
