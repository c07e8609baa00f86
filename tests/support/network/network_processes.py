"""Two real queue managers that are killed, with a network between them that fails.

What was sent is known by its number. A message is certain when its sender was told that it is
stored; one whose sender was cut off may have been stored or not.
"""

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random

from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.sending import QueueSender
from rpcqm.client.target import LocalServer, ServerUnreachableError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.binary.binary_proxy import (
    FaultyProxy,
    Frame,
    ProxyFaults,
    binary_frame,
    http_frame,
)
from tests.support.ports import reserved_port
from tests.support.queue_manager import MEMORY
from tests.support.waiting import PATIENCE

JOURNALED = 0.3
"""How many transactional messages want to know what becomes of them."""
_PAUSE = 0.005


@dataclass(frozen=True)
class Wire:
    """By what Alice sends to Bob, and how it fails; `queue` names one of his through a proxy."""

    door: str
    queue: str
    faults: ProxyFaults
    frame: Frame
    pause: float = _PAUSE

    def to(self, queue: str, port: int) -> FormatName:
        return FormatName.parse(self.queue.format(queue=queue, port=port))


BINARY = Wire(
    "binary",
    "DIRECT=OS:bob\\private$\\{queue}",
    ProxyFaults(cut=0.005, corrupt=0.005, linger=0.005, replay=0.3, delay=0.004, late=1.0),
    binary_frame,
)
HTTP = Wire(
    "http",
    "DIRECT=HTTP://127.0.0.1:{port}/msmq/private$/{queue}",
    # Nothing in HTTP would notice damage, and a word of it that is damaged is a refusal.
    ProxyFaults(cut=0.02, linger=0.02, replay=0.3, delay=0.004, late=1.0),
    http_frame,
    # Each message waits for the answer to the one before, while both processes are often dead.
    pause=0.03,
)


@dataclass
class Ledger:
    """What has been sent to one queue."""

    certain: list[int] = field(default_factory=list)
    perhaps: set[int] = field(default_factory=set)
    last: int = 0

    def problems(self, arrived: list[int], in_order: bool) -> list[str]:
        """What is wrong with what has arrived."""
        found = []
        if missing := set(self.certain) - set(arrived):
            found.append(f"{len(missing)} are lost, such as {min(missing)}")
        if len(arrived) != len(set(arrived)):
            found.append(f"{len(arrived) - len(set(arrived))} have come twice")
        if strange := set(arrived) - set(self.certain) - self.perhaps:
            found.append(f"{len(strange)} were never sent, such as {min(strange)}")
        if in_order and any(one >= other for one, other in pairwise(arrived)):
            found.append("they are not in order")
        return found


@dataclass
class Outcome:
    """What a run came to; `problems` is empty when all is well."""

    messages: int
    kills: int
    happened: Counter[str]
    problems: list[str]


class FailingPair:
    """Alice sends to Bob through the proxy `forth`, and by HTTP he answers through `back`."""

    def __init__(
        self,
        seed: int,
        wire: Wire,
        alice: PrivateQueueManager,
        bob: PrivateQueueManager,
        forth: FaultyProxy,
        back: FaultyProxy,
    ) -> None:
        self._random = Random(seed)
        self._wire = wire
        self._alice = alice
        self._bob = bob
        self._forth = forth
        self._back = back
        self._sending = True
        self._socket = alice.socket
        self._connect()
        bob.run("queue", "create", "stream", "--transactional")
        bob.run("queue", "create", "orders")
        self.ledgers = {"stream": Ledger(), "orders": Ledger()}

    def run(self, kills: int, messages: int = 0) -> Outcome:
        """Send so many at least while the network fails and both die in turn; then let everything
        arrive."""
        asyncio.run(self._live(kills, messages))
        happened = self._forth.happened + self._back.happened
        self._forth.faults = self._back.faults = ProxyFaults()
        problems = asyncio.run(self._settle())
        return Outcome(self.sent, kills, happened, problems)

    @property
    def sent(self) -> int:
        """How many messages are certain."""
        return sum(len(ledger.certain) for ledger in self.ledgers.values())

    def _connect(self) -> None:
        """Ports may be others after a start."""
        self._forth.target = self._bob.endpoint(self._wire.door)
        self._back.target = self._alice.endpoint(self._wire.door)

    async def _live(self, kills: int, messages: int) -> None:
        senders = [asyncio.create_task(self._send(queue)) for queue in self.ledgers]
        for number in range(kills):
            await asyncio.sleep(self._random.uniform(0.5, 1.5))
            victim = (self._alice, self._bob)[number % 2]
            await asyncio.to_thread(victim.kill)
            await asyncio.sleep(self._random.uniform(0, 0.5))
            await asyncio.to_thread(victim.start)
            self._connect()
        await asyncio.sleep(self._random.uniform(0.5, 1.5))
        async with asyncio.timeout(PATIENCE):
            while self.sent < messages:
                await asyncio.sleep(_PAUSE)
        self._sending = False
        await asyncio.gather(*senders)

    async def _send(self, queue: str) -> None:
        while self._sending:
            with suppress(ServerUnreachableError):
                await self._send_over_one_connection(queue)
            await asyncio.sleep(self._wire.pause)

    async def _send_over_one_connection(self, queue: str) -> None:
        async with QueueManagerClient(LocalServer(self._socket)) as client:
            while self._sending:
                await self._send_next(client, queue)
                await asyncio.sleep(self._wire.pause)

    async def _send_next(self, client: QueueManagerClient, queue: str) -> None:
        ledger = self.ledgers[queue]
        ledger.last += 1
        ledger.perhaps.add(ledger.last)
        async with client.open_sender(self._wire.to(queue, self._forth.port)) as sender:
            if queue == "orders":
                await sender.send(OutgoingMessage(b"%d" % ledger.last))
            else:
                await self._send_in_transaction(client, sender, ledger.last)
        ledger.perhaps.discard(ledger.last)
        ledger.certain.append(ledger.last)

    async def _send_in_transaction(
        self, client: QueueManagerClient, sender: QueueSender, number: int
    ) -> None:
        journaled = self._random.random() < JOURNALED
        async with client.begin_transaction() as unit:
            await sender.send(OutgoingMessage(b"%d" % number, dead_letter=journaled), unit)

    # After the storm

    async def _settle(self) -> list[str]:
        """Wait for what must arrive, take it away, and see that nothing is left behind."""
        async with QueueManagerClient(LocalServer(self._socket)) as client:
            for queue in self.ledgers:
                await self._send_next(client, queue)
            async with QueueManagerClient(LocalServer(self._bob.socket)) as bob:
                problems = []
                for queue, ledger in self.ledgers.items():
                    arrived = await _all_of(bob, queue, ledger)
                    problems += ledger.problems(arrived, in_order=queue == "stream")
                    await _receive(bob, queue, len(arrived))
                return problems + await _left_behind(client) + await _left_behind(bob)


async def _all_of(client: QueueManagerClient, queue: str, ledger: Ledger) -> list[int]:
    """What has arrived, once all of it has or patience is at its end."""
    give_up = time.monotonic() + PATIENCE
    while True:
        async with client.open_reader(_local(queue), peek_only=True) as reader:
            arrived = [int(message.body) async for message in reader.browse()]
        if set(ledger.certain) <= set(arrived) or time.monotonic() > give_up:
            return arrived
        await asyncio.sleep(0.1)


async def _receive(client: QueueManagerClient, queue: str, count: int) -> None:
    async with client.open_reader(_local(queue)) as reader:
        for _ in range(count):
            async with await reader.receive():
                pass


async def _left_behind(client: QueueManagerClient) -> list[str]:
    """Outgoing queues that do not get rid of their messages."""
    give_up = time.monotonic() + PATIENCE
    while True:
        queues = await client.management.outgoing_queues()
        left = [queue for queue in queues if queue.message_count]
        if not left:
            return []
        if time.monotonic() > give_up:
            return [f"{queue.message_count} wait in {queue.format_name}" for queue in left]
        await asyncio.sleep(0.1)


def _local(queue: str) -> FormatName:
    return FormatName.parse(f"DIRECT=OS:.\\private$\\{queue}")


_TIMES = "retry_milliseconds = 100\nback_off_milliseconds = 200\n"
_TIMES_OF_HTTP = (
    "retry_milliseconds = 500\nreceipt_coalescing_milliseconds = 50\n"
    "stream_receipt_wait_milliseconds = 500\nreceipts_to = ['127.0.0.1']\n"
)


def _binary_settings(forth: FaultyProxy, _back: FaultyProxy) -> tuple[str, str]:
    """The configurations of Alice and Bob."""
    times = f"[binary]\n{_TIMES}"
    return f'{times}peers = "bob=127.0.0.1:{forth.port}"\n', times


def _http_settings(forth: FaultyProxy, back: FaultyProxy) -> tuple[str, str]:
    """The same; each knows by which URL the other one sends to it."""
    receipts = f"http://127.0.0.1:{back.port}/msmq/private$/order_queue$"
    return (
        _http_setting(back.port, f'default_stream_receipt_url = "{receipts}"\n'),
        _http_setting(forth.port, ""),
    )


def _http_setting(public: int, more: str) -> str:
    # A port that a dead process has left is taken again by the next one.
    return (
        f"http_port = {reserved_port()}\n[srmp]\n{_TIMES_OF_HTTP}{more}[[srmp.inbound]]\n"
        f'from = "http://127.0.0.1:{public}/*"\nto = "http://127.0.0.1/*"\n'
    )


@contextmanager
def failing_pair(
    seed: int, wire: Wire = BINARY, faults: ProxyFaults | None = None
) -> Iterator[FailingPair]:
    """Alice, Bob with his queues, and the network between them."""
    how = wire.faults if faults is None else faults
    with tempfile.TemporaryDirectory(dir=MEMORY) as name, ExitStack() as stack:
        place = Path(name)
        forth = stack.enter_context(FaultyProxy(seed, how, frame=wire.frame))
        back = stack.enter_context(FaultyProxy(seed + 1_000_000, how, frame=wire.frame))
        settings = (_http_settings if wire is HTTP else _binary_settings)(forth, back)
        alice, bob = (
            stack.enter_context(_named(name, place, setting))
            for name, setting in zip(("alice", "bob"), settings, strict=True)
        )
        yield FailingPair(seed, wire, alice, bob, forth, back)


def _named(name: str, place: Path, settings: str) -> AbstractContextManager[PrivateQueueManager]:
    first, table, more = settings.partition("[")
    configuration = f'name = "{name}"\n{first}[storage]\nreserve = 1\n{table}{more}'
    return private_queue_manager(configuration=configuration, data_dir=place / name)


def run_seed(seed: int, kills: int, wire: Wire = BINARY, messages: int = 0) -> Outcome:
    """One storm, with so many deaths of one queue manager or the other."""
    with failing_pair(seed, wire) as pair:
        return pair.run(kills, messages)
