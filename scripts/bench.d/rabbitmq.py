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
from catalogue import rows_of
from durable_calls import (
    CONFIGURATION,
    QUEUE,
    different,
    equal,
    receiving,
    sending,
    sent_before,
    to_send,
)
from figures import Figure, UnavailableError, attempt, figure
from harness import (
    BUILD,
    TRIAL,
    Cpus,
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
from subjects import brokers as rows
from subjects.row import BOTH

from rpcqm.rpc.constants import AuthenticationLevel

SIZE = 1024
SECONDS, WARM_UP, ROUNDS, RECEIVE_ROUNDS = 1.5, 0.4, 3, 5
BACKLOG = 16
"""Connections that put messages there which are then received."""
RECEIVED, STOCK = 30_000, 32_000
"""Messages of a round of receiving, and how many are put there before."""
MANY = 1_000_000
PEAK = 16, 256
"""Publishers, and the messages of each that are not confirmed, at which RabbitMQ is fastest."""
CALLS, SATURATED_CALLS = 2500, 3000
"""Calls that are prepared on each connection: for seconds at one outstanding, and for a second
and a half at 30,000 a second; the run ends when they are used up."""
WARMING = 60_000
VARIED = f"{VARIED_SIZES[0]}-{VARIED_SIZES[1]}"
SEALED_WINDOW = 16
"""Calls outstanding on each of 16 connections: 256, as many as at level NONE."""


@dataclass(frozen=True, slots=True)
class Sides:
    """What some rounds have seen of both, which process ours is, and how ours is measured again."""

    ours: tuple[Load, ...]
    theirs: tuple[Load, ...]
    stolen: float
    server: int
    again: Callable[[], Load]

    def figure(self, name: str, calls: int = 1) -> Figure:
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
        return self._told(name, middle(ratios), note)

    def latency(self, name: str) -> Figure:
        """Our p99 over theirs."""
        mine, other = ([seen.p99_us for seen in side] for side in (self.ours, self.theirs))
        ratios = [one / two for one, two in zip(mine, other, strict=True)]
        note = (
            f"{statistics.median(mine) / 1000:,.1f} ms against "
            f"{statistics.median(other) / 1000:,.1f}; rounds {min(ratios):.3g} to {max(ratios):.3g}"
        )
        return self._told(name, statistics.median(ratios), note)

    def _told(self, name: str, value: float, note: str) -> Figure:
        return figure(name, value, note, stolen=self.stolen).explained(self.server, self.again)


class Bench:
    """Both servers, and the loads for them."""

    def __init__(self, served: Served, other: Broker, table: str) -> None:
        self._served = served
        self._broker = other
        self._table = table

    def named(self, name: str) -> str:
        return f"{name}{self._table}"

    def row(self, name: str, measure: Callable[[], Sides], calls: int = 1) -> Iterator[Figure]:
        """Our rate over theirs, under a name of this table."""
        named = self.named(name)
        yield from attempt(named, lambda: measure().figure(named, calls))

    def _in_turns(
        self, ours: Callable[[], Load], theirs: Callable[[], Load], rounds: int = ROUNDS
    ) -> Sides:
        watch = Stolen()
        seen = [(ours(), theirs()) for _ in range(1 if TRIAL else rounds)]
        mine, others = (tuple(each[side] for each in seen) for side in (0, 1))
        return Sides(mine, others, watch.share, self._served.pid, ours)

    def _ours(self, script: Script, connections: int) -> Load:
        return load(self._served.port, connections, script, SECONDS, WARM_UP)

    def _prepared(self, level: AuthenticationLevel, prepare: Prepare, window: int) -> Load:
        """Sends that were made before, on 16 connections."""
        with sent_before(self._served.port, level, BACKLOG, prepare) as made:
            return load_streams(made, SECONDS, WARM_UP, window)

    def _stocked(self, prepare: Prepare) -> None:
        """Put there what was made before, all of it but for what one connection has left."""
        with sent_before(self._served.port, NONE, BACKLOG, prepare) as made:
            load_streams(made, window=BACKLOG)

    def _taken(self, consumers: int, size: int) -> Load:
        """Receives of ours, two calls a message."""
        script = receiving(size).ours
        return load(self._served.port, consumers, script, 0, 0, 2 * few(RECEIVED))

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

    def _taken_from_them(self, consumers: int) -> Load:
        return self._broker.load("receive", QUEUE, consumers, 1, SIZE, 0, 0, calls=few(RECEIVED))

    def receive(self, consumers: int) -> Sides:
        """Each side has a backlog of what it has just stored, and of nothing else."""

        def ours() -> Load:
            self._served.command("purge", QUEUE)
            self._fill(few(STOCK))
            return self._taken(consumers, SIZE)

        def theirs() -> Load:
            self._broker.put(QUEUE, few(STOCK), SIZE)
            return self._taken_from_them(consumers)

        return self._in_turns(ours, theirs, RECEIVE_ROUNDS)

    def receive_varied(self, consumers: int) -> Sides:
        """The same of messages that differ, of which only these are there."""

        def ours() -> Load:
            self._served.command("purge", QUEUE)
            self._stocked(to_send(different, few(CALLS), BACKLOG))
            return self._taken(consumers, VARIED_SIZES[1])

        def theirs() -> Load:
            self._broker.put(QUEUE, few(STOCK), VARIED)
            return self._taken_from_them(consumers)

        return self._in_turns(ours, theirs)

    def receive_of_many(self, consumers: int) -> Sides:
        """From a backlog of a million, which is put there once for all rounds."""
        self._served.command("purge", QUEUE)
        self._fill(few(MANY))
        self._broker.put(QUEUE, few(MANY), SIZE)
        return self._in_turns(
            partial(self._taken, consumers, SIZE),
            partial(self._taken_from_them, consumers),
            RECEIVE_ROUNDS,
        )

    def _fill(self, messages: int) -> None:
        script = replace(sending(SIZE).ours, window=64)
        load(self._served.port, 4, script, 0, 0, messages)


def at_level_none(bench: Bench) -> Iterator[Figure]:
    """What both tables have."""
    for name, ours, theirs in (
        (rows.ONE_BY_ONE, (1, 1), (1, 1)),
        (rows.SIXTEEN, (16, 1), (16, 1)),
        (rows.MANY_CONNECTIONS, (64, 1), PEAK),
        (rows.MANY_CALLS, (4, 64), PEAK),
    ):
        yield from bench.row(name, partial(bench.send, ours, theirs))
    yield from bench.row(rows.RECEIVES, partial(bench.receive, 16), calls=2)
    name = bench.named(rows.LATENCY)
    yield from attempt(name, lambda: bench.send((256, 1), (256, 1)).latency(name))


def varied(bench: Bench) -> Iterator[Figure]:
    """One row of each kind with messages that differ."""
    yield from bench.row(rows.SENDS_DIFFERING, bench.varied)
    yield from bench.row(rows.RECEIVES_DIFFERING, partial(bench.receive_varied, 16), calls=2)


def encrypted(bench: Bench) -> Iterator[Figure]:
    """What default settings allow."""
    yield from bench.row(rows.SEALED, partial(bench.sealed, 1, 1))
    saturated = partial(bench.sealed, SEALED_WINDOW, PEAK[1])
    yield from bench.row(rows.SEALED_SATURATED, saturated)


def table(cpu: Cpus, name: str, measure: Callable[[Bench], Iterator[Figure]]) -> Iterator[Figure]:
    """Measure with both servers on these processors; RabbitMQ's schedulers come first."""
    if not isinstance(cpu, int) and len(cpu) < 2:
        raise UnavailableError("there is one processor")
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(dir=BUILD)))
        mapped = stack.enter_context(mapper(directory))
        other = stack.enter_context(broker(directory, mapped, cpu=cpu))
        served = stack.enter_context(serving(directory, CONFIGURATION, cpu=cpu))
        served.command("queue", "create", QUEUE, "--sddl", EVERYONE)
        load(served.port, 16, sending(10240).ours, 0, 0, few(WARMING))
        note = f"each server has processor {cpu} in turn, the load {client_cpu}"
        yield figure(f"{rows.SCHEDULERS}{name}", other.schedulers, note)
        yield from measure(Bench(served, other, name))


def alone(bench: Bench) -> Iterator[Figure]:
    """Each server has one processor."""
    yield from encrypted(bench)
    yield from at_level_none(bench)
    yield from varied(bench)
    yield from bench.row(rows.OF_A_MILLION, partial(bench.receive_of_many, 16), calls=2)


def together(bench: Bench) -> Iterator[Figure]:
    """Each server has all processors, and the load one of them too."""
    yield from encrypted(bench)
    yield from at_level_none(bench)


def run() -> Iterator[Figure]:
    both = [row.name for row in rows_of("rabbitmq") if row.name.endswith(BOTH)]
    one = [row.name for row in rows_of("rabbitmq") if not row.name.endswith(BOTH)]
    yield from attempt(one, partial(table, server_cpu, "", alone))
    yield from attempt(both, partial(table, all_cpus, BOTH, together))
