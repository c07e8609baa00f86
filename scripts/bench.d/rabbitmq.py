"""Durable sends and receives against RabbitMQ: a quorum queue, persistent messages, confirms.

The broker is Debian's, with data of its own on the disk of our store. Messages have 1 KiB. Each
server has one processor, the same one, and they are measured in turns; the load generators, both
C programs of one thread, have the other. RabbitMQ gets as many schedulers as processors. A second
table lets each server use all processors, while the load has one of them too.

With encryption, ours are calls sealed by NTLM at PKT_PRIVACY, sealed before they are sent; theirs
speak TLS, whose sender in C has AES in the processor. Varied messages differ in body (100 octets to
10 KiB), correlation and priority, and ours in their labels.

A send counts when it is confirmed, a receive when the consumer, with a prefetch of one, gets the
next message after its acknowledgement; ours is R_StartReceive and R_EndReceive.
"""

import statistics
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from authenticated import NONE, PRIVACY
from broker import Broker, broker, mapper
from durable import (
    CONFIGURATION,
    QUEUE,
    different,
    equal,
    receiving,
    sending,
    sent_before,
    to_send,
)
from harness import (
    BUILD,
    TRIAL,
    Cpus,
    Figure,
    Load,
    Script,
    Stolen,
    all_cpus,
    client_cpu,
    few,
    load,
    load_streams,
    server_cpu,
)
from served import EVERYONE, Served, serving
from streams import VARIED_SIZES, Prepare

from rpcqm.rpc.constants import AuthenticationLevel

SIZE = 1024
SECONDS, WARM_UP, ROUNDS, RECEIVE_ROUNDS = 1.5, 0.4, 3, 5
BACKLOG = 16
"""Connections that put messages there which are then received."""
MANY = 1_000_000
MOST_LOADS, LOAD_SECONDS = 60, 5.0
"""A million messages in at most five minutes: 3,300 a second is far below what the slowest does."""
PEAK = 16, 256
"""Publishers, and the messages of each that are not confirmed, at which RabbitMQ is fastest."""
CALLS, SATURATED_CALLS = 2500, 3000
"""Calls that are prepared on each connection: for seconds at one outstanding, and for a second
and a half at 30,000 a second; the run ends when they are used up."""
VARIED = f"{VARIED_SIZES[0]}-{VARIED_SIZES[1]}"
SEALED_WINDOW = 16
"""Calls outstanding on each of 16 connections: 256, as many as at level NONE."""
RECEIVE_SECONDS = 1.0
"""So long that no backlog of messages that differ is used up."""
OVER = "durable sends of 1 KiB over RabbitMQ's quorum queue"


@dataclass(frozen=True, slots=True)
class Sides:
    """What some rounds have seen of both, which process ours is, and how ours is measured again."""

    ours: tuple[Load, ...]
    theirs: tuple[Load, ...]
    stolen: float
    server: int
    again: Callable[[], Load]

    def figure(self, name: str, target: float | None, calls: int = 1) -> Figure:
        """Our rate over theirs; a message of ours takes so many calls."""
        mine = [seen.calls_per_second / calls for seen in self.ours]
        other = [seen.calls_per_second for seen in self.theirs]
        ratios = [one / two for one, two in zip(mine, other, strict=True)]
        middle = partial(statistics.median)
        note = (
            f"{middle(mine):,.0f}/s against {middle(other):,.0f}/s; "
            f"rounds {min(ratios):.3g} to {max(ratios):.3g}; p50 "
            f"{middle(s.p50_us for s in self.ours) * calls:,.0f} µs against "
            f"{middle(s.p50_us for s in self.theirs):,.0f}"
        )
        return self._told(Figure(name, middle(ratios), target, note=note))

    def latency(self, name: str, target: float | None) -> Figure:
        """Our p99 over theirs."""
        mine, other = ([seen.p99_us for seen in side] for side in (self.ours, self.theirs))
        ratios = [one / two for one, two in zip(mine, other, strict=True)]
        note = (
            f"{statistics.median(mine) / 1000:,.1f} ms against "
            f"{statistics.median(other) / 1000:,.1f}; rounds {min(ratios):.3g} to {max(ratios):.3g}"
        )
        return self._told(Figure(name, statistics.median(ratios), target, at_most=True, note=note))

    def _told(self, made: Figure) -> Figure:
        return replace(made, stolen=self.stolen).explained(self.server, self.again)


class Bench:
    """Both servers, and the loads for them."""

    def __init__(self, served: Served, other: Broker, table: str, targets: bool) -> None:
        self._served = served
        self._broker = other
        self._table = table
        self._targets = targets

    def wanted(self, target: float) -> float | None:
        """The target where the table has them: they are of one processor."""
        return target if self._targets else None

    def named(self, name: str) -> str:
        return f"{name}{self._table}"

    def _in_turns(
        self, ours: Callable[[], Load], theirs: Callable[[], Load], rounds: int = ROUNDS
    ) -> Sides:
        watch = Stolen()
        seen = [(ours(), theirs()) for _ in range(1 if TRIAL else rounds)]
        mine, others = (tuple(each[side] for each in seen) for side in (0, 1))
        return Sides(mine, others, watch.share, self._served.pid, ours)

    def _ours(self, script: Script, connections: int, seconds: float = SECONDS) -> Load:
        return load(self._served.port, connections, script, seconds, WARM_UP)

    def _prepared(
        self, level: AuthenticationLevel, prepare: Prepare, window: int, seconds: float = SECONDS
    ) -> Load:
        """Sends that were made before, on 16 connections."""
        with sent_before(self._served.port, level, BACKLOG, prepare) as made:
            return load_streams(made, seconds, WARM_UP, window)

    def _theirs(
        self,
        what: str,
        connections: int,
        window: int = 1,
        size: int | str = SIZE,
        tls: bool = False,
    ) -> Load:
        return self._broker.load(what, QUEUE, connections, window, size, SECONDS, WARM_UP, tls)

    def send(self, ours: tuple[int, int], theirs: tuple[int, int]) -> Sides:
        """Both as connections, and messages of each that are outstanding."""
        script = replace(sending(SIZE).ours, window=ours[1])
        return self._in_turns(
            partial(self._ours, script, ours[0]), partial(self._theirs, "send", *theirs)
        )

    def sealed(self, window: int, unconfirmed: int) -> Sides:
        """16 publishers each, with encryption; every outstanding call has a handle of its own."""
        calls = few(SATURATED_CALLS if window > 1 else CALLS)
        prepare = to_send(equal(SIZE), calls, window)
        return self._in_turns(
            partial(self._prepared, PRIVACY, prepare, window),
            partial(self._theirs, "send", 16, unconfirmed, SIZE, tls=True),
        )

    def varied(self) -> Sides:
        """16 publishers each, of messages that differ."""
        return self._in_turns(
            partial(self._prepared, NONE, to_send(different, few(CALLS)), 1),
            partial(self._theirs, "send", 16, 1, VARIED),
        )

    def receive(self, consumers: int) -> Sides:
        """Each side has a backlog of what it has just stored, and of nothing else."""

        def ours() -> Load:
            self._served.command("purge", QUEUE)
            self._ours(replace(sending(SIZE).ours, window=BACKLOG), BACKLOG)
            return self._ours(receiving(SIZE).ours, consumers)

        def theirs() -> Load:
            self._theirs("send", *PEAK)
            return self._theirs("receive", consumers)

        return self._in_turns(ours, theirs, RECEIVE_ROUNDS)

    def receive_varied(self, consumers: int) -> Sides:
        """The same of messages that differ, of which only these are there."""

        def ours() -> Load:
            self._served.command("purge", QUEUE)
            self._prepared(NONE, to_send(different, few(CALLS), BACKLOG), BACKLOG)
            return self._ours(receiving(VARIED_SIZES[1]).ours, consumers, RECEIVE_SECONDS)

        def theirs() -> Load:
            self._theirs("send", *PEAK, VARIED)
            return self._theirs("receive", consumers)

        return self._in_turns(ours, theirs)

    def receive_of_many(self, consumers: int) -> Sides:
        """From a backlog of a million, which is put there once for all rounds."""
        self._served.command("purge", QUEUE)
        self._fill(few(MANY))
        self._broker.put(QUEUE, few(MANY), SIZE)
        return self._in_turns(
            partial(self._ours, receiving(SIZE).ours, consumers),
            partial(self._theirs, "receive", consumers),
            RECEIVE_ROUNDS,
        )

    def _fill(self, messages: int) -> None:
        script = replace(sending(SIZE).ours, window=64)
        for _ in range(MOST_LOADS):
            if self._served.waiting(QUEUE) >= messages:
                return
            load(self._served.port, 4, script, LOAD_SECONDS, 0)
        raise RuntimeError(f"fewer than {messages:,} messages after {MOST_LOADS} loads")


def at_level_none(bench: Bench) -> Iterator[Figure]:
    """What both tables have."""
    named, wanted = bench.named, bench.wanted
    saturated = f"{OVER}, at saturation (16 publishers, 256 outstanding each)"
    yield bench.send((1, 1), (1, 1)).figure(named(f"{OVER}, 1 publisher"), wanted(1.5))
    yield bench.send((16, 1), (16, 1)).figure(named(f"{OVER}, 16 publishers"), wanted(1.9))
    yield bench.send((64, 1), PEAK).figure(named(f"{saturated}: 64 connections"), None)
    yield bench.send((4, 64), PEAK).figure(
        named(f"{saturated}: 4 connections, 64 calls outstanding on each"), wanted(1.8)
    )
    name = named("durable receives of 1 KiB over RabbitMQ's quorum queue, 16 consumers")
    yield bench.receive(16).figure(name, wanted(1.0), calls=2)
    name = named("p99 of durable sends over RabbitMQ's, 256 publishers")
    yield bench.send((256, 1), (256, 1)).latency(name, wanted(0.7))


def varied(bench: Bench) -> Iterator[Figure]:
    """One row of each kind with messages that differ."""
    what = "of 100 octets to 10 KiB that differ over RabbitMQ's quorum queue"
    yield bench.varied().figure(f"durable sends {what}, 16 publishers", None)
    name = f"durable receives {what}, 16 consumers"
    yield bench.receive_varied(16).figure(name, None, calls=2)


def encrypted(bench: Bench) -> Iterator[Figure]:
    """What default settings allow."""
    over, named = "durable sends of 1 KiB, NTLM PKT_PRIVACY over RabbitMQ with TLS", bench.named
    outstanding = f"{SEALED_WINDOW} outstanding on each against {PEAK[1]}"
    yield bench.sealed(1, 1).figure(named(f"{over}, 16 publishers"), bench.wanted(1.0))
    name = named(f"{over}, 16 publishers, saturated ({outstanding})")
    yield bench.sealed(SEALED_WINDOW, PEAK[1]).figure(name, bench.wanted(1.0))


def of_a_million(bench: Bench) -> Figure:
    name = "durable receives of 1 KiB over RabbitMQ's, 16 consumers, from a backlog of a million"
    return bench.receive_of_many(16).figure(name, 1.0, calls=2)


def table(cpu: Cpus, name: str, measure: Callable[[Bench], Iterator[Figure]]) -> Iterator[Figure]:
    """Measure with both servers on these processors; RabbitMQ's schedulers come first."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(dir=BUILD)))
        mapped = stack.enter_context(mapper(directory))
        other = stack.enter_context(broker(directory, mapped, cpu=cpu))
        served = stack.enter_context(serving(directory, CONFIGURATION, cpu=cpu))
        served.command("queue", "create", QUEUE, "--sddl", EVERYONE)
        load(served.port, 16, sending(10240).ours, seconds=4, warm_up=0)
        note = f"each server has processor {cpu} in turn, the load {client_cpu}"
        about = f"RabbitMQ's schedulers{name}"
        yield Figure(about, other.schedulers, unit="of them", note=note)
        yield from measure(Bench(served, other, name, targets=not name))


def unprotected(figures: Iterator[Figure]) -> Iterator[Figure]:
    """Figures of calls at level NONE."""
    return (replace(figure, unprotected=True) for figure in figures)


def alone(bench: Bench) -> Iterator[Figure]:
    """Each server has one processor."""
    yield from encrypted(bench)
    yield from unprotected(at_level_none(bench))
    yield from unprotected(varied(bench))
    yield replace(of_a_million(bench), unprotected=True)


def together(bench: Bench) -> Iterator[Figure]:
    """Each server has all processors, and the load one of them too."""
    yield from encrypted(bench)
    yield from unprotected(at_level_none(bench))


def run() -> Iterator[Figure]:
    yield from table(server_cpu, "", alone)
    if len(all_cpus) > 1:
        yield from table(all_cpus, f", {len(all_cpus)} processors for each", together)
