"""How many queues to elsewhere there may be, and how long empty ones stay (G426)."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from rpcqm.adm.directory import DirectoryContents
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import BUILTIN_ADMINISTRATORS, Identity, authenticated
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import AcknowledgementsRequested
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.qm import outgoing_bounds
from tests.support.binary.binary_network import Node, Simulation
from tests.support.queue_manager import MEMORY
from tests.unit.binary.test_three_machines import REPORTS, directory

ALICE = authenticated("alice", "S-1-5-21-1-2-3-1000")
CAROL = authenticated("carol", "S-1-5-21-1-2-3-1001")
BOSS = authenticated("boss", "S-1-5-21-1-2-3-500", BUILTIN_ADMINISTRATORS)
BASE_PRIORITY = 5


def with_priority() -> DirectoryContents:
    contents = directory()
    contents.queues[0].base_priority = BASE_PRIORITY
    return contents


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        simulation = Simulation(Path(name))
        for machine in ("alice", "router", "bob"):
            simulation.node(machine, directory=with_priority())
        yield simulation
        simulation.stop()


@pytest.fixture
def router(simulation: Simulation) -> Node:
    router = simulation.nodes["router"]
    router.engine.settings.outgoing_queues_per_account = 2
    router.engine.settings.outgoing_queues_per_source = 2
    return router


def held(node: Node, host: str, identity: Identity) -> None:
    """Open a queue of a host to send to it."""
    name = FormatName.parse(f"DIRECT=OS:{host}\\private$\\q")
    node.engine.opening.open_queue(name, QueueAccessType.SEND_ACCESS, identity=identity)


def refusal(node: Node, host: str, identity: Identity) -> object:
    try:
        held(node, host, identity)
    except MQError as error:
        return error.status
    return None


@pytest.mark.conformance("MQDMPR-event-open_queue")
def test_a_public_name_that_is_passed_on_has_the_base_priority_of_the_directory(
    simulation: Simulation, router: Node
) -> None:
    alice, _, bob = simulation.nodes.values()
    alice.kill()
    bob.send(f"PUBLIC={REPORTS}", b"a report")
    simulation.advance(5_000)
    queue = router.outgoing(f"PUBLIC={REPORTS}")
    assert (queue.message_count, queue.base_priority) == (1, BASE_PRIORITY)


def test_an_acknowledgement_to_a_public_name_has_the_base_priority_of_the_directory(
    simulation: Simulation, router: Node
) -> None:
    alice, _, bob = simulation.nodes.values()
    bob.create("orders")
    alice.kill()
    name = "DIRECT=OS:bob\\private$\\orders"
    bob.send(
        name,
        b"",
        administration_queue_format_name=f"PUBLIC={REPORTS}",
        acknowledgements_requested=AcknowledgementsRequested.ACK_POS_ARRIVAL,
    )
    simulation.advance(1_000)
    assert bob.outgoing(f"PUBLIC={REPORTS}").base_priority == BASE_PRIORITY


def test_each_account_has_its_share_and_administrators_any_number(router: Node) -> None:
    assert [refusal(router, f"a{number}", ALICE) for number in range(3)] == [
        None,
        None,
        HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
    ]
    assert refusal(router, "a1", ALICE) is None
    assert refusal(router, "c1", CAROL) is None
    router.engine.settings.outgoing_queues = 3
    assert refusal(router, "c2", CAROL) is HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
    assert [refusal(router, f"b{number}", BOSS) for number in range(4)] == [None] * 4
    router.restart()
    assert router.engine.registry.origins[ALICE.sid] == 0


def test_a_queue_is_gone_that_nobody_needs(simulation: Simulation, router: Node) -> None:
    """One that is used again and again stays, though it is empty whenever one looks."""
    bob = simulation.nodes["bob"]
    bob.create("orders")
    name = "DIRECT=OS:bob\\private$\\orders"
    router.send(name, b"one")
    simulation.advance(700_000)
    assert router.engine.outgoing.find(FormatName.parse(name)) is not None
    for _ in range(15):
        router.send(name, b"more")
        simulation.advance(60_000)
    assert router.engine.outgoing.find(FormatName.parse(name)) is not None
    simulation.advance(1_300_000)
    assert router.engine.outgoing.list() == []
    assert router.engine.registry.origins == {}
    assert len(bob.bodies("orders")) == 16


def test_a_queue_that_is_used_now_and_then_stays(simulation: Simulation, router: Node) -> None:
    """Though nothing is in it, and no session open, whenever somebody looks."""
    simulation.nodes["bob"].create("orders")
    name = "DIRECT=OS:bob\\private$\\orders"
    router.send(name, b"first")
    queue = router.outgoing(name)
    simulation.advance(30_000)
    for _ in range(15):
        router.send(name, b"more")
        simulation.advance(1_000)
        for connection in list(router.protocol.connections):
            connection.session.close("enough")
        simulation.advance(59_000)
    assert router.outgoing(name) is queue


@pytest.mark.bound("outgoing.origins_in_log")
def test_a_refusal_is_told_once_a_minute_for_each_origin(
    router: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outgoing_bounds, "TOLD", 1)
    for number in range(2):
        held(router, f"a{number}", ALICE)
        held(router, f"c{number}", CAROL)
    with capture_logs() as lines:
        for number in range(20):
            refusal(router, f"x{number}", ALICE)
    assert [(line["event"], line["origin"]) for line in lines] == [
        ("too many outgoing queues", ALICE.sid)
    ]
    with capture_logs() as lines:
        router.simulation.advance(60_000)
        refusal(router, "x", ALICE)
    assert [line["refused"] for line in lines if "refused" in line] == [20]
    with capture_logs() as lines:
        for identity in (CAROL, CAROL, ALICE):
            refusal(router, "x", identity)
    assert [line["origin"] for line in lines] == [CAROL.sid, ALICE.sid]


def test_who_sends_here_takes_over_what_a_stranger_had_made(
    simulation: Simulation, router: Node
) -> None:
    """Neither the stranger's share nor its turns hold up an account."""
    alice, _, bob = simulation.nodes.values()
    bob.kill()
    alice.send(f"PRIVATE={UUID(int=13)}\\00000007", b"on its way")
    simulation.advance(5_000)
    queue = router.outgoing(f"PRIVATE={UUID(int=13)}\\00000007")
    assert list(queue.named_by) == [alice.address]
    name = FormatName.parse(queue.destination_format_name)
    opening = router.engine.opening
    for identity in (ALICE, CAROL):
        opening.open_queue(name, QueueAccessType.SEND_ACCESS, identity=identity)
    assert list(queue.named_by) == [ALICE.sid, CAROL.sid]
    router.restart()
    assert router.outgoing(str(name)).origin == ALICE.sid
