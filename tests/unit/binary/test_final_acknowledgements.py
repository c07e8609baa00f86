"""A source learns what its transactional message came to, whatever happened in between."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rpcqm.codec.packet.acknowledgement import PacketKind, identify_packet
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.codec.types.mqvalues import QueueAccessType, QueuePrivacyLevel, QueueShareMode
from tests.support.binary.binary_network import Node, Simulation
from tests.support.binary.binary_pair import ORDERS, STREAM, Exchanging, exchanging
from tests.support.queue_manager import MEMORY
from tests.unit.binary.test_three_machines import directory, private_name

DEAD = "system$;deadxact"


@pytest.fixture
def pair() -> Iterator[Exchanging]:
    with exchanging() as pair:
        yield pair


def send(pair: Exchanging, **more: object) -> None:
    """Alice sends a message and wants to know its end."""
    pair.send(STREAM, b"1", transactional=True, negative_journaling_requested=True, **more)


@pytest.mark.conformance("MQQB-rule-3.1.7.2.2")
def test_a_full_queue_manager_tells_the_source_of_what_is_received(pair: Exchanging) -> None:
    send(pair)
    pair.settle(20)
    pair.bob.engine.queue_manager.queue_manager_quota = 0
    assert pair.bob.receive("stream") == b"1"
    pair.settle(20)
    assert pair.alice.unsent == 0
    assert pair.alice.bodies(DEAD) == []


def expire(pair: Exchanging) -> None:
    pair.bob.kill()
    pair.settle(120)


def purge_what_somebody_holds(pair: Exchanging) -> None:
    """It goes when the queue manager starts again."""
    queues = pair.bob.engine.queues
    descriptor = pair.bob.engine.opening.open_queue(
        queues.format_name_of(pair.stream), QueueAccessType.RECEIVE_ACCESS, QueueShareMode.DENY_NONE
    )
    pair.bob.engine.messages.dequeue_message(descriptor, 0, two_phase_read=True)
    queues.purge_queue(pair.stream)
    pair.settle()
    pair.bob.kill()
    pair.settle()


@pytest.mark.conformance("MQQB-rule-3.1.7.2.2", "MQAC-event-time_to_be_received_expiration")
@pytest.mark.parametrize("happen", [expire, purge_what_somebody_holds])
def test_what_a_restart_removes_is_told_to_its_source(
    pair: Exchanging, happen: Callable[[Exchanging], None]
) -> None:
    send(pair, time_to_be_received=60)
    pair.settle(20)
    happen(pair)
    pair.bob.start()
    pair.settle(20)
    assert pair.bob.bodies("stream") == pair.bob.bodies(DEAD) == []
    assert pair.alice.bodies(DEAD) == [b"1"]
    assert pair.alice.unsent == 0


def finals(travelled: list[bytes]) -> list[int]:
    """The classes of the final acknowledgements among what has travelled."""
    found = [data for data in travelled if identify_packet(data) is PacketKind.FINAL_ACK]
    return [int(PacketMessage(data).message_class) for data in found]


@pytest.mark.conformance("MQQB-rule-3.1.7.2.2")
@pytest.mark.parametrize(
    ("wish", "told"),
    [
        ("positive_journaling_requested", [0x4000]),
        ("negative_journaling_requested", [0x4000]),
        ("final_ack_required", [0x4000]),
        ("", []),
    ],
)
def test_a_source_is_told_of_the_end_of_its_message_if_it_asks_for_that(
    pair: Exchanging, wish: str, told: list[int]
) -> None:
    asked: dict[str, Any] = {wish: True} if wish else {}
    pair.send(STREAM, transactional=True, **asked)
    pair.settle(20)
    travelled: list[bytes] = []
    pair.simulation.record = travelled
    pair.bob.receive("stream")
    pair.settle(20)
    assert finals(travelled) == told
    assert pair.alice.unsent == 0


REFUSALS: dict[MessageClass, dict[str, object]] = {
    MessageClass.MQMSG_CLASS_NACK_BAD_SIGNATURE: {"authentication": True},
    MessageClass.MQMSG_CLASS_NACK_BAD_ENCRYPTION: {
        "privacy_level": QueuePrivacyLevel.MQ_PRIV_LEVEL_BODY
    },
    MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED: {
        "security": parse_sddl("O:BAD:(A;;GA;;;BA)").encode()
    },
}


@pytest.mark.conformance("MQQB-rule-3.1.5.8.3")
@pytest.mark.parametrize("reason", REFUSALS, ids=lambda reason: reason.name)
def test_a_source_is_told_at_once_what_is_refused(pair: Exchanging, reason: MessageClass) -> None:
    for name, value in REFUSALS[reason].items():
        setattr(pair.stream, name, value)
    travelled: list[bytes] = []
    pair.simulation.record = travelled
    send(pair)
    pair.settle(20)
    assert finals(travelled) == [reason]
    assert pair.bob.bodies("stream") == []
    assert pair.alice.bodies(DEAD) == [b"1"]
    assert pair.alice.unsent == 0


def test_the_number_of_what_expires_in_a_restart_of_its_source_is_forgotten(
    pair: Exchanging,
) -> None:
    pair.simulation.unreachable.update(pair.bob.addresses)
    send(pair, time_to_be_received=60)
    pair.settle()
    pair.simulation.unreachable.clear()
    pair.simulation.faults.refuse = 1.0
    pair.alice.kill()
    pair.settle(120)
    pair.simulation.faults.refuse = 0.0
    pair.alice.start()
    send(pair)
    pair.settle(20)
    assert pair.bob.bodies("stream") == [b"1"]


@pytest.mark.conformance("MQQB-rule-3.1.5.7")
def test_a_destination_is_believed_from_each_of_its_addresses_after_a_restart(
    pair: Exchanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has acknowledged the order by IPv4, and tells by IPv6 that the message was read."""
    simulation, alice, bob = pair.simulation, pair.alice, pair.bob
    monkeypatch.setattr(bob, "resolved", lambda: tuple(bob.addresses))
    simulation.unreachable = {bob.address}
    send(pair)
    simulation.advance(100)
    alice.kill()
    bob.receive("stream")
    simulation.unreachable = {bob.addresses[1], alice.addresses[1]}
    alice.start()
    pair.settle(20)
    alice.kill()
    simulation.unreachable = {bob.address}
    pair.settle()
    alice.start()
    pair.settle(600)
    assert alice.unsent == 0
    assert alice.bodies(DEAD) == []


@pytest.fixture
def routed() -> Iterator[tuple[Simulation, Node, Node]]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        simulation = Simulation(Path(name))
        for machine in ("alice", "router", "bob"):
            simulation.node(machine, directory=directory())
        yield simulation, simulation.nodes["alice"], simulation.nodes["bob"]
        simulation.stop()


@pytest.mark.conformance("MQQB-rule-3.1.5.7")
def test_a_router_says_nothing_of_a_message_that_is_known_to_have_arrived(
    routed: tuple[Simulation, Node, Node],
) -> None:
    """It has the message once more, when that is too late to be passed on."""
    simulation, alice, bob = routed
    bob.create("stream", transactional=True)
    alice.send(
        private_name(bob, "stream"),
        b"1",
        transactional=True,
        negative_journaling_requested=True,
        time_to_reach_queue=60,
    )
    simulation.advance(120_000)
    first = simulation.earlier[0]
    simulation.earlier.clear()
    simulation.earlier.append(first)
    simulation.replay()
    simulation.advance(120_000)
    assert alice.bodies(DEAD) == []
    assert bob.receive("stream") == b"1"
    simulation.advance(120_000)
    assert (alice.bodies(DEAD), alice.unsent) == ([], 0)


def test_an_express_message_may_come_twice_over_a_restart_of_its_destination(
    pair: Exchanging,
) -> None:
    """Nothing is kept of it, so that nobody knows afterwards that it has been here (G161)."""
    pair.send(ORDERS, b"1", delivery_guarantee=0)
    pair.simulation.advance(100)
    assert pair.bob.receive() == b"1"
    pair.bob.kill()
    pair.settle(1)
    pair.bob.start()
    pair.settle(60)
    assert pair.bob.bodies() == [b"1"]
