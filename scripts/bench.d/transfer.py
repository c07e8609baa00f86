"""Durable messages of 1 KiB from one queue manager to another, and RabbitMQ's shovel beside it.

Both are on loopback, each with a store of its own on the same disk and one processor of its own.
Messages are put into the outgoing queue while it is paused. What is measured is how fast they are
there from the moment on when the first one is, which leaves out the start of the session: the
sender reads and removes while the receiver stores, and nobody else does anything. The shovel
confirms what it takes when the other broker has confirmed it, from quorum queue to quorum queue.

The time until a message is visible is that from the call which sends it at one queue manager to
the answer of the receive that waits for it at the other, with nothing else on its way.
"""

import socket
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from authenticated import NONE, Connection
from broker import Broker, broker, mapper
from durable_calls import HANDLE, QUEUE, opened_for_sending, sending
from figures import Figure, UnavailableError, attempt, figure
from harness import (
    BUILD,
    Cpus,
    Pairs,
    Stolen,
    all_cpus,
    client_cpu,
    few,
    load,
    pairs,
    server_cpu,
    syncs_of,
)
from sealed import REMOTE_READ
from sealed import transfer as opened
from served import EVERYONE
from sessions import WINDOW, Session, queue_manager, received
from subjects.brokers import BETWEEN, STORED_ALONE
from subjects.row import BOTH

from rpcqm.client.blocking import BlockingClient
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.queue_format import queue_format_of
from rpcqm.codec.types import qmmgmt, remoteread
from rpcqm.testing import PrivateQueueManager

SIZE = 1024
ELSEWHERE = rf"DIRECT=OS:receiver\private$\{QUEUE}"
HERE = FormatName.parse(rf"DIRECT=OS:.\private$\{QUEUE}")
BACKLOG = 20_000
ROUNDS = 3
ONE_BY_ONE = 60
PATIENCE = 120
BEYOND_SYNCS = 1.2
"""Milliseconds that everything but the syncs may take from sent to visible."""
SHOVEL = """{{"src-protocol": "amqp091", "src-uri": "amqp://127.0.0.1:{0}", "src-queue": "{2}",
"dest-protocol": "amqp091", "dest-uri": "amqp://127.0.0.1:{1}", "dest-queue": "{2}",
"src-queue-args": {{"x-queue-type": "quorum"}}, "dest-queue-args": {{"x-queue-type": "quorum"}},
"ack-mode": "on-confirm"}}"""


@dataclass(frozen=True, slots=True)
class Two:
    """A queue manager that sends to another one."""

    sender: PrivateQueueManager
    receiver: PrivateQueueManager
    at_sender: BlockingClient
    at_receiver: BlockingClient
    elsewhere: str = ELSEWHERE

    def act(self, action: str) -> None:
        """Let an administrator pause or resume the outgoing queue."""
        name = queue_format_of(FormatName.parse(self.elsewhere))
        what = qmmgmt.MGMT_OBJECT(
            type=qmmgmt.MGMT_QUEUE, u=qmmgmt.MGMT_OBJECT_u(qmmgmt.MGMT_QUEUE, name)
        )
        request = qmmgmt.R_QMMgmtActionRequest(pObjectFormat=what, lpwszAction=action)
        connections = self.at_sender.management._connections
        self.at_sender.run(connections.call(request))

    @property
    def arrived(self) -> int:
        """Messages in the receiver's queue."""
        asked = self.at_receiver.management.queue_information(HERE)
        return self.at_receiver.run(asked).message_count

    def wait(self, count: int) -> tuple[float, int]:
        """Wait until so many are there; when that was seen, and how many they are."""
        end = time.monotonic() + PATIENCE
        while (there := self.arrived) < count:
            if time.monotonic() > end:
                raise RuntimeError(f"{there} messages instead of {count}")
            time.sleep(0.02)
        return time.perf_counter(), there

    def send(self, count: int) -> int:
        """Send at least so many to the other one; how many were sent."""
        before = self._waiting()
        script = sending(SIZE, self.elsewhere).ours
        load(self.sender.endpoint("rpc")[1], 16, script, 0, 0, count)
        return self._waiting() - before

    def _waiting(self) -> int:
        asked = self.at_sender.management.outgoing_queue(FormatName.parse(self.elsewhere))
        found = self.at_sender.run(asked)
        return found.message_count if found else 0

    def transferred(self) -> float:
        """Messages per second from one disk to the other."""
        before, sent = self.backlog(few(BACKLOG))
        self.act("RESUME")
        began, first = self.wait(before + 1)
        ended, _ = self.wait(before + sent)
        return (before + sent - first) / (ended - began)

    def backlog(self, count: int) -> tuple[int, int]:
        """Let so many wait at the sender: how many the other one had, and how many wait."""
        self.act("PAUSE")
        return self.arrived, self.send(count)

    def stored(self) -> float:
        """Messages per second that the sender alone stores for 64 clients, by RPC."""
        port = self.sender.endpoint("rpc")[1]
        return load(port, 64, sending(SIZE).ours, 1.2, 0.3).calls_per_second

    def taken(self) -> float:
        """Messages per second that the receiver alone stores for one session."""
        port = self.receiver.endpoint("binary")[1]
        return received(port, QUEUE, 1, seconds=1.2, cpu=server_cpu).calls_per_second


@contextmanager
def two(
    options: Sequence[str] = (),
    more: str = "",
    cpus: tuple[Cpus, Cpus] = (server_cpu, client_cpu),
    environment: Mapping[str, str] | None = None,
) -> Iterator[Two]:
    """The pair, with further options and settings; a message has been sent, so that the outgoing
    queue exists."""
    with ExitStack() as stack:
        receiver = stack.enter_context(
            queue_manager("receiver", more, cpus[1], options, environment)
        )
        peers = f'[binary]\npeers = "receiver=127.0.0.1:{receiver.endpoint("binary")[1]}"\n'
        sender = stack.enter_context(
            queue_manager("sender", peers + more, cpus[0], options, environment)
        )
        for each in (sender, receiver):
            each.run("queue", "create", QUEUE, "--sddl", EVERYONE)
        made = Two(
            sender,
            receiver,
            stack.enter_context(sender.client()),
            stack.enter_context(receiver.client()),
        )
        load(sender.endpoint("rpc")[1], 1, sending(SIZE, ELSEWHERE).ours, 0, 0, 1)
        made.wait(1)
        yield made


class OneByOne:
    """Sends one message, and sees when it is there."""

    def __init__(self, pair: Two) -> None:
        self._send = sending(SIZE, ELSEWHERE).ours
        self._line = socket.create_connection(pair.sender.endpoint("rpc"), timeout=PATIENCE)
        self._line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._message = bytearray(self._send.loop[0])
        self._open()
        self._there = Connection(pair.receiver.endpoint("rpc")[1], REMOTE_READ, NONE)
        _, request = opened(self._there, access=1)
        assert isinstance(request, remoteread.R_StartReceiveRequest)
        request.ulAction, request.ulTimeout = 0, 0xFFFFFFFF
        self._receive = request

    def close(self) -> None:
        self._line.close()
        self._there.close()

    def _open(self) -> None:
        for pdu in self._send.once:
            self._line.sendall(pdu)
            answer = self._line.recv(1 << 16)
        start = opened_for_sending().index(HANDLE)
        handle = answer[start : start + len(HANDLE)]
        at = self._message.index(HANDLE)
        self._message[at : at + len(HANDLE)] = handle

    def empty(self) -> None:
        """Receive what is there."""
        self._receive.ulTimeout = 0
        while not self._there.call("R_StartReceive", self._receive).result:
            self._end()
        self._receive.ulTimeout = 0xFFFFFFFF

    def _end(self) -> None:
        end = remoteread.R_EndReceiveRequest(
            phContext=self._receive.phContext, dwAck=2, dwRequestId=self._receive.dwRequestId
        )
        self._there.call("R_EndReceive", end)

    def seconds(self) -> float:
        """From the call that sends to the answer of the receive."""
        self._there.request("R_StartReceive", self._receive)
        self._there.send()
        time.sleep(0.005)
        began = time.perf_counter()
        self._line.sendall(self._message)
        data = self._there.socket.recv(1 << 16)
        took = time.perf_counter() - began
        self._line.recv(1 << 16)
        self._there.association.receive_data(data)
        self._end()
        return took


def latency(pair: Two) -> Figure:
    """How long until a message is visible, beside what its syncs take."""
    pair.receiver.run("purge", QUEUE)
    watch = Stolen()
    with closing(OneByOne(pair)) as one:
        one.empty()
        before = syncs_of(BUILD, SIZE, 0.3)
        seconds = sorted(one.seconds() for _ in range(few(ONE_BY_ONE) + 3))
        after = syncs_of(BUILD, SIZE, 0.3)
        sync = 2 / (before.per_second + after.per_second)
        made = figure(
            VISIBLE,
            statistics.median(seconds) * 1e3,
            f"the target is 3 raw syncs of {sync * 1e6:,.0f} µs (p50 {before.p50_us:,.0f} and "
            f"{after.p50_us:,.0f}) and {BEYOND_SYNCS} ms; the middle half "
            f"{_quantile(seconds, 25)} to {_quantile(seconds, 75)} ms, p95 "
            f"{_quantile(seconds, 95)} ms",
            target=3e3 * sync + BEYOND_SYNCS,
            stolen=watch.share,
        )
        return made.explained(
            _process(pair.receiver), lambda: [one.seconds() for _ in range(few(ONE_BY_ONE))]
        )


def _quantile(ordered: Sequence[float], percent: int) -> str:
    """In milliseconds."""
    return f"{ordered[len(ordered) * percent // 100] * 1e3:.2f}"


def _process(of: PrivateQueueManager) -> int:
    assert of.process is not None
    return of.process.pid


def beside(pair: Two, measured: Pairs) -> str:
    """What a session waits for at most: its window, the round trip, the sync."""
    session = Session(pair.receiver.endpoint("binary")[1])
    trip = session.open()
    session.close()
    window = WINDOW / measured.ours
    return (
        f"; a window of {WINDOW} takes {window * 1e3:.1f} ms, a round trip {trip * 1e3:.2f}, "
        f"a raw sync of 1 KiB {syncs_of(BUILD, SIZE).p50_us / 1e3:.2f}"
    )


@contextmanager
def shovels(
    cpus: tuple[Cpus, Cpus] = (server_cpu, client_cpu),
) -> Iterator[tuple[Broker, Broker]]:
    """Two brokers, the first of which has the shovel."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(dir=BUILD)))
        mapped = stack.enter_context(mapper(directory))
        plugins = ["rabbitmq_shovel"]
        source = stack.enter_context(broker(directory, mapped, "source", cpus[0], plugins))
        yield source, stack.enter_context(broker(directory, mapped, "destination", cpus[1]))


def shovelled(source: Broker, destination: Broker) -> float:
    """Messages per second from one quorum queue to the other."""
    destination.put(QUEUE, 0, SIZE)
    source.put(QUEUE, few(BACKLOG), SIZE)
    source.control(
        "set_parameter", "shovel", "bench", SHOVEL.format(source.port, destination.port, QUEUE)
    )
    try:
        return destination.arrived(QUEUE, few(BACKLOG))
    finally:
        source.control("clear_parameter", "shovel", "bench")


FROM_C = f"{BETWEEN} what the receiver stores of a session from C"
SHOVELLED = f"{BETWEEN} RabbitMQ's shovel"
VISIBLE = "from sent to visible at the other one, one message on its way"


def over_one(pair: Two) -> Figure:
    """Over what the sender stores for clients."""
    stored = pairs(pair.transferred, pair.stored, ROUNDS)
    return stored.figure(STORED_ALONE, _process(pair.receiver), beside(pair, stored))


def over_a_session(pair: Two) -> Figure:
    """Over what the receiver takes of a sender in C."""
    taken = pairs(pair.transferred, pair.taken, ROUNDS)
    return taken.figure(FROM_C, _process(pair.receiver))


def over_the_shovel(pair: Two, name: str, cpus: tuple[Cpus, Cpus]) -> Figure:
    """One queue manager to another against one broker to another."""
    with shovels(cpus) as brokers:
        measured = pairs(pair.transferred, partial(shovelled, *brokers), ROUNDS)
        schedulers = " and ".join(str(each.schedulers) for each in brokers)
        note = f"; RabbitMQ's schedulers {schedulers}"
        return measured.figure(name, _process(pair.receiver), note)


def together() -> Figure:
    """All four may use all processors."""
    if len(all_cpus) < 2:
        raise UnavailableError("there is one processor")
    cpus = (all_cpus, all_cpus)
    with two(cpus=cpus) as pair:
        pair.transferred()
        return over_the_shovel(pair, f"{SHOVELLED}{BOTH}", cpus)


def run() -> Iterator[Figure]:
    with two() as pair:
        pair.transferred()
        yield from attempt(STORED_ALONE, partial(over_one, pair))
        yield from attempt(FROM_C, partial(over_a_session, pair))
        shovel = partial(over_the_shovel, pair, SHOVELLED, (server_cpu, client_cpu))
        yield from attempt(SHOVELLED, shovel)
        yield from attempt(VISIBLE, partial(latency, pair))
    yield from attempt(f"{SHOVELLED}{BOTH}", together)
