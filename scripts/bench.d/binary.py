"""Receiving by the binary protocol on loopback: durable messages of 1 KiB from a C sender.

The sender speaks [MS-MQQB]: it establishes sessions, each for a queue manager of its own, keeps
their windows full, and counts a message when it is acknowledged as being on the disk. The peer is
RabbitMQ's quorum queue at its best, 16 publishers with 256 messages that are not confirmed each.
Each server has one processor, the same one, in turns; the senders have the other. A leak is looked
for with sessions that are established and closed, by what the process holds before and after.
"""

import statistics
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from broker import broker, mapper
from harness import BUILD, Figure, Pairs, pairs, raw_syncs, resident
from sessions import BODY, WINDOW, Session, queue_manager, received

from rpcqm.testing import PrivateQueueManager

SESSIONS = 4
PUBLISHERS, UNCONFIRMED = 16, 256
SEVERAL = 10_000
LEAK = 256
"""Octets that memory may grow by for each session: what the allocator does not give back."""


def figures(port: int, theirs: Callable[[], float]) -> list[Figure]:
    """The receiver against the broker, and its own ways against each other."""

    def rate(queue: str, transactional: bool) -> float:
        return received(port, queue, SESSIONS, transactional).calls_per_second

    recoverable = partial(rate, "orders", False)
    against: Pairs = pairs(recoverable, theirs, 3)
    in_sequence = pairs(partial(rate, "stream", True), recoverable, 3)
    alone = received(port, "orders", 1)
    round_trip = statistics.median(_round_trips(port))
    note = (
        f"{WINDOW} messages to a window; a session's first round trip takes "
        f"{round_trip * 1e6:.0f} µs; raw syncs of 1 KiB {raw_syncs(BUILD, len(BODY)):,.0f}/s"
    )
    return [
        Figure("received, recoverable, 1 session", alone.calls_per_second, unit="/s", note=note),
        Figure(
            f"received, recoverable, {SESSIONS} sessions, over RabbitMQ's pipelined peak",
            against.ratio,
            1.2,
            note=against.spread,
        ),
        Figure(
            "received, transactional over recoverable",
            in_sequence.ratio,
            0.7,
            note=in_sequence.spread,
        ),
    ]


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
    for _ in range(sessions):
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


def run() -> list[Figure]:
    BUILD.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(dir=BUILD)))
        other = stack.enter_context(broker(directory, stack.enter_context(mapper(directory))))
        served = stack.enter_context(queue_manager("receiver"))
        served.run("queue", "create", "orders")
        served.run("queue", "create", "stream", "--transactional")
        port = served.endpoint("binary")[1]
        received(port, "orders", 16, seconds=4)

        def theirs() -> float:
            seen = other.load("send", "bench", PUBLISHERS, UNCONFIRMED, len(BODY), 1.5, 0.4)
            return seen.calls_per_second

        return [*figures(port, theirs), *leak(served)]
