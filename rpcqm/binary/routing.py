"""The next hop of a message on its way to a queue manager ([MS-MQBR] 3.1).

The nine procedures have the specification's names. They ask a directory; only the routing table of
a site gate is kept, and rebuilt every hour.
"""

import heapq
from collections.abc import Sequence
from typing import Protocol, TypeVar
from uuid import UUID

from rpcqm.adm.directory import AttributeFilter, equals
from rpcqm.adm.directory_object import DirectoryObject, RoutingLink, Site
from rpcqm.adm.enums import DirectoryOperationResult
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.clock import Timer, Timers

T = TypeVar("T", bound=DirectoryObject)

QUEUE_MANAGER_QUERY = 3_600_000
"""The QueueManager Query Timer, in milliseconds ([MS-MQBR] 3.1.3)."""


class DirectoryReader(Protocol):
    """The events of [MS-MQDMPR] 3.1.7.1.21 to .23."""

    def read_directory_begin(
        self, kind: type[DirectoryObject], filters: Sequence[AttributeFilter] = ()
    ) -> tuple[DirectoryOperationResult, int]: ...
    def read_directory_next(
        self, handle: int
    ) -> tuple[DirectoryOperationResult, DirectoryObject | None]: ...
    def read_directory_end(self, handle: int) -> DirectoryOperationResult: ...


class Routing:
    """The routing of one queue manager, `identifier`; `start` begins the hourly refresh."""

    def __init__(self, directory: DirectoryReader, timers: Timers, identifier: UUID) -> None:
        self._directory = directory
        self._timers = timers
        self._identifier = identifier
        self._timer: Timer | None = None
        self._table: dict[UUID, UUID] | None = None

    def start(self) -> None:
        """Start the QueueManager Query Timer."""
        self._timer = self._timers.call_later(QUEUE_MANAGER_QUERY, self._query_expired)

    def stop(self) -> None:
        """Refresh no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _query_expired(self) -> None:
        """[MS-MQBR] 3.1.6.1."""
        self.initialize_routing_table()
        self.start()

    # The routing table

    @property
    def routing_table(self) -> dict[UUID, UUID]:
        """The next site on the way to each site ([MS-MQBR] 3.1.1.2)."""
        if self._table is None:
            self.initialize_routing_table()
        return self._table or {}

    def initialize_routing_table(self) -> None:
        """Find the cheapest ways from our sites ([MS-MQBR] 3.1.3.1); only a site gate has any.

        While the directory cannot be read the last ways count (G427).
        """
        machines = self.get_directory_data(QueueManager, [equals("identifier", self._identifier)])
        found, links = self.get_directory_data(Site), self.get_directory_data(RoutingLink)
        if machines is None or found is None or links is None:
            return
        self._table = {}
        if machines and links and self.is_site_gate(self._identifier):
            sites = {site.identifier for site in found}
            starts = [site for site in machines[0].site_identifier_list if site in sites]
            self._table = _cheapest_ways(starts, sites, links)

    # The procedures

    def get_next_hops(self, source_id: UUID, destination_id: UUID) -> list[UUID]:
        """The queue managers to try, empty when the routing fails ([MS-MQBR] 3.1.5.1)."""
        source = self.get_queue_manager(source_id)
        destination = self.get_queue_manager(destination_id)
        if source is None or destination is None:
            return []
        if source.routing_server:
            return self.get_next_hops_for_router(source, destination)
        if source.out_routing_server_identifier_list:
            return list(source.out_routing_server_identifier_list)
        if _share_a_site(source, destination):
            return _entrances(destination)
        return _known(self.get_routing_server(source_id))

    def get_next_hops_for_router(
        self, source: QueueManager, destination: QueueManager
    ) -> list[UUID]:
        """The same for a routing server ([MS-MQBR] 3.1.5.2)."""
        if self.is_site_gate(source.identifier):
            return self.get_next_hops_for_site_gate(source, destination)
        if source.identifier in destination.in_routing_server_identifier_list:
            return [destination.identifier]
        if _share_a_site(source, destination):
            return _entrances(destination)
        return _known(self.get_site_gate(source.identifier))

    def get_next_hops_for_site_gate(
        self, source: QueueManager, destination: QueueManager
    ) -> list[UUID]:
        """The same for a site gate ([MS-MQBR] 3.1.5.3)."""
        if source.identifier in destination.in_routing_server_identifier_list:
            return [destination.identifier]
        if _share_a_site(source, destination):
            return _entrances(destination)
        next_site = None
        for site, way in self.routing_table.items():
            if site in destination.site_identifier_list:
                next_site = way
        return [] if next_site is None else _known(self.get_site_gate_for_site(next_site))

    def get_queue_manager(self, machine_id: UUID) -> QueueManager | None:
        """[MS-MQBR] 3.1.5.4."""
        found = self.get_directory_data(QueueManager, [equals("identifier", machine_id)])
        return found[0] if found else None

    def get_routing_server(self, machine_id: UUID) -> UUID | None:
        """A routing server in a site of the machine ([MS-MQBR] 3.1.5.5)."""
        source = self.get_queue_manager(machine_id)
        if source is None:
            return None
        for machine in self.get_directory_data(QueueManager) or ():
            if machine.routing_server and _share_a_site(machine, source):
                return machine.identifier
        return None

    def get_site_gate(self, machine_id: UUID) -> UUID | None:
        """A gate of the machine's site ([MS-MQBR] 3.1.5.6)."""
        source = self.get_queue_manager(machine_id)
        if source is None:
            return None
        for site in self.get_directory_data(Site) or ():
            if site.identifier in source.site_identifier_list:
                return _first_gate(site)
        return None

    def get_site_gate_for_site(self, site_id: UUID) -> UUID | None:
        """A gate of a site ([MS-MQBR] 3.1.5.7)."""
        found = self.get_directory_data(Site, [equals("identifier", site_id)])
        return _first_gate(found[0]) if found else None

    def is_site_gate(self, machine_id: UUID) -> bool:
        """Whether a machine is a gate of one of its sites ([MS-MQBR] 3.1.5.8)."""
        machine = self.get_queue_manager(machine_id)
        if machine is None or not machine.routing_server:
            return False
        return any(
            gate.identifier == machine_id
            for site in self.get_directory_data(Site) or ()
            if site.identifier in machine.site_identifier_list
            for gate in site.site_gate_collection
        )

    def get_directory_data(
        self, kind: type[T], filters: Sequence[AttributeFilter] = ()
    ) -> list[T] | None:
        """Objects of the directory, None when it cannot be read ([MS-MQBR] 3.1.5.9)."""
        result, handle = self._directory.read_directory_begin(kind, filters)
        if result is not DirectoryOperationResult.SUCCESS:
            return None
        found: list[T] = []
        while True:
            result, element = self._directory.read_directory_next(handle)
            if result is not DirectoryOperationResult.SUCCESS:
                break
            if isinstance(element, kind):
                found.append(element)
        self._directory.read_directory_end(handle)
        return found if result is DirectoryOperationResult.END_OF_DATA else None


def _share_a_site(one: QueueManager, other: QueueManager) -> bool:
    return not set(one.site_identifier_list).isdisjoint(other.site_identifier_list)


def _entrances(destination: QueueManager) -> list[UUID]:
    """The destination's in-routing servers, or itself."""
    return list(destination.in_routing_server_identifier_list) or [destination.identifier]


def _known(identifier: UUID | None) -> list[UUID]:
    return [] if identifier is None else [identifier]


def _first_gate(site: Site) -> UUID | None:
    return site.site_gate_collection[0].identifier if site.site_gate_collection else None


def _cheapest_ways(
    starts: list[UUID], sites: set[UUID], links: list[RoutingLink]
) -> dict[UUID, UUID]:
    """Dijkstra's algorithm; of equal costs the way with the smaller identifiers is taken."""
    edges: dict[UUID, list[tuple[int, UUID]]] = {}
    for link in links:
        one, other = link.site1_identifier, link.site2_identifier
        edges.setdefault(one, []).append((link.actual_cost, other))
        edges.setdefault(other, []).append((link.actual_cost, one))
    ways: dict[UUID, UUID] = {}
    heap = [(0, start, start) for start in starts]
    heapq.heapify(heap)
    while heap:
        cost, site, first = heapq.heappop(heap)
        if site in ways or site not in sites:
            continue
        ways[site] = first
        for price, other in edges.get(site, ()):
            if other not in ways:
                heapq.heappush(heap, (cost + price, other, other if site in starts else first))
    return ways
