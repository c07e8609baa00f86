"""A queue manager without RemoteRead, as the oldest servers are, on the event loop of a test."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from rpcqm.base.clock import SystemClock
from rpcqm.client.target import RemoteServer
from rpcqm.codec.interface import load
from rpcqm.interfaces import qm2qm, qmcomm
from rpcqm.interfaces.qm2qm import Qm2Qm
from rpcqm.interfaces.qmcomm import QmComm
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.rpc.call import Call
from rpcqm.rpc.endpoint_mapper import EPM, EndpointMapper
from rpcqm.rpc.server import RpcServer
from rpcqm.service.loop_timers import timers_on_loop
from rpcqm.store.settings import StoreSettings
from rpcqm.store.store import Store
from tests.support.queue_manager import SETTINGS


class OlderServer:
    """What a test needs: the engine, where it is reached, which calls came and at which port."""

    def __init__(self, engine: QueueManagerEngine) -> None:
        self.engine = engine
        self.target = RemoteServer("127.0.0.1", 0)
        self.ports: dict[str, int] = {}
        self.calls: list[str] = []
        self.called_at: dict[str, int] = {}

    async def create(self, name: str = "orders") -> str:
        """A queue, by its format name."""
        queue = self.engine.queues.new_queue(rf".\private$\{name}")
        created: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        creating = self.engine.queues.create_queue(queue)
        creating.add_done_callback(lambda _: created.set_result(None))
        await created
        return rf"DIRECT=OS:{queue.pathname}"


class Recorded:
    """Handlers that note which of them is called."""

    def __init__(self, handlers: object, older: OlderServer) -> None:
        self._handlers = handlers
        self._older = older

    def __getattr__(self, name: str) -> object:
        handler = getattr(self._handlers, name)

        def recorded(call: Call, request: object) -> object:
            self._older.calls.append(name)
            self._older.called_at[name] = int(
                call.association.endpoint.secondary_address.rstrip(b"\0")
            )
            return handler(call, request)

        return recorded


@asynccontextmanager
async def older_server(
    directory: Path, version: tuple[int, int, int] = qm2qm.VERSION
) -> AsyncIterator[OlderServer]:
    """A queue manager that serves qmcomm at one port and qm2qm at two."""
    loop, clock = asyncio.get_running_loop(), SystemClock()
    store = Store.open(
        directory, end_of_turn=loop.call_soon, clock=clock, settings=StoreSettings(reserve=1)
    )
    engine = QueueManagerEngine(store, clock, timers_on_loop(clock, loop), SETTINGS)
    engine.queue_manager_started()
    older, server = OlderServer(engine), RpcServer()
    comm = QmComm(engine, lambda: older.ports["rpc"], lambda: older.ports["qm2qm"])
    reading = Qm2Qm(engine, comm.handles, lambda: older.ports["rpc"], lambda: older.ports["qm2qm"])
    reading.version = version
    try:
        await _listen(older, server, comm, reading)
        yield older
    finally:
        await server.stop()
        engine.queue_manager_stopped()
        store.close()


async def _listen(older: OlderServer, server: RpcServer, comm: QmComm, reading: Qm2Qm) -> None:
    mapper = server.register(EPM, EndpointMapper(server))
    served = [
        server.register(load("qmcomm"), Recorded(comm, older), qmcomm.POLICY),
        server.register(load("qm2qm"), Recorded(reading, older), qm2qm.POLICY),
    ]
    older.ports["rpc"] = (await server.listen_tcp("127.0.0.1", 0, served)).port
    second = await server.listen_tcp("127.0.0.1", 0, [served[1]], advertised=False)
    older.ports["qm2qm"] = second.port
    epm = await server.listen_tcp("127.0.0.1", 0, [mapper], advertised=False)
    older.target = RemoteServer("127.0.0.1", epm.port)
