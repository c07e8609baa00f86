"""The places of other queue managers ([MS-MQQB] 3.1.5.2.1, 3.1.7.5).

They come from the operator, from the directory, or from the host name in a format name.
"""

from functools import partial
from uuid import UUID

from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.clock import Timers
from rpcqm.base.completion import Completion, completed, failed
from rpcqm.base.resolver import OPERATOR, Addresses, Senders
from rpcqm.binary.connection.peer_connection import BINARY_PORT, NextHop, PeerNetwork
from rpcqm.binary.routing import Routing
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqvalues import FormatNameType
from rpcqm.qm.directory import Directory
from rpcqm.qm.names import LocalNames

Peers = dict[str, list[NextHop]]
"""Configured places of queue managers, by host name or GUID in lower case; they precede the DNS."""


class Places:
    """Finds the next hops of a queue manager's messages, by routing servers where there are any."""

    def __init__(
        self,
        network: PeerNetwork,
        timers: Timers,
        queue_manager: QueueManager,
        names: LocalNames,
        directory: Directory,
        peers: Peers,
    ) -> None:
        self._network, self._timers = network, timers
        self._queue_manager, self._names, self._directory = queue_manager, names, directory
        self.peers = peers
        self.own_place: NextHop | None = None
        """The place where sessions with this queue manager itself are accepted, or None."""
        self.routing = self._new_routing()

    # Routing by the directory

    def _new_routing(self) -> Routing | None:
        """The routing of the directory; None without one."""
        if not self._directory.is_there:
            return None
        return Routing(self._directory, self._timers, self._queue_manager.identifier)

    def start(self) -> None:
        """Keep the routing table up to date."""
        if self.routing is not None:
            self.routing.start()

    def directory_changed(self) -> None:
        """Rebuild the routing after a change of the directory ([MS-MQBR] 3.1.6.1)."""
        if self.routing is None:
            self.routing = self._new_routing()
            self.start()
        else:
            self.routing.initialize_routing_table()

    def stop(self) -> None:
        if self.routing is not None:
            self.routing.stop()

    # Next hops

    def next_hops(self, name: FormatName, senders: Senders) -> Completion[list[NextHop]]:
        """Resolve Host Address ([MS-MQQB] 3.1.5.2.1), which `senders` have named or the operator.

        Fails with an OSError.
        """
        if isinstance(name.value, str):
            host = name.direct_name.host
            known = self.peers.get(host.lower())
            if known is not None:
                return self.resolved_all(known)
            if self.own_place is not None and self._names.is_local(host):
                return completed([self.own_place])  # it waited before the name became ours (G501)
            return self.resolved_all([NextHop(host, BINARY_PORT, host)], senders)
        destination = self._directory.destination_queue_manager(name)
        if destination is None:
            return failed(OSError("the directory does not know the queue manager"))
        return self.resolved_all(self._hops_to(destination))

    def _hops_to(self, destination: UUID) -> list[NextHop]:
        """Get Next Hops ([MS-MQQB] 3.1.7.5); without a directory the peer's own place, if any."""
        own = self._queue_manager.identifier
        machines = self.routing.get_next_hops(own, destination) if self.routing else [destination]
        return [hop for machine in machines for hop in self.places_of(machine)]

    def places_of(self, machine: UUID) -> list[NextHop]:
        """The places of a queue manager: configured, in the directory, or by its name."""
        known = self.peers.get(str(machine))
        if known is not None:
            return known
        found = self._directory.queue_manager(machine)
        if found is None:
            return []
        name = found.qualified_computer_name or found.computer_name
        by_name = self.peers.get(found.computer_name.lower())
        if by_name is not None:
            return [NextHop(hop.address, hop.port, name, machine) for hop in by_name]
        return [NextHop(place, BINARY_PORT, name, machine) for place in found.addresses or [name]]

    def resolved_all(
        self, hops: list[NextHop], senders: Senders = OPERATOR
    ) -> Completion[list[NextHop]]:
        """Every address of every hop, in their order; those without any are left out."""
        outcome: Completion[list[NextHop]] = Completion()
        found: list[list[NextHop]] = [[] for _ in hops]
        waiting = len(hops)

        def resolved(index: int, hop: NextHop, answer: Completion[Addresses]) -> None:
            nonlocal waiting
            waiting -= 1
            if answer.error is None:
                found[index] = [
                    NextHop(address, hop.port, hop.host_name or hop.address, hop.qm_guid)
                    for address in answer.result()
                ]
            if not waiting:
                outcome.succeed([hop for group in found for hop in group])

        for index, hop in enumerate(hops):
            answer = self._network.resolve(hop.address, senders)
            answer.add_done_callback(partial(resolved, index, hop))
        return outcome if hops else completed([])

    def is_peer(self, name: FormatName) -> bool:
        """Whether the operator has configured a place for the queue manager of a queue."""
        if isinstance(name.value, str):
            return name.direct_name.host.lower() in self.peers
        owner = self._directory.destination_queue_manager(name)
        return owner is not None and str(owner) in self.peers


def is_direct_name(name: FormatName) -> bool:
    """Whether a format name itself says where its queue is."""
    return name.type is FormatNameType.QUEUE_FORMAT_TYPE_DIRECT
