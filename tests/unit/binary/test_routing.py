"""Routing ([MS-MQBR] 3.1)."""

from collections.abc import Sequence
from uuid import UUID

import pytest

from rpcqm.adm.directory import AttributeFilter, DirectoryContents
from rpcqm.adm.directory_object import DirectoryObject, RoutingLink, Site
from rpcqm.adm.enums import DirectoryOperationResult
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.binary.routing import Routing
from tests.support.clock import SimulatedClock

BERLIN, PARIS, ROME, OSLO = (UUID(int=number) for number in range(1, 5))


class FakeDirectory:
    """A directory in memory."""

    def __init__(self, contents: DirectoryContents) -> None:
        self.contents = contents
        self.there = True
        self._found: list[DirectoryObject] = []

    def read_directory_begin(
        self, kind: type[DirectoryObject], filters: Sequence[AttributeFilter] = ()
    ) -> tuple[DirectoryOperationResult, int]:
        if not self.there:
            return DirectoryOperationResult.DIRECTORY_NOT_CONNECTED, 0
        self._found = [
            element
            for element in self.contents.of(kind)
            if all(each.matches(element) for each in filters)
        ]
        return DirectoryOperationResult.SUCCESS, 1

    def read_directory_next(
        self, handle: int
    ) -> tuple[DirectoryOperationResult, DirectoryObject | None]:
        if not self._found:
            return DirectoryOperationResult.END_OF_DATA, None
        return DirectoryOperationResult.SUCCESS, self._found.pop(0)

    def read_directory_end(self, handle: int) -> DirectoryOperationResult:
        return DirectoryOperationResult.SUCCESS


class Enterprise:
    """Sites, links and machines, added one by one."""

    def __init__(self) -> None:
        self.contents = DirectoryContents()
        self.directory = FakeDirectory(self.contents)
        self.clock = SimulatedClock()
        for site in (BERLIN, PARIS, ROME, OSLO):
            self.contents.sites.append(Site(site))

    def machine(
        self, number: int, *sites: UUID, routing: bool = False, gate: bool = False
    ) -> QueueManager:
        machine = QueueManager(UUID(int=100 + number), site_identifier_list=list(sites))
        machine.routing_server = routing or gate
        self.contents.queue_managers.append(machine)
        for site in self.contents.sites:
            if gate and site.identifier in sites:
                site.site_gate_collection.append(machine)
        return machine

    def transfer(self, one: UUID, other: UUID, cost: int) -> None:
        self.contents.routing_links.append(
            RoutingLink(
                UUID(int=1000 + len(self.contents.routing_links)),
                actual_cost=cost,
                site1_identifier=one,
                site2_identifier=other,
            )
        )

    def routing(self, machine: QueueManager) -> Routing:
        return Routing(self.directory, self.clock.timers, machine.identifier)

    def hops(self, source: QueueManager, destination: QueueManager) -> list[UUID]:
        return self.routing(source).get_next_hops(source.identifier, destination.identifier)


@pytest.mark.conformance("MQBR-rule-3.1.5.1")
def test_a_neighbour_is_reached_directly() -> None:
    enterprise = Enterprise()
    one, other = enterprise.machine(1, BERLIN), enterprise.machine(2, BERLIN)
    assert enterprise.hops(one, other) == [other.identifier]


@pytest.mark.conformance("MQBR-rule-3.1.5.1")
def test_in_routing_servers_are_the_entrance_of_their_machine() -> None:
    enterprise = Enterprise()
    one, other = enterprise.machine(1, BERLIN), enterprise.machine(2, BERLIN)
    entrance = enterprise.machine(3, BERLIN, routing=True)
    other.in_routing_server_identifier_list = [entrance.identifier]
    assert enterprise.hops(one, other) == [entrance.identifier]
    assert enterprise.hops(entrance, other) == [other.identifier]


@pytest.mark.conformance("MQBR-rule-3.1.5.1")
def test_out_routing_servers_take_everything() -> None:
    enterprise = Enterprise()
    one, other = enterprise.machine(1, BERLIN), enterprise.machine(2, BERLIN)
    exits = [UUID(int=7), UUID(int=8)]
    one.out_routing_server_identifier_list = exits
    assert enterprise.hops(one, other) == exits


@pytest.mark.conformance("MQBR-rule-3.1.5.1", "MQBR-rule-3.1.5.5")
def test_another_site_is_reached_by_a_routing_server_of_the_own_site() -> None:
    enterprise = Enterprise()
    one, other = enterprise.machine(1, BERLIN), enterprise.machine(2, PARIS)
    enterprise.machine(3, PARIS, routing=True)
    assert enterprise.hops(one, other) == []
    router = enterprise.machine(4, BERLIN, routing=True)
    assert enterprise.hops(one, other) == [router.identifier]


@pytest.mark.conformance("MQBR-rule-3.1.5.4", "MQBR-rule-3.1.5.9")
def test_who_is_not_in_the_directory_is_not_reached() -> None:
    enterprise = Enterprise()
    one = enterprise.machine(1, BERLIN)
    assert enterprise.hops(one, QueueManager(UUID(int=55))) == []
    assert enterprise.routing(one).get_queue_manager(one.identifier) is one
    enterprise.directory.there = False
    assert enterprise.routing(one).get_directory_data(Site) is None
    assert enterprise.hops(one, one) == []


@pytest.mark.conformance("MQBR-rule-3.1.5.2", "MQBR-rule-3.1.5.6")
def test_a_routing_server_hands_on_to_its_site_gate() -> None:
    enterprise = Enterprise()
    router = enterprise.machine(1, BERLIN, routing=True)
    gate = enterprise.machine(2, BERLIN, gate=True)
    far, near = enterprise.machine(3, PARIS), enterprise.machine(4, BERLIN)
    assert enterprise.hops(router, far) == [gate.identifier]
    assert enterprise.hops(router, near) == [near.identifier]
    near.in_routing_server_identifier_list = [gate.identifier]
    assert enterprise.hops(router, near) == [gate.identifier]
    near.in_routing_server_identifier_list = [router.identifier]
    assert enterprise.hops(router, near) == [near.identifier]


@pytest.mark.conformance("MQBR-rule-3.1.5.8")
def test_a_site_gate_is_a_routing_server_among_the_gates_of_its_site() -> None:
    enterprise = Enterprise()
    gate = enterprise.machine(1, BERLIN, gate=True)
    router = enterprise.machine(2, BERLIN, routing=True)
    routing = enterprise.routing(router)
    assert routing.is_site_gate(gate.identifier)
    assert not routing.is_site_gate(router.identifier)
    assert not routing.is_site_gate(UUID(int=55))
    gate.routing_server = False
    assert not routing.is_site_gate(gate.identifier)
    gate.routing_server, gate.site_identifier_list = True, [PARIS]
    assert not routing.is_site_gate(gate.identifier)


@pytest.mark.conformance(
    "MQBR-rule-3.1.5.2",
    "MQBR-rule-3.1.5.3",
    "MQBR-rule-3.1.5.7",
    "MQBR-rule-3.1.3.1",
    "MQBR-element-RoutingTable",
)
def test_site_gates_take_the_cheapest_way() -> None:
    enterprise = Enterprise()
    berlin = enterprise.machine(1, BERLIN, gate=True)
    paris = enterprise.machine(2, PARIS, gate=True)
    rome = enterprise.machine(3, ROME, gate=True)
    target = enterprise.machine(4, ROME)
    enterprise.transfer(BERLIN, ROME, 100)
    enterprise.transfer(PARIS, BERLIN, 10)
    enterprise.transfer(PARIS, ROME, 20)
    assert enterprise.routing(berlin).routing_table == {
        BERLIN: BERLIN,
        PARIS: PARIS,
        ROME: PARIS,
    }
    assert enterprise.hops(berlin, target) == [paris.identifier]
    assert enterprise.hops(paris, target) == [rome.identifier]
    assert enterprise.hops(rome, target) == [target.identifier]
    unreachable = enterprise.machine(5, OSLO)
    assert enterprise.hops(berlin, unreachable) == []


@pytest.mark.conformance("MQBR-rule-3.1.5.2", "MQBR-rule-3.1.5.3")
@pytest.mark.parametrize("role", ["routing", "gate"])
def test_in_routing_servers_are_the_entrance_for_routing_servers_too(role: str) -> None:
    """Who is one of them delivers, wherever the machine is."""
    enterprise = Enterprise()
    source = enterprise.machine(1, BERLIN, routing=True, gate=role == "gate")
    entrance = enterprise.machine(2, BERLIN, routing=True)
    near, far = enterprise.machine(3, BERLIN), enterprise.machine(4, PARIS)
    near.in_routing_server_identifier_list = [entrance.identifier]
    assert enterprise.hops(source, near) == [entrance.identifier]
    for target in (near, far):
        target.in_routing_server_identifier_list = [entrance.identifier, source.identifier]
        assert enterprise.hops(source, target) == [target.identifier]


@pytest.mark.conformance("MQBR-rule-3.1.5.3", "MQBR-rule-3.1.5.7")
def test_a_next_site_without_a_gate_leads_nowhere() -> None:
    enterprise = Enterprise()
    gate, target = enterprise.machine(1, BERLIN, gate=True), enterprise.machine(2, PARIS)
    enterprise.transfer(BERLIN, PARIS, 10)
    assert enterprise.hops(gate, target) == []


@pytest.mark.conformance("MQBR-rule-3.1.3.1")
def test_only_site_gates_have_a_routing_table() -> None:
    enterprise = Enterprise()
    router = enterprise.machine(1, BERLIN, routing=True)
    gate = enterprise.machine(2, BERLIN, gate=True)
    assert enterprise.routing(gate).routing_table == {}
    enterprise.transfer(BERLIN, PARIS, 10)
    assert enterprise.routing(router).routing_table == {}
    assert enterprise.routing(gate).routing_table == {BERLIN: BERLIN, PARIS: PARIS}


def test_an_unreadable_directory_leaves_the_table_as_it_was() -> None:
    enterprise = Enterprise()
    gate = enterprise.machine(1, BERLIN, gate=True)
    enterprise.transfer(BERLIN, PARIS, 10)
    routing = enterprise.routing(gate)
    routing.start()
    before = routing.routing_table
    assert before == {BERLIN: BERLIN, PARIS: PARIS}
    enterprise.directory.there = False
    enterprise.clock.advance(3_600_000)
    assert routing.routing_table == before
    enterprise.directory.there = True
    enterprise.contents.routing_links.clear()
    enterprise.clock.advance(3_600_000)
    assert routing.routing_table == {}
    routing.stop()


@pytest.mark.conformance("MQBR-timer-queue_manager_query")
def test_the_routing_table_is_made_anew_every_hour() -> None:
    enterprise = Enterprise()
    gate = enterprise.machine(1, BERLIN, gate=True)
    routing = enterprise.routing(gate)
    routing.start()
    assert routing.routing_table == {}
    enterprise.transfer(BERLIN, PARIS, 10)
    enterprise.clock.advance(3_599_999)
    assert routing.routing_table == {}
    enterprise.clock.advance(1)
    assert routing.routing_table == {BERLIN: BERLIN, PARIS: PARIS}
    routing.stop()
    assert not len(enterprise.clock.timers)
