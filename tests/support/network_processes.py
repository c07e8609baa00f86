"""Two real queue managers that are killed, with a network between them that fails.

What was sent is known by its number. A message is certain when its sender was told that it is
stored; one whose sender was cut off may have been stored or not.
"""

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
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
from tests.support.binary_proxy import FaultyProxy, ProxyFaults
from tests.support.queue_manager import MEMORY

FAULTS = ProxyFaults(cut=0.005, corrupt=0.005, linger=0.005, replay=0.3, delay=0.004, late=1.0)
PATIENCE = 120.0
JOURNALED = 0.3
"""How many transactional messages want to know what becomes of them."""
_TIMES = "retry_milliseconds = 100\nback_off_milliseconds = 200\n"
_PAUSE = 0.005


def _to(queue: str) -> FormatName:
    return FormatName.parse(f"DIRECT=OS:bob\\private$\\{queue}")


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
    """Alice sends to Bob, each through a proxy of the other."""

    def __init__(
        self, seed: int, alice: PrivateQueueManager, bob: PrivateQueueManager, forth: FaultyProxy
    ) -> None:
        self._random = Random(seed)
        self._alice = alice
        self._bob = bob
        self._forth = forth
        self._sending = True
        self._socket = alice.socket
        forth.target = bob.endpoint("binary")
        bob.run("queue", "create", "stream", "--transactional")
        bob.run("queue", "create", "orders")
        self.ledgers = {"stream": Ledger(), "orders": Ledger()}

    def run(self, kills: int) -> Outcome:
        """Send while the network fails and both die in turn; then let everything arrive."""
        asyncio.run(self._live(kills))
        happened = self._forth.happened.copy()
        self._forth.faults = ProxyFaults()
        problems = asyncio.run(self._settle())
        total = sum(len(ledger.certain) for ledger in self.ledgers.values())
        return Outcome(total, kills, happened, problems)

    async def _live(self, kills: int) -> None:
        senders = [asyncio.create_task(self._send(queue)) for queue in self.ledgers]
        for number in range(kills):
            await asyncio.sleep(self._random.uniform(0.5, 1.5))
            victim = (self._alice, self._bob)[number % 2]
            await asyncio.to_thread(victim.kill)
            await asyncio.sleep(self._random.uniform(0, 0.5))
            await asyncio.to_thread(victim.start)
            self._forth.target = self._bob.endpoint("binary")
        await asyncio.sleep(self._random.uniform(0.5, 1.5))
        self._sending = False
        await asyncio.gather(*senders)

    async def _send(self, queue: str) -> None:
        while self._sending:
            with suppress(ServerUnreachableError):
                await self._send_over_one_connection(queue)
            await asyncio.sleep(_PAUSE)

    async def _send_over_one_connection(self, queue: str) -> None:
        async with QueueManagerClient(LocalServer(self._socket)) as client:
            while self._sending:
                await self._send_next(client, queue)
                await asyncio.sleep(_PAUSE)

    async def _send_next(self, client: QueueManagerClient, queue: str) -> None:
        ledger = self.ledgers[queue]
        ledger.last += 1
        ledger.perhaps.add(ledger.last)
        async with client.open_sender(_to(queue)) as sender:
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
            return problems + await _left_behind(client)


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


@contextmanager
def failing_pair(seed: int, faults: ProxyFaults = FAULTS) -> Iterator[FailingPair]:
    """Alice, Bob with his queues, and the network from one to the other."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as name, ExitStack() as stack:
        place = Path(name)
        forth = stack.enter_context(FaultyProxy(seed, faults))
        settings = f'name = "%s"\n[storage]\nreserve = 1\n[binary]\n{_TIMES}'
        bob = private_queue_manager(configuration=settings % "bob", data_dir=place / "bob")
        peers = f'peers = "bob=127.0.0.1:{forth.port}"\n'
        alice = private_queue_manager(
            configuration=settings % "alice" + peers, data_dir=place / "alice"
        )
        pair = FailingPair(seed, stack.enter_context(alice), stack.enter_context(bob), forth)
        yield pair


def run_seed(seed: int, kills: int) -> Outcome:
    """One storm, with so many deaths of one queue manager or the other."""
    with failing_pair(seed) as pair:
        return pair.run(kills)
