"""Sites, the queue managers in them and the ways between them, as the directory says."""

from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from rpcqm.adm.directory_object import DirectoryObject, RoutingLink, Site
from rpcqm.adm.enums import DirectoryOperationResult
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.identity import Identity
from rpcqm.qm.access import require_observer
from rpcqm.qm.engine import QueueManagerEngine

T = TypeVar("T", bound=DirectoryObject)

MOST_NODES = 10_000
"""Sites, queue managers and links each that one look at a directory shows.

A directory is an operator's own file, but pages have an end.

Bound `routing.nodes` [objects]: the rest is not shown.
"""


@dataclass(frozen=True, slots=True)
class SiteNode:
    """A site; `here` if this queue manager is in it."""

    identifier: UUID
    name: str
    foreign: bool
    here: bool


@dataclass(frozen=True, slots=True)
class MachineNode:
    """A queue manager with the sites that it is in, and the gates that it is bound to."""

    identifier: UUID
    name: str
    sites: tuple[UUID, ...]
    routing_server: bool
    here: bool
    out_servers: tuple[UUID, ...]
    in_servers: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class LinkEdge:
    """A way between two sites; `gates` are the queue managers that messages go through."""

    site1: UUID
    site2: UUID
    cost: int
    gates: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class RoutingGraph:
    """All of it; empty without a directory."""

    sites: tuple[SiteNode, ...] = ()
    queue_managers: tuple[MachineNode, ...] = ()
    links: tuple[LinkEdge, ...] = ()


class RoutingOperations:
    """Raises MQ_ERROR_ACCESS_DENIED for others than administrators."""

    def __init__(self, engine: QueueManagerEngine) -> None:
        self._engine = engine

    def graph(self, identity: Identity) -> RoutingGraph:
        """Sites, queue managers and links; MQ_ERROR_NO_DS is never raised: then there are none."""
        require_observer(identity)
        if not self._engine.directory.is_there:
            return RoutingGraph()
        own = self._engine.queue_manager.identifier
        machines = [_machine(each, own) for each in self._all(QueueManager)]
        at_home = {site for each in machines if each.here for site in each.sites}
        sites = [
            SiteNode(each.identifier, each.name, each.foreign_site, each.identifier in at_home)
            for each in self._all(Site)
        ]
        links = [
            LinkEdge(
                each.site1_identifier,
                each.site2_identifier,
                each.actual_cost,
                tuple(each.site_gate_identifier_list),
            )
            for each in self._all(RoutingLink)
        ]
        return RoutingGraph(tuple(sites), tuple(machines), tuple(links))

    def _all(self, kind: type[T]) -> list[T]:
        directory = self._engine.directory
        status, handle = directory.read_directory_begin(kind)
        found: list[T] = []
        if status is not DirectoryOperationResult.SUCCESS:
            return found
        while len(found) < MOST_NODES:
            _, each = directory.read_directory_next(handle)
            if not isinstance(each, kind):
                break
            found.append(each)
        directory.read_directory_end(handle)
        return found


def _machine(machine: QueueManager, own: UUID) -> MachineNode:
    return MachineNode(
        machine.identifier,
        machine.computer_name,
        tuple(machine.site_identifier_list),
        machine.routing_server,
        machine.identifier == own,
        tuple(machine.out_routing_server_identifier_list),
        tuple(machine.in_routing_server_identifier_list),
    )
