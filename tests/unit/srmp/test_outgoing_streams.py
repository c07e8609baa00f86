"""Transactional messages to HTTP names ([MC-MQSRM] 3.1.5.1.8, 3.1.5.1.9, 3.1.7.2.3)."""

from collections.abc import Iterator
from dataclasses import replace
from uuid import uuid4

import pytest

from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.types import SequenceInfo
from rpcqm.srmp.connection.outgoing_transfer import (
    MANY_WAITING,
    NUMBERED_AT_ONCE,
    POSTS_AT_ONCE,
)
from rpcqm.srmp.elements import StreamId
from rpcqm.srmp.outgoing_stream import next_stream
from rpcqm.srmp.settings import Redirection
from tests.support.srmp.http_network import SETTINGS, http_simulation
from tests.support.srmp.http_sending import NAME, Sending, send_three

REFUSED = ConnectionRefusedError(111, "refused")
RECEIVED = MessageClass.MQMSG_CLASS_ACK_RECEIVE
PURGED = MessageClass.MQMSG_CLASS_NACK_Q_PURGED
TOO_LATE = MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT
BAD_DESTINATION = MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q


@pytest.fixture
def sending() -> Iterator[Sending]:
    with http_simulation() as simulation:
        yield Sending(simulation)


# 3.1.7.2.3


@pytest.mark.conformance(
    "MQSRM-rule-3.1.7.2.3",
    "MQSRM-element-Stream",
    "MQSRM-element-SRMPMessage",
    "MQSRM-http-200",
    "MQSRM-rule-3.1.3.2",
)
def test_transactional_messages_are_numbered_and_stay(sending: Sending) -> None:
    stream = send_three(sending)
    assert stream.guid == sending.alice.engine.queue_manager.identifier
    assert [each.stream_id for each in sending.streams] == [stream] * 3
    assert [(each.current, each.previous) for each in sending.streams] == [(1, 0), (2, 1), (3, 2)]
    assert all(envelope.services.durable for envelope in sending.shop.envelopes)
    assert sending.alice.unsent == 3


def test_messages_of_a_stream_leave_one_after_the_other_however_many_wait(
    sending: Sending,
) -> None:
    sending.shop.usual = None
    for _ in range(MANY_WAITING + POSTS_AT_ONCE):
        sending.alice.send_later(NAME, b"x", transactional=True)
    sending.settle(19)
    assert sending.numbers == [1]


def test_numbers_of_messages_that_wait_become_durable_together(sending: Sending) -> None:
    sending.shop.answers, sending.shop.usual = [200], None
    for number in range(NUMBERED_AT_ONCE + 1):
        sending.alice.send_later(NAME, b"%d" % number, transactional=True)
    sending.settle(1)
    assert sending.numbers == [1, 2]
    sending.alice.restart()
    assert sending.info.eod_no_ack_count == NUMBERED_AT_ONCE + 1
    sending.shop.usual = 200
    sending.settle(60)
    assert sending.numbers[-NUMBERED_AT_ONCE - 1 :] == [*range(1, NUMBERED_AT_ONCE + 2)]
    assert sending.shop.bodies[-1] == b"%d" % NUMBERED_AT_ONCE


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.8.2")
def test_what_is_shown_of_a_stream_is_what_has_been_posted(sending: Sending) -> None:
    """Numbers are given ahead of what is posted, so that one commit keeps many of them."""
    sending.shop.answers, sending.shop.usual = [200], None
    for _ in range(NUMBERED_AT_ONCE):
        sending.alice.send_later(NAME, b"x", transactional=True)
    sending.settle(1)
    assert sending.numbers == [1, 2]
    info = sending.info
    assert info.eod_no_ack_count == 2
    assert (info.eod_first_non_ack.seq_no, info.eod_last_non_ack.seq_no) == (1, 2)
    assert (info.eod_next_seq.seq_no, info.eod_next_seq.prev_no) == (3, 2)


def test_the_upper_half_of_a_stream_is_a_time(sending: Sending) -> None:
    stream = send_three(sending)
    assert stream.ordinal >> 32 == sending.simulation.clock.now() // 1_000_000 * 1000


def test_streams_become_greater_for_as_long_as_there_is_room() -> None:
    now = 1_800_000_000
    last, steps = next_stream(0, now), []
    for _ in range(1000):
        following = next_stream(last, now)
        steps.append((following >> 32) - (last >> 32))
        last = following
    assert set(steps) == {1}
    far = (now + (1 << 28) + 1) << 32
    assert far < next_stream(far, now) < far + (1 << 25)
    assert next_stream(far, now + 10) < 1 << 64


@pytest.mark.conformance("MQSRM-element-start")
def test_only_the_first_message_says_where_receipts_go(sending: Sending) -> None:
    send_three(sending)
    assert [each.send_receipts_to for each in sending.streams] == [
        "http://alice/msmq/private$/order_queue$",
        None,
        None,
    ]


@pytest.mark.conformance(
    "MQSRM-element-StreamReceiptURLReplacementCollection",
    "MQSRM-element-DefaultStreamReceiptURLReplacement",
)
@pytest.mark.parametrize(
    ("rules", "default", "expected"),
    [
        ((), "http://gateway/x", "http://gateway/x"),
        ((("http://other/*", "http://y"),), "http://gateway/x", "http://gateway/x"),
        ((("http://shop/*", "http://y"),), "http://gateway/x", "http://y"),
        ((("HTTP://Shop/msmq/private$/orders", "http://y"),), "", "http://y"),
        ((("http://other/*", "http://y"),), "", "http://alice/msmq/private$/order_queue$"),
    ],
)
def test_an_administrator_says_where_receipts_go(
    sending: Sending, rules: tuple[tuple[str, str], ...], default: str, expected: str
) -> None:
    settings = replace(
        SETTINGS,
        stream_receipt=tuple(Redirection(*rule) for rule in rules),
        default_stream_receipt_url=default,
    )
    sending.alice.adjust(settings)
    sending.send_in_order()
    sending.settle(1)
    assert sending.streams[0].send_receipts_to == expected


@pytest.mark.parametrize(
    ("http", "https", "scheme", "expected"),
    [
        (8080, -1, "HTTP", "http://alice:8080/"),
        (8080, -1, "HTTPS", "http://alice:8080/"),
        (8080, 443, "HTTPS", "https://alice/"),
        (8080, 8443, "HTTP", "http://alice:8080/"),
        (-1, 8443, "HTTP", "https://alice:8443/"),
    ],
)
def test_receipts_come_to_a_port_that_is_listened_to(
    sending: Sending, http: int, https: int, scheme: str, expected: str
) -> None:
    sending.alice.adjust(replace(SETTINGS, http_port=http, https_port=https))
    sending.alice.send(f"DIRECT={scheme}://shop/msmq/private$/orders", b"", transactional=True)
    sending.settle(1)
    assert sending.streams[0].send_receipts_to == f"{expected}msmq/private$/order_queue$"


@pytest.mark.conformance("MQSRM-rule-3.1.7.2.2", "MQSRM-element-id", "MQSRM-element-sentAt")
def test_a_message_that_is_sent_again_is_the_same(sending: Sending) -> None:
    sending.alice.send("DIRECT=HTTP://other/msmq/private$/orders", b"number 1")
    now = sending.simulation.clock.now() // 1000
    sending.shop.answers = [REFUSED, 500]
    sent = sending.send_in_order()
    sending.settle(60)
    sending.alice.restart()
    sending.settle(1)
    envelopes = sending.shop.envelopes
    assert len(envelopes) == 4
    assert all(envelope == envelopes[0] for envelope in envelopes)
    assert envelopes[0].sent_at == now
    assert (envelopes[0].id.guid, envelopes[0].id.ordinal) == (
        sent.queue_manager_guid,
        sent.ordinal,
    )


@pytest.mark.conformance("MQSRM-element-previous")
def test_what_has_expired_is_bridged(sending: Sending) -> None:
    sending.send_in_order(b"1")
    sending.send_in_order(b"expires", time_to_reach_queue=20)
    sending.send_in_order(b"3")
    sending.settle(40)
    last = sending.streams[-1]
    assert (last.current, last.previous, last.send_receipts_to) == (3, 1, None)


def test_a_number_1_that_never_arrived_is_given_again_in_another_stream(sending: Sending) -> None:
    sending.shop.usual = REFUSED
    sending.send_in_order(b"expires", time_to_reach_queue=30)
    sending.send_in_order(b"lives")
    sending.settle(25)
    sending.shop.usual = 200
    sending.settle(25)
    first, *_, last = sending.streams
    assert (last.current, last.previous) == (1, 0)
    assert last.send_receipts_to is not None
    assert last.stream_id.ordinal > first.stream_id.ordinal


def test_nothing_is_numbered_after_a_number_1_that_is_not_answered(sending: Sending) -> None:
    sending.alice.engine.take_offline()
    sending.send_in_order(b"expires", time_to_reach_queue=30)
    sending.send_in_order(b"lives")
    sending.shop.answers = [REFUSED, REFUSED]
    sending.alice.engine.bring_online()
    sending.settle(60)
    first, *_, last = sending.streams
    assert (last.current, last.previous) == (1, 0)
    assert last.stream_id.ordinal > first.stream_id.ordinal


@pytest.mark.conformance("MQSRM-element-Stream")
def test_the_number_is_durable_before_the_message_leaves(sending: Sending) -> None:
    sending.send_in_order(b"1")
    sending.settle(1)
    sending.alice.kill()
    sending.alice.start()
    sending.send_in_order(b"2")
    sending.settle(1)
    assert [(each.current, each.previous) for each in sending.streams] == [(1, 0), (1, 0), (2, 1)]
    assert len({each.stream_id for each in sending.streams}) == 1


@pytest.mark.conformance("MQSRM-element-SRMPState")
def test_every_stream_is_greater_than_those_before(sending: Sending) -> None:
    ordinals = []
    for _ in range(3):
        sending.send_in_order()
        sending.settle(1)
        assert sending.receipt(1)
        sending.alice.kill()
        sending.alice.start()
        ordinals.append(sending.streams[-1].stream_id.ordinal)
    sending.send_in_order()
    sending.alice.send("DIRECT=HTTP://shop/msmq/private$/other", b"", transactional=True)
    sending.settle(1)
    ordinals += [each.stream_id.ordinal for each in sending.streams[-2:]]
    assert ordinals == sorted(set(ordinals))


# 3.1.5.1.8


@pytest.mark.conformance(
    "MQSRM-rule-3.1.5.1.8",
    "MQSRM-rule-3.1.5.1.8.1",
    "MQSRM-rule-3.1.5.1.8.3",
    "MQSRM-rule-3.1.3.2",
)
def test_a_receipt_frees_everything_up_to_its_number(sending: Sending) -> None:
    send_three(sending)
    assert sending.receipt(2)
    assert sending.alice.unsent == 1
    sending.alice.restart()
    sending.settle(1)
    assert (sending.shop.bodies[3:], sending.numbers[3:]) == ([b"3"], [3])
    assert sending.streams[-1].previous == 2
    assert sending.receipt(3)
    assert sending.alice.unsent == 0


@pytest.mark.parametrize("number", [0, 4, 0xFFFF_FFFF])
def test_a_receipt_of_numbers_that_were_not_given_frees_nothing(
    sending: Sending, number: int
) -> None:
    send_three(sending)
    assert sending.receipt(number)
    assert sending.alice.unsent == 3


def test_a_receipt_of_another_stream_frees_nothing(sending: Sending) -> None:
    stream = send_three(sending)
    assert not sending.receipt(3, StreamId(uuid4(), stream.ordinal))
    assert not sending.receipt(3, StreamId(stream.guid, stream.ordinal + 1))
    assert not sending.final_receipt(3, PURGED, StreamId(uuid4(), stream.ordinal))
    assert not sending.final_receipt(3, PURGED, StreamId(stream.guid, stream.ordinal + 1))
    assert sending.alice.unsent == 3


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.8.4")
def test_a_receipt_journals_what_asks_for_that(sending: Sending) -> None:
    sending.send_in_order(b"kept", positive_journaling_requested=True)
    sending.send_in_order(b"not kept")
    sending.settle(1)
    assert sending.kept("journal") == []
    sending.receipt(2)
    assert sending.kept("journal") == [(b"kept", 0)]
    sending.alice.restart()
    assert (sending.kept("journal"), sending.alice.unsent) == ([(b"kept", 0)], 0)


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.8.2")
def test_administrators_see_how_far_a_stream_has_come(sending: Sending) -> None:
    stream = send_three(sending).ordinal
    info = sending.info
    assert info.eod_no_ack_count == 3
    assert info.eod_first_non_ack == SequenceInfo(stream, 1, 0)
    assert info.eod_last_non_ack == SequenceInfo(stream, 3, 2)
    assert info.eod_next_seq == SequenceInfo(stream, 4, 3)
    assert (info.eod_last_ack, info.eod_last_ack_count) == (SequenceInfo(stream, 0, 0), 0)
    assert (info.eod_last_ack_time, info.eod_resend_interval) == (None, 30)
    now = sending.simulation.clock.now() // 1000
    assert info.eod_resend_time in (now + 29, now + 30)
    sending.receipt(2)
    info = sending.info
    assert (info.eod_no_ack_count, info.eod_last_ack_count) == (1, 1)
    assert info.eod_first_non_ack == info.eod_last_non_ack == SequenceInfo(stream, 3, 2)
    assert info.eod_last_ack == SequenceInfo(stream, 2, 1)
    assert info.eod_last_ack_time == sending.simulation.clock.now() // 1000
    sending.receipt(3)
    info = sending.info
    assert (info.eod_no_ack_count, info.eod_last_ack_count) == (0, 2)
    assert info.eod_first_non_ack == info.eod_last_non_ack == SequenceInfo()
    assert info.eod_resend_time is None


# 3.1.5.1.9


@pytest.mark.conformance(
    "MQSRM-rule-3.1.5.1.9",
    "MQSRM-rule-3.1.5.1.9.1",
    "MQSRM-rule-3.1.5.1.9.2",
    "MQSRM-rule-3.1.5.1.9.3",
    "MQSRM-rule-3.1.5.2.1.2",
)
@pytest.mark.parametrize("kill", [False, True])
def test_a_final_receipt_decides_about_a_dead_letter(sending: Sending, kill: bool) -> None:
    for body in (b"received", b"purged"):
        sending.send_in_order(body, negative_journaling_requested=True)
    sending.settle(1)
    sending.receipt(2)
    assert (sending.info.eod_no_ack_count, sending.info.eod_no_read_count) == (0, 2)
    stream = sending.streams[-1].stream_id
    if kill:
        sending.alice.kill()
        sending.alice.start()
    sending.settle(7200)
    assert sending.numbers == [1, 2]
    assert sending.final_receipt(1, RECEIVED, stream)
    assert (sending.info.eod_no_read_count, sending.kept("transactional_deadletter")) == (1, [])
    assert sending.final_receipt(2, PURGED, stream)
    assert sending.kept("transactional_deadletter") == [(b"purged", PURGED)]
    assert (sending.info.eod_no_read_count, sending.alice.unsent) == (0, 0)
    assert not sending.final_receipt(2, PURGED, stream)
    sending.alice.restart()
    assert sending.kept("transactional_deadletter") == [(b"purged", PURGED)]
    assert sending.alice.unsent == 0


def test_a_dead_letter_goes_to_the_queue_of_its_application(sending: Sending) -> None:
    sending.alice.create("dead", transactional=True)
    sending.send_in_order(
        b"purged",
        negative_journaling_requested=True,
        application_deadletter_queue="alice\\private$\\dead",
    )
    sending.settle(1)
    sending.receipt(1)
    sending.final_receipt(1, PURGED)
    assert sending.alice.bodies("dead") == [b"purged"]


def test_a_final_receipt_may_come_before_the_receipt(sending: Sending) -> None:
    sending.send_in_order(b"1", negative_journaling_requested=True)
    sending.send_in_order(b"2", negative_journaling_requested=True)
    sending.settle(1)
    assert sending.final_receipt(1, PURGED)
    sending.receipt(2)
    assert sending.kept("transactional_deadletter") == [(b"1", PURGED)]
    assert (sending.info.eod_no_read_count, sending.alice.unsent) == (1, 1)


@pytest.mark.conformance("MQSRM-http-400")
def test_a_refused_message_of_a_stream_is_a_dead_letter_and_bridged(sending: Sending) -> None:
    sending.shop.answers = [200, 400]
    for body in (b"1", b"refused", b"3"):
        sending.send_in_order(body, negative_journaling_requested=True)
    sending.settle(1)
    assert sending.kept("transactional_deadletter") == [(b"refused", BAD_DESTINATION)]
    last = sending.streams[-1]
    assert (last.current, last.previous) == (3, 1)


def test_an_expired_message_of_a_stream_is_a_dead_letter(sending: Sending) -> None:
    sending.send_in_order(b"dead", time_to_reach_queue=20, negative_journaling_requested=True)
    sending.settle(40)
    assert sending.kept("transactional_deadletter") == [(b"dead", TOO_LATE)]


# 3.1.7.6


@pytest.mark.conformance("MQSRM-event-stream_element_removed")
def test_a_new_stream_begins_when_no_receipt_is_outstanding(sending: Sending) -> None:
    sending.send_in_order(negative_journaling_requested=True)
    sending.settle(1)
    sending.receipt(1)
    sending.send_in_order()
    sending.settle(1)
    assert sending.numbers == [1, 2]
    sending.receipt(2)
    sending.final_receipt(1, RECEIVED)
    sending.send_in_order()
    sending.settle(1)
    assert sending.numbers == [1, 2, 1]
    first, _, last = sending.streams
    assert last.stream_id.ordinal > first.stream_id.ordinal
    assert last.send_receipts_to is not None
    assert not sending.receipt(1, first.stream_id)


def test_a_receipt_that_comes_while_its_message_is_posted_again_counts(sending: Sending) -> None:
    sending.send_in_order(b"1")
    sending.send_in_order(b"2")
    sending.settle(1)
    sending.shop.usual = None
    sending.alice.engine.outgoing.resend(sending.queue)
    sending.settle(1)
    sending.receipt(1)
    sending.shop.usual = 200
    sending.settle(41)
    assert sending.numbers == [1, 2, 1, 2]
    assert sending.alice.unsent == 1


def test_ordinary_messages_of_the_same_queue_are_of_no_stream(sending: Sending) -> None:
    sending.send_in_order()
    sending.send(b"ordinary")
    sending.settle(1)
    assert [envelope.stream is None for envelope in sending.shop.envelopes] == [False, True]
    assert sending.alice.unsent == 1


@pytest.mark.parametrize("seconds", [0.001, 0.003, 0.02])
def test_a_kill_between_any_two_steps_changes_nothing_for_the_receiver(
    sending: Sending, seconds: float
) -> None:
    for number in range(30):
        sending.send_in_order(b"%d" % number)
    for _ in range(40):
        sending.settle(seconds)
        sending.alice.kill()
        sending.alice.start()
    sending.settle(30)
    given: dict[tuple[StreamId, int], bytes | None] = {}
    for request, stream in zip(sending.shop.requests, sending.streams, strict=True):
        assert given.setdefault((stream.stream_id, stream.current), request.body) == request.body
    assert sorted(given.values(), key=lambda body: int(body or b"")) == [
        b"%d" % number for number in range(30)
    ]
