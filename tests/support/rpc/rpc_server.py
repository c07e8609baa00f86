"""A server on loopback inside the test's process, on an event loop in a thread of its own."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import uvloop

from rpcqm.rpc.endpoint_mapper import EPM, EndpointMapper
from rpcqm.rpc.interface_registry import InterfacePolicy, ServedInterface
from rpcqm.rpc.limits import Limits
from rpcqm.rpc.security.ntlm import AccountDirectory
from rpcqm.rpc.security.providers import security_providers
from rpcqm.rpc.server import RpcServer
from tests.support.loop_thread import LoopThread

Served = tuple[ServedInterface, object] | tuple[ServedInterface, object, InterfacePolicy]


class RunningServer(LoopThread):
    """What a test needs of a server that runs in another thread."""

    def __init__(self, server: RpcServer, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.server = server
        self.port = 0
        self.epm_port = 0
        self.path = Path()


@contextmanager
def serving(
    *interfaces: Served,
    accounts: AccountDirectory | None = None,
    limits: Limits | None = None,
    directory: Path | None = None,
    port: int = 0,
    epm_port: int | None = 0,
    keytab: Path | None = None,
    principal: str = "rpcqm/test",
    make: Callable[..., RpcServer] = RpcServer,
    on_uvloop: bool = True,
) -> Iterator[RunningServer]:
    """Serve interfaces over TCP, with an endpoint mapper beside them unless `epm_port` is None.

    With `accounts` callers may authenticate, by Kerberos too if there is a `keytab`; with a
    `directory` there is a Unix socket in it as well.
    """
    loop = uvloop.new_event_loop() if on_uvloop else asyncio.new_event_loop()
    providers = (
        security_providers(accounts, keytab=keytab, principal=principal)
        if accounts is not None
        else {}
    )
    running = RunningServer(make(providers=providers, limits=limits), loop)
    try:
        running.run(_listen(running, interfaces, directory, port, epm_port))
        yield running
    finally:
        running.run(running.server.stop())
        running.end()


async def _listen(
    running: RunningServer,
    interfaces: Sequence[Served],
    directory: Path | None,
    port: int,
    epm_port: int | None,
) -> None:
    server = running.server
    mapper = server.register(EPM, EndpointMapper(server))
    served = [server.register(*each) for each in interfaces]
    running.port = (await server.listen_tcp("127.0.0.1", port, served)).port
    if epm_port is not None:
        bound = await server.listen_tcp("127.0.0.1", epm_port, [mapper], advertised=False)
        running.epm_port = bound.port
    if directory is not None:
        running.path = directory / "rpc.sock"
        await server.listen_unix(running.path, [*served, mapper])
