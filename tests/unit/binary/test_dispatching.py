"""Which of several outgoing queues sends first ([MS-MQDMPR] 3.1.7.3.9, [MS-MQQB] 3.1.7.16)."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from rpcqm.adm.directory import DirectoryContents
from rpcqm.adm.directory_object import Site
from rpcqm.adm.enums import OutgoingQueueState, QueueType
from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.codec.packet.acknowledgement import PacketKind, identify_packet
from rpcqm.codec.packet.message import PacketMessage
from tests.support.binary.binary_network import Simulation
from tests.support.queue_manager import MEMORY

ALICE, BOB, BERLIN = UUID(int=11), UUID(int=13), UUID(int=21)
PRIORITIES = {"later": 0, "sooner": 3}
QUEUES = {name: UUID(int=30 + number) for number, name in enumerate(PRIORITIES)}
LATER, SOONER = (f"PUBLIC={identifier}" for identifier in QUEUES.values())
BOTH = f"{LATER},{SOONER}"


def directory() -> DirectoryContents:
    """Two public queues of Bob, one of a higher base priority."""
    alice = QueueManager(ALICE, computer_name="alice", site_identifier_list=[BERLIN])
    bob = QueueManager(BOB, computer_name="bob", site_identifier_list=[BERLIN])
    queues = [
        Queue(QUEUES[name], pathname=f"bob\\{name}", queue_manager=bob, base_priority=priority)
        for name, priority in PRIORITIES.items()
    ]
    for queue in queues:
        queue.qualified_pathname, queue.queue_type = queue.pathname, QueueType.PUBLIC
    berlin = Site(BERLIN, name="Berlin")
    return DirectoryContents(sites=[berlin], queue_managers=[alice, bob], queues=queues)


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    """Alice has a session open to each queue of Bob."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        simulation = Simulation(Path(name))
        for machine in ("alice", "bob"):
            simulation.node(machine, directory=directory())
        simulation.nodes["alice"].send(BOTH, b"first")
        simulation.advance(5_000)
        simulation.record = []
        yield simulation
        simulation.stop()


def left(simulation: Simulation) -> list[tuple[str, bytes]]:
    """To which queues which bodies have gone, in the order in which they left."""
    assert simulation.record is not None
    names = {identifier: name for name, identifier in QUEUES.items()}
    sent = []
    for data in simulation.record:
        if data[4:8] == b"LIOR" and identify_packet(data) is PacketKind.USER_MESSAGE:
            message = PacketMessage(data)
            name = message.destination_queue_format_name
            assert name is not None
            assert isinstance(name.value, UUID)
            sent.append((names[name.value], message.body))
    return sent


@pytest.mark.conformance(
    "MQDMPR-event-dispatch_send_message",
    "MQDMPR-event-add_message_to_dispatch_collection",
    "MQDMPR-element-DispatchEntry",
    "MQQB-event-message_position_available",
)
def test_of_what_becomes_available_at_once_the_queue_of_higher_base_priority_sends_first(
    simulation: Simulation,
) -> None:
    simulation.nodes["alice"].send(BOTH, b"copied")
    simulation.advance(1_000)
    assert left(simulation) == [("sooner", b"copied"), ("later", b"copied")]


@pytest.mark.conformance(
    "MQDMPR-event-dispatch_send_message",
    "MQDMPR-event-add_message_to_dispatch_collection",
    "MQDMPR-element-DispatchEntry",
)
def test_the_priority_of_the_message_is_added(simulation: Simulation) -> None:
    alice = simulation.nodes["alice"]
    alice.send_later(SOONER, b"3 + 2", priority=2)
    alice.send_later(LATER, b"0 + 7", priority=7)
    alice.send_later(LATER, b"0 + 1", priority=1)
    alice.send_later(SOONER, b"3 + 6", priority=6)
    alice.settle()
    simulation.advance(1_000)
    expected = [b"3 + 6", b"0 + 7", b"3 + 2", b"0 + 1"]
    assert [body for _, body in left(simulation)] == expected


@pytest.mark.conformance(
    "MQQB-event-send_user_message_wrapper", "MQDMPR-event-remove_message_from_dispatch_collection"
)
def test_the_dispatcher_is_told_of_each_message_that_has_been_sent(simulation: Simulation) -> None:
    alice = simulation.nodes["alice"]
    for number in range(3):
        alice.send(BOTH, b"%d" % number)
    assert alice.engine.queue_manager.dispatch_collection == {}
    simulation.advance(1_000)
    assert [body for _, body in left(simulation)] == [b"0", b"0", b"1", b"1", b"2", b"2"]
    assert alice.unsent == 0


@pytest.mark.conformance(
    "MQDMPR-event-remove_messages_from_dispatch_collection_by_queue", "MQQB-event-pause_queue"
)
def test_what_is_put_on_hold_before_its_turn_is_not_sent(simulation: Simulation) -> None:
    alice = simulation.nodes["alice"]
    collection = alice.engine.queue_manager.dispatch_collection
    held = alice.outgoing(SOONER)
    seen: list[list[str]] = []

    def hold(queue: Queue, key: int) -> None:
        if queue is held and held.state is not OutgoingQueueState.ON_HOLD:
            for _ in range(2):
                seen.append([each.label for each in collection])
                alice.engine.outgoing.admin_pause_queue(held)

    alice.engine.positions.available_hooks.append(hold)
    alice.send(BOTH, b"copied")
    simulation.advance(1_000)
    assert seen == [[LATER, SOONER], [LATER]]
    assert left(simulation) == [("later", b"copied")]
    alice.engine.outgoing.admin_resume_queue(held)
    simulation.advance(1_000)
    assert left(simulation) == [("later", b"copied"), ("sooner", b"copied")]
