"""The engines that keep a replicated log, each as the contract of all of them needs it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from rpcqm.base.completion import Completion
from rpcqm.replica.nats import NatsLog, NatsSettings, open_log
from rpcqm.replica.postgresql import PostgresqlLog, PostgresqlSettings
from rpcqm.replica.postgresql import open_log as open_tables
from rpcqm.store.errors import ReplicationError
from rpcqm.store.replication import ReplicatedLog
from tests.support.replica.memory_log import MemoryEngine, MemoryLog
from tests.support.waiting import PATIENCE

T = TypeVar("T")


class Engines(Protocol):
    """Opens logs by their names, for one running of the event loop."""

    async def open(self, name: str) -> ReplicatedLog:
        """A node's view of a log, which is made if it is not there."""

    async def close(self) -> None:
        """Close all that was opened."""


class MemoryEngines:
    """Logs that end with the test."""

    def __init__(self) -> None:
        self._logs: dict[str, MemoryLog] = {}

    async def open(self, name: str) -> ReplicatedLog:
        loop = asyncio.get_running_loop()
        log = self._logs.setdefault(name, MemoryLog(loop.call_soon))
        return MemoryEngine(log)

    async def close(self) -> None:
        self._logs.clear()


class NatsEngines:
    """Streams of servers that run already."""

    def __init__(self, urls: list[str]) -> None:
        self._urls = tuple(urls)
        self._opened: list[NatsLog] = []

    async def open(self, name: str, maximum_bytes: int = 1 << 26) -> NatsLog:
        replicas = min(len(self._urls), 3)
        settings = NatsSettings(self._urls, name, replicas, maximum_bytes)
        log = await eventually(lambda: open_log(settings))
        self._opened.append(log)
        return log

    async def close(self) -> None:
        for log in self._opened:
            await log.close()


class PostgresqlEngines:
    """Tables of a server that runs already."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._opened: list[PostgresqlLog] = []

    async def open(self, name: str) -> PostgresqlLog:
        log = await eventually(lambda: open_tables(PostgresqlSettings(self._url, name)))
        self._opened.append(log)
        return log

    async def close(self) -> None:
        for log in self._opened:
            await log.close()


async def eventually(make: Callable[[], Awaitable[T]]) -> T:
    """What is made as soon as it can be: servers that just started have no leader yet."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await make()
            except ReplicationError:
                await asyncio.sleep(0.1)


async def outcome(completion: Completion[T]) -> T:
    """What a completion gives; it must not have it yet."""
    assert not completion.done
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    completion.add_done_callback(lambda _: future.set_result(None))
    async with asyncio.timeout(PATIENCE):
        await future
    return completion.result()
