"""Outgoing queues and their sessions ([MS-MQQB] 3.1.5.2, 3.1.5.9, 3.1.6.1, 3.1.7)."""

from collections.abc import Iterator

import pytest

from rpcqm.adm.enums import OutgoingQueueState
from rpcqm.base.completion import Completion, completed
from rpcqm.binary.connection.peer_connection import NextHop
from rpcqm.codec.packet.acknowledgement import PacketKind, identify_packet
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.internal import EstablishConnectionPacket
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.codec.types.mqvalues import ConnectionStatus
from tests.support.binary.binary_pair import ORDERS, STREAM, Exchanging, exchanging


@pytest.fixture
def pair() -> Iterator[Exchanging]:
    with exchanging() as pair:
        yield pair


def statuses(pair: Exchanging) -> list[ConnectionStatus]:
    return [entry.status for entry in pair.alice.outgoing(ORDERS).connection_history]


@pytest.mark.conformance("MQQB-event-message_position_available", "MQQB-rule-3.1.5.4.2")
def test_a_queue_connects_sends_and_falls_idle(pair: Exchanging) -> None:
    pair.alice.send(ORDERS, b"content")
    pair.simulation.advance(1_000)
    queue = pair.alice.outgoing(ORDERS)
    assert queue.state.value == "Connected"
    assert queue.next_hops == [f"IP={pair.bob.address}"]
    assert statuses(pair) == [
        ConnectionStatus.IN_PROCESS,
        ConnectionStatus.ESTABLISH_PACKET_RECEIVED,
        ConnectionStatus.ESTABLISHED,
    ]
    assert queue.connection_history[0].address_list == (pair.bob.address,)
    pair.simulation.advance(600_000)
    assert queue.state.value == "Disconnected"
    assert pair.bob.protocol.connections == pair.alice.protocol.connections == {}


@pytest.mark.conformance("MQQB-timer-session_retry_connect", "MQQB-rule-3.1.5.9")
def test_a_peer_that_is_down_is_tried_every_five_seconds(pair: Exchanging) -> None:
    pair.alice.send(ORDERS, b"before")
    pair.simulation.advance(600_000)
    pair.bob.kill()
    pair.simulation.advance(1_000)
    known = len(statuses(pair))
    pair.alice.send(ORDERS, b"content")
    pair.simulation.advance(100)
    assert statuses(pair)[known:] == [ConnectionStatus.SOCKET_CONNECT_FAILURE]
    pair.simulation.advance(15_100)
    assert statuses(pair)[known:] == [ConnectionStatus.SOCKET_CONNECT_FAILURE] * 4
    pair.bob.start()
    pair.simulation.advance(5_100)
    assert pair.bob.bodies("orders") == [b"before", b"content"]


@pytest.mark.conformance("MQQB-element-NextHop", "MQQB-rule-3.1.5.2.1")
def test_addresses_are_tried_one_by_one(pair: Exchanging) -> None:
    bob = pair.bob.address
    pair.alice.protocol.places.peers["bob"] = [
        NextHop("192.0.2.99"),
        NextHop("192.0.2.98"),
        NextHop(bob),
    ]
    pair.alice.send(ORDERS, b"content")
    pair.simulation.advance(100)
    assert statuses(pair)[:2] == [ConnectionStatus.SOCKET_CONNECT_FAILURE] * 2
    assert pair.bob.bodies("orders") == [b"content"]
    assert pair.alice.outgoing(ORDERS).next_hops == [f"IP={bob}"]


@pytest.mark.conformance("MQQB-rule-3.1.5.2.1", "MQQB-element-NextHop")
def test_no_address_stays_of_a_host_that_has_none_any_more(
    pair: Exchanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.alice.send(ORDERS, b"content")
    pair.settle(700)
    queue = pair.alice.outgoing(ORDERS)
    assert queue.next_hops
    gone: Completion[tuple[str, ...]] = Completion()
    gone.fail(OSError("no such host"))
    monkeypatch.setattr(pair.alice, "resolve", lambda host, senders: gone)
    pair.alice.send(ORDERS, b"more")
    pair.settle(1)
    assert queue.connection_history[-1].status is ConnectionStatus.DNS_FAILURE
    assert queue.connection_history[-1].address_list == ()
    assert queue.next_hops == []


@pytest.mark.conformance("MQQB-event-pause_queue", "MQQB-event-resume_queue")
def test_a_queue_on_hold_keeps_its_messages_until_it_is_resumed(pair: Exchanging) -> None:
    pair.alice.send(ORDERS, b"one")
    pair.settle()
    outgoing = pair.alice.engine.outgoing
    queue = pair.alice.outgoing(ORDERS)
    outgoing.admin_pause_queue(queue)
    pair.alice.send(ORDERS, b"two")
    pair.settle()
    assert pair.bob.bodies("orders") == [b"one"]
    assert queue.state is OutgoingQueueState.ON_HOLD
    pair.alice.restart()
    pair.settle()
    assert pair.bob.bodies("orders") == [b"one"]
    pair.alice.engine.outgoing.admin_resume_queue(pair.alice.outgoing(ORDERS))
    pair.settle()
    assert pair.bob.bodies("orders") == [b"one", b"two"]
    assert pair.alice.outgoing(ORDERS).state is OutgoingQueueState.CONNECTED


def test_offline_closes_every_session_and_online_goes_on(pair: Exchanging) -> None:
    pair.alice.send(ORDERS, b"one")
    pair.settle()
    pair.alice.engine.take_offline()
    pair.alice.send(ORDERS, b"two")
    pair.settle(60)
    assert pair.alice.outgoing(ORDERS).state is OutgoingQueueState.DISCONNECTED
    assert pair.alice.protocol.connections == {}
    pair.alice.engine.bring_online()
    pair.settle()
    assert pair.bob.bodies("orders") == [b"one", b"two"]


def test_who_is_offline_has_no_sessions_of_others_either(pair: Exchanging) -> None:
    pair.alice.send(ORDERS, b"one")
    pair.settle()
    pair.bob.engine.take_offline()
    assert pair.bob.protocol.connections == {}
    pair.alice.send(ORDERS, b"two")
    pair.settle(60)
    assert pair.bob.bodies("orders") == [b"one"]
    assert pair.bob.protocol.connections == {}
    pair.bob.engine.bring_online()
    pair.settle(60)
    assert pair.bob.bodies("orders") == [b"one", b"two"]


@pytest.mark.conformance("MQQB-timer-transactional_ack_wait")
def test_an_administrator_has_the_unacknowledged_sent_again(pair: Exchanging) -> None:
    pair.alice.send(STREAM, b"one", transactional=True)
    pair.simulation.advance(100)
    (connection,) = pair.alice.protocol.connections
    travelled: list[bytes] = []
    pair.simulation.record = travelled
    pair.alice.engine.outgoing.resend(pair.alice.outgoing(STREAM))
    pair.simulation.advance(100)
    assert any(b"one" in data for data in travelled)
    assert list(pair.alice.protocol.connections) == [connection]
    pair.settle()
    assert pair.bob.bodies("stream") == [b"one"]
    (info,) = pair.stream.incoming_transactional_transfer_info_collection
    assert info.reject_count == 1


@pytest.mark.conformance("MQQB-rule-3.1.7.1.2")
@pytest.mark.parametrize("transactional", [False, True])
def test_what_expires_before_it_leaves_becomes_a_dead_letter(
    pair: Exchanging, transactional: bool
) -> None:
    pair.bob.kill()
    pair.send(
        STREAM if transactional else ORDERS,
        transactional=transactional,
        time_to_reach_queue=30,
        negative_journaling_requested=True,
    )
    pair.settle(120)
    assert pair.alice.unsent == 0
    name = "deadxact" if transactional else "deadletter"
    assert pair.alice.bodies(f"system$;{name}") == [b"content"]
    assert pair.acknowledged == [MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT]


@pytest.mark.conformance("MQQB-rule-3.1.1.5", "MQQB-rule-3.1.7.1.3")
def test_a_gap_of_expired_messages_does_not_stop_the_stream(pair: Exchanging) -> None:
    pair.alice.send(STREAM, b"first", transactional=True)
    pair.settle()
    pair.bob.kill()
    pair.alice.send(STREAM, b"expires", transactional=True, time_to_reach_queue=20)
    pair.alice.send(STREAM, b"second", transactional=True)
    pair.settle(60)
    pair.bob.start()
    pair.settle(60)
    assert pair.bob.bodies("stream") == [b"first", b"second"]
    assert pair.alice.unsent == 0


@pytest.mark.conformance("MQQB-rule-3.1.5.5.3", "MQQB-rule-3.1.5.5.4")
@pytest.mark.parametrize("guarantee", [0, 1], ids=["express", "recoverable"])
def test_an_acknowledged_message_goes_to_the_source_journal(
    pair: Exchanging, guarantee: int
) -> None:
    pair.alice.send(
        ORDERS, b"content", positive_journaling_requested=True, delivery_guarantee=guarantee
    )
    pair.settle(20)
    assert pair.alice.bodies("system$;journal") == [b"content"]
    assert pair.alice.unsent == 0


@pytest.mark.conformance("MQQB-rule-3.1.5.5.4")
def test_a_message_that_asks_for_no_journal_leaves_no_copy(pair: Exchanging) -> None:
    pair.alice.send(ORDERS, b"content")
    pair.settle(20)
    assert pair.bob.bodies("orders") == [b"content"]
    assert pair.alice.bodies("system$;journal") == []
    assert pair.alice.unsent == 0


def test_messages_of_higher_priority_go_first(pair: Exchanging) -> None:
    pair.bob.kill()
    for priority in (0, 7, 3):
        pair.alice.send(ORDERS, b"%d" % priority, priority=priority)
    pair.bob.start()
    travelled: list[bytes] = []
    pair.simulation.record = travelled
    pair.settle(20)
    whole = [data for data in travelled if data[4:8] == b"LIOR"]
    sent = [data for data in whole if identify_packet(data) is PacketKind.USER_MESSAGE]
    assert [PacketMessage(data).body for data in sent] == [b"7", b"3", b"0"]


@pytest.mark.conformance("MQQB-event-queue_manager_stopped")
def test_stopping_closes_every_session(pair: Exchanging) -> None:
    pair.alice.send(ORDERS, b"content")
    pair.settle()
    assert pair.bob.protocol.connections
    pair.alice.stop()
    pair.settle()
    assert pair.bob.protocol.connections == {}


def test_sessions_that_come_and_go_leave_nothing_behind(pair: Exchanging) -> None:
    for _ in range(100):
        pair.alice.send(ORDERS, b"content")
        pair.simulation.advance(1_000)
        for connection in list(pair.alice.protocol.connections):
            connection.session.close("enough")
        pair.simulation.advance(6_000)
    assert pair.alice.protocol.connections == pair.bob.protocol.connections == {}
    assert len(pair.alice.protocol.transfers) == 1
    assert len(pair.simulation.clock.timers) < 20
    assert len(pair.bob.bodies("orders")) == 100


@pytest.mark.conformance("MQQB-rule-3.1.5.2.2")
def test_a_ping_comes_before_the_connection_but_not_before_a_retry(pair: Exchanging) -> None:
    asked: list[str] = []

    def ping(address: str) -> Completion[bool]:
        asked.append(address)
        return completed(False)

    pair.alice.protocol.connecting.ping = ping
    pair.alice.send(ORDERS, b"content")
    pair.simulation.advance(1_000)
    assert asked == [pair.bob.address]
    assert statuses(pair) == [ConnectionStatus.PING_FAILURE]
    assert pair.bob.bodies("orders") == []
    pair.simulation.advance(5_000)
    assert asked == [pair.bob.address]
    assert pair.bob.bodies("orders") == [b"content"]


@pytest.mark.conformance("MQQB-rule-3.1.5.2.2")
def test_a_session_that_was_pinged_for_says_so(pair: Exchanging) -> None:
    pair.alice.protocol.connecting.ping = lambda address: completed(True)
    travelled: list[bytes] = []
    pair.simulation.record = travelled
    pair.alice.send(ORDERS, b"content")
    pair.simulation.advance(1_000)
    request = EstablishConnectionPacket.decode(travelled[0])
    assert request.establish_connection_header.operating_system.SE == 0
    assert pair.bob.bodies("orders") == [b"content"]


@pytest.mark.conformance(
    "MQQB-rule-3.1.3.2", "MQQB-rule-3.1.7.1.6", "MQQB-element-OutgoingMessagePosition"
)
def test_what_was_in_flight_when_a_session_ends_is_sent_again_by_the_next(
    pair: Exchanging,
) -> None:
    pair.alice.send(ORDERS, b"content")
    pair.simulation.advance(100)
    queue = pair.alice.outgoing(ORDERS)
    (connection,) = pair.alice.protocol.connections
    assert connection.session.message_sent_count == 1
    assert (queue.message_count, queue.message_position_list.available) == (1, 0)
    connection.session.disconnected()
    assert queue.message_position_list.available == 1
    pair.simulation.advance(5_100)
    (again,) = pair.alice.protocol.connections
    assert again is not connection
    assert again.session.message_sent_count == 1
    assert again.session.un_acked_message_count == 1
    pair.settle(20)
    assert pair.bob.bodies("orders") == [b"content"]
    assert pair.alice.unsent == 0
