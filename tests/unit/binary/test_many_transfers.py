"""Of more incoming transfers than are in memory each has its acknowledgement (G428)."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rpcqm.binary.connection import incoming_transfers
from tests.support.binary.binary_network import Simulation
from tests.support.queue_manager import MEMORY

STREAM = "DIRECT=OS:bob\\private$\\stream"


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        simulation = Simulation(Path(name))
        for machine in ("bob", "alice", "carol", "dave"):
            simulation.node(machine)
        yield simulation
        simulation.stop()


@pytest.mark.bound("binary.transfers")
def test_what_a_transfer_owes_is_sent_though_others_have_taken_its_place(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Well before any sender sends again."""
    monkeypatch.setattr(incoming_transfers, "CACHED", 1)
    bob, *others = simulation.nodes.values()
    bob.create("stream", transactional=True)
    for each in others:
        each.send(STREAM, each.name.encode(), transactional=True)
    simulation.advance(5_000)
    assert sorted(bob.bodies("stream")) == [b"alice", b"carol", b"dave"]
    assert [each.unsent for each in others] == [0, 0, 0]
    assert len(list(bob.protocol.incoming_transfers)) == 1


def test_an_address_with_many_transfers_gives_way_before_one_with_few(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incoming_transfers, "CACHED", 3)
    bob, alice, carol, _ = simulation.nodes.values()
    bob.create("stream", transactional=True)
    alice.send(STREAM, b"alice", transactional=True)
    simulation.advance(1_000)
    for number in range(6):
        bob.create(f"stream{number}", transactional=True)
        carol.send(f"{STREAM}{number}", b"carol", transactional=True)
        simulation.advance(1_000)
    sources = [each.source for each in bob.protocol.incoming_transfers]
    assert sources.count(alice.engine.queue_manager.identifier) == 1
    assert len(sources) == 3
