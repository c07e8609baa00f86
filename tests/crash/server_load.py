"""A real queue manager under load from several clients, killed at random moments.

What the clients were told is kept; after each restart the queues must hold exactly what follows
from it. An operation that got no answer may have either outcome, as a whole.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random

from rpcqm.base.errors import MQError
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.target import LocalServer, ServerUnreachableError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.store.fsck import check
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from rpcqm.testing.private import StartFailedError
from tests.support.waiting import PATIENCE

ORDERS, LATE, PAIRS = (
    FormatName.parse(rf"DIRECT=OS:.\private$\{name}") for name in ("orders", "orders;late", "pairs")
)
SENDERS = 3
RECEIVERS = 2
FEWEST, MOST = 20, 200
"""Operations that are acknowledged before a kill."""

DEATHS_AT_START = 0.4
"""How often a start is killed, too."""


@dataclass
class Ledger:
    """What clients know of messages, which are named `sender:number`."""

    there: set[str] = field(default_factory=set)
    """Sent, and the answer has come."""
    sending: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    """Received, and the answer to the end has come."""
    ending: set[str] = field(default_factory=set)
    pairs: set[str] = field(default_factory=set)
    """Transactions of two messages that were committed."""
    committing: set[str] = field(default_factory=set)
    kills: int = 0

    @property
    def operations(self) -> int:
        """How many were acknowledged."""
        return len(self.there) + 2 * len(self.gone) + len(self.pairs)

    def copy(self) -> "Ledger":
        """As it is now, while others go on."""
        return deepcopy(self)

    def delivered(self, name: str) -> None:
        """A receiver was given a message."""
        assert name not in self.gone, f"{name} came again after its end was acknowledged"
        assert name in self.there | self.sending, f"{name} was never sent"

    def ended(self, name: str) -> None:
        """The end of a receive was acknowledged."""
        self.ending.discard(name)
        self.there.discard(name)
        self.gone.add(name)

    def compare(self, orders: list[str], late: list[str], pairs: list[str]) -> None:
        """The queues hold what they must; what had no answer is known from now on."""
        found = [*orders, *late]
        assert len(found) == len(set(found)), "a message is there twice"
        lost = self.there - self.ending - set(found)
        assert not lost, f"acknowledged messages are lost: {sorted(lost)}"
        strange = set(found) - self.there - self.sending
        assert not strange, f"messages are there that must not be: {sorted(strange)}"
        self.compare_order(orders)
        names = self.compare_pairs(pairs)
        assert self.pairs <= names, "an acknowledged transaction is lost"
        self.pairs = names
        self.committing.clear()
        self.gone |= (self.there | self.sending) - set(found)
        self.there = set(found)
        self.sending.clear()
        self.ending.clear()

    @staticmethod
    def compare_order(found: Iterable[str]) -> None:
        """Messages of one sender are in the order in which it sent them."""
        for sender in range(SENDERS):
            numbers = [int(name.split(":")[1]) for name in found if name.startswith(f"{sender}:")]
            assert all(one < other for one, other in pairwise(numbers)), "the order is lost"

    def compare_pairs(self, found: list[str]) -> set[str]:
        """Transactions are there as a whole, or not; which ones are."""
        names = [name.rsplit(":", 1)[0] for name in found]
        whole = [f"{name}:{half}" for name in dict.fromkeys(names) for half in ("a", "b")]
        assert found == whole, "a transaction is there in part"
        assert set(names) <= self.pairs | self.committing
        return set(names)


@contextlib.contextmanager
def loaded_queue_manager(
    seed: int, environment: Mapping[str, str] | None = None, data_dir: Path | None = None
) -> Iterator["ServerLoad"]:
    """A queue manager with the queues of the load; its data is checked in the end."""
    with private_queue_manager(environment=environment, data_dir=data_dir) as queue_manager:
        queue_manager.run("queue", "create", "orders")
        queue_manager.run("queue", "create", "pairs", "--transactional")
        yield ServerLoad(queue_manager, seed)
        queue_manager.stop()
        assert check(queue_manager.data_dir) == []


class ServerLoad:
    """The clients of one queue manager, over its lives."""

    def __init__(self, queue_manager: PrivateQueueManager, seed: int) -> None:
        self.queue_manager = queue_manager
        self._random = Random(seed)
        self._numbers = dict.fromkeys([*map(str, range(SENDERS)), "t"], 0)
        self.ledger = Ledger()

    def run(self, kills: int) -> None:
        """Load, kill, restart and compare, so many times."""
        for _ in range(kills):
            self.live_until(self.queue_manager.kill)
            self.ledger.kills += 1
            self.restart()

    def live_until(self, end: Callable[[], object]) -> None:
        """Load; `end` ends the process at a random moment."""
        asyncio.run(self._live_until(end))

    def restart(self) -> None:
        """Start the queue manager again, and compare what it has with what clients were told.

        Now and then it is killed while it starts, and started once more.
        """
        if self._random.random() < DEATHS_AT_START:
            self._die_at_start()
        self.queue_manager.start()
        self.ledger.compare(*contents(self.queue_manager))

    def _die_at_start(self) -> None:
        def die() -> None:
            process = self.queue_manager.process
            assert process is not None
            process.kill()

        timer = threading.Timer(self._random.uniform(0.1, 1.0), die)
        timer.start()
        with contextlib.suppress(StartFailedError):
            self.queue_manager.start()
        timer.join()
        self.queue_manager.kill()

    async def _live_until(self, end: Callable[[], object]) -> None:
        work: list[Callable[[QueueManagerClient], Awaitable[None]]] = [
            *[lambda client, name=str(n): self._send(client, name) for n in range(SENDERS)],
            *[self._receive] * RECEIVERS,
            self._move,
            self._send_pairs,
        ]
        async with contextlib.AsyncExitStack() as stack:
            tasks = []
            for clients_work in work:
                client = await stack.enter_async_context(self._client())
                tasks.append(asyncio.create_task(self._until_killed(clients_work(client))))
            await self._get_going()
            await asyncio.to_thread(end)
            await asyncio.gather(*tasks)

    async def _get_going(self) -> None:
        """Wait for some operations, and a transaction among them."""
        ledger, deadline = self.ledger, time.monotonic() + PATIENCE
        target = ledger.operations + self._random.randint(FEWEST, MOST)
        pairs = len(ledger.pairs)
        while ledger.operations < target or len(ledger.pairs) == pairs:
            assert time.monotonic() < deadline, "the queue manager makes no progress"
            await asyncio.sleep(0.001)

    def _client(self) -> QueueManagerClient:
        return QueueManagerClient(LocalServer(self.queue_manager.socket))

    @staticmethod
    async def _until_killed(work: Awaitable[None]) -> None:
        with contextlib.suppress(ServerUnreachableError):
            await work

    def _next(self, sender: str) -> str:
        self._numbers[sender] += 1
        return f"{sender}:{self._numbers[sender]}"

    def _message(self, name: str) -> OutgoingMessage:
        filling = "." * self._random.choice([0, 200, 10_000])
        return OutgoingMessage(f"{name} {filling}".encode())

    async def _send(self, client: QueueManagerClient, sender: str) -> None:
        async with client.open_sender(ORDERS) as queue:
            while True:
                name = self._next(sender)
                self.ledger.sending.add(name)
                await queue.send(self._message(name))
                self.ledger.sending.discard(name)
                if name not in self.ledger.gone:
                    self.ledger.there.add(name)

    async def _receive(self, client: QueueManagerClient) -> None:
        async with client.open_reader(ORDERS) as queue:
            while True:
                pending = await queue.receive()
                name = _name(pending.message.body)
                self.ledger.delivered(name)
                self.ledger.ending.add(name)
                await pending.acknowledge()
                self.ledger.ended(name)

    async def _move(self, client: QueueManagerClient) -> None:
        async with client.open_reader(ORDERS) as queue, client.open_move_target(LATE) as target:
            while True:
                message = await queue.peek()
                with contextlib.suppress(MQError):  # a receiver was quicker
                    await queue.move(message.lookup_identifier, target)
                await asyncio.sleep(0.01)

    async def _send_pairs(self, client: QueueManagerClient) -> None:
        async with client.open_sender(PAIRS) as queue:
            while True:
                name = self._next("t")
                async with client.begin_transaction() as transaction:
                    for half in ("a", "b"):
                        message = self._message(f"{name}:{half}")
                        await queue.send(message, transaction)
                    self.ledger.committing.add(name)
                self.ledger.committing.discard(name)
                self.ledger.pairs.add(name)


def contents(queue_manager: PrivateQueueManager) -> tuple[list[str], list[str], list[str]]:
    """The names of the messages in the three queues of the load."""

    async def browse() -> tuple[list[str], list[str], list[str]]:
        async with QueueManagerClient(LocalServer(queue_manager.socket)) as client:
            orders, late = await _browse(client, ORDERS), await _browse(client, LATE)
            return orders, late, await _browse(client, PAIRS)

    return asyncio.run(browse())


def _name(body: bytes) -> str:
    return body.split()[0].decode()


async def _browse(client: QueueManagerClient, queue: FormatName) -> list[str]:
    async with client.open_reader(queue, peek_only=True) as reader:
        return [_name(message.body) async for message in reader.browse()]
