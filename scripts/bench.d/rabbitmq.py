"""Durable sends and receives against RabbitMQ: a quorum queue, persistent messages, confirms.

The broker is Debian's, with data of its own on the disk of our store. Messages have 1 KiB. Each
server has one processor, the same one, and they are measured in turns; the load generators, both
C programs of one thread, have the other. RabbitMQ sees that it has one, and starts as many
schedulers. A send counts when it is confirmed, a receive when the consumer, with a prefetch of
one, gets the next message after its acknowledgement; ours is R_StartReceive and R_EndReceive.
"""

import os
import statistics
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from broker import Broker, broker, mapper
from durable import CONFIGURATION, QUEUE, receiving, sending
from harness import BUILD, Figure, Load, Script, load, raw_syncs, server_cpu
from served import EVERYONE, serving

SIZE = 1024
SECONDS, WARM_UP, ROUNDS = 1.5, 0.4, 3
BACKLOG = 16
"""Connections that put messages there which are then received."""


@dataclass(frozen=True, slots=True)
class Sides:
    """What one round has seen of both."""

    ours: tuple[Load, ...]
    theirs: tuple[Load, ...]

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
        return Figure(name, middle(ratios), target, note=note)

    def latency(self, name: str, target: float) -> Figure:
        """Our p99 over theirs."""
        mine, other = ([seen.p99_us for seen in side] for side in (self.ours, self.theirs))
        ratios = [one / two for one, two in zip(mine, other, strict=True)]
        note = (
            f"{statistics.median(mine) / 1000:,.1f} ms against "
            f"{statistics.median(other) / 1000:,.1f}; rounds {min(ratios):.3g} to {max(ratios):.3g}"
        )
        return Figure(name, statistics.median(ratios), target, at_most=True, note=note)


def in_turns(ours: Callable[[], Load], theirs: Callable[[], Load]) -> Sides:
    rounds = [(ours(), theirs()) for _ in range(ROUNDS)]
    return Sides(tuple(mine for mine, _ in rounds), tuple(other for _, other in rounds))


class Bench:
    """Both servers, and the loads for them."""

    def __init__(self, port: int, other: Broker) -> None:
        self._port = port
        self._broker = other

    def _ours(self, script: Script, connections: int) -> Load:
        return load(self._port, connections, script, SECONDS, WARM_UP)

    def _theirs(self, what: str, connections: int, window: int = 1) -> Load:
        return self._broker.load(what, QUEUE, connections, window, SIZE, SECONDS, WARM_UP)

    def send(self, ours: tuple[int, int], theirs: tuple[int, int]) -> Sides:
        """Both as connections, and messages of each that are outstanding."""
        script = replace(sending(SIZE).ours, window=ours[1])
        return in_turns(
            partial(self._ours, script, ours[0]), partial(self._theirs, "send", *theirs)
        )

    def receive(self, consumers: int) -> Sides:
        """Each side has a backlog of what it has just stored as fast as it can."""

        def ours() -> Load:
            script = replace(sending(SIZE).ours, window=BACKLOG)
            self._ours(script, BACKLOG)
            return self._ours(receiving(SIZE).ours, consumers)

        def theirs() -> Load:
            self._theirs("send", BACKLOG, 256)
            return self._theirs("receive", consumers)

        return in_turns(ours, theirs)


def measure(bench: Bench) -> list[Figure]:
    many = bench.send((256, 1), (256, 1))
    over = "durable sends of 1 KiB over RabbitMQ's quorum queue"
    saturated = f"{over}, at saturation (16 publishers, 256 outstanding each)"
    return [
        bench.send((1, 1), (1, 1)).figure(f"{over}, 1 publisher", 1.5),
        bench.send((16, 1), (16, 1)).figure(f"{over}, 16 publishers", 1.9),
        bench.send((64, 1), (16, 256)).figure(f"{saturated}: 64 connections", None),
        bench.send((4, 64), (16, 256)).figure(
            f"{saturated}: 4 connections, 64 calls outstanding on each", 1.8
        ),
        bench.receive(16).figure(
            "durable receives of 1 KiB over RabbitMQ's quorum queue, 16 consumers", 1.0, calls=2
        ),
        many.figure(f"{over}, 256 publishers", None),
        many.latency("p99 of durable sends over RabbitMQ's, 256 publishers", 0.7),
    ]


def run() -> list[Figure]:
    BUILD.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(dir=BUILD)))
        syncs = raw_syncs(directory, SIZE)
        other = stack.enter_context(
            broker(directory, stack.enter_context(mapper(directory)), cpu=server_cpu)
        )
        served = stack.enter_context(serving(directory, CONFIGURATION))
        served.command("queue", "create", QUEUE, "--sddl", EVERYONE)
        load(served.port, 16, sending(10240).ours, seconds=4, warm_up=0)
        figures = measure(Bench(served.port, other))
    note = (
        f"{len(os.sched_getaffinity(0))} processors, one for the server in turn, one for the load"
    )
    return [
        Figure("raw fdatasync of 1 KiB beside them", syncs, unit="a second", note=note),
        *figures,
    ]
