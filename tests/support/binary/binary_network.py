"""Queue managers on a simulated network under one simulated clock.

A network delays, cuts, corrupts and reorders as its seed says. A queue manager can be
killed, between any two of its callbacks: it goes on from what was on its disk, everything else is
gone. Each has an IPv4 and an IPv6 address. The same seed gives the same run.

Connections are reordered in three ways: one end loses a connection whose last bytes arrive long
after the next connection is made; a connection stands still for so long that it is given up; and
what has gone over an earlier connection comes once more, over one of its own.
"""

import enum
import random
import shutil
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from rpcqm.adm.directory import DirectoryContents
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.base.clock import Timer, Timers
from rpcqm.base.completion import Completion, completed
from rpcqm.base.errors import DecodeError, MQError
from rpcqm.base.identity import Identity
from rpcqm.base.resolver import OPERATOR, Senders
from rpcqm.binary.connection.new_sequences import begin_new_sequences
from rpcqm.binary.connection.peer_connection import NextHop, PeerConnection
from rpcqm.binary.connection.places import Peers
from rpcqm.binary.connection.protocol import BinaryProtocol
from rpcqm.binary.framing import PacketBuffer
from rpcqm.binary.own_keys import OwnKeys
from rpcqm.codec.names.format_name import FormatName, parse_format_names
from rpcqm.codec.packet.acknowledgement import PacketKind, identify_packet
from rpcqm.codec.packet.message import MessageAttributes
from rpcqm.codec.packet.patch import without_session_header
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.types.mqvalues import QueueAccessType, QueueShareMode
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.settings import QueueManagerSettings
from rpcqm.service.speed import Speed, speed_of
from rpcqm.store.backup import restore_backup
from rpcqm.store.settings import StoreSettings
from rpcqm.store.store import Store
from tests.support.clock import SimulatedClock
from tests.support.fast import templates
from tests.support.store.stores import copy_of_running

if TYPE_CHECKING:
    from rpcqm.fast.install import Installation

REPLAYED_CHUNKS = 100
REPLAYED_CONNECTIONS = 8


@dataclass
class Faults:
    """How likely what is, for each chunk that travels; delays are milliseconds.

    `linger`: the sender loses the connection, the other end does not know yet; `stall`: nothing
    arrives for a while; `late` is the longest such time. `replay` is for each new connection.
    Within a connection nothing comes twice, because TCP drops what it has already delivered.
    """

    cut: float = 0.0
    corrupt: float = 0.0
    refuse: float = 0.0
    linger: float = 0.0
    stall: float = 0.0
    replay: float = 0.0
    late: int = 0
    delay: int = 5


class Fate(enum.Enum):
    """What becomes of a connection when something is written to it."""

    TRAVELS = enum.auto()
    STALLS = enum.auto()
    LINGERS = enum.auto()


class _End:
    """One end of a simulated connection."""

    def __init__(self, network: "Simulation", node: "Node", connection: PeerConnection) -> None:
        self.network = network
        self.node = node
        self.connection = connection
        self.peer: _End | None = None
        self.closed = False
        self.arrival = 0
        self.sent: list[bytes] = []

    def write(self, data: bytes) -> None:
        peer = self.peer
        if self.closed or peer is None or not self.node.alive:
            return
        if len(self.sent) < REPLAYED_CHUNKS:
            self.sent += _packets(data)
        fate = self.network.fate()
        if fate is not Fate.TRAVELS:
            peer.arrival = max(peer.arrival, self.network.clock.monotonic()) + self.network.late()
        if fate is Fate.LINGERS:
            self.network.deliver(peer, data)
            self.network.arrive(peer, peer.disconnected)
            self.network.later(0, self.disconnected)
            return
        for chunk in self.network.chunks(data):
            if chunk is None:
                self.cut()
                return
            self.network.deliver(peer, chunk)

    def close(self) -> None:
        """The other end is told when everything before has arrived."""
        if not self.closed:
            self.closed = True
            if self.peer is not None:
                self.network.arrive(self.peer, self.peer.disconnected)

    def cut(self) -> None:
        for end in (self, self.peer):
            if end is not None:
                self.network.later(0, end.disconnected)

    def receive(self, data: bytes) -> None:
        if not self.closed and self.node.alive:
            self.connection.session.receive_data(data)

    def disconnected(self) -> None:
        if not self.closed:
            self.closed = True
            if self.node.alive:
                self.connection.session.disconnected()

    def pause(self, paused: bool) -> None:
        """The simulated reader is never too slow."""


class Simulation:
    """The network, its clock and its queue managers."""

    def __init__(self, directory: Path, seed: int = 0, faults: Faults | None = None) -> None:
        self.directory = directory
        self.clock = SimulatedClock()
        self.random = random.Random(seed)
        self.faults = faults or Faults()
        self.nodes: dict[str, Node] = {}
        self.ends: list[_End] = []
        self.earlier: deque[_End] = deque(maxlen=REPLAYED_CONNECTIONS)
        self.unreachable: set[str] = set()
        """Addresses to which nobody can connect for the time being."""
        self.record: list[bytes] | None = None
        """What has travelled, when somebody wants to know."""

    def node(
        self, name: str, peers: Peers | None = None, directory: DirectoryContents | None = None
    ) -> "Node":
        node = Node(self, name, peers or {}, directory)
        self.nodes[name] = node
        return node

    def later(self, milliseconds: int, callback: Callable[[], None]) -> None:
        self.clock.timers.call_later(milliseconds, callback)

    def delay(self) -> int:
        return self.random.randint(0, self.faults.delay)

    def chunks(self, data: bytes) -> list[bytes | None]:
        """What becomes of bytes on their way; None is a cut."""
        faults, roll = self.faults, self.random.random
        if roll() < faults.cut:
            return [data[: self.random.randrange(len(data) + 1)], None]
        if roll() < faults.corrupt:
            damaged = bytearray(data)
            damaged[self.random.choice((0, 4, 5, 6, 7))] ^= 1 << self.random.randrange(8)
            return [bytes(damaged)]
        return [data]

    def fate(self) -> Fate:
        """Whether the connection that bytes are written to stays as it is."""
        roll = self.random.random()
        if roll < self.faults.linger:
            return Fate.LINGERS
        return Fate.STALLS if roll < self.faults.linger + self.faults.stall else Fate.TRAVELS

    def late(self) -> int:
        return self.random.randint(1, max(self.faults.late, 1))

    def deliver(self, target: _End, data: bytes) -> None:
        """In order, each chunk a little later than it was sent."""
        if self.record is not None:
            self.record += _packets(data)
        self.arrive(target, partial(target.receive, data))

    def arrive(self, target: _End, callback: Callable[[], None]) -> None:
        """Something happens to an end behind all that is on its way there."""
        target.arrival = max(target.arrival, self.clock.monotonic() + self.delay())
        self.later(target.arrival - self.clock.monotonic(), callback)

    def connect(self, source: "Node", hop: NextHop, connection: PeerConnection) -> Completion[None]:
        outcome: Completion[None] = Completion()
        self.later(self.delay(), partial(self._connected, source, hop, connection, outcome))
        return outcome

    def _connected(
        self, source: "Node", hop: NextHop, connection: PeerConnection, outcome: Completion[None]
    ) -> None:
        target = next((n for n in self.nodes.values() if hop.address in n.addresses), None)
        if not source.alive or connection.closed_already:
            return
        if target is None or not self.lets_in(source, target, hop.address):
            outcome.fail(OSError("connection refused"))
            return
        near = _End(self, source, connection)
        far = self._accepted(source.address_like(hop.address), target)
        near.peer, far.peer = far, near
        self.ends = [end for end in self.ends if not end.closed] + [near, far]
        if self.random.random() < self.faults.replay:
            self.replay()
        self.earlier.append(near)
        near.connection.attach(near, hop.address)
        outcome.succeed(None)

    def lets_in(self, source: "Node", target: "Node", address: str) -> bool:
        """Whether a connection comes about."""
        if not target.alive or address in self.unreachable:
            return False
        return self.random.random() >= self.faults.refuse

    def _accepted(self, source: str, target: "Node") -> _End:
        far = _End(self, target, target.protocol.accept())
        far.connection.attach(far, source)
        return far

    def replay(self) -> None:
        """What has gone over an earlier connection comes once more, to whoever lives there.

        All but its acknowledgements, which would count for what is sent to nobody now.
        """
        original = self.random.choice(self.earlier) if self.earlier else None
        if original is None or original.peer is None or not original.peer.node.alive:
            return
        again = self._accepted(original.peer.connection.address, original.peer.node)
        self.ends.append(again)
        for data in original.sent:
            if identify_packet(data) is not PacketKind.SESSION_ACK:
                self.deliver(again, without_session_header(data))
        again.arrival += self.late()
        self.arrive(again, again.disconnected)

    def settle(self) -> None:
        """End the turn of every queue manager, until all are at rest."""
        while any(node.turn for node in self.nodes.values()):
            for node in self.nodes.values():
                node.settle()

    def advance(self, milliseconds: int) -> None:
        """Let time pass, ending turns at every timer on the way."""
        self.settle()
        end = self.clock.monotonic() + milliseconds
        while (due := self.clock.timers.next_due()) is not None and due <= end:
            self.clock.advance(max(due - self.clock.monotonic(), 0))
            self.settle()
        self.clock.advance(end - self.clock.monotonic())

    def until(self, condition: Callable[[], bool], hours: int = 24) -> None:
        """Let time pass until something is so; AssertionError when it never is."""
        end = self.clock.monotonic() + hours * 3_600_000
        self.settle()
        while not condition():
            due = self.clock.timers.next_due()
            assert due is not None, "nothing happens any more"
            assert due <= end, "it takes too long"
            self.clock.advance(max(due - self.clock.monotonic(), 0))
            self.settle()

    def stop(self) -> None:
        for node in self.nodes.values():
            node.stop()


def _packets(data: bytes) -> Iterator[bytes]:
    """What is written at once, cut into packets; something damaged is left as it is."""
    cut = PacketBuffer()
    cut.add(data)
    try:
        while (packet := cut.next(len(data))) is not None:
            yield packet
    except DecodeError:
        yield data


class Node:
    """A queue manager of a simulation, with an address of its own."""

    def __init__(
        self,
        simulation: Simulation,
        name: str,
        peers: Peers,
        directory: DirectoryContents | None,
    ) -> None:
        self.simulation = simulation
        self.name = name
        number = len(simulation.nodes) + 1
        self.address = f"192.0.2.{number}"
        self.addresses = (self.address, f"2001:db8::{number}")
        self.peers = peers
        self.turn: deque[Callable[[], None]] = deque()
        self.alive = False
        self.fuse: int | None = None
        """After how many callbacks it dies, None when it does not."""
        self.started_hooks: list[Callable[[], None]] = []
        self.lives = 0
        """Changes whenever it starts or is killed."""
        self._settings = QueueManagerSettings(
            computer_name=name,
            addresses=self.addresses,
            directory=None if directory is None else lambda: directory,
        )
        self.keys = OwnKeys()
        self._directory = simulation.directory / f"{name}-0"
        self._directory.mkdir(parents=True, exist_ok=True)
        self.start()

    # Life and death

    def start(self) -> None:
        clock = self.simulation.clock
        self.turn.clear()
        self.lives += 1
        self.store = Store.open(
            self._directory,
            end_of_turn=self.turn.append,
            clock=clock,
            settings=StoreSettings(reserve=1),
            free=lambda: 1 << 40,
            begin_anew=begin_new_sequences,
        )
        self.engine = QueueManagerEngine(
            self.store, clock, LivingTimers(self, self.lives), self._settings
        )
        self.installed: Speed = speed_of(self.engine)
        if self.installed is not None:
            self.installed.switch(templates.are_on())
        self.engine.loaded_hooks.append(self._make_exchange)
        self.engine.queue_manager_started()
        self.alive = True
        life = self.lives
        self.settle()
        if self.runs(life):
            self._listen()

    def switch(self, together: bool) -> None:
        """Handle what is like others before together with others, or alone."""
        assert not together or self.installed is not None
        if self.installed is not None:
            self.installed.switch(together)

    @property
    def speed(self) -> "Installation":
        """What makes repeated requests cheap, for tests of that."""
        assert self.installed is not None
        return self.installed

    def _make_exchange(self) -> None:
        self.protocol = BinaryProtocol(self.engine, self, peers=self.peers, keys=self.keys)
        if self.installed is not None:
            self.installed.install_sessions(self.protocol)

    def _listen(self) -> None:
        self.protocol.start()
        for started in self.started_hooks:
            started()
        self.settle()

    def kill(self) -> None:
        """Die: only what is on the disk is left, and connections break."""
        self.alive = False
        self.fuse = None
        survivor = self.simulation.directory / f"{self.name}-{self.lives}"
        copy_of_running(self._directory, survivor)
        self.lives += 1
        self.turn.clear()
        self.store.close()
        self.turn.clear()
        shutil.rmtree(self._directory)
        self._directory = survivor
        for end in self.simulation.ends:
            if end.node is self:
                end.closed = True
                if end.peer is not None:
                    self.simulation.later(self.simulation.late(), end.peer.disconnected)

    def stop(self) -> None:
        if self.alive:
            self.engine.queue_manager_stopped()
            self.store.close()
            self.alive = False

    def restart(self) -> None:
        """Stop and start again, with the keys that it has now."""
        self.stop()
        self.start()

    def back_up(self) -> Path:
        """Make a backup, while everything goes on."""
        made = datetime.fromtimestamp(self.simulation.clock.now() / 1000, UTC).isoformat()
        backup = self.simulation.directory / f"{self.name}-backup-{self.lives}"
        done = self.store.backup(backup, [], {"queue_manager": self.name, "made": made})
        self.settle()
        done.result()
        return backup

    def restore(self, backup: Path) -> None:
        """Die, and go on from a backup."""
        self.kill()
        shutil.rmtree(self._directory)
        restore_backup(backup, self._directory)
        self.start()

    def runs(self, life: int) -> bool:
        return self.lives == life

    def settle(self) -> None:
        while self.turn:
            if self.fuse == 0:
                self.kill()
                return
            if self.fuse is not None:
                self.fuse -= 1
            self.turn.popleft()()

    # The network

    def address_like(self, address: str) -> str:
        """Where it connects from, to such an address."""
        return self.addresses[":" in address]

    def resolve(self, host: str, senders: Senders = OPERATOR) -> Completion[tuple[str, ...]]:
        node = self.simulation.nodes.get(host.lower())
        return completed((host,) if node is None else node.resolved())

    def resolved(self) -> tuple[str, ...]:
        """What its name stands for."""
        return (self.address,)

    def connect(self, hop: NextHop, connection: PeerConnection) -> Completion[None]:
        return self.simulation.connect(self, hop, connection)

    # What tests do

    def create(self, name: str = "orders", transactional: bool = False) -> Queue:
        queue = self.engine.queues.new_queue(f".\\private$\\{name}")
        queue.transactional = transactional
        created = self.engine.queues.create_queue(queue)
        self.settle()
        return created.result()

    def send(
        self, to: str, body: bytes, transactional: bool = False, **more: Any
    ) -> MessageIdentifier:
        """Send a recoverable message, unless `more` says otherwise; it is on the disk then.

        MQError when there is no room for it; a transaction is aborted then.
        """
        try:
            return self.send_later(to, body, transactional, **more)
        finally:
            self.settle()

    def send_later(
        self, to: str, body: bytes, transactional: bool = False, **more: Any
    ) -> MessageIdentifier:
        """The same, but the turn goes on, so that others can be written with it."""
        engine = self.engine
        names = parse_format_names(to)
        descriptor = engine.opening.open_queue(
            names, QueueAccessType.SEND_ACCESS, QueueShareMode.DENY_NONE
        )
        identity = more.pop("identity", None)
        assert identity is None or isinstance(identity, Identity)
        attributes = _attributes(body, more)
        unit = engine.transactions.create_transaction(self.new_uow()) if transactional else None
        message = engine.composer.compose(descriptor, attributes, identity, unit)
        try:
            engine.messages.enqueue_message_to_an_open_queue(descriptor, message, unit)
        except MQError:
            if unit is not None:
                engine.transactions.transaction_abort(unit.identifier)
            raise
        else:
            if unit is not None:
                engine.transactions.transaction_commit(unit.identifier)
        finally:
            engine.opening.close_queue(descriptor)
        return message.attributes.identifier

    def bodies(self, name: str = "orders") -> list[bytes]:
        """The bodies of what can be read in a queue of this queue manager, in order."""
        return self._bodies_of(self.find(name))

    def find(self, name: str = "orders") -> Queue:
        path = name if "$" in name else f"private$\\{name}"
        queue = self.engine.registry.find_by_path(f".\\{path}")
        assert queue is not None
        return queue

    def _bodies_of(self, queue: Queue) -> list[bytes]:
        message_at = self.engine.positions.message_at
        keys = queue.message_position_list.page(None, 1_000_000)
        return [message_at(queue, key).attributes.body for key in keys]

    def receive(self, name: str = "orders", transactional: bool = False) -> bytes:
        """Receive the first message of a queue."""
        descriptor = self.engine.opening.open_queue(
            self.engine.queues.format_name_of(self.find(name)),
            QueueAccessType.RECEIVE_ACCESS,
            QueueShareMode.DENY_NONE,
        )
        transactions = self.engine.transactions
        within = transactions.create_transaction(self.new_uow()) if transactional else None
        received = self.engine.messages.dequeue_message(descriptor, 0, transaction=within)
        self.settle()
        if within is not None:
            transactions.transaction_commit(within.identifier)
            self.settle()
        self.engine.opening.close_queue(descriptor)
        return received.result().attributes.body

    def outgoing(self, to: str) -> OutgoingQueue:
        queue = self.engine.outgoing.find(FormatName.parse(to))
        assert queue is not None
        return queue

    @property
    def unsent(self) -> int:
        """Messages in all outgoing queues, whatever their state."""
        return sum(queue.message_count for queue in self.engine.outgoing.list())

    def new_uow(self) -> UUID:
        """A number for a transaction."""
        return UUID(int=self.simulation.random.getrandbits(128))


def _attributes(body: bytes, more: dict[str, Any]) -> MessageAttributes:
    """A recoverable message, unless `more` says otherwise."""
    attributes = MessageAttributes(body=body, delivery_guarantee=1)
    if isinstance(admin := more.get("administration_queue_format_name"), str):
        more["administration_queue_format_name"] = FormatName.parse(admin)
    for attribute, value in more.items():
        setattr(attributes, attribute, value)
    return attributes


class LivingTimers(Timers):
    """Timers of one life of a queue manager: they do not outlive it."""

    def __init__(self, node: Node, life: int) -> None:
        super().__init__(node.simulation.clock)
        self._node = node
        self._life = life

    def call_later(self, delay: int, callback: Callable[[], None]) -> Timer:
        def run() -> None:
            if self._node.alive and self._node.runs(self._life):
                callback()

        return self._node.simulation.clock.timers.call_later(delay, run)
