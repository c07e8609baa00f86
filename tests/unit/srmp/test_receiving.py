"""What becomes of user messages that come by HTTP ([MC-MQSRM] 3.1.5.1)."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.packet.message import MessageIdentifier
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.codec.types.mqvalues import INFINITE
from rpcqm.qm.identity_conflicts import COUNTED
from rpcqm.srmp.connection import known_messages
from rpcqm.srmp.elements import MessageId
from tests.support.srmp.srmp_door import HERE, ORDERS, PEER, RECEIPTS, SENDER, SRMP, Door, msmq
from tests.support.srmp.srmp_text import NULL, SOURCE, Elements, Post, changed, durable, message

NEGATIVE = (
    f"<commitmentReceiptRequest><sendTo>{RECEIPTS}</sendTo><negativeOnly/>"
    "</commitmentReceiptRequest>"
)
DELIVERY = f"<deliveryReceiptRequest><sendTo>{RECEIPTS}</sendTo></deliveryReceiptRequest>"
POSITIVE = NEGATIVE.replace("negativeOnly", "positiveOnly")
NOBODY = parse_sddl("O:BAD:(A;;0xf003f;;;BA)").encode()
PAST, FUTURE = "20260601T115959", "20260601T120100"


# Deserialization


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.1", "MQSRM-element-SRMPMessage", "MQSRM-http-200")
def test_a_message_has_the_attributes_of_its_envelope(door: Door) -> None:
    more = (
        "<Correlation>Jah0arJX5UOdNPHYsriVCgcAAAA=</Correlation><App>36</App><Trace/>"
        "<HashAlgorithm>32772</HashAlgorithm>"
    )
    assert (
        door.send(
            label="of the sender",
            ordinal=26626,
            guid=SENDER,
            via="http://machine1/msmq/private$/answers",
            services=durable(),
            msmq=msmq(more, priority=6).replace("<BodyType>0", "<BodyType>8"),
        )
        == 200
    )
    (got,) = door.messages()
    assert got.label == "of the sender"
    assert str(got.identifier) == f"{{{SENDER}}}\\26626"
    assert got.source_machine_identifier == UUID(SENDER)
    assert str(got.response_queue_format_name) == "DIRECT=HTTP://machine1/msmq/private$/answers"
    assert str(got.destination_queue_format_name) == f"DIRECT=HTTP{ORDERS[4:]}"
    assert got.correlation_identifier == MessageIdentifier(UUID(SENDER), 7)
    assert (got.application_tag, got.body_type, got.hash_algorithm) == (36, 8, 32772)
    assert (got.priority, got.delivery_guarantee, got.tracing_requested) == (6, 1, True)
    assert (got.body, got.message_class) == (b"content", 0)
    assert got.sent_time == 1767225600
    assert not got.has_transaction_header


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.1", "MQSRM-element-SRMPMessage")
def test_a_message_keeps_the_request_that_it_came_in(door: Door) -> None:
    assert door.send(body=b"attached") == 200
    (got,) = door.messages()
    assert got.is_srmp
    assert got.soap_envelope.startswith("<se:Envelope")
    assert got.soap_compound_message.startswith(b"POST /msmq/private$/orders HTTP/1.1\r\n")
    header = got.compound_message_header
    assert header is not None
    assert header.body == got.body == b"attached"


def test_the_place_of_a_body_is_told_and_not_guessed(door: Door) -> None:
    assert door.send(body=b"POST") == 200
    (got,) = door.messages()
    header = got.compound_message_header
    assert header is not None
    assert header.body == got.body == b"POST"
    assert header.data[: header.msg_body_offset].endswith(b"\r\n\r\n")


def test_without_msmq_there_is_no_identifier_and_no_label_without_its_prefix(door: Door) -> None:
    post = message(ORDERS, b"plain", Elements(ordinal=9, guid=SENDER))
    assert door.post(changed(post, b"MSMQ:</action>", b"other</action>")) == 200
    (got,) = door.messages()
    assert got.identifier == MessageIdentifier(UUID(NULL), 1)
    assert (got.label, got.priority) == ("", 3)


@pytest.mark.parametrize(
    ("expires", "ttrq", "reach", "receive"),
    [
        ("20260101T001000", "20260101T000500", 300, 600),
        ("20380119T031407", "20260101T000500", 300, INFINITE),
        ("20260101T001000", "", 600, 600),
        ("20380119T031407", "20380119T031407", INFINITE, INFINITE),
    ],
)
def test_times_are_spans_behind_sent_at(
    door: Door, expires: str, ttrq: str, reach: int, receive: int
) -> None:
    """expiresAt is the time to be received, TTrq that to reach the queue (G44)."""
    door.clock._now = 1767225600_000
    assert door.send(expires=expires, msmq=msmq(expires=ttrq)) == 200
    (got,) = door.messages()
    assert (got.time_to_reach_queue, got.time_to_be_received) == (reach, receive)


def test_without_msmq_expires_at_is_the_time_to_reach_the_queue(door: Door) -> None:
    door.clock._now = 1767225600_000
    assert door.send(expires="20260101T001000") == 200
    (got,) = door.messages()
    assert (got.time_to_reach_queue, got.time_to_be_received) == (600, INFINITE)


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.2", "MQSRM-http-400")
@pytest.mark.parametrize(
    "change",
    [
        (b"<to>", b"<to >x"),
        (b"</se:Header>", b""),
        (b"<expiresAt>2037", b"<expiresAt>never"),
        (b"uuid:", b"guid:"),
        (b"<Priority>3", b"<Priority>8"),
        (b"<Class>0", b"<Class>70000"),
        (b"MSMQ:</action>", b"MSMQ:" + b"x" * 300 + b"</action>"),
    ],
)
def test_what_is_malformed_is_answered_with_400(door: Door, change: tuple[bytes, bytes]) -> None:
    text = message(ORDERS, b"x", Elements(msmq=msmq())).body
    assert change[0] in text
    start = text.index(b"<se:Envelope")
    end = text.index(b"</se:Envelope>") + len(b"</se:Envelope>")
    envelope = text[start:end].replace(*change)
    assert door.post(Post("/msmq/private$/orders", envelope, {"Content-Type": "text/xml"})) == 400
    assert door.contents() == []


# Expiry


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.4", "MQSRM-element-expiresAt")
@pytest.mark.parametrize(
    "times",
    [
        {"expires": PAST},
        {"msmq": msmq(expires=PAST)},
        {"expires": PAST, "msmq": msmq(expires=FUTURE)},
    ],
)
def test_what_has_expired_on_arrival_is_discarded(door: Door, times: dict[str, Any]) -> None:
    assert door.send(services=durable(DELIVERY), **times) == 200
    door.settle()
    assert door.contents() == []
    assert door.peers.posted == []


def test_a_message_is_taken_in_the_second_in_which_it_expires(door: Door) -> None:
    assert door.send(expires="20260601T120000") == 200
    assert door.contents() == [b"content"]


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.4")
def test_its_sender_is_told_of_an_expiry_where_it_asks(door: Door) -> None:
    assert door.send(expires=PAST, ordinal=7, guid=SENDER, services=NEGATIVE, msmq=msmq()) == 200
    door.settle()
    (receipt,) = door.receipts
    assert receipt.to == RECEIPTS
    assert receipt.commitment_receipt is not None
    assert receipt.commitment_receipt.id == MessageId(UUID(SENDER), 7)
    assert not receipt.commitment_receipt.positive
    assert receipt.msmq is not None
    assert receipt.msmq.message_class == 0xC002
    door.peers.posted.clear()
    assert door.send(expires=PAST, ordinal=8, services=POSITIVE, msmq=msmq()) == 200
    door.settle()
    assert door.peers.posted == []


# Kinds


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.5")
def test_what_is_of_no_known_kind_is_ignored(door: Door) -> None:
    for number in (2, 0x4000):
        assert door.send(msmq=msmq(number=number)) == 200
    assert door.contents() == []


# Duplicates


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.11", "MQSRM-element-SRMPState")
def test_a_message_that_comes_again_is_dropped(door: Door) -> None:
    for _ in range(2):
        assert door.send(ordinal=5, services=durable(), msmq=msmq()) == 200
    assert door.send(body=b"other", ordinal=6, services=durable(), msmq=msmq()) == 200
    assert door.contents() == [b"content", b"other"]


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.11")
def test_duplicates_are_known_after_a_restart_for_half_an_hour(door: Door) -> None:
    for restart in (door.restart, door.crash):
        assert door.send(ordinal=5, services=durable(), msmq=msmq()) == 200
        restart()
        assert door.send(ordinal=5, services=durable(), msmq=msmq()) == 200
    assert len(door.contents()) == 1
    door.advance(2 * SRMP.history_cleanup)
    assert door.send(ordinal=5, services=durable(), msmq=msmq()) == 200
    assert len(door.contents()) == 2


@pytest.mark.bound("identity.recent_over_http")
def test_the_contents_of_so_many_messages_are_remembered(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that comes again after as many others is not compared any more (G493)."""
    monkeypatch.setattr(known_messages, "MOST_RECENT", 3)
    for ordinal in (1, 2, 3):
        assert door.send(ordinal=ordinal, services=durable(), msmq=msmq()) == 200
    metrics = door.engine.store.metrics
    assert door.send(body=b"other", ordinal=1, services=durable(), msmq=msmq()) == 200
    assert metrics.counts[COUNTED] == 1
    assert door.send(ordinal=4, services=durable(), msmq=msmq()) == 200
    assert door.send(body=b"other", ordinal=1, services=durable(), msmq=msmq()) == 200
    assert metrics.counts[COUNTED] == 1
    assert door.send(body=b"other", ordinal=2, services=durable(), msmq=msmq()) == 200
    assert metrics.counts[COUNTED] == 2


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.11")
def test_messages_without_an_identifier_are_never_duplicates(door: Door) -> None:
    for _ in range(2):
        assert door.send() == 200
        assert door.send(ordinal=1, guid=NULL, msmq=msmq(source=NULL)) == 200
    assert len(door.contents()) == 4


def test_the_source_makes_the_difference_where_identifiers_are_the_same(door: Door) -> None:
    for source in (SENDER, SOURCE, SENDER):
        assert door.send(ordinal=1, guid=NULL[:-1] + "8", msmq=msmq(source=source)) == 200
    assert len(door.contents()) == 2


def test_copies_for_two_queues_are_no_duplicates(door: Door) -> None:
    door.create(r"private$\second")
    for to in (ORDERS, f"{HERE}/second"):
        assert door.send(to, ordinal=5, msmq=msmq()) == 200
    assert (door.contents(), door.contents("second")) == ([b"content"], [b"content"])


def test_only_the_last_ten_thousand_are_known(directory: Path) -> None:
    door = Door(directory, replace(SRMP, history_size=3))
    for ordinal in (1, 2, 3, 4, 2, 1):
        assert door.send(body=b"%d" % ordinal, ordinal=ordinal, msmq=msmq()) == 200
    assert door.contents() == [b"1", b"2", b"3", b"4", b"1"]
    door.stop()


# Insertion


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.12")
def test_anonymous_needs_the_right_to_write(door: Door) -> None:
    door.queue().security = NOBODY
    assert door.send(ordinal=5, msmq=msmq()) == 200
    door.settle()
    assert (door.contents(), door.peers.posted) == ([], [])


def test_its_sender_is_told_of_a_denial_where_it_asks(door: Door) -> None:
    door.queue().security = NOBODY
    assert door.send(ordinal=5, services=NEGATIVE, msmq=msmq()) == 200
    door.settle()
    (receipt,) = door.receipts
    assert receipt.commitment_receipt is not None
    assert not receipt.commitment_receipt.positive


def test_a_denied_message_makes_no_duplicate_of_the_next_one(door: Door) -> None:
    allowed = door.queue().security
    door.queue().security = NOBODY
    assert door.send(ordinal=5, msmq=msmq()) == 200
    door.queue().security = allowed
    assert door.send(ordinal=5, msmq=msmq()) == 200
    assert door.contents() == [b"content"]


def test_a_queue_of_signed_or_encrypted_messages_takes_no_others(door: Door) -> None:
    door.queue().authentication = True
    assert door.send() == 200
    assert door.contents() == []


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.12")
def test_a_full_queue_takes_nothing_and_its_sender_is_told(door: Door) -> None:
    door.queue().quota = 1
    assert door.send(body=b"x" * 2000, ordinal=5, services=NEGATIVE, msmq=msmq()) == 200
    door.settle()
    assert door.contents() == []
    (receipt,) = door.receipts
    assert receipt.commitment_receipt is not None
    assert not receipt.commitment_receipt.positive


@pytest.mark.conformance("MQSRM-http-500")
def test_a_full_queue_manager_answers_500_and_takes_it_later(door: Door) -> None:
    machine = door.engine.queue_manager
    quota, machine.queue_manager_quota = machine.queue_manager_quota, 1
    assert door.send(body=b"x" * 2000, ordinal=5, services=durable(), msmq=msmq()) == 500
    machine.queue_manager_quota = quota
    assert door.send(ordinal=5, services=durable(), msmq=msmq()) == 200
    assert door.contents() == [b"content"]


def test_a_message_that_comes_again_while_it_is_on_its_way_is_taken_once(door: Door) -> None:
    sent = message(ORDERS, b"x", Elements(ordinal=5, services=durable(), msmq=msmq()))
    answers = [door.begin(sent) for _ in range(3)]
    door.settle()
    assert [answer.result() for answer in answers] == [200] * 3
    assert door.contents() == [b"x"]


def test_the_second_of_a_message_without_room_is_not_told_that_it_is_there(door: Door) -> None:
    """Else its sender would take for stored what is stored nowhere."""
    machine = door.engine.queue_manager
    quota, machine.queue_manager_quota = machine.queue_manager_quota, 0
    sent = message(ORDERS, b"x", Elements(ordinal=5, services=durable(), msmq=msmq()))
    answers = [door.begin(sent) for _ in range(2)]
    door.settle()
    assert [answer.result() for answer in answers] == [500, 500]
    machine.queue_manager_quota = quota
    assert door.post(sent) == 200
    assert door.contents() == [b"x"]


def test_a_full_disk_is_500(door: Door) -> None:
    door.free = 0
    machine = door.engine.queue_manager
    machine.throttled = True
    assert door.send(services=durable()) == 500
    assert door.contents() == []


def test_what_could_not_be_refused_is_refused_when_it_comes_again(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise MQError(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES)

    expired: dict[str, Any] = {"expires": PAST, "ordinal": 5, "services": NEGATIVE}
    with monkeypatch.context() as context:
        context.setattr(door.engine.arrivals, "reject", full)
        assert door.send(**expired, msmq=msmq()) == 500
    assert door.send(**expired, msmq=msmq()) == 200
    door.settle()
    assert len(door.receipts) == 1


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.6", "MQSRM-element-durable")
def test_a_durable_message_is_answered_when_it_is_on_the_disk(door: Door) -> None:
    post = message(ORDERS, b"kept", Elements(ordinal=5, services=durable(), msmq=msmq()))
    answer = door.begin(post)
    assert not answer.done
    door.settle()
    assert answer.result() == 200
    door.crash()
    assert door.contents() == [b"kept"]


def test_a_repetition_is_not_answered_before_the_first_is_durable(door: Door) -> None:
    post = message(ORDERS, b"kept", Elements(ordinal=5, services=durable(), msmq=msmq()))
    door.begin(post)
    repeated = door.begin(post)
    assert not repeated.done
    door.settle()
    assert repeated.result() == 200
    assert door.contents() == [b"kept"]


def test_an_express_message_is_lost_by_a_restart(door: Door) -> None:
    assert door.send() == 200
    door.restart()
    assert door.contents() == []


def test_the_address_of_the_sender_is_known(door: Door) -> None:
    assert door.send() == 200
    queue = door.queue()
    (key,) = queue.message_position_list.page(None, 10)
    assert door.engine.positions.message_at(queue, key).source_address == PEER


def test_to_decides_and_not_the_target_of_the_request(door: Door) -> None:
    post = message(ORDERS, b"by its envelope")
    assert door.post(replace(post, target="/msmq/private$/elsewhere")) == 200
    assert door.contents() == [b"by its envelope"]
