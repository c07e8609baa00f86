"""Durable sending and receiving by RPC, end to end, with one call outstanding per connection.

All of it with NDR at level NONE through the ordinary path of `rpcqm serve`, but for sealed sends.
The limit is a C server that gets the same bytes, appends what must last to a zero-filled log, and
syncs once per turn of its loop. The store is warmed up until its log files are recycled. What is
received was put there before, by count, and each round receives as much. Figures count messages.
"""

import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from authenticated import NONE, PRIVACY
from durable_calls import (
    BIND_ACK,
    CONFIGURATION,
    QUEUE,
    Work,
    bind,
    different,
    equal,
    receiving,
    sending,
    sent,
    sent_before,
    to_send,
)
from figures import Figure, attempt
from harness import BUILD, Pairs, Script, few, limit_server, load, load_streams, pairs, syncs_of
from served import EVERYONE, Served, serving
from streams import VARIED_SIZES
from subjects.storing import LOG, VARIED

CONNECTIONS = 1, 16, 64
SIZES = {"1 KiB": 1024, "10 KiB": 10240}
SECONDS, WARM_UP, ROUNDS = 0.8, 0.2, 3
RECEIVED = {1: 2_500, 16: 16_000, 64: 20_000}
"""Messages of a round of receiving, which takes about a second, by connections."""
STOCK_CONNECTIONS, STOCK_WINDOW = 4, 64
WARMING = 60_000
"""Messages of 10 KiB, after which the store uses its logs again."""
VARIED_CONNECTIONS = 16
DIFFERING = f"{VARIED}, {LOG}, {VARIED_CONNECTIONS} connections"
OVER_EQUAL = f"{VARIED}, over equal ones, {VARIED_CONNECTIONS} connections"
SEALED_CALLS, FEWEST_SEALED = 24_000, 600
"""Calls that are sealed beforehand: on all connections, and at least on each."""


def measure(served: Served, work: Work, connections: int, size: str, directory: Path) -> Figure:
    """One figure; ours and the limit in turns."""
    answer, only = work.answers
    with limit_server(BIND_ACK, answer, directory / "log-of-limit", only) as limit:
        rate = received if work.calls > 1 else sent_in_time
        ours = partial(rate, served, served.port, work, connections, SIZES[size])
        theirs = partial(rate, None, limit, work, connections, SIZES[size])
        measured = pairs(ours, theirs, ROUNDS)
        name = f"durable {work.name} of {size} {LOG}, {clients(connections)}"
        return measured.figure(name, served.pid, beside_syncs(measured, directory, work.logged))


def script_for(served: Served | None, work: Work) -> Script:
    return work.limit if served is None else work.ours


def sent_in_time(served: Served | None, port: int, work: Work, connections: int, _: int) -> float:
    """Messages per second that one of both servers stores."""
    return load(port, connections, script_for(served, work), SECONDS, WARM_UP).calls_per_second


def received(served: Served | None, port: int, work: Work, connections: int, size: int) -> float:
    """Messages per second that one of both servers hands out, of so many that ours has."""
    count = few(RECEIVED[connections])
    if served is not None:
        stock(served, count + connections, size)
    script = script_for(served, work)
    return load(port, connections, script, 0, 0, count * work.calls).calls_per_second / work.calls


def stock(served: Served, count: int, size: int) -> None:
    """Let at least so many messages of a size be there, and no others."""
    served.command("purge", QUEUE)
    script = replace(sending(size).ours, window=STOCK_WINDOW)
    load(served.port, STOCK_CONNECTIONS, script, 0, 0, count)
    if (there := served.waiting(QUEUE)) < count:
        raise RuntimeError(f"{there:,} messages are there instead of {count:,}")


def clients(connections: int) -> str:
    return "1 connection" if connections == 1 else f"{connections} connections"


def beside_syncs(measured: Pairs, directory: Path, size: int) -> str:
    """What the disk alone does with as many octets."""
    syncs = syncs_of(directory, size)
    return (
        f"; raw fdatasync {syncs.per_second:,.0f}/s, p50 {syncs.p50_us:,.0f} µs, so that one sync "
        f"carries at least {max(measured.ours / syncs.per_second, 1):.1f} messages"
    )


def sealed(served: Served, connections: int) -> float:
    """Sends of 1 KiB per second with NTLM at PKT_PRIVACY; each is sealed before."""
    calls = max(few(SEALED_CALLS) // connections, few(FEWEST_SEALED))
    prepare = to_send(equal(SIZES["1 KiB"]), calls)
    with sent_before(served.port, PRIVACY, connections, prepare) as prepared:
        return load_streams(prepared, SECONDS, WARM_UP).calls_per_second


def measure_sealed(served: Served, connections: int) -> Figure:
    """Sealed sends beside those at level NONE, which are held against the C log server."""
    script = sending(SIZES["1 KiB"]).ours
    measured = pairs(
        lambda: sealed(served, connections),
        lambda: load(served.port, connections, script, SECONDS, WARM_UP).calls_per_second,
        ROUNDS,
    )
    return measured.figure(sealed_over_none(connections), served.pid)


def sealed_over_none(connections: int) -> str:
    return f"durable sends of 1 KiB, NTLM PKT_PRIVACY over NONE, {clients(connections)}"


def streamed(port: int, differing: bool) -> float:
    """Sends per second on 16 connections: of requests that differ, or of equal ones."""
    make = different if differing else equal(sum(VARIED_SIZES) // 2)
    prepare = to_send(make, few(SEALED_CALLS) // VARIED_CONNECTIONS)
    with sent_before(port, NONE, VARIED_CONNECTIONS, prepare) as prepared:
        return load_streams(prepared, SECONDS, WARM_UP).calls_per_second


def measure_varied(served: Served) -> Figure:
    """What templates cannot know beforehand, beside what they can."""
    measured = pairs(
        lambda: streamed(served.port, differing=True),
        lambda: streamed(served.port, differing=False),
        ROUNDS,
    )
    return measured.figure(OVER_EQUAL, served.pid)


@contextmanager
def bound(port: int, paths: Sequence[Path]) -> Iterator[dict[int, Path]]:
    """Connections to the C log server, for calls that were made for another one."""
    with ExitStack() as stack:
        made = {}
        for path in paths:
            line = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            line.sendall(bind("qmcomm", "qmcomm2"))
            line.recv(len(BIND_ACK), socket.MSG_WAITALL)
            made[line.fileno()] = path
        yield made


def measure_varied_limit(served: Served, directory: Path) -> Figure:
    """Both get the same calls, all of which differ."""
    prepare = to_send(different, few(SEALED_CALLS) // VARIED_CONNECTIONS)
    paths: list[Path] = []
    with ExitStack() as keeping, limit_server(BIND_ACK, sent(), directory / "varied") as limit:

        def ours() -> float:
            prepared = keeping.enter_context(
                sent_before(served.port, NONE, VARIED_CONNECTIONS, prepare)
            )
            paths[:] = prepared.values()
            return load_streams(prepared, SECONDS, WARM_UP).calls_per_second

        def theirs() -> float:
            with bound(limit, paths) as prepared:
                seen = load_streams(prepared, SECONDS, WARM_UP).calls_per_second
            keeping.close()
            return seen

        measured = pairs(ours, theirs, ROUNDS)
        return measured.figure(DIFFERING, served.pid)


def over_the_log(served: Served, directory: Path) -> Iterator[Figure]:
    """All that is held against the C log server."""
    for size, length in SIZES.items():
        for work in (sending(length), receiving(length)):
            for count in CONNECTIONS:
                name = f"durable {work.name} of {size} {LOG}, {clients(count)}"
                row = partial(measure, served, work, count, size, directory)
                yield from attempt(name, row)
    yield from attempt(DIFFERING, partial(measure_varied_limit, served, directory))


def run() -> Iterator[Figure]:
    with TemporaryDirectory(dir=BUILD) as name, serving(Path(name), CONFIGURATION) as served:
        served.command("queue", "create", QUEUE, "--sddl", EVERYONE)
        load(served.port, 16, sending(10240).ours, 0, 0, few(WARMING))
        yield from over_the_log(served, Path(name))
        for count in CONNECTIONS:
            yield from attempt(sealed_over_none(count), partial(measure_sealed, served, count))
        yield from attempt(OVER_EQUAL, partial(measure_varied, served))
