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
from figures import Figure, UnavailableError, attempt, figure
from harness import BUILD, Cpus, all_cpus, few, pairs, resident, server_cpu, syncs_of
from sessions import BODY, WINDOW, Session, queue_manager, received
from streams import VARIED_SIZES
from subjects.brokers import PEAK
from subjects.row import BOTH

from rpcqm.testing import PrivateQueueManager

SESSIONS = 4
PUBLISHERS, UNCONFIRMED = 16, 256
SEVERAL = 10_000
WARM_UP = 200_000
"""Messages after which the store uses its logs again."""
RECOVERABLE = f"received, recoverable, {SESSIONS} sessions, over {PEAK}"
DIFFERING = (
    f"received, 100 octets to 10 KiB that differ, {SESSIONS} sessions, "
    f"over {PEAK} of the same sizes"
)
LEFT = tuple(
    f"{what} more after {SEVERAL:,} sessions were opened and closed"
    for what in ("memory", "file descriptors", "threads")
)


Rate = Callable[[], float]


class Receiver:
    """A queue manager that receives from sessions in C."""

    def __init__(self, served: PrivateQueueManager) -> None:
        assert served.process is not None
        self.served, self.server = served, served.process.pid
        self.port = served.endpoint("binary")[1]

    def rate(self, queue: str, transactional: bool = False, differing: bool = False) -> Rate:
        return lambda: (
            received(
                self.port, queue, SESSIONS, transactional, differing=differing
            ).calls_per_second
        )

    def against(self, name: str, peak: Rate, differing: bool = False) -> Figure:
        """What is received, over what RabbitMQ takes at most."""
        return pairs(self.rate("orders", differing=differing), peak, 3).figure(name, self.server)

    def in_sequence(self) -> Figure:
        measured = pairs(self.rate("stream", True), self.rate("orders"), 3)
        return measured.figure("received, transactional over recoverable", self.server)


def alone(port: int) -> Figure:
    """One session, beside what it waits for."""
    seen = received(port, "orders", 1)
    round_trip = statistics.median(_round_trips(port))
    syncs = syncs_of(BUILD, len(BODY))
    note = (
        f"{WINDOW} messages to a window; a session's first round trip takes "
        f"{round_trip * 1e6:.0f} µs; raw syncs of 1 KiB {syncs.per_second:,.0f}/s, p50 "
        f"{syncs.p50_us:,.0f} µs"
    )
    return figure("received, recoverable, 1 session", seen.calls_per_second, note)


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
    note = f"{before[0] / 2**20:.0f} MiB before, {before[1]} files, {before[2]} threads"
    values = memory / SEVERAL, files, threads
    return [figure(name, value, note) for name, value in zip(LEFT, values, strict=True)]


@contextmanager
def receiving(cpu: Cpus) -> Iterator[Receiver]:
    """The receiver, warmed up, on its processors."""
    with queue_manager("receiver", cpu=cpu) as served:
        served.run("queue", "create", "orders")
        served.run("queue", "create", "stream", "--transactional")
        made = Receiver(served)
        received(made.port, "orders", 16, calls=few(WARM_UP))
        yield made


@contextmanager
def peaking(cpu: Cpus) -> Iterator[Callable[[int | str], Rate]]:
    """What measures the broker's peak at a size, on the same processors."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(dir=BUILD)))
        mapped = stack.enter_context(mapper(directory))
        other = stack.enter_context(broker(directory, mapped, cpu=cpu))

        def peak(size: int | str) -> Rate:
            send = partial(other.load, "send", "bench", PUBLISHERS, UNCONFIRMED, size, 1.5, 0.4)
            return lambda: send().calls_per_second

        yield peak


def over_the_broker(receiver: Receiver) -> Iterator[Figure]:
    low, high = VARIED_SIZES
    with peaking(server_cpu) as peak:
        yield receiver.against(RECOVERABLE, peak(len(BODY)))
        yield receiver.against(DIFFERING, peak(f"{low}-{high}"), differing=True)


def with_all_processors() -> Iterator[Figure]:
    if len(all_cpus) < 2:
        raise UnavailableError("there is one processor")
    with receiving(all_cpus) as receiver, peaking(all_cpus) as peak:
        yield receiver.against(f"{RECOVERABLE}{BOTH}", peak(len(BODY)))


def run() -> Iterator[Figure]:
    with receiving(server_cpu) as receiver:
        yield from attempt("received, recoverable, 1 session", partial(alone, receiver.port))
        yield from attempt((RECOVERABLE, DIFFERING), partial(over_the_broker, receiver))
        yield from attempt("received, transactional over recoverable", receiver.in_sequence)
        yield from attempt(LEFT, partial(leak, receiver.served))
    yield from attempt(f"{RECOVERABLE}{BOTH}", with_all_processors)
