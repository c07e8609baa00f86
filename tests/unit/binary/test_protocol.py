"""Queue managers that send to each other, on a simulated network ([MS-MQQB] 3.1)."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.binary.binary_network import Simulation
from tests.support.queue_manager import MEMORY
from tests.support.soak.network_soak import run_seed

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


@pytest.mark.conformance("MQQB-rule-3.1.1.5", "MQQB-rule-3.1.5.8.1", "MQQB-rule-3.1.5.8.6")
@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_each_message_arrives_once_and_in_order(seed: int) -> None:
    outcome = run_seed(seed, messages=100)
    assert outcome.problems == []


def test_a_seed_is_a_run() -> None:
    assert run_seed(7, messages=40) == run_seed(7, messages=40)
