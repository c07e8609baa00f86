"""The states of an outgoing queue, and who may send when ([MS-MQQB] 3.1.5.9, 3.1.7.1, 3.1.7.16)."""

from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

import pytest

from rpcqm.adm.enums import OutgoingQueueState
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.binary.connection.outgoing_route import OutgoingRoute, RouteState
from rpcqm.binary.connection.peer_connection import NextHop
from rpcqm.codec.packet.acknowledgement import PacketKind, identify_packet
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.message import PacketMessage
from tests.support.binary.binary_pair import ORDERS, STREAM, Exchanging, exchanging

IDLE = 700
WINDOW = 64
UNKNOWN = f"PRIVATE={UUID(int=99)}\\00000010"


@pytest.fixture
def pair() -> Iterator[Exchanging]:
    with exchanging() as pair:
        yield pair


def states_of(pair: Exchanging) -> list[str]:
    """The states that queues of Alice take from now on."""
    seen: list[str] = []
    hooks = pair.alice.engine.outgoing.state_hooks
    hooks.insert(0, lambda queue: seen.append(queue.state.value))
    return seen


def sent(travelled: list[bytes]) -> list[PacketMessage]:
    """The messages among what has travelled."""
    whole = [data for data in travelled if data[4:8] == b"LIOR"]
    return [
        PacketMessage(data) for data in whole if identify_packet(data) is PacketKind.USER_MESSAGE
    ]


@pytest.mark.conformance("MQQB-rule-3.1.5.9")
def test_a_queue_connects_falls_idle_and_disconnects(pair: Exchanging) -> None:
    seen = states_of(pair)
    pair.alice.send(ORDERS, b"content")
    pair.settle(IDLE)
    assert seen == ["Waiting", "Connected", "Disconnecting", "Disconnected"]


@pytest.mark.conformance("MQQB-rule-3.1.5.2.1")
def test_a_queue_whose_address_is_unknown_needs_validation(pair: Exchanging) -> None:
    seen = states_of(pair)
    pair.alice.send(UNKNOWN, b"content")
    pair.settle(1)
    assert seen == ["NeedValidation"]


@pytest.mark.conformance("MQQB-rule-3.1.5.2.1")
def test_a_queue_from_which_nothing_is_to_be_sent_needs_no_validation(
    pair: Exchanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its messages are purged while somebody looks for the address."""
    seen, found = states_of(pair), Completion[tuple[str, ...]]()
    monkeypatch.setattr(pair.alice, "resolve", lambda host, senders: found)
    pair.alice.send(ORDERS, b"content")
    pair.alice.engine.queues.purge_queue(pair.alice.outgoing(ORDERS))
    pair.settle(1)
    found.fail(OSError("no such host"))
    pair.settle(1)
    assert seen == []
    monkeypatch.undo()
    pair.alice.send(ORDERS, b"more")
    pair.settle(1)
    assert seen == ["Waiting", "Connected"]


@pytest.mark.conformance("MQQB-event-pause_queue", "MQQB-event-resume_queue")
def test_a_queue_on_hold_keeps_its_state_whatever_its_session_does(pair: Exchanging) -> None:
    pair.alice.send(ORDERS, b"one")
    pair.settle(1)
    seen = states_of(pair)
    queue = pair.alice.outgoing(ORDERS)
    pair.alice.engine.outgoing.admin_pause_queue(queue)
    pair.alice.send(ORDERS, b"two")
    pair.settle(IDLE)
    assert seen == ["OnHold"]
    assert pair.alice.protocol.connections == {}
    pair.alice.engine.outgoing.admin_resume_queue(queue)
    pair.settle(1)
    assert seen == ["OnHold", "Inactive", "Waiting", "Connected"]
    assert pair.bob.bodies("orders") == [b"one", b"two"]


def test_hardened_security_locks_queues_until_it_is_taken_back(pair: Exchanging) -> None:
    pair.alice.engine.queue_manager.hardened_security = True
    pair.alice.send(ORDERS, b"content")
    pair.settle(60)
    queue = pair.alice.outgoing(ORDERS)
    assert (queue.state, pair.alice.protocol.connections) == (OutgoingQueueState.LOCKED, {})
    outgoing = pair.alice.engine.outgoing
    for action in (outgoing.admin_pause_queue, outgoing.admin_resume_queue):
        with pytest.raises(MQError) as refused:
            action(queue)
        assert refused.value.status is HResult.MQ_ERROR_UNSUPPORTED_OPERATION
    assert queue.state is OutgoingQueueState.LOCKED
    pair.alice.restart()
    pair.settle(1)
    assert pair.bob.bodies("orders") == [b"content"]
    assert pair.alice.outgoing(ORDERS).state is OutgoingQueueState.CONNECTED


def test_hardened_security_that_is_switched_on_ends_sessions_until_it_is_taken_back(
    pair: Exchanging,
) -> None:
    """As a start with it would (G533); a queue that was on hold is so again."""
    outgoing = pair.alice.engine.outgoing
    for name in (ORDERS, UNKNOWN):
        pair.alice.send(name, b"one")
    pair.settle(1)
    outgoing.admin_pause_queue(pair.alice.outgoing(UNKNOWN))
    pair.alice.engine.harden(True)
    pair.alice.send(ORDERS, b"two")
    pair.settle(60)
    states = [pair.alice.outgoing(name).state for name in (ORDERS, UNKNOWN)]
    assert states == [OutgoingQueueState.LOCKED] * 2
    assert pair.alice.protocol.connections == {}
    pair.alice.engine.harden(False)
    pair.settle(1)
    assert pair.bob.bodies("orders") == [b"one", b"two"]
    assert pair.alice.outgoing(UNKNOWN).state is OutgoingQueueState.ON_HOLD


# What leaves


@pytest.mark.conformance("MQQB-rule-3.1.7.1.1", "MQQB-event-send_user_message")
@pytest.mark.parametrize("queue", [ORDERS, STREAM])
def test_no_more_leave_than_the_window_lets_out(pair: Exchanging, queue: str) -> None:
    transactional = queue == STREAM
    pair.alice.send(queue, b"before", transactional)
    pair.settle(60)
    for end in pair.simulation.ends:
        if end.node is pair.alice:
            end.arrival = pair.simulation.clock.monotonic() + 10_000
    travelled: list[bytes] = []
    pair.simulation.record = travelled
    for number in range(100):
        pair.alice.send(queue, b"%d" % number, transactional)
    pair.simulation.advance(9_000)
    assert len(sent(travelled)) == WINDOW
    pair.settle(60)
    left = sent(travelled)
    assert [message.body for message in left] == [b"%d" % number for number in range(100)]
    ordinals = [message.identifier.ordinal for message in left]
    assert 0 not in ordinals
    assert ordinals == sorted(set(ordinals))
    assert pair.alice.unsent == 0


@pytest.mark.conformance("MQQB-event-send_user_message", "MQQB-rule-3.1.5.4.1")
@pytest.mark.parametrize(("announced", "expected"), [(200, WINDOW), (WINDOW, WINDOW), (9, 9)])
def test_neither_our_own_window_nor_that_of_the_peer_is_exceeded(
    pair: Exchanging, announced: int, expected: int
) -> None:
    settings = replace(pair.bob.protocol.settings, window_size=announced)
    pair.bob.protocol.settings = settings
    pair.alice.send(ORDERS, b"before")
    pair.settle(60)
    for end in pair.simulation.ends:
        if end.node is pair.alice:
            end.arrival = pair.simulation.clock.monotonic() + 10_000
    travelled: list[bytes] = []
    pair.simulation.record = travelled
    for number in range(2 * WINDOW):
        pair.alice.send(ORDERS, b"%d" % number)
    pair.simulation.advance(9_000)
    assert len(sent(travelled)) == expected
    pair.settle(600)
    assert len(pair.bob.bodies("orders")) == 2 * WINDOW + 1


@pytest.mark.conformance("MQQB-event-pause_queue", "MQQB-event-send_user_message")
def test_nothing_leaves_that_was_put_on_hold_while_its_stamp_was_written(
    pair: Exchanging,
) -> None:
    pair.alice.send(STREAM, b"before", transactional=True)
    pair.settle()
    engine, queue = pair.alice.engine, pair.alice.outgoing(STREAM)
    pair.alice.send_later(STREAM, b"held", transactional=True)
    for _ in ("its transaction", "the message"):
        pair.alice.turn.popleft()()
    assert pair.alice.turn, "its stamp is still to be written"
    engine.outgoing.pause_queue(queue)
    pair.settle()
    assert queue.state is OutgoingQueueState.ON_HOLD
    assert pair.bob.bodies("stream") == [b"before"]
    engine.outgoing.admin_resume_queue(queue)
    pair.settle()
    assert pair.bob.bodies("stream") == [b"before", b"held"]
    assert pair.alice.unsent == 0


@pytest.mark.conformance("MQQB-rule-3.1.7.1.2", "MQQB-rule-3.1.7.1.3")
def test_a_message_that_has_expired_uses_no_number(pair: Exchanging) -> None:
    pair.alice.send(STREAM, b"before", transactional=True)
    pair.settle()
    outgoing, queue = pair.alice.engine.outgoing, pair.alice.outgoing(STREAM)
    outgoing.admin_pause_queue(queue)
    pair.alice.send(STREAM, b"too late", transactional=True, time_to_reach_queue=30)
    pair.alice.send(STREAM, b"after", transactional=True)
    pair.simulation.clock._now += 60_000
    outgoing.admin_resume_queue(queue)
    pair.settle()
    assert pair.bob.bodies("stream") == [b"before", b"after"]
    (info,) = pair.stream.incoming_transactional_transfer_info_collection
    assert info.sequence_number == 1


@pytest.mark.conformance("MQQB-rule-3.1.7.1.2")
@pytest.mark.parametrize("guarantee", [0, 1], ids=["express", "recoverable"])
def test_what_has_expired_when_its_turn_comes_does_not_leave(
    pair: Exchanging, guarantee: int
) -> None:
    """The clock of the system has been set forward, which no timer has noticed."""
    outgoing = pair.alice.engine.outgoing
    pair.bob.kill()
    pair.send(
        body=b"too late",
        time_to_reach_queue=30,
        negative_journaling_requested=True,
        delivery_guarantee=guarantee,
    )
    pair.send(body=b"after", delivery_guarantee=guarantee, acknowledgements_requested=0)
    pair.bob.start()
    pair.simulation.clock._now += 60_000
    travelled: list[bytes] = []
    pair.simulation.record = travelled
    outgoing.resend(pair.alice.outgoing(ORDERS))
    pair.simulation.advance(1_000)
    left = {message.body for message in sent(travelled) if message.body.startswith((b"t", b"a"))}
    assert left == {b"after"}
    assert pair.alice.bodies("system$;deadletter") == [b"too late"]
    assert pair.acknowledged == [MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT]


@pytest.mark.conformance("MQQB-event-pause_queue", "MQQB-event-resume_queue")
def test_pausing_a_queue_pauses_the_session_that_it_has_borrowed(pair: Exchanging) -> None:
    alice = pair.alice.engine.queue_manager.identifier
    pair.bob.protocol.places.peers[str(alice)] = [NextHop(pair.alice.address)]
    inbox = pair.alice.create("inbox")
    pair.alice.send(ORDERS, b"first")
    pair.settle(1)
    name = f"PRIVATE={alice}\\{inbox.queue_id:08x}"
    pair.bob.send(name, b"answer")
    pair.settle(1)
    assert pair.alice.bodies("inbox") == [b"answer"]
    (ours,) = pair.alice.protocol.connections
    (theirs,) = pair.bob.protocol.connections
    outgoing, queue = pair.bob.engine.outgoing, pair.bob.outgoing(name)
    outgoing.admin_pause_queue(queue)
    pair.settle(1)
    assert ours.session.received_window_size == 1
    assert not theirs.session.session_active
    outgoing.admin_resume_queue(queue)
    assert theirs.session.session_active


def route_states(pair: Exchanging, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The states that routes of queues take from now on, each with what its queue is called."""
    seen: list[tuple[str, str]] = []

    def note(route: OutgoingRoute, name: str, value: object) -> None:
        object.__setattr__(route, name, value)
        if name == "state":
            seen.append((str(route.queue.destination_format_name), route.state.name))

    monkeypatch.setattr(OutgoingRoute, "__setattr__", note, raising=False)
    return seen


def test_a_route_waits_for_one_thing_at_a_time(
    pair: Exchanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two queues lead to one address: one connects, the other one waits in line for it."""
    seen = route_states(pair, monkeypatch)
    pair.bob.kill()
    pair.alice.send(ORDERS, b"first")
    pair.alice.send(STREAM, b"second", transactional=True)
    pair.settle(60)
    transfers = list(pair.alice.protocol.transfers)
    for transfer in transfers:
        route = transfer.route
        assert route.connection is None
        assert route._retry.runs is (route.state is RouteState.RETRYING)
    assert {state for _, state in seen} >= {"LOOKING", "IN_LINE", "CONNECTING", "RETRYING"}
    pair.bob.start()
    pair.settle(300)
    assert pair.bob.bodies("orders") == [b"first"]
    assert pair.bob.bodies("stream") == [b"second"]
    assert [transfer.route.state for transfer in transfers] == [RouteState.OPEN] * 2
    pair.settle(IDLE)
    assert [transfer.route.state for transfer in transfers] == [RouteState.IDLE] * 2
