"""Who may write to a public queue: its descriptor is the directory's ([MS-MQQB] 3.1.5.8.3)."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from rpcqm.adm.directory import DirectoryContents, DirectoryUnavailableError
from rpcqm.adm.enums import QueueType
from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.codec.properties import ManagementQueueProperty
from rpcqm.codec.security.descriptor import SecurityInformation
from rpcqm.codec.security.sddl import parse_sddl
from tests.support.binary.binary_network import Node, Simulation
from tests.support.queue_manager import MEMORY
from tests.support.rpc.administrator import queue_property

ALICE, BOB, SITE, QUEUE = (UUID(int=number) for number in (11, 13, 21, 41))
PUBLIC = f"PUBLIC={QUEUE}"
OPEN = parse_sddl("O:BAD:(A;;0x4;;;AN)").encode()
CLOSED = parse_sddl("O:BAD:(A;;0x4;;;BA)").encode()
DACL = SecurityInformation.DACL_SECURITY_INFORMATION


def directory() -> DirectoryContents:
    alice, bob = (
        QueueManager(identifier, computer_name=name, site_identifier_list=[SITE])
        for identifier, name in ((ALICE, "alice"), (BOB, "bob"))
    )
    listed = Queue(
        QUEUE,
        pathname="bob\\reports",
        qualified_pathname="bob\\reports",
        queue_type=QueueType.PUBLIC,
        queue_manager=bob,
        security=OPEN,
    )
    return DirectoryContents(queue_managers=[alice, bob], queues=[listed])


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        simulation = Simulation(Path(name))
        simulation.node("alice", directory=directory())
        simulation.node("bob", directory=directory())
        yield simulation
        simulation.stop()


def bodies(bob: Node) -> list[bytes]:
    queue = bob.engine.registry.find_by_path(".\\reports")
    assert queue is not None
    keys = queue.message_position_list.page(None, 100)
    return [bob.engine.positions.message_at(queue, key).attributes.body for key in keys]


def say(bob: Node, security: bytes) -> None:
    """The directory has another descriptor of the queue from now on."""
    (listed,) = bob.engine.directory._source().queues  # type: ignore[misc]
    listed.security = security


@pytest.mark.conformance("MQQB-rule-3.1.5.8.3")
def test_the_directory_says_who_may_write_to_a_public_queue(simulation: Simulation) -> None:
    alice, bob = simulation.nodes.values()
    alice.send(PUBLIC, b"one")
    simulation.advance(1_000)
    assert bodies(bob) == [b"one"]
    say(bob, CLOSED)
    alice.send(PUBLIC, b"two")
    simulation.advance(1_000)
    assert bodies(bob) == [b"one"]
    say(bob, OPEN)
    alice.send(PUBLIC, b"three")
    simulation.advance(1_000)
    assert bodies(bob) == [b"one", b"three"]


@pytest.mark.conformance("MQQB-rule-3.1.5.8.3")
def test_what_was_changed_here_lies_over_the_directory(simulation: Simulation) -> None:
    alice, bob = simulation.nodes.values()
    queue = bob.engine.registry.find_by_path(".\\reports")
    assert queue is not None
    bob.engine.queues.set_security(queue, DACL, CLOSED)
    bob.settle()
    for _ in range(2):
        alice.send(PUBLIC, b"refused")
        simulation.advance(1_000)
        assert bodies(bob) == []
        bob.restart()


def test_a_directory_that_names_no_descriptor_changes_none(simulation: Simulation) -> None:
    alice, bob = simulation.nodes.values()
    say(bob, b"")
    alice.send(PUBLIC, b"one")
    simulation.advance(1_000)
    assert bodies(bob) == [b"one"]


def told(node: Node, name: str, *properties: str) -> list[object]:
    """Properties of an outgoing queue."""
    identifiers = [ManagementQueueProperty[f"PROPID_MGMT_QUEUE_{each}"] for each in properties]
    queue = node.outgoing(name)
    return [queue_property(node.engine, queue, each).value for each in identifiers]


@pytest.mark.conformance(
    "MQMR-prop-PROPID_MGMT_QUEUE_TYPE",
    "MQMR-prop-PROPID_MGMT_QUEUE_FOREIGN",
    "MQMR-prop-PROPID_MGMT_QUEUE_XACT",
)
def test_an_outgoing_queue_is_of_the_type_of_the_queue_that_it_leads_to(
    simulation: Simulation,
) -> None:
    alice, bob = simulation.nodes.values()
    bob.kill()
    private = f"PRIVATE={BOB}\\00000020"
    direct = ("DIRECT=OS:bob\\reports", "DIRECT=OS:bob\\private$\\orders")
    types = {PUBLIC: "PUBLIC", private: "PRIVATE", direct[0]: "PUBLIC", direct[1]: "PRIVATE"}
    for name in types:
        alice.send(name, b"content")
    for name, kind in types.items():
        assert told(alice, name, "TYPE", "FOREIGN", "XACT") == [kind, "NO", "UNKNOWN"]

    def unreachable() -> DirectoryContents:
        raise DirectoryUnavailableError("cut off")

    alice.engine.directory._source = unreachable
    alice.send(PUBLIC, b"content")
    for name, kind in types.items():
        foreign = "UNKNOWN" if kind == "PUBLIC" else "NO"
        assert told(alice, name, "TYPE", "FOREIGN") == [kind, foreign]
