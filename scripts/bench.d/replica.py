"""Durable sends through a replicated log against RabbitMQ's quorum queues, with three nodes each.

The log is NATS JetStream, three servers that sync each record. It, a primary, its standby, all of
RabbitMQ and the load share the processors and the disk of one machine; the sides take turns. A send
counts when it is confirmed, of either by a majority of three.

Seconds without an answer are those of a program that sends one message after the other, to
whichever node answers, between two answers while a process is killed.
"""

import asyncio
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from broker import Broker, broker, mapper
from durable_calls import CONFIGURATION, QUEUE, sending
from figures import Figure, UnavailableError, attempt, figure
from harness import BUILD, TRIAL, Load, all_cpus, few, load, pairs, processor_seconds
from replicated import Node, leader_of, primary_of, settings
from served import EVERYONE, Served, serving
from subjects import replicas as rows

from rpcqm.base.errors import MQError, RpcFault
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.target import LocalServer, ServerUnreachableError
from rpcqm.codec.names.format_name import FormatName
from tests.support.cluster.clients import OPENING, connected
from tests.support.replica.nats_servers import SERVER, NatsServer, nats_servers

SIZE = 1024
SECONDS, WARM_UP, ROUNDS = 1.5, 0.4, 3
PEAK = 16, 256
TIMES = 20
WARMING = 20_000
PATIENCE = 120.0
SETTLED = 20
"""Answers before the next process is killed."""
HERE = FormatName.parse(rf"DIRECT=OS:.\private$\{QUEUE}")
WRONG = (OSError, TimeoutError, ServerUnreachableError, MQError, RpcFault)


@contextmanager
def rabbits(directory: Path) -> Iterator[Broker]:
    """Three brokers that are one cluster; the first of them."""
    with ExitStack() as stack:
        mapped = stack.enter_context(mapper(directory))
        names = ("one", "two", "three")
        first, *others = [
            stack.enter_context(broker(directory, mapped, name, all_cpus)) for name in names
        ]
        for each in others:
            each.control("stop_app")
            each.control("join_cluster", f"{names[0]}@localhost")
            each.control("start_app")
        yield first


# Rates


def ours(served: Served, connections: int, window: int) -> float:
    script = replace(sending(SIZE).ours, window=window)
    return load(served.port, connections, script, SECONDS, WARM_UP).calls_per_second


def theirs(other: Broker, connections: int, window: int) -> float:
    seen: Load = other.load("send", QUEUE, connections, window, SIZE, SECONDS, WARM_UP)
    return seen.calls_per_second


def against(
    served: Served, other: Broker, name: str, mine: tuple[int, int], its: tuple[int, int]
) -> Figure:
    """Both as connections, and messages of each that are outstanding."""
    measured = pairs(partial(ours, served, *mine), partial(theirs, other, *its), ROUNDS)
    return measured.figure(name, served.pid)


def beside_standby(served: Served, standby: Node) -> Figure:
    """What following costs, while the primary has as much to do as it can."""
    pids = (standby.pid, served.pid)
    before = [processor_seconds(pid) for pid in pids]
    ours(served, 4, 64)
    followed, led = (processor_seconds(pid) - was for pid, was in zip(pids, before, strict=True))
    return figure(rows.FOLLOWER, followed / led, f"{followed:.2f} s against {led:.2f} s")


def over_alone(replicated: Served, alone: Served) -> Figure:
    """Ours with a log over ours without one."""
    measured = pairs(partial(ours, replicated, 4, 64), partial(ours, alone, 4, 64), ROUNDS)
    return measured.figure(rows.OVER_ALONE)


def rates(directory: Path, log: Sequence[NatsServer]) -> Iterator[Figure]:
    """All rows of what is sent in a second."""
    with ExitStack() as stack:
        configuration = settings("first", log, "rates")
        served = stack.enter_context(serving(directory / "first", configuration, cpu=all_cpus))
        served.command("queue", "create", QUEUE, "--sddl", EVERYONE)
        standby = stack.enter_context(Node(directory / "second", settings("second", log, "rates")))
        load(served.port, 16, sending(SIZE).ours, 0, 0, few(WARMING))
        yield from attempt(rows.FOLLOWER, partial(beside_standby, served, standby))
        other = stack.enter_context(rabbits(directory))
        for name, mine, its in (
            (rows.ONE, (1, 1), (1, 1)),
            (rows.SIXTEEN, (16, 1), (16, 1)),
            (rows.MANY, (64, 1), (64, 1)),
            (rows.SATURATED, (4, 64), PEAK),
        ):
            yield from attempt(name, partial(against, served, other, name, mine, its))
        alone = stack.enter_context(serving(directory / "alone", CONFIGURATION, cpu=all_cpus))
        alone.command("queue", "create", QUEUE, "--sddl", EVERYONE)
        yield from attempt(rows.OVER_ALONE, partial(over_alone, served, alone))


# Seconds without an answer


class Sender:
    """A program that sends one message after the other to whichever node answers."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = list(nodes)
        self.answers: list[float] = []
        self._task = asyncio.create_task(self._run())

    @property
    def active(self) -> Node:
        """The node that answers."""
        return self.nodes[0]

    async def _run(self) -> None:
        while True:
            with suppress(*WRONG):
                await self._send_on()
            self.nodes.append(self.nodes.pop(0))
            await asyncio.sleep(0.02)

    async def _send_on(self) -> None:
        """Send to the first node, until it does not answer."""
        loop = asyncio.get_running_loop()
        async with connected(LocalServer(self.nodes[0].socket)) as line:
            sender = await line.within(line.client.open_sender(HERE).__aenter__(), OPENING)
            while True:
                await line.within(sender.send(OutgoingMessage(bytes(SIZE))))
                self.answers.append(loop.time())

    async def settled(self) -> None:
        """Wait for so many answers of one node more."""
        wanted = len(self.answers) + SETTLED
        async with asyncio.timeout(PATIENCE):
            while len(self.answers) < wanted:
                await asyncio.sleep(0.05)

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


Hurt = Callable[[Node, Sequence[NatsServer]], list[Node | NatsServer]]
"""Does something, and gives what is to be started again."""


def kill_primary(node: Node, _: Sequence[NatsServer]) -> list[Node | NatsServer]:
    node.kill()
    return [node]


def kill_leader(_: Node, log: Sequence[NatsServer]) -> list[Node | NatsServer]:
    leader = leader_of(log, "silences")
    leader.kill()
    return [leader]


def kill_both(node: Node, log: Sequence[NatsServer]) -> list[Node | NatsServer]:
    return [*kill_leader(node, log), *kill_primary(node, log)]


def switch_over(node: Node, _: Sequence[NatsServer]) -> list[Node | NatsServer]:
    node.command("cluster", "switch-over")
    return []


async def silences(nodes: Sequence[Node], log: Sequence[NatsServer], hurt: Hurt) -> list[float]:
    """The longest time between two answers, each time that something is done."""
    sender, found = Sender(nodes), []
    for _ in range(1 if TRIAL else TIMES):
        await sender.settled()
        first = len(sender.answers) - 1
        again = await asyncio.to_thread(hurt, sender.active, log)
        await sender.settled()
        times = sender.answers[first:]
        found.append(max(later - earlier for earlier, later in pairwise(times)))
        for each in again:
            await asyncio.to_thread(each.start)
        await until_followed(nodes)
    await sender.end()
    return found


async def until_followed(nodes: Sequence[Node]) -> None:
    """Wait until both nodes have what the log has, so that either can take over."""
    async with asyncio.timeout(PATIENCE):
        while not await asyncio.to_thread(lambda: all(node.follows for node in nodes)):
            await asyncio.sleep(0.1)


def measured_silences(
    nodes: Sequence[Node], log: Sequence[NatsServer], name: str, hurt: Hurt
) -> Figure:
    found = asyncio.run(silences(nodes, log, hurt))
    note = f"{len(found)} times, {min(found):.1f} to {max(found):.1f} s"
    return figure(name, statistics.median(found), note)


def interruptions(directory: Path, log: Sequence[NatsServer]) -> Iterator[Figure]:
    """All rows of how long nothing is answered."""
    with ExitStack() as stack:
        nodes = [
            stack.enter_context(Node(directory / name, settings(name, log, "silences")))
            for name in ("alice", "bob")
        ]
        first = primary_of(nodes)
        first.command("queue", "create", QUEUE, "--sddl", EVERYONE)
        for name, hurt in (
            (rows.PRIMARY, kill_primary),
            (rows.LEADER, kill_leader),
            (rows.BOTH_OF_THEM, kill_both),
            (rows.SWITCH_OVER, switch_over),
        ):
            yield from attempt(name, partial(measured_silences, nodes, log, name, hurt))


def run() -> Iterator[Figure]:
    if SERVER is None:
        raise UnavailableError("nats-server is not installed: scripts/setup test installs it")
    with TemporaryDirectory(dir=BUILD) as name, nats_servers(Path(name) / "log", 3) as log:
        for table, measure in ((rows.RATES, rates), (rows.SILENCES, interruptions)):
            place = Path(name) / measure.__name__
            place.mkdir()
            names = [row.name for row in table]
            yield from attempt(names, partial(measure, place, log))
