"""A gate whose directory comes back routes as it says now (G427)."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from rpcqm.adm.directory import DirectoryContents, DirectoryUnavailableError
from rpcqm.adm.directory_object import RoutingLink, Site
from tests.support.binary.binary_network import Node, Simulation
from tests.support.queue_manager import MEMORY
from tests.unit.binary.test_three_machines import BERLIN, PARIS, ROUTER, directory

LINK = RoutingLink(UUID(int=41), site1_identifier=BERLIN, site2_identifier=PARIS, actual_cost=10)


class Source:
    """A directory that can be away."""

    def __init__(self, contents: DirectoryContents) -> None:
        self.contents, self.away = contents, False

    def __call__(self) -> DirectoryContents:
        if self.away:
            raise DirectoryUnavailableError("away")
        return self.contents


@pytest.fixture
def gate() -> Iterator[Node]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        simulation = Simulation(Path(name))
        yield simulation.node("router", directory=directory())
        simulation.stop()


def test_a_directory_that_comes_back_is_what_counts_at_once(gate: Node) -> None:
    contents = directory()
    router = next(each for each in contents.queue_managers if each.identifier == ROUTER)
    for site in contents.sites:
        site.site_gate_collection = [router]
    source = Source(contents)
    gate.engine.settings.directory = source
    gate.engine.directory.use(source)
    routing = gate.protocol.places.routing
    assert routing is not None
    routing.initialize_routing_table()
    assert routing.routing_table == {}
    source.away = True
    gate.engine.directory.read_directory(Site)
    assert gate.engine.queue_manager.directory_offline
    contents.routing_links.append(LINK)
    source.away = False
    gate.simulation.advance(120_000)
    assert routing.routing_table == {BERLIN: BERLIN, PARIS: PARIS}
