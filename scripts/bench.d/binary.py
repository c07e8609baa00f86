"""Receiving by the binary protocol on loopback: durable messages of 1 KiB from a C sender.

The sender speaks [MS-MQQB]: it establishes sessions, each for a queue manager of its own, keeps
their windows full, and counts a message when it is acknowledged as being on the disk. The peer is
RabbitMQ's quorum queue at its best, 16 publishers with 256 messages that are not confirmed each.
Each server has one processor, the same one, in turns; the senders have the other; once more each
server has all of them, and RabbitMQ as many schedulers. A leak is looked
for with sessions that are established and closed, by what the process holds before and after.
"""

import statistics
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from broker import broker, mapper
from harness import BUILD, Cpus, Figure, all_cpus, few, pairs, resident, server_cpu, syncs_of
from sessions import BODY, WINDOW, Session, queue_manager, received
from streams import VARIED_SIZES

from rpcqm.testing import PrivateQueueManager

SESSIONS = 4
PUBLISHERS, UNCONFIRMED = 16, 256
SEVERAL = 10_000
LEAK = 256
"""Octets that memory may grow by for each session: what the allocator does not give back."""


Rate = Callable[[], float]


def figures(served: PrivateQueueManager, peak: Rate, varied_peak: Rate) -> list[Figure]:
    """The receiver against the broker, and its own ways against each other."""
    assert served.process is not None
    port, server = served.endpoint("binary")[1], served.process.pid

    def rate(queue: str, transactional: bool, differing: bool = False) -> Rate:
        return lambda: (
            received(port, queue, SESSIONS, transactional, differing=differing).calls_per_second
        )

    recoverable = rate("orders", False)
    in_sequence = pairs(rate("stream", True), recoverable, 3)
    alone = received(port, "orders", 1)
    round_trip = statistics.median(_round_trips(port))
    syncs = syncs_of(BUILD, len(BODY))
    note = (
        f"{WINDOW} messages to a window; a session's first round trip takes "
        f"{round_trip * 1e6:.0f} µs; raw syncs of 1 KiB {syncs.per_second:,.0f}/s, p50 "
        f"{syncs.p50_us:,.0f} µs"
    )
    return [
        Figure("received, recoverable, 1 session", alone.calls_per_second, unit="/s", note=note),
        against(served, peak, ""),
        pairs(rate("orders", False, True), varied_peak, 3).figure(
            f"received, 100 octets to 10 KiB that differ, {SESSIONS} sessions, over RabbitMQ's "
            "pipelined peak of the same sizes",
            None,
            server,
        ),
        in_sequence.figure("received, transactional over recoverable", 0.7, server),
    ]


def against(served: PrivateQueueManager, peak: Rate, table: str) -> Figure:
    """What is received from a C sender, over what RabbitMQ takes at most."""
    assert served.process is not None
    port = served.endpoint("binary")[1]
    measured = pairs(lambda: received(port, "orders", SESSIONS).calls_per_second, peak, 3)
    name = f"received, recoverable, {SESSIONS} sessions, over RabbitMQ's pipelined peak{table}"
    return measured.figure(name, None if table else 1.5, served.process.pid)


def _round_trips(port: int) -> list[float]:
    sessions = [Session(port) for _ in range(20)]
    found = [session.open() for session in sessions]
    for session in sessions:
        session.close()
    return found


def held(process: int) -> tuple[int, int, int]:
    """Octets of memory, file descriptors and threads of a process."""
    of = Path(f"/proc/{process}")
    files, threads = (len(list((of / name).iterdir())) for name in ("fd", "task"))
    return resident(process), files, threads


def opened_and_closed(served: PrivateQueueManager, sessions: int) -> None:
    """Establish sessions one after the other; when it returns, the last one is gone."""
    port = served.endpoint("binary")[1]
    for _ in range(few(sessions)):
        session = Session(port)
        session.open()
        session.close()
    served.run("queue", "list")


def leak(served: PrivateQueueManager) -> list[Figure]:
    """What many sessions leave behind."""
    assert served.process is not None
    process = served.process.pid
    opened_and_closed(served, SEVERAL)
    before = held(process)
    opened_and_closed(served, SEVERAL)
    memory, files, threads = (now - then for now, then in zip(held(process), before, strict=True))
    what = f"after {SEVERAL:,} sessions were opened and closed"
    note = f"{before[0] / 2**20:.0f} MiB before, {before[1]} files, {before[2]} threads"
    return [
        Figure(f"memory more {what}", memory / SEVERAL, LEAK, "bytes each", True, note),
        Figure(f"file descriptors more {what}", files, 0, "", True),
        Figure(f"threads more {what}", threads, 0, "", True),
    ]


@contextmanager
def both(cpu: Cpus) -> Iterator[tuple[PrivateQueueManager, Callable[[int | str], Rate]]]:
    """The receiver, and what measures the broker's peak at a size, on the same processors."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(dir=BUILD)))
        mapped = stack.enter_context(mapper(directory))
        other = stack.enter_context(broker(directory, mapped, cpu=cpu))
        served = stack.enter_context(queue_manager("receiver", cpu=cpu))
        served.run("queue", "create", "orders")
        served.run("queue", "create", "stream", "--transactional")
        received(served.endpoint("binary")[1], "orders", 16, seconds=4)

        def peak(size: int | str) -> Rate:
            send = partial(other.load, "send", "bench", PUBLISHERS, UNCONFIRMED, size, 1.5, 0.4)
            return lambda: send().calls_per_second

        yield served, peak


def run() -> list[Figure]:
    low, high = VARIED_SIZES
    with both(server_cpu) as (served, peak):
        found = figures(served, peak(len(BODY)), peak(f"{low}-{high}"))
        found += leak(served)
    if len(all_cpus) > 1:
        with both(all_cpus) as (served, peak):
            table = f", {len(all_cpus)} processors for each"
            found.append(against(served, peak(len(BODY)), table))
    return found
