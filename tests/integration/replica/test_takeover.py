"""A standby takes over from a store that stands still, while the log loses its leader."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from rpcqm.base.clock import SystemClock
from rpcqm.base.loop_timers import timers_on_loop
from rpcqm.replica.appending import Appender, FencedError
from rpcqm.replica.following import Standby, Writer
from rpcqm.replica.lease import Lease, boottime
from rpcqm.replica.nats import NatsLog
from rpcqm.store.database import Database
from rpcqm.store.errors import ReplicationError
from rpcqm.store.migration import enter_cluster
from rpcqm.store.replication import Place
from rpcqm.store.settings import StoreSettings
from rpcqm.store.store import Store
from tests.support.replica.engines import NatsEngines
from tests.support.replica.nats_servers import NatsServer
from tests.support.waiting import PATIENCE

Q = 16
LEASE = 1_000
INCARNATION = os.urandom(16)
LOG = f"log-{INCARNATION.hex()[:8]}"


class Node:
    """A node over real servers."""

    def __init__(self, name: str, directory: Path, log: NatsLog) -> None:
        self.directory = directory
        self.log = log
        self.loop = asyncio.get_running_loop()
        self.clock = SystemClock()
        self.timers = timers_on_loop(self.clock, self.loop)
        self.lease = Lease(LEASE, boottime)
        self.database = Database(directory, StoreSettings())
        enter_cluster(self.database, Place.beginning(INCARNATION))
        self.place: asyncio.Future[Place] = self.loop.create_future()
        self.fatal: list[BaseException] = []
        itself = Writer(os.urandom(16), name)
        self.standby = Standby(
            log,
            self.database,
            itself,
            self.lease,
            self.clock,
            self.timers,
            self.place.set_result,
            self._fail,
        )

    def _fail(self, error: ReplicationError) -> None:
        self.place.set_exception(error)

    async def open(self) -> Store:
        """The store, once the node has taken over."""
        async with asyncio.timeout(PATIENCE):
            place = await self.place
        self.database.close()
        self.appender = Appender(
            self.log, place, self.lease, self.clock, self.timers, lambda by: None
        )
        return Store.open(
            self.directory,
            end_of_turn=self.loop.call_soon,
            settings=StoreSettings(reserve=0),
            fatal=self.fatal.append,
            log=self.appender,
        )


async def insert(store: Store, key: int) -> None:
    """Store a message; returns when it is answered."""
    answered = asyncio.get_running_loop().create_future()
    with store.transaction("insert") as txn:
        txn.insert(Q, key, b"%d" % key, arrival=0)
    txn.call_after(lambda: answered.set_result(None))
    async with asyncio.timeout(PATIENCE):
        await answered


def test_a_standby_has_all_that_was_answered(
    tmp_path: Path, servers: Callable[[int], list[NatsServer]]
) -> None:
    async def run() -> None:
        engines = NatsEngines([server.url for server in servers(3)])
        first = Node("first", tmp_path / "first", await engines.open(LOG))
        first.standby.promote()
        store = await first.open()
        second = Node("second", tmp_path / "second", await engines.open(LOG))
        await asyncio.gather(*(insert(store, key) for key in range(40)))
        for key in range(40, 60):
            await insert(store, key)
        info = await first.log.context.stream_info(LOG)
        assert info.cluster is not None
        (leader,) = [each for each in servers(3) if each.name == info.cluster.leader]
        assert first.appender._idle is not None
        first.appender._idle.cancel()  # it stands still: no sign of life comes any more
        leader.kill()
        taken = await second.open()
        assert not first.lease.held
        assert list(taken.index(Q).keys()) == list(range(60))
        assert not first.fatal
        with store.transaction("woken up") as txn:
            txn.insert(Q, 100, b"too late", arrival=0)
        txn.call_after(lambda: first.fatal.append(AssertionError("was answered")))
        async with asyncio.timeout(PATIENCE):
            while not first.fatal:
                await asyncio.sleep(0.05)
        assert isinstance(first.fatal[0], FencedError)
        await insert(taken, 60)
        assert taken.index(Q).count == 61
        for each in (store, taken):
            each.close()
        second.appender.stop()
        await engines.close()
        leader.start()

    asyncio.run(run())
