"""Outgoing queues to HTTP names ([MC-MQSRM] 3.1.7, 3.1.6.1, 3.1.6.4)."""

import socket
import ssl
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from rpcqm.adm.enums import OutgoingQueueState
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.types.mqvalues import ConnectionStatus
from rpcqm.srmp.connection.outgoing_transfer import BUNCH, MANY_WAITING, POSTS_AT_ONCE
from rpcqm.srmp.settings import Redirection
from tests.support.binary.binary_pair import packets
from tests.support.srmp.http_network import SETTINGS, Host, http_simulation
from tests.support.srmp.http_sending import NAME, Sending

REFUSED = ConnectionRefusedError(111, "refused")
BAD_DESTINATION = MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q
TOO_LATE = MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT


@pytest.fixture
def sending() -> Iterator[Sending]:
    with http_simulation() as simulation:
        yield Sending(simulation)


# 3.1.7.2, 3.1.7.2.5


@pytest.mark.conformance(
    "MQSRM-event-send_user_message",
    "MQSRM-event-send_user_message_wrapper",
    "MQSRM-event-message_position_available",
    "MQSRM-http-200",
)
def test_messages_are_posted_one_after_the_other_and_gone(sending: Sending) -> None:
    for number in range(5):
        sending.alice.send_later(NAME, b"%d" % number)
    sending.settle()
    assert sending.shop.bodies == [b"0", b"1", b"2", b"3", b"4"]
    assert {target for target, _ in sending.shop.heads} == {"/msmq/private$/orders"}
    assert sending.alice.unsent == 0
    sending.alice.restart()
    sending.settle()
    assert len(sending.shop.bodies) == 5


def test_no_second_message_leaves_before_the_first_is_answered(sending: Sending) -> None:
    sending.shop.usual = None
    sending.send(b"first")
    sending.send(b"second")
    sending.settle(19)
    assert sending.shop.bodies == [b"first"]


def be_answered(sending: Sending) -> None:
    """Post what finds out whether the shop takes several messages in one request (G691)."""
    sending.send(b"asks")
    sending.settle()
    assert sending.shop.bodies == [b"asks"]
    sending.shop.requests.clear()


def test_nothing_leaves_beside_the_first_before_that_is_answered(sending: Sending) -> None:
    """G691: it has asked whether the others may go in one request."""
    sending.shop.usual = None
    for number in range(MANY_WAITING + POSTS_AT_ONCE):
        sending.alice.send_later(NAME, b"%d" % number)
    sending.settle(19)
    assert sending.shop.bodies == [b"0"]


def test_of_many_that_wait_several_leave_before_the_first_is_answered(sending: Sending) -> None:
    """G198: so many of them, until fewer than 64 wait."""
    be_answered(sending)
    sending.shop.usual = None
    for number in range(MANY_WAITING + POSTS_AT_ONCE):
        sending.alice.send_later(NAME, b"%d" % number)
    sending.settle(19)
    assert set(sending.shop.bodies) == {b"%d" % number for number in range(POSTS_AT_ONCE)}
    assert len(sending.shop.bodies) == POSTS_AT_ONCE
    sending.shop.usual = 200
    sending.settle(60)
    assert len(set(sending.shop.bodies)) == MANY_WAITING + POSTS_AT_ONCE
    assert sending.alice.unsent == 0


@pytest.mark.parametrize(("answered", "left"), [(BUNCH - 1, 0), (BUNCH, BUNCH)])
def test_what_follows_many_that_are_posted_leaves_in_bunches(
    sending: Sending, answered: int, left: int
) -> None:
    """G198: so that the receiver makes them durable together."""
    be_answered(sending)
    sending.shop.answers, sending.shop.usual = [200] * answered, None
    for number in range(MANY_WAITING + 2 * POSTS_AT_ONCE):
        sending.alice.send_later(NAME, b"%d" % number)
    sending.settle(19)
    assert len(sending.shop.bodies) == POSTS_AT_ONCE + left


def test_a_transactional_message_is_posted_beside_no_other(sending: Sending) -> None:
    """G198; its priority is 0, and so is that of the others here."""
    be_answered(sending)
    sending.shop.usual = None
    for number in range(MANY_WAITING + POSTS_AT_ONCE):
        transactional = {"transactional": True} if number == 3 else {"priority": 0}
        sending.alice.send_later(NAME, b"%d" % number, **transactional)
    sending.settle(19)
    assert set(sending.shop.bodies) == {b"0", b"1", b"2"}


def test_fewer_leave_one_after_the_other(sending: Sending) -> None:
    sending.shop.usual = None
    for number in range(MANY_WAITING):
        sending.alice.send_later(NAME, b"%d" % number)
    sending.settle(19)
    assert sending.shop.bodies == [b"0"]


def test_posts_that_fail_together_are_one_failure(sending: Sending) -> None:
    sending.shop.usual = 500
    for number in range(MANY_WAITING + POSTS_AT_ONCE):
        sending.alice.send_later(NAME, b"%d" % number)
    sending.settle(1)
    assert sending.statuses.count(ConnectionStatus.UNKNOWN_FAILURE) == 1
    sending.shop.usual = 200
    sending.settle(60)
    assert sending.alice.unsent == 0


@pytest.mark.conformance("MQSRM-rule-3.1.5.2.2")
def test_what_is_accepted_goes_to_the_journal_if_it_asks_for_that(sending: Sending) -> None:
    sending.send(b"kept", positive_journaling_requested=True)
    sending.send(b"not kept")
    sending.settle()
    assert sending.kept("journal") == [(b"kept", 0)]
    sending.alice.restart()
    assert sending.kept("journal") == [(b"kept", 0)]


@pytest.mark.conformance("MQSRM-http-400", "MQSRM-rule-3.1.7.2.5", "MQSRM-rule-3.1.5.2.1.1")
@pytest.mark.parametrize("status", [400, 413, 414])
def test_what_is_refused_is_a_dead_letter_if_it_asks_for_that(
    sending: Sending, status: int
) -> None:
    sending.shop.answers = [status, status, 200]
    sending.send(b"dead", negative_journaling_requested=True)
    sending.send(b"dropped")
    sending.send(b"taken", negative_journaling_requested=True)
    with capture_logs() as logs:
        sending.settle()
    assert sending.kept("deadletter") == [(b"dead", BAD_DESTINATION)]
    assert sending.shop.bodies == [b"dead", b"dropped", b"taken"]
    assert sending.alice.unsent == 0
    assert [line["event"] for line in logs if line["log_level"] == "warning"] == [
        "a message was refused"
    ] * 2
    sending.alice.restart()
    assert sending.kept("deadletter") == [(b"dead", BAD_DESTINATION)]


def test_a_refusal_is_told_to_the_administration_queue(sending: Sending) -> None:
    sending.alice.create("admin")
    sending.shop.usual = 400
    admin = "DIRECT=OS:alice\\private$\\admin"
    sent = sending.send(administration_queue_format_name=admin, acknowledgements_requested=4)
    sending.settle()
    (told,) = packets(sending.alice, sending.alice.find("admin"))
    assert (told.message_class, told.correlation_identifier) == (BAD_DESTINATION, sent)


@pytest.mark.conformance(
    "MQSRM-timer-retransmission", "MQSRM-rule-3.1.7.2.5", "MQSRM-event-network_disconnect"
)
@pytest.mark.parametrize(
    "failure", [500, 503, REFUSED, 404, 403, 302, 202, 401, ConnectionResetError(104, "reset")]
)
def test_what_was_not_received_is_sent_again_after_twenty_seconds(
    sending: Sending, failure: int | OSError
) -> None:
    sending.shop.answers = [failure] * 3
    sending.send(b"first", negative_journaling_requested=True)
    sending.send(b"second")
    sending.settle(1)
    queue = sending.queue
    assert queue.state is OutgoingQueueState.INACTIVE
    assert sending.shop.closed == 1
    assert not sending.alice.engine.queue_manager.dispatch_collection
    sending.settle(18.5)
    assert sending.shop.bodies == [b"first"]
    sending.settle(1)
    assert sending.shop.bodies == [b"first"] * 2
    sending.settle(60)
    assert sending.shop.bodies == [b"first"] * 4 + [b"second"]
    assert (sending.alice.unsent, sending.kept("deadletter")) == (0, [])
    assert len({str(envelope.id) for envelope in sending.shop.envelopes[:4]}) == 1


def test_without_an_answer_the_post_is_given_up_after_the_same_time(sending: Sending) -> None:
    sending.shop.answers = [None]
    sending.send()
    sending.settle(39)
    assert len(sending.shop.requests) == 1
    sending.settle(2)
    assert len(sending.shop.requests) == 2
    assert sending.alice.unsent == 0


def test_a_place_of_our_own_choice_is_tried_for_ever_at_the_same_pace(sending: Sending) -> None:
    sending.shop.usual = REFUSED
    sending.send()
    sending.settle(3600)
    assert 178 <= len(sending.shop.requests) <= 181


def test_the_retransmission_timeout_is_a_setting(sending: Sending) -> None:
    sending.alice.adjust(replace(SETTINGS, retry=1_000))
    sending.shop.usual = REFUSED
    sending.send()
    sending.settle(10)
    assert 10 <= len(sending.shop.requests) <= 11


@pytest.mark.conformance("MQSRM-rule-3.1.7.2.1")
def test_what_has_expired_is_not_sent_but_kept(sending: Sending) -> None:
    sending.shop.usual = REFUSED
    sending.send(b"dead", time_to_reach_queue=30, negative_journaling_requested=True)
    sending.send(b"dropped", time_to_reach_queue=30)
    sending.send(b"lives", time_to_reach_queue=3000)
    sending.settle(25)
    assert sending.shop.bodies == [b"dead"] * 2
    sending.shop.usual = 200
    sending.settle(60)
    assert sending.shop.bodies == [b"dead"] * 2 + [b"lives"]
    assert sending.kept("deadletter") == [(b"dead", TOO_LATE)]
    assert sending.alice.unsent == 0


# States and connections


@pytest.mark.conformance(
    "MQSRM-event-establish_transport_connection", "MQSRM-timer-session_cleanup"
)
def test_a_queue_connects_sends_and_falls_idle(sending: Sending) -> None:
    sending.send()
    queue = sending.queue
    assert queue.state.value == "Waiting"
    sending.settle(1)
    assert queue.state is OutgoingQueueState.CONNECTED
    assert sending.statuses == [ConnectionStatus.IN_PROCESS, ConnectionStatus.ESTABLISHED]
    assert queue.next_hops == ["IP=198.51.100.1"]
    assert queue.connection_history[-1].address_list == ("198.51.100.1",)
    sending.settle(200)
    sending.send()
    sending.settle(299)
    assert (queue.state, sending.shop.closed) == (OutgoingQueueState.CONNECTED, 0)
    sending.settle(2)
    assert (queue.state, sending.shop.closed) == (OutgoingQueueState.DISCONNECTED, 1)
    sending.send()
    sending.settle(1)
    assert queue.state is OutgoingQueueState.CONNECTED


@pytest.mark.parametrize(
    ("answer", "status", "error"),
    [
        (REFUSED, ConnectionStatus.SOCKET_CONNECT_FAILURE, 0x8007_274D),
        (socket.gaierror(-2, "no such host"), ConnectionStatus.DNS_FAILURE, 0x8007_2AF9),
        (TimeoutError(), ConnectionStatus.SOCKET_CONNECT_FAILURE, 0x8007_274C),
        (
            ssl.SSLCertVerificationError(1, "expired"),
            ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE,
            0xC00E_0001,
        ),
        (500, ConnectionStatus.UNKNOWN_FAILURE, 0xC00E_0001),
    ],
)
def test_a_failure_is_in_the_history(
    sending: Sending, answer: int | OSError, status: ConnectionStatus, error: int
) -> None:
    sending.shop.answers = [answer]
    sending.send()
    sending.settle(1)
    failed = sending.queue.connection_history[-1]
    assert (failed.status, failed.error) == (status, error)


def test_the_log_tells_once_that_a_host_does_not_take_messages(sending: Sending) -> None:
    told: list[Any] = []
    outages: list[list[int | OSError | None]] = [[REFUSED, 500, 200], [500, 200]]
    for answers in outages:
        sending.shop.answers = answers
        sending.send()
        with capture_logs() as logs:
            sending.settle(45)
        lines = [each for each in logs if each["event"] == "a message was not received"]
        told += [each["reason"] for each in lines if each["log_level"] != "debug"]
    assert told == [repr(REFUSED), "the answer is 500"]


def test_what_is_under_way_is_not_idle(sending: Sending) -> None:
    sending.alice.adjust(replace(SETTINGS, session_cleanup=1_000))
    sending.send()
    sending.settle(0.5)
    sending.shop.usual = None
    sending.send()
    sending.settle(10)
    assert sending.queue.state is OutgoingQueueState.CONNECTED


@pytest.mark.conformance("MQSRM-event-pause_queue", "MQSRM-event-resume_queue")
def test_a_queue_on_hold_keeps_its_messages_until_it_is_resumed(sending: Sending) -> None:
    sending.send(b"one")
    sending.settle()
    outgoing = sending.alice.engine.outgoing
    outgoing.admin_pause_queue(sending.queue)
    assert sending.shop.closed == 1
    sending.send(b"two")
    sending.settle(100)
    assert sending.shop.bodies == [b"one"]
    assert sending.queue.state.value == "OnHold"
    sending.alice.restart()
    sending.settle(100)
    assert sending.shop.bodies == [b"one"]
    sending.alice.engine.outgoing.admin_resume_queue(sending.queue)
    sending.settle(1)
    assert sending.shop.bodies == [b"one", b"two"]
    assert sending.queue.state is OutgoingQueueState.CONNECTED


def test_a_pause_ends_the_retransmission_timer_and_a_resumption_tries_at_once(
    sending: Sending,
) -> None:
    sending.shop.answers = [REFUSED]
    sending.send()
    sending.settle(1)
    outgoing = sending.alice.engine.outgoing
    outgoing.admin_pause_queue(sending.queue)
    sending.settle(60)
    assert len(sending.shop.requests) == 1
    outgoing.admin_resume_queue(sending.queue)
    sending.settle(0.1)
    assert len(sending.shop.requests) == 2
    assert sending.alice.unsent == 0


def test_what_is_answered_during_a_pause_is_gone(sending: Sending) -> None:
    sending.send(b"one")
    sending.alice.engine.outgoing.admin_pause_queue(sending.queue)
    sending.settle()
    assert sending.alice.unsent == 0
    assert sending.queue.state is OutgoingQueueState.ON_HOLD


def test_a_queue_manager_that_is_offline_posts_nothing(sending: Sending) -> None:
    sending.alice.engine.take_offline()
    sending.send()
    sending.settle(100)
    assert sending.shop.requests == []
    sending.alice.engine.bring_online()
    sending.settle(1)
    assert len(sending.shop.requests) == 1


@pytest.mark.conformance("MQSRM-rule-3.1.3.1", "MQSRM-rule-3.1.4.1")
def test_what_waits_is_sent_after_a_start(sending: Sending) -> None:
    sending.shop.usual = REFUSED
    sending.send(b"recoverable")
    sending.settle(1)
    sending.alice.kill()
    sending.shop.usual = 200
    sending.shop.requests.clear()
    sending.alice.start()
    sending.settle(1)
    assert sending.shop.bodies == [b"recoverable"]
    assert sending.alice.unsent == 0


def test_a_message_that_is_purged_while_it_is_under_way_is_gone(sending: Sending) -> None:
    sending.shop.answers = [None]
    sending.send(b"purged")
    sending.send(b"purged too")
    sending.settle(1)
    engine = sending.alice.engine
    engine.queues.purge_queue(sending.queue)
    sending.settle(60)
    assert sending.shop.bodies == [b"purged"]
    assert sending.alice.unsent == 0


def test_the_binary_protocol_leaves_http_queues_alone(sending: Sending) -> None:
    sending.send()
    sending.settle()
    assert list(sending.alice.protocol.transfers) == []


# Redirection


def redirect(sending: Sending, *exceptions: str, **rules: Any) -> Host:
    proxy = sending.simulation.host("proxy:3128")
    sending.alice.adjust(replace(SETTINGS, outbound_exceptions=exceptions, **rules))
    return proxy


OUTBOUND = (Redirection("http://SHOP/msmq/private$/*", "http://proxy:3128/anything"),)


@pytest.mark.conformance(
    "MQSRM-element-OutboundRedirectionCollection", "MQSRM-event-establish_transport_connection"
)
def test_outbound_redirection_changes_the_connection_only(sending: Sending) -> None:
    proxy = redirect(sending, outbound=OUTBOUND)
    sending.send(b"redirected")
    sending.send(b"direct", to="DIRECT=HTTP://shop/msmq/public")
    sending.settle()
    assert (proxy.bodies, sending.shop.bodies) == ([b"redirected"], [b"direct"])
    assert proxy.heads[0][0] == "/msmq/private$/orders"
    assert proxy.envelopes[0].to == "http://shop/msmq/private$/orders"


@pytest.mark.conformance("MQSRM-element-OutboundRedirectionExceptionCollection")
@pytest.mark.parametrize(
    "exception", ["http://shop/msmq/private$/orders", "http://Shop/msmq/private$/ord*"]
)
def test_exceptions_of_outbound_redirection_are_connected_to_directly(
    sending: Sending, exception: str
) -> None:
    proxy = redirect(sending, exception, outbound=OUTBOUND)
    sending.send(b"direct")
    sending.send(b"redirected", to="DIRECT=HTTP://shop/msmq/private$/others")
    sending.settle()
    assert (proxy.bodies, sending.shop.bodies) == ([b"redirected"], [b"direct"])


# Back-off


def test_what_only_strangers_have_named_is_tried_less_and_less_often(sending: Sending) -> None:
    sending.shop.usual = REFUSED
    engine = sending.alice.engine
    name = FormatName.parse(NAME)
    original = _message_of(sending)
    with engine.store.transaction("stranger") as change:
        queue = engine.acknowledgement_queues.create(name, change, sending.shop.address)
        message = engine.composer.acknowledgement(
            original, MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE, name
        )
        engine.positions.arrive(change, queue, message, message.envelope, kept_flags=0)
    sending.settle(20 + 40 + 80 + 160 + 300 - 10)
    assert len(sending.shop.requests) == 5
    sending.settle(20)
    assert len(sending.shop.requests) == 6
    sending.settle(300)
    assert len(sending.shop.requests) == 7


def _message_of(sending: Sending) -> Any:
    sending.alice.create("here")
    sending.alice.send("DIRECT=OS:alice\\private$\\here", b"")
    queue = sending.alice.find("here")
    key = queue.message_position_list.first()
    assert key is not None
    return sending.alice.engine.positions.message_at(queue, key)
