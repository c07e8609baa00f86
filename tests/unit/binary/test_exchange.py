"""Queue managers that send to each other, on a simulated network ([MS-MQQB] 3.1)."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.binary_network import Faults, Simulation
from tests.support.queue_manager import MEMORY

ORDERS = "DIRECT=OS:bob\\private$\\orders"
STREAM = "DIRECT=OS:bob\\private$\\stream"
SECOND = 1_000


@pytest.fixture
def simulation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulation]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        simulation = Simulation(Path(directory))
        simulation.node("alice")
        bob = simulation.node("bob")
        bob.create()
        bob.create("stream", transactional=True)
        yield simulation
        simulation.stop()


def test_a_recoverable_message_arrives_and_leaves_its_outgoing_queue(
    simulation: Simulation,
) -> None:
    alice, bob = simulation.nodes["alice"], simulation.nodes["bob"]
    alice.send(ORDERS, b"hello")
    simulation.advance(2 * SECOND)
    assert bob.bodies() == [b"hello"]
    assert alice.unsent == 0


def test_transactional_messages_stay_until_their_order_is_acknowledged(
    simulation: Simulation,
) -> None:
    alice, bob = simulation.nodes["alice"], simulation.nodes["bob"]
    for number in range(3):
        alice.send(STREAM, b"%d" % number, transactional=True)
    simulation.advance(SECOND // 4)
    assert bob.bodies("stream") == [b"0", b"1", b"2"]
    assert alice.unsent == 3
    simulation.advance(SECOND)
    assert alice.unsent == 0


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_each_message_arrives_once_and_in_order(
    simulation: Simulation, seed: int
) -> None:
    simulation.random.seed(seed)
    simulation.faults = Faults(cut=0.02, corrupt=0.02, duplicate=0.02, refuse=0.2, delay=20)
    alice, bob = simulation.nodes["alice"], simulation.nodes["bob"]
    total = 120
    for number in range(total):
        alice.send(STREAM, b"%d" % number, transactional=True)
        alice.send(ORDERS, b"%d" % number)
        simulation.advance(simulation.random.randint(0, 400))
        if simulation.random.random() < 0.05:
            victim = simulation.random.choice((alice, bob))
            victim.kill()
            simulation.advance(simulation.random.randint(0, 20 * SECOND))
            victim.start()
    simulation.faults = Faults()
    simulation.until(lambda: alice.unsent == 0)
    assert bob.bodies("stream") == [b"%d" % number for number in range(total)]
    assert sorted(bob.bodies()) == sorted(b"%d" % number for number in range(total))
