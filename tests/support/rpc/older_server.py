"""Queue managers on the event loop of a test: an old one, and one for dependent clients."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from rpcqm.adm.message import Message
from rpcqm.base.clock import SystemClock
from rpcqm.base.completion import Completion, start
from rpcqm.base.loop_timers import timers_on_loop
from rpcqm.client.target import RemoteServer, Target
from rpcqm.codec.interface import load
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.message import MessageAttributes
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.codec.types.remoteread import SectionBuffer
from rpcqm.interfaces import qm2qm, qmcomm, qmcomm2, remote_read
from rpcqm.interfaces._authentication import CallAdmission, RemoteReadSecurity
from rpcqm.interfaces._message_packet import MessagePackets
from rpcqm.interfaces.qm2qm import Qm2Qm
from rpcqm.interfaces.qmcomm import QmComm
from rpcqm.interfaces.qmcomm2 import QmComm2
from rpcqm.interfaces.remote_read import RemoteRead
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.settings import QueueManagerSettings
from rpcqm.rpc.call import Call
from rpcqm.rpc.endpoint_mapper import EPM, EndpointMapper
from rpcqm.rpc.interface_registry import RegisteredInterface
from rpcqm.rpc.security.context import SecurityProviders
from rpcqm.rpc.security.providers import security_providers
from rpcqm.rpc.server import RpcServer
from rpcqm.service import interfaces
from rpcqm.service.remote_queues import RemoteQueues
from rpcqm.store.settings import StoreSettings
from rpcqm.store.store import Store
from tests.support.accounts import TestAccounts
from tests.support.queue_manager import SETTINGS
from tests.support.rpc.secured import ALICE

OPEN = parse_sddl("O:BAD:(A;;0xf003f;;;WD)(A;;0xf003f;;;AN)").encode()
"""Everybody may do everything, as on the computers of that time."""


class OlderServer:
    """What a test needs: the engine, where it is reached, which calls came and at which port."""

    def __init__(
        self, engine: QueueManagerEngine, providers: SecurityProviders | None = None
    ) -> None:
        self.engine = engine
        self.server = RpcServer(providers=providers or {})
        self.target = RemoteServer("127.0.0.1", 0)
        self.ports: dict[str, int] = {}
        self.calls: list[str] = []
        self.requests: list[Any] = []
        """What came with the calls."""
        self.called_at: dict[str, int] = {}
        self.callers: dict[str, tuple[str, int]] = {}
        """Who has called last, and the authentication level, by operation."""
        self.cut_off = ""
        """The next call of this name is done, but its connection breaks before the answer."""

    def break_connections(self) -> None:
        for connection in list(self.server.served.open):
            connection.abort()

    async def create(self, name: str = "orders", **attributes: Any) -> str:
        """A queue, by its format name."""
        queue = self.engine.queues.new_queue(rf".\private$\{name}", security=OPEN)
        for attribute, value in attributes.items():
            setattr(queue, attribute, value)
        created: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        creating = self.engine.queues.create_queue(queue)
        creating.add_done_callback(lambda _: created.set_result(None))
        await created
        computer = self.engine.queue_manager.computer_name
        return rf"DIRECT=OS:{computer}\private$\{name}"

    def enqueue(self, name: str, *bodies: bytes, **attributes: Any) -> None:
        """Send express messages to a queue."""
        queue = FormatName.parse(name)
        descriptor = self.engine.opening.open_queue(queue, QueueAccessType.SEND_ACCESS)
        for body in bodies:
            given = MessageAttributes(body=body, delivery_guarantee=0, **attributes)
            message = self.engine.composer.compose(descriptor, given, None)
            self.engine.messages.enqueue_message_to_an_open_queue(descriptor, message)
        self.engine.opening.close_queue(descriptor)

    def count(self, name: str) -> int:
        """How many messages a queue has, available or not."""
        queue = self.engine.registry.find_by_format_name(FormatName.parse(name))
        assert queue is not None
        return queue.message_count


class Recorded:
    """Handlers that note which of them is called."""

    def __init__(self, handlers: QmComm | QmComm2 | Qm2Qm | RemoteRead, older: OlderServer) -> None:
        self._handlers = handlers
        self.admission = handlers.admission
        self._older = older

    def __getattr__(self, name: str) -> object:
        handler = getattr(self._handlers, name)

        def recorded(call: Call, request: object) -> object:
            self._older.calls.append(name)
            self._older.requests.append(request)
            self._older.called_at[name] = int(
                call.association.endpoint.secondary_address.rstrip(b"\0")
            )
            self._older.callers[name] = (call.identity.name, call.authentication_level)
            outcome = handler(call, request)
            if name != self._older.cut_off:
                return outcome
            self._older.cut_off = ""
            if inspect.iscoroutine(outcome):
                start(outcome)
            asyncio.get_running_loop().call_soon(self._older.break_connections)
            return Completion()

        return recorded


@asynccontextmanager
async def older_server(
    directory: Path,
    version: tuple[int, int, int] = qm2qm.VERSION,
    providers: SecurityProviders | None = None,
) -> AsyncIterator[OlderServer]:
    """A queue manager that serves qmcomm at one port and qm2qm at two, without a logon."""
    async with _engine(directory, SETTINGS) as engine:
        older = OlderServer(engine, providers)
        ports = (lambda: older.ports["rpc"], lambda: older.ports["qm2qm"])
        admission = CallAdmission(RemoteReadSecurity(allow_nonauthenticated_rpc=True))
        handles = interfaces.client_handles(engine, admission=admission)
        comm = interfaces.qmcomm(engine, handles, *ports)
        reading = interfaces.qm2qm(engine, handles, *ports)
        reading.version = version
        server = older.server
        second = server.register(load("qm2qm"), Recorded(reading, older), qm2qm.POLICY)
        served = [server.register(load("qmcomm"), Recorded(comm, older), qmcomm.POLICY), second]
        async with _listening(server, older, served):
            bound = await server.listen_tcp("127.0.0.1", 0, [second], advertised=False)
            older.ports["qm2qm"] = bound.port
            yield older


@asynccontextmanager
async def reading_server(
    directory: Path, spoil: Callable[[list[SectionBuffer]], None] | None = None
) -> AsyncIterator[OlderServer]:
    """A queue manager that serves RemoteRead to everybody.

    `spoil` changes the sections of every message before they leave.
    """
    async with _engine(directory, SETTINGS) as engine:
        serving = OlderServer(engine)
        security = RemoteReadSecurity(allow_nonauthenticated_rpc=True)
        handlers = interfaces.remote_read(
            engine, CallAdmission(security), lambda: serving.ports["rpc"]
        )
        if spoil is not None:
            handlers.reads.packets = Spoiled(handlers._packets, spoil)
        policy = remote_read.POLICY
        served = [serving.server.register(load("remoteread"), Recorded(handlers, serving), policy)]
        async with _listening(serving.server, serving, served):
            yield serving


class Spoiled(MessagePackets):
    """Message packets that are damaged before they leave."""

    def __init__(
        self, packets: MessagePackets, spoil: Callable[[list[SectionBuffer]], None]
    ) -> None:
        self._packets, self._spoil = packets, spoil

    def sections(
        self, message: Message, maximum_body_size: int, maximum_compound_size: int
    ) -> list[SectionBuffer]:
        found = self._packets.sections(message, maximum_body_size, maximum_compound_size)
        self._spoil(found)
        return found


@asynccontextmanager
async def supporting_server(
    directory: Path, target_of: Callable[[str], Target]
) -> AsyncIterator[OlderServer]:
    """The queue manager SUPPORTING, which reads elsewhere for its clients.

    Its `target` has the credentials of alice.
    """
    settings = replace(
        SETTINGS, computer_name="SUPPORTING", addresses=("192.0.2.8",), supporting_server=True
    )
    settings = replace(settings, qualified_computer_name="supporting.example.org")
    async with _engine(directory, settings) as engine:
        supporting = OlderServer(engine, security_providers(TestAccounts(directory)))
        server = supporting.server
        remote = RemoteQueues(engine.queue_manager, lambda machine, asker: target_of(machine))
        handles = interfaces.client_handles(engine, open_remote=remote.open)
        comm = interfaces.qmcomm(engine, handles)
        sending = interfaces.qmcomm2(engine, handles)
        served = [
            server.register(load("qmcomm"), Recorded(comm, supporting), qmcomm.POLICY),
            server.register(load("qmcomm2"), Recorded(sending, supporting), qmcomm2.POLICY),
        ]
        async with _listening(server, supporting, served):
            supporting.target = replace(supporting.target, credentials=ALICE)
            yield supporting
        await remote.stop()


@asynccontextmanager
async def _engine(
    directory: Path, settings: QueueManagerSettings
) -> AsyncIterator[QueueManagerEngine]:
    loop, clock = asyncio.get_running_loop(), SystemClock()
    store = Store.open(
        directory, end_of_turn=loop.call_soon, clock=clock, settings=StoreSettings(reserve=1)
    )
    engine = QueueManagerEngine(store, clock, timers_on_loop(clock, loop), settings)
    engine.queue_manager_started()
    try:
        yield engine
    finally:
        engine.queue_manager_stopped()
        store.close()


@asynccontextmanager
async def _listening(
    server: RpcServer, served_by: OlderServer, served: list[RegisteredInterface]
) -> AsyncIterator[None]:
    mapper = server.register(EPM, EndpointMapper(server))
    try:
        served_by.ports["rpc"] = (await server.listen_tcp("127.0.0.1", 0, served)).port
        epm = await server.listen_tcp("127.0.0.1", 0, [mapper], advertised=False)
        served_by.target = RemoteServer("127.0.0.1", epm.port)
        yield
    finally:
        await server.stop()
