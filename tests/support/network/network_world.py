"""Five queue managers in two sites: a source, two routers, and two that are sent to.

Berlin has `alice` and the routing server `ra`, Paris `rb`, `bob` and `carl`. Each end names both
routers as its way out, so that the one stands in for the other. Every destination is called in
its own way, some by IPv4, some by IPv6, some by name.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from uuid import UUID

from rpcqm.adm.directory import DirectoryContents
from rpcqm.adm.directory_object import RoutingLink, Site
from rpcqm.adm.enums import QueueType
from rpcqm.adm.message import Message
from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.completion import Completion, completed
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.qm.protocol_records import Changes
from tests.support.binary.binary_network import Faults, Node, Simulation

MACHINES = {name: UUID(int=number) for number, name in enumerate(["alice", "ra", "rb"], 11)}
MACHINES |= {"bob": UUID(int=14), "carl": UUID(int=15)}
ROUTERS = ("ra", "rb")
BERLIN, PARIS = UUID(int=21), UUID(int=22)
REPORTS, BOX, LEDGER = UUID(int=31), UUID(int=32), UUID(int=33)
_SITES = {"alice": BERLIN, "ra": BERLIN, "rb": PARIS, "bob": PARIS, "carl": PARIS}


@dataclass(frozen=True)
class Destination:
    """A queue, and how it is called."""

    machine: str
    queue: str
    format_name: str
    transactional: bool = False

    @property
    def path(self) -> str:
        """Its place, to be told apart from others."""
        return f"{self.machine}\\{self.queue}"


def _directory() -> DirectoryContents:
    """What all of them know; each gets a copy of its own."""
    machines = {name: _machine(name) for name in MACHINES}
    sites = [Site(BERLIN, name="Berlin"), Site(PARIS, name="Paris")]
    sites[0].site_gate_collection = [machines["ra"]]
    sites[1].site_gate_collection = [machines["rb"]]
    link = RoutingLink(UUID(int=41), site1_identifier=BERLIN, site2_identifier=PARIS)
    queues = [
        _public(REPORTS, "reports", machines["alice"]),
        _public(BOX, "box", machines["carl"]),
        _public(LEDGER, "ledger", machines["carl"], transactional=True),
    ]
    return DirectoryContents(
        sites=sites,
        routing_links=[link],
        queue_managers=list(machines.values()),
        queues=queues,
    )


def _machine(name: str) -> QueueManager:
    machine = QueueManager(MACHINES[name], computer_name=name, site_identifier_list=[_SITES[name]])
    machine.routing_server = name in ROUTERS
    if not machine.routing_server:
        near = ROUTERS if _SITES[name] == BERLIN else ROUTERS[::-1]
        machine.out_routing_server_identifier_list = [MACHINES[router] for router in near]
    return machine


def _public(
    identifier: UUID, name: str, machine: QueueManager, *, transactional: bool = False
) -> Queue:
    queue = Queue(identifier, pathname=f"{machine.computer_name}\\{name}", queue_manager=machine)
    queue.qualified_pathname, queue.queue_type = queue.pathname, QueueType.PUBLIC
    queue.transactional, queue.journaling = transactional, name != "reports"
    return queue


class TwoFacedNode(Node):
    """A queue manager whose name stands for both of its addresses, in any order."""

    def resolved(self) -> tuple[str, ...]:
        return tuple(self.simulation.random.sample(self.addresses, 2))


class World(Simulation):
    """The five, their queues, and routers that lose acknowledgements of orders."""

    def __init__(self, directory: Path, seed: int, faults: Faults, forgetful: float) -> None:
        super().__init__(directory, seed, faults)
        self.forgetful = forgetful
        self.forgotten = 0
        self.wall = False
        for name in MACHINES:
            self.nodes[name] = TwoFacedNode(self, name, {}, _directory())
        for name in ROUTERS:
            router = self.nodes[name]
            router.started_hooks.append(partial(self._make_forgetful, router))
            self._make_forgetful(router)
        self.destinations = {each.path: each for each in self._destinations()}

    def _destinations(self) -> Iterable[Destination]:
        alice, bob, carl = (self.nodes[name] for name in ("alice", "bob", "carl"))
        alice.create("admin")
        self.admin_names = (private_name(alice, "admin"), "DIRECT=OS:alice\\private$\\admin")
        yield self._made(bob, "stream", True)
        yield self._made(bob, "tight", True)
        yield self._made(bob, "direct", True, "DIRECT=OS:bob\\private$\\direct")
        yield self._made(carl, "six", True, f"DIRECT=TCP:{carl.addresses[1]}\\private$\\six")
        yield self._made(alice, "home", True, "DIRECT=OS:.\\private$\\home")
        yield self._made(alice, "back", True)
        yield self._made(bob, "orders", False)
        yield self._made(bob, "narrow", False)
        yield self._made(carl, "post", False, "DIRECT=OS:carl\\private$\\post")
        yield self._made(bob, "four", False, f"DIRECT=TCP:{bob.addresses[0]}\\private$\\four")
        yield Destination("carl", "ledger", f"PUBLIC={LEDGER}", True)
        yield Destination("carl", "box", f"PUBLIC={BOX}")
        self.settle()

    def _made(self, node: Node, queue: str, transactional: bool, name: str = "") -> Destination:
        made = node.create(queue, transactional)
        node.engine.queues.set_properties(made, {"journaling": True})
        name = name or private_name(node, queue)
        return Destination(node.name, queue, name, transactional)

    def lets_in(self, source: Node, target: Node, address: str) -> bool:
        """While there is a wall, only the routers connect to the other site."""
        return not self._is_walled_off(source, target) and super().lets_in(source, target, address)

    def _is_walled_off(self, one: Node, other: Node) -> bool:
        ends = {one.name, other.name}
        return self.wall and ends.isdisjoint(ROUTERS) and len({_SITES[end] for end in ends}) > 1

    def build_wall(self) -> None:
        """From now on messages to the other site go by the routers."""
        self.wall = True
        self.break_connections(self._is_walled_off)

    def tear_down_wall(self) -> None:
        self.wall = False

    def break_connections(self, chosen: Callable[[Node, Node], bool]) -> None:
        """End what stands between two machines, for each pair that is chosen."""
        for end in self.ends:
            if end.peer is not None and chosen(end.node, end.peer.node):
                end.cut()

    def _make_forgetful(self, router: Node) -> None:
        """An order acknowledgement is an express message: a router may lose it."""
        store = router.engine.arrivals.store

        def sometimes(
            queue: Queue, message: Message, changes: Changes | None = None
        ) -> Completion[None]:
            order = message.attributes.message_class == MessageClass.MQMSG_CLASS_ORDER_ACK
            if order and self.random.random() < self.forgetful:
                self.forgotten += 1
                return completed(None)
            return store(queue, message, changes)

        router.engine.arrivals.store = sometimes  # type: ignore[method-assign]

    def unsent(self) -> dict[str, int]:
        """What waits in outgoing queues, by machine and destination."""
        return {
            f"{node.name} to {queue.destination_format_name}": queue.message_count
            for node in self.nodes.values()
            for queue in node.engine.outgoing.list()
            if queue.message_count
        }


def queue_of(node: Node, name: str) -> Queue:
    """A queue of a machine, public, private or the system's."""
    find = node.engine.registry.find_by_path
    found = None if "$" in name else find(f".\\private$\\{name}")
    found = found or find(f".\\{name}")
    assert found is not None, name
    return found


def private_name(node: Node, queue: str) -> str:
    """The PRIVATE= name of a queue of a machine."""
    number = queue_of(node, queue).private_queue_number
    return f"PRIVATE={node.engine.queue_manager.identifier}\\{number:08x}"
