"""Programs of every kind that use the bank, and write down what they are answered.

Each turns to one node until it is refused or hears nothing, and then to the other one. What it
sends has its own name and a number. A request without an answer is in doubt, whatever has become
of it.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from random import Random
from typing import Any, TypeVar

from rpcqm.base.errors import DecodeError, MQError, RpcFault
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.target import (
    HandleLostError,
    OutcomeUnknownError,
    RemoteServer,
    ServerUnreachableError,
    Target,
)
from rpcqm.codec.names.format_name import FormatName
from tests.support.cluster.history import History, Missed, Name, Outcome, Sent, Taken
from tests.support.cluster.nodes import BANK, ENDPOINT_MAPPER, QueueManager

ANSWER = 8.0
"""Seconds that a client waits for an answer."""
OPENING = 3.0
PAUSE = 0.05
T = TypeVar("T")
OpenedT = TypeVar("OpenedT")

WRONG = (OSError, TimeoutError, DecodeError, MQError, RpcFault, ServerUnreachableError)


class Lately:
    """What all clients share: the history, the nodes, and whether they are to go on."""

    def __init__(self, nodes: list[QueueManager], seed: int) -> None:
        self.history = History()
        self.nodes = nodes
        self.seed = seed
        self.is_open = True
        self.answered = 0.0
        """When the bank last answered a change."""

    def sent(self, each: Sent) -> None:
        self.history.sent.append(each)
        if each.node and each.outcome is Outcome.DONE:
            self.answered = time.monotonic()

    def taken(self, each: Taken) -> None:
        self.history.taken.append(each)
        if each.outcome is Outcome.DONE:
            self.answered = time.monotonic()


class Client:
    """One program; `queue` is what it uses."""

    def __init__(self, name: str, queue: str, shared: Lately, pause: float = PAUSE) -> None:
        self.name = name
        self.queue = queue
        self.shared = shared
        self.pause = pause
        self.random = Random(f"{shared.seed} {name}")
        self.node = self.random.choice(shared.nodes)
        self.last = 0

    def next(self) -> Name:
        self.last += 1
        return Name(self.name, self.last)

    async def run(self) -> None:
        """Use one node after the other, until all is over."""
        while self.shared.is_open:
            with suppress(*WRONG):
                await self.use(self.node)
            self.turn()
            await asyncio.sleep(self.pause + self.random.random() * 0.2)

    def turn(self) -> None:
        """Ask the other one next."""
        nodes = self.shared.nodes
        self.node = nodes[(nodes.index(self.node) + 1) % len(nodes)]

    async def use(self, node: QueueManager) -> None:
        """Ask a node, as long as it answers."""
        raise NotImplementedError

    def note(
        self, name: Name, began: float, outcome: Outcome, unit: str = "", key: str = ""
    ) -> None:
        """What became of an attempt to send to the bank."""
        ended = time.monotonic()
        self.shared.sent(Sent(name, self.queue, self.node.name, began, ended, outcome, unit, key))


def outcome_of(error: BaseException) -> Outcome:
    """What an error means for a change that was asked for: who refuses it has not made it."""
    refused = isinstance(error, MQError | RpcFault | HandleLostError)
    return Outcome.REFUSED if refused else Outcome.DOUBT


class Line:
    """A connection to one node, which ends at once when anything takes too long."""

    def __init__(self, target: Target) -> None:
        self.client = QueueManagerClient(target)

    async def within(self, awaitable: Awaitable[T], seconds: float = ANSWER) -> T:
        """What is awaited; OutcomeUnknownError if it does not come in time."""
        task = asyncio.ensure_future(awaitable)
        done, _ = await asyncio.wait([task], timeout=seconds)
        if not done:
            await self.close()
            task.cancel()
            await asyncio.wait([task], timeout=1)
            task.add_done_callback(_ignored)
            raise OutcomeUnknownError("no answer")
        return task.result()

    async def close(self) -> None:
        closing = asyncio.ensure_future(self.client.close())
        closing.add_done_callback(_ignored)
        await asyncio.wait([closing], timeout=1)

    @asynccontextmanager
    async def opened(self, thing: AbstractAsyncContextManager[OpenedT]) -> AsyncIterator[OpenedT]:
        """Open something; after an error the connection closes, and with it what is open."""
        found = await self.within(thing.__aenter__(), OPENING)
        yield found
        await self.within(thing.__aexit__(None, None, None))


def _ignored(task: "asyncio.Future[Any]") -> None:
    if not task.cancelled():
        task.exception()


@asynccontextmanager
async def connected(target: Target) -> AsyncIterator[Line]:
    """A line that is closed in the end."""
    line = Line(target)
    try:
        yield line
    finally:
        await line.close()


def over_network(node: QueueManager) -> RemoteServer:
    return RemoteServer(node.machine.address, ENDPOINT_MAPPER)


def local(queue: str) -> FormatName:
    return FormatName.parse(rf"DIRECT=OS:.\private$\{queue}")


def of_bank(queue: str) -> FormatName:
    return FormatName.parse(rf"DIRECT=OS:{BANK}\private$\{queue}")


def message(name: Name, filling: int = 0) -> OutgoingMessage:
    return OutgoingMessage(name.body + b"." * filling)


def name_in(body: bytes) -> Name:
    """The name that a body has."""
    sender, _, number = body.partition(b">")[0].removeprefix(b"<").decode().partition(":")
    return Name(sender, int(number))


class RpcSender(Client):
    """Sends one message after the other by RPC; now and then a large one."""

    async def use(self, node: QueueManager) -> None:
        async with connected(over_network(node)) as line:
            sender = await line.within(line.client.open_sender(of_bank(self.queue)).__aenter__())
            while self.shared.is_open:
                filling = self.random.choice((0, 0, 0, 900, 900, 20_000))
                name, began = self.next(), time.monotonic()
                try:
                    await line.within(sender.send(message(name, filling)))
                except BaseException as error:
                    self.note(name, began, outcome_of(error))
                    raise
                self.note(name, began, Outcome.DONE)
                await asyncio.sleep(self.pause)


class Transactor(Client):
    """Sends two messages in each transaction; aborts every tenth."""

    async def use(self, node: QueueManager) -> None:
        async with connected(over_network(node)) as line:
            sender = await line.within(line.client.open_sender(of_bank(self.queue)).__aenter__())
            while self.shared.is_open:
                unit = line.client.begin_transaction()
                await line.within(unit.__aenter__(), OPENING)
                names, began = (self.next(), self.next()), time.monotonic()
                end = unit.abort if self.random.random() < 0.1 else unit.commit
                outcome = Outcome.REFUSED
                try:
                    for name in names:
                        await line.within(sender.send(message(name), unit))
                    outcome = Outcome.DOUBT if end == unit.commit else Outcome.REFUSED
                    await line.within(end())
                    outcome = Outcome.DONE if end == unit.commit else Outcome.REFUSED
                except (MQError, RpcFault, HandleLostError):
                    outcome = Outcome.REFUSED
                    raise
                finally:
                    for name in names:
                        self.note(name, began, outcome, unit=str(unit.identifier))
                await asyncio.sleep(self.pause)


class Reader(Client):
    """Reads in two phases by RPC; gives one of ten messages back."""

    async def use(self, node: QueueManager) -> None:
        async with connected(over_network(node)) as line:
            reader = await line.within(line.client.open_reader(of_bank(self.queue)).__aenter__())
            while self.shared.is_open:
                began = time.monotonic()
                try:
                    pending = await line.within(reader.receive(500))
                except MQError as error:
                    if error.status.name != "MQ_ERROR_IO_TIMEOUT":
                        raise
                    continue
                except (ServerUnreachableError, RpcFault):
                    self.shared.history.missed.append(Missed(self.queue, began, time.monotonic()))
                    raise
                given, name = time.monotonic(), name_in(pending.message.body)
                back = self.random.random() < 0.1
                outcome = Outcome.REFUSED if back else Outcome.DOUBT
                end = pending.release if back else pending.acknowledge
                try:
                    await line.within(end())
                    outcome = Outcome.REFUSED if back else Outcome.DONE
                except (MQError, RpcFault, HandleLostError):
                    outcome = Outcome.REFUSED
                    raise
                finally:
                    ended = time.monotonic()
                    self.shared.taken(
                        Taken(name, self.queue, node.name, began, given, ended, outcome)
                    )
                await asyncio.sleep(self.pause)


class StreamSender(Client):
    """Sends transactional messages through another queue manager, by whose socket it speaks."""

    def __init__(
        self,
        name: str,
        target: FormatName,
        queue: str,
        shared: Lately,
        carol: QueueManager,
        pause: float = PAUSE,
    ) -> None:
        super().__init__(name, queue, shared, pause)
        self._target = target
        self._carol = carol

    def note(
        self, name: Name, began: float, outcome: Outcome, unit: str = "", key: str = ""
    ) -> None:
        ended = time.monotonic()
        self.shared.sent(Sent(name, self.queue, "", began, ended, outcome, unit, key))

    async def use(self, node: QueueManager) -> None:
        async with connected(self._carol.target) as line:
            sender = await line.within(line.client.open_sender(self._target).__aenter__())
            while self.shared.is_open:
                await self.send(line, sender.send)
                await asyncio.sleep(self.pause)

    async def send(self, line: Line, send: Callable[..., Awaitable[object]]) -> None:
        """One message in a transaction of its own."""
        unit = line.client.begin_transaction()
        await line.within(unit.__aenter__())
        name, began = self.next(), time.monotonic()
        try:
            await line.within(send(message(name), unit))
            await line.within(unit.commit())
        except BaseException as error:
            self.note(name, began, outcome_of(error))
            raise
        self.note(name, began, Outcome.DONE)
