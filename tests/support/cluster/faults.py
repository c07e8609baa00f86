"""What goes wrong: each fault begins where its block begins, and is over where that ends.

All are chosen by a seed. What they hit is named by its role, as it is at that moment.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from random import Random

from tests.support.cluster.cluster import Cluster
from tests.support.cluster.log_servers import LogServer
from tests.support.cluster.machines import Machine, Program
from tests.support.cluster.nodes import LEASE, QueueManager

HOUR = 3600
SHORT, LONG = 0.6, 2.5
"""Leases that a pause lasts which nobody is to notice, and one after which another one serves."""


@dataclass(frozen=True, slots=True)
class Roles:
    """Who is what when a fault begins."""

    cluster: Cluster
    primary: QueueManager
    standby: QueueManager
    leader: LogServer
    followers: tuple[LogServer, ...]

    @property
    def servers(self) -> tuple[LogServer, ...]:
        return (self.leader, *self.followers)

    @property
    def rest(self) -> list[Machine]:
        """All machines but that of the primary."""
        return [each for each in self.cluster.lan.machines if each is not self.primary.machine]

    def cut(self, *programs: Program) -> AbstractAsyncContextManager[None]:
        """Nothing gets to these or from them, but between them."""
        some = [each.machine for each in programs]
        others = [each for each in self.cluster.lan.machines if each not in some]
        return parted(self.cluster, some, others)


def roles_of(cluster: Cluster) -> Roles:
    primary = cluster.primary() or cluster.nodes[0]
    standby = next(node for node in cluster.nodes if node is not primary)
    leader = cluster.leader()
    followers = tuple(server for server in cluster.servers if server is not leader)
    return Roles(cluster, primary, standby, leader, followers)


@asynccontextmanager
async def killed(*programs: Program) -> AsyncIterator[None]:
    for each in programs:
        each.kill()
    yield
    for each in programs:
        each.start()


@asynccontextmanager
async def died(program: Program) -> AsyncIterator[None]:
    """The machine is gone, and comes back later."""
    program.machine.unplug()
    program.kill()
    yield
    program.machine.plug()
    program.start()


@asynccontextmanager
async def paused(*programs: Program) -> AsyncIterator[None]:
    for each in programs:
        each.pause()
    yield
    for each in programs:
        each.go_on()


@asynccontextmanager
async def slowed(program: Program) -> AsyncIterator[None]:
    """It stands still nine tenths of the time, so that each of its syncs is slow."""

    async def pulse() -> None:
        while True:
            program.pause()
            await asyncio.sleep(0.09)
            program.go_on()
            await asyncio.sleep(0.01)

    task = asyncio.create_task(pulse())
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    program.go_on()


@asynccontextmanager
async def parted(
    cluster: Cluster, some: Sequence[Machine], others: Sequence[Machine]
) -> AsyncIterator[None]:
    cluster.lan.part(some, others)
    yield
    cluster.lan.mend()


@asynccontextmanager
async def unheard(
    cluster: Cluster, some: Sequence[Machine], others: Sequence[Machine]
) -> AsyncIterator[None]:
    """What these send to those is lost; the other way it goes on."""
    for one in some:
        for other in others:
            cluster.lan.cut(one, other)
    yield
    cluster.lan.mend()


@asynccontextmanager
async def full(program: Program) -> AsyncIterator[None]:
    """Its disk is full. A server of the log is started again afterwards, which it needs."""
    program.machine.fill()
    yield
    program.machine.empty()
    if isinstance(program, LogServer):
        program.kill()
        program.start()


@asynccontextmanager
async def jumped(node: QueueManager, seconds: int) -> AsyncIterator[None]:
    node.jump(seconds)
    yield
    node.jump(0)


@asynccontextmanager
async def _aged(roles: Roles) -> AsyncIterator[None]:
    async with jumped(roles.standby, -HOUR), killed(roles.primary):
        yield


@dataclass(frozen=True, slots=True)
class Kind:
    """A fault by its name, how it is made, and how many leases it lasts."""

    name: str
    make: Callable[[Roles], AbstractAsyncContextManager[None]]
    leases: float = LONG


def _machines(programs: Sequence[Program]) -> list[Machine]:
    return [each.machine for each in programs]


KINDS = (
    Kind("kill primary", lambda r: killed(r.primary)),
    Kind("kill primary, and start it at once", lambda r: killed(r.primary), 0.1),
    Kind("lose primary's machine", lambda r: died(r.primary), 4),
    Kind("kill standby", lambda r: killed(r.standby)),
    Kind("kill leader", lambda r: killed(r.leader)),
    Kind("kill follower", lambda r: killed(r.followers[0])),
    Kind("kill leader and primary", lambda r: killed(r.leader, r.primary), 4),
    Kind("kill both nodes", lambda r: killed(r.primary, r.standby), 1),
    Kind("kill all servers", lambda r: killed(*r.servers), 1),
    Kind("pause primary briefly", lambda r: paused(r.primary), SHORT),
    Kind("pause primary", lambda r: paused(r.primary)),
    Kind("pause primary and leader", lambda r: paused(r.primary, r.leader), 4),
    Kind("pause standby", lambda r: paused(r.standby)),
    Kind("pause leader briefly", lambda r: paused(r.leader), SHORT),
    Kind("pause leader", lambda r: paused(r.leader)),
    Kind("pause follower", lambda r: paused(r.followers[1])),
    Kind("pause all servers", lambda r: paused(*r.servers), 1),
    Kind("cut primary off", lambda r: r.cut(r.primary), 4),
    Kind("cut standby off", lambda r: r.cut(r.standby)),
    Kind("cut leader off", lambda r: r.cut(r.leader)),
    Kind("cut primary and leader off together", lambda r: r.cut(r.primary, r.leader), 5),
    Kind("cut primary and a follower off together", lambda r: r.cut(r.primary, r.followers[0]), 4),
    Kind(
        "cut primary off the log",
        lambda r: parted(r.cluster, [r.primary.machine], _machines(r.servers)),
        4,
    ),
    Kind(
        "cut primary off the leader",
        lambda r: parted(r.cluster, [r.primary.machine], [r.leader.machine]),
    ),
    Kind(
        "cut all servers apart",
        lambda r: parted(r.cluster, _machines(r.servers), _machines(r.servers)),
    ),
    Kind(
        "cut clients off primary",
        lambda r: parted(r.cluster, [r.primary.machine], [r.cluster.lan.here]),
    ),
    Kind(
        "primary is not heard by the log",
        lambda r: unheard(r.cluster, [r.primary.machine], _machines(r.servers)),
        4,
    ),
    Kind(
        "primary does not hear the log",
        lambda r: unheard(r.cluster, _machines(r.servers), [r.primary.machine]),
        4,
    ),
    Kind(
        "leader is not heard by followers",
        lambda r: unheard(r.cluster, [r.leader.machine], _machines(r.followers)),
    ),
    Kind(
        "leader does not hear followers",
        lambda r: unheard(r.cluster, _machines(r.followers), [r.leader.machine]),
    ),
    Kind(
        "primary is heard by nobody", lambda r: unheard(r.cluster, [r.primary.machine], r.rest), 4
    ),
    Kind("primary's disk is full", lambda r: full(r.primary)),
    Kind("standby's disk is full", lambda r: full(r.standby)),
    Kind("leader's disk is full", lambda r: full(r.leader)),
    Kind("slow leader", lambda r: slowed(r.leader)),
    Kind("slow follower", lambda r: slowed(r.followers[0])),
    Kind("slow primary", lambda r: slowed(r.primary)),
    Kind("primary's clock goes forward", lambda r: jumped(r.primary, HOUR), 1),
    Kind("primary's clock goes back", lambda r: jumped(r.primary, -HOUR), 1),
    Kind("standby's clock goes back, and primary dies", _aged, 4),
)
PAIRED = 0.25
"""How often a second fault begins within the first one."""


def chosen(seed: int, faults: int) -> list[tuple[Kind, ...]]:
    """The first faults of a seed, of which a pair is one."""
    return [*islice(_endless(Random(seed)), faults)]


def _endless(random: Random) -> Iterator[tuple[Kind, ...]]:
    """All kinds come before any comes again."""
    while True:
        for kind in random.sample(KINDS, len(KINDS)):
            paired = random.random() < PAIRED
            yield (kind, random.choice(KINDS)) if paired else (kind,)


def name_of(kinds: Sequence[Kind]) -> str:
    return ", and ".join(kind.name for kind in kinds)


async def happen(cluster: Cluster, kinds: Sequence[Kind], random: Random) -> None:
    """Let faults begin one after the other, last, and be over."""
    roles = roles_of(cluster)
    async with AsyncExitStack() as stack:
        for kind in kinds:
            await stack.enter_async_context(kind.make(roles))
            lasts = kind.leases * LEASE / 1000
            await asyncio.sleep(lasts * random.uniform(0.8, 1.2))
