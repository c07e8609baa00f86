"""A message goes by a routing server that keeps it ([MS-MQQB] 3.1.5.8.2, [MS-MQBR] 3.1.5)."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from rpcqm.adm.directory import DirectoryContents
from rpcqm.adm.directory_object import Site
from rpcqm.adm.enums import EnqueueStatus, OutgoingQueueState, QueueType
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.codec.packet.enums import DeliveryGuarantee, MessageClass
from rpcqm.codec.properties import ManagementQueueProperty
from rpcqm.qm.quotas import EnqueueRefusedError
from tests.support.binary.binary_network import Faults, Node, Simulation
from tests.support.binary.binary_pair import packets
from tests.support.queue_manager import MEMORY
from tests.support.rpc.administrator import queue_property

ALICE, ROUTER, BOB = UUID(int=11), UUID(int=12), UUID(int=13)
REPORTS = UUID(int=31)
BERLIN, PARIS = UUID(int=21), UUID(int=22)


def directory() -> DirectoryContents:
    """Alice in Berlin, Bob in Paris, the router in both."""
    router = QueueManager(ROUTER, computer_name="router", site_identifier_list=[BERLIN, PARIS])
    router.routing_server = True
    alice = QueueManager(ALICE, computer_name="alice", site_identifier_list=[BERLIN])
    bob = QueueManager(BOB, computer_name="bob", site_identifier_list=[PARIS])
    reports = Queue(REPORTS, pathname="alice\\reports", queue_manager=alice)
    reports.qualified_pathname, reports.queue_type = reports.pathname, QueueType.PUBLIC
    sites = [Site(BERLIN, name="Berlin"), Site(PARIS, name="Paris")]
    return DirectoryContents(sites=sites, queue_managers=[alice, router, bob], queues=[reports])


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        simulation = Simulation(Path(name))
        for machine in ("alice", "router", "bob"):
            simulation.node(machine, directory=directory())
        yield simulation
        simulation.stop()


def private_name(node: Node, queue: str) -> str:
    """The PRIVATE= name of a queue of a node."""
    number = node.find(queue).private_queue_number
    return f"PRIVATE={node.engine.queue_manager.identifier}\\{number:08x}"


@pytest.mark.conformance(
    "MQQB-event-get_next_hops", "MQQB-event-get_destination_info", "MQQB-rule-3.1.5.8.5"
)
def test_a_message_goes_by_the_routing_server_and_counts_the_hop(simulation: Simulation) -> None:
    alice, router, bob = simulation.nodes.values()
    queue = bob.create()
    alice.send(private_name(bob, "orders"), b"hello")
    simulation.advance(5_000)
    assert bob.bodies() == [b"hello"]
    key = queue.message_position_list.first()
    assert key is not None
    message = bob.engine.positions.message_at(queue, key)
    assert message.attributes.user_header.flags.RC == 1
    assert alice.unsent == router.unsent == 0


@pytest.mark.conformance("MQQB-rule-3.1.1.5")
def test_a_routing_server_keeps_messages_while_it_is_dead_and_their_order_is_acknowledged(
    simulation: Simulation,
) -> None:
    simulation.faults = Faults(cut=0.01, delay=20)
    alice, router, bob = simulation.nodes.values()
    bob.create("stream", transactional=True)
    name = private_name(bob, "stream")
    total = 60
    for number in range(total):
        alice.send(name, b"%d" % number, transactional=True)
        simulation.advance(200)
        if number in (20, 40):
            bob.kill()
            simulation.advance(3_000)
            router.kill()
            simulation.advance(3_000)
            bob.start()
            router.start()
    simulation.faults = Faults()
    simulation.until(lambda: alice.unsent == 0)
    assert bob.bodies("stream") == [b"%d" % number for number in range(total)]
    simulation.advance(60_000)
    assert router.unsent == bob.unsent == 0


@pytest.mark.conformance(
    "MQMR-prop-PROPID_MGMT_QUEUE_EOD_RESEND_COUNT",
    "MQMR-prop-PROPID_MGMT_QUEUE_EOD_RESEND_INTERVAL",
    "MQQB-timer-transactional_ack_wait",
)
def test_it_is_told_how_often_a_message_was_sent_again(simulation: Simulation) -> None:
    """The router takes what Alice sends, but Bob is away and acknowledges nothing."""
    alice, _, bob = simulation.nodes.values()
    bob.create("stream", transactional=True)
    name = private_name(bob, "stream")
    bob.kill()
    alice.send(name, b"hello", transactional=True)
    simulation.advance(1_000)
    told = [resent(alice, name)]
    for seconds in (30, 30, 30):
        simulation.advance(seconds * 1000)
        told.append(resent(alice, name))
    assert told == [(0, 30), (1, 30), (2, 30), (3, 300)]
    bob.start()
    simulation.until(lambda: alice.unsent == 0)
    assert resent(alice, name) == (0, 30)
    assert bob.bodies("stream") == [b"hello"]


@pytest.mark.conformance("MQQB-rule-3.1.5.8.1")
def test_a_router_keeps_one_copy_of_what_is_sent_to_it_again_and_again(
    simulation: Simulation,
) -> None:
    alice, router, bob = simulation.nodes.values()
    bob.create("stream", transactional=True)
    name = private_name(bob, "stream")
    bob.kill()
    for body in (b"one", b"two"):
        alice.send(name, body, transactional=True)
    simulation.advance(3_600_000)
    assert (alice.unsent, router.unsent) == (2, 2)
    router.restart()
    simulation.advance(3_600_000)
    assert router.unsent == 4, "what was before a restart is not compared"
    bob.start()
    simulation.until(lambda: alice.unsent == router.unsent == 0)
    assert bob.bodies("stream") == [b"one", b"two"]
    alice.send(name, b"three", transactional=True)
    simulation.until(lambda: alice.unsent == router.unsent == 0)
    assert bob.bodies("stream") == [b"one", b"two", b"three"]


def resent(node: Node, name: str) -> tuple[object, object]:
    """How often, as administrators are told, and after how many seconds the next time."""
    queue, properties = node.outgoing(name), ManagementQueueProperty
    identifiers = (
        properties.PROPID_MGMT_QUEUE_EOD_RESEND_COUNT,
        properties.PROPID_MGMT_QUEUE_EOD_RESEND_INTERVAL,
    )
    count, interval = (queue_property(node.engine, queue, each).value for each in identifiers)
    return count, interval


@pytest.fixture
def circle() -> Iterator[Simulation]:
    """Alice and the router are both servers, and each takes the other for the way to Bob."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        simulation = Simulation(Path(name))
        for machine, way in (("alice", ROUTER), ("router", ALICE), ("bob", ROUTER)):
            simulation.node(machine, directory=one_site(way))
        yield simulation
        simulation.stop()


def one_site(way_to_bob: UUID) -> DirectoryContents:
    machines = [
        QueueManager(identifier, computer_name=name, site_identifier_list=[BERLIN])
        for identifier, name in ((ALICE, "alice"), (ROUTER, "router"), (BOB, "bob"))
    ]
    for server in machines[:2]:
        server.routing_server = True
    machines[2].in_routing_server_identifier_list = [way_to_bob]
    return DirectoryContents(sites=[Site(BERLIN, name="Berlin")], queue_managers=machines)


@pytest.mark.conformance("MQQB-rule-3.1.5.8.2")
@pytest.mark.parametrize("transactional", [False, True], ids=["recoverable", "transactional"])
def test_a_message_that_goes_in_circles_is_given_up(
    circle: Simulation, transactional: bool
) -> None:
    alice, router, bob = circle.nodes.values()
    bob.create("orders", transactional=transactional)
    alice.create("admin")
    alice.send(
        private_name(bob, "orders"),
        b"round",
        transactional,
        administration_queue_format_name=private_name(alice, "admin"),
        acknowledgements_requested=0x0F,
        negative_journaling_requested=True,
    )
    circle.advance(120_000)
    told = [int(each.message_class) for each in packets(alice, alice.find("admin"))]
    assert told == [MessageClass.MQMSG_CLASS_NACK_HOP_COUNT_EXCEEDED]
    assert bob.bodies() == []
    assert router.unsent == alice.unsent == 0
    assert alice.bodies("system$;deadxact") == ([b"round"] if transactional else [])


@pytest.mark.conformance("MQQB-rule-3.1.5.8.1")
def test_a_router_passes_a_message_on_again_whose_order_was_never_acknowledged(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, _, bob = simulation.nodes.values()
    bob.create("stream", transactional=True)
    acknowledge = bob.engine.acknowledgements.send_if_possible
    lost: list[Any] = []

    def lose_the_first(*arguments: Any, **more: Any) -> None:
        if lost:
            acknowledge(*arguments, **more)
        else:
            lost.append(arguments)

    monkeypatch.setattr(bob.engine.acknowledgements, "send_if_possible", lose_the_first)
    alice.send(private_name(bob, "stream"), b"hello", transactional=True)
    simulation.advance(10_000)
    assert (len(lost), alice.unsent) == (1, 1)
    simulation.advance(60_000)
    assert alice.unsent == 0
    assert bob.bodies("stream") == [b"hello"]


@pytest.mark.conformance("MQQB-rule-3.1.5.8.9", "MQQB-rule-3.1.7.1.7")
@pytest.mark.parametrize("transactional", [False, True], ids=["recoverable", "transactional"])
def test_a_full_queue_for_reports_holds_up_no_traced_message(
    simulation: Simulation, transactional: bool
) -> None:
    """Alice's own queue for reports is full; so is Bob, for anything but the message."""
    alice, _, bob = simulation.nodes.values()
    bob.create(transactional=transactional)
    reports = alice.engine.registry.find_by_path(".\\reports")
    assert reports is not None
    reports.quota = 0
    tell = bob.engine.quotas.admit

    def admit(queue: Queue, size: int) -> None:
        if isinstance(queue, OutgoingQueue):
            raise EnqueueRefusedError(EnqueueStatus.QUEUE_MANAGER_QUOTA_EXCEEDED)
        tell(queue, size)

    bob.engine.quotas.admit = admit  # type: ignore[method-assign]
    for body in (b"one", b"two"):
        alice.send(
            private_name(bob, "orders"),
            body,
            transactional,
            tracing_requested=True,
            tracing_queue_identifier=REPORTS,
        )
    simulation.advance(120_000)
    assert bob.bodies() == [b"one", b"two"]
    assert reports.message_count == 0


@pytest.mark.conformance("MQQB-rule-3.1.5.2.1")
def test_a_queue_manager_that_nobody_knows_leaves_its_queue_in_need_of_validation(
    simulation: Simulation,
) -> None:
    alice = simulation.nodes["alice"]
    name = f"PRIVATE={UUID(int=99)}\\00000010"
    alice.send(name, b"lost")
    simulation.advance(100)
    assert alice.outgoing(name).state is OutgoingQueueState.NEED_VALIDATION
    assert alice.unsent == 1


@pytest.mark.conformance("MQQB-rule-3.1.5.8.9", "MQQB-rule-3.1.7.1.7")
def test_each_hop_of_a_traced_message_is_reported(simulation: Simulation) -> None:
    alice, router, bob = simulation.nodes.values()
    bob.create()
    reports = alice.engine.registry.find_by_path(".\\reports")
    assert reports is not None
    alice.send(
        private_name(bob, "orders"),
        b"hello",
        tracing_requested=True,
        tracing_queue_identifier=REPORTS,
    )
    simulation.advance(20_000)
    assert bob.bodies() == [b"hello"]
    found = packets(alice, reports)
    assert [int(each.message_class) for each in found] == [MessageClass.MQMSG_CLASS_REPORT] * 4
    assert {int(each.delivery_guarantee) for each in found} == {DeliveryGuarantee.EXPRESS}
    name = str(packets(bob, bob.find())[0].destination_queue_format_name)
    identifier = packets(bob, bob.find())[0].identifier.ordinal
    start = f"<MESSAGE ID>{identifier:08X}</MESSAGE ID>\r\n<TARGET QUEUE>{name}</TARGET QUEUE>\r\n"
    hop = "<NEXT HOP>{}</NEXT HOP>\r\n<HOP COUNT>{} </HOP COUNT>\r\n"
    expected = [
        start + hop.format(router.address, "00"),
        start,
        start + hop.format(bob.address, "01"),
        start,
    ]
    assert sorted(each.body.decode("utf-16-le") for each in found) == sorted(expected)
    label = f"{ALICE.hex[:4].upper()}:{identifier:08X}:01 received by {str(ALICE).upper()} at "
    assert sum(each.label.startswith(label) for each in found) == 3
    assert found[0].label.endswith(" PM Sun,Jun 15 25")


def end_on_the_router(simulation: Simulation, transactional: bool) -> list[list[bytes]]:
    """The dead letters of Alice and of the router, whose messages to Bob come too late."""
    alice, router, bob = simulation.nodes.values()
    bob.create("inbox", transactional=transactional)
    name = private_name(bob, "inbox")
    bob.kill()
    wishes: dict[str, Any] = {"time_to_reach_queue": 30, "negative_journaling_requested": True}
    alice.send(name, b"late", transactional=transactional, **wishes)
    simulation.advance(120_000)
    assert alice.unsent == router.unsent == 0
    dead = "system$;deadxact" if transactional else "system$;deadletter"
    return [node.bodies(dead) for node in (alice, router)]


@pytest.mark.conformance("MQQB-rule-3.1.7.1.2")
@pytest.mark.parametrize("transactional", [False, True])
def test_what_expires_on_a_router_is_kept_there_unless_its_source_has_it_still(
    simulation: Simulation, transactional: bool
) -> None:
    """A transactional message stays at its source until its order is acknowledged (G541)."""
    kept = [[b"late"], []] if transactional else [[], [b"late"]]
    assert end_on_the_router(simulation, transactional) == kept


@pytest.mark.conformance("MQQB-rule-3.1.5.5.4")
def test_only_the_source_keeps_a_copy_of_what_was_delivered(simulation: Simulation) -> None:
    """Not each router that it has passed (G541)."""
    alice, router, bob = simulation.nodes.values()
    bob.create()
    alice.send(private_name(bob, "orders"), b"hello", positive_journaling_requested=True)
    simulation.advance(60_000)
    assert bob.bodies() == [b"hello"]
    journals = [node.bodies("system$;journal") for node in (alice, router, bob)]
    assert journals == [[b"hello"], [], []]
