"""What leaves a process that another one may be speaking in the place of: at any door."""

import ast
import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

import rpcqm
from rpcqm.base import outlet
from rpcqm.base.acceptor import Acceptor, tcp_socket
from rpcqm.base.admission import Admission
from rpcqm.base.outlet import Guarded, Outlet
from tests.support.waiting import PATIENCE

PACKAGE = Path(rpcqm.__file__).parent
CONNECTS = {
    *("create_server", "create_unix_server", "start_server", "sock_accept"),
    *("connect_accepted_socket", "create_connection", "create_unix_connection"),
    *("open_connection", "create_datagram_endpoint", "TCPConnector"),
}
GUARDED = {
    "base/acceptor.py": "each connection that is accepted is guarded",
    "base/resolver.py": "each connection to a host is guarded",
    "binary/connection/tcp.py": "each connection to a peer is guarded",
    "binary/connection/udp.py": "each datagram is asked for",
    "http/client_session.py": "each request to a peer is asked for",
    "rpc/client.py": "to this machine's own socket",
}
"""Where connections are made, and why nothing leaves there that must not."""
PROGRAMS = ("capture", "cli", "client", "otel", "pipeline", "testing", "triggers")
"""What is never a primary, or tells of traces only."""


class Lease:
    held = True


@pytest.fixture
def lease() -> Iterator[Lease]:
    lease = Lease()
    outlet.install(Outlet(lambda: lease.held))
    yield lease
    outlet.install(None)


class Echo(asyncio.Protocol):
    """A door that somebody adds, and that asks nothing: it answers each line at once."""

    def __init__(self) -> None:
        self.lost: list[Exception | None] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        assert isinstance(self.transport, asyncio.Transport)
        self.transport.writelines([data, b"!"])

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.append(error)


class CarefulEcho(Echo):
    """One that answers what says nothing about the queue manager, and refuses the rest."""

    def begin_refusing(self) -> bool:
        return False

    def data_received(self, data: bytes) -> None:
        assert isinstance(self.transport, Guarded)
        current = outlet.current()
        assert current is not None
        self.transport.passing = current.refusing
        super().data_received(b"refused" if current.refusing else data)


Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter, Outlet], Awaitable[None]]


def talk(make: Callable[[], Echo], say: Talk) -> None:
    """Have a client talk to a new door of this process."""

    async def run() -> None:
        current = outlet.current()
        assert current is not None
        admission = Admission(8, 8)
        listening = tcp_socket("127.0.0.1", 0)
        port = listening.getsockname()[1]
        acceptor = Acceptor(listening, lambda *_: admission.let_in("client"), lambda ticket: make())
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            async with asyncio.timeout(PATIENCE):
                await say(reader, writer, current)
        finally:
            writer.close()
            acceptor.close()

    asyncio.run(run())


async def cut(reader: asyncio.StreamReader) -> bool:
    """Whether the connection ends without an octet."""
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True


async def comes_to_hold(current: Outlet) -> None:
    while not current.holding:
        await asyncio.sleep(0)


def test_a_new_door_answers_while_nobody_else_can_have_taken_over(lease: Lease) -> None:
    async def say(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, current: Outlet
    ) -> None:
        writer.write(b"hello")
        assert await reader.readexactly(6) == b"hello!"
        assert not current.holding

    talk(Echo, say)


def test_what_a_new_door_says_without_a_lease_is_held_back(lease: Lease) -> None:
    async def say(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, current: Outlet
    ) -> None:
        lease.held = False
        writer.write(b"hello")
        await comes_to_hold(current)
        (guarded,) = current.holding
        assert guarded.get_write_buffer_size() == 6
        current.release()
        assert current.holding
        lease.held = True
        current.release()
        assert await reader.readexactly(6) == b"hello!"

    talk(Echo, say)


def test_an_end_waits_for_what_is_held_back(lease: Lease) -> None:
    async def say(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, current: Outlet
    ) -> None:
        lease.held = False
        writer.write(b"hello")
        await comes_to_hold(current)
        (guarded,) = current.holding
        guarded.close()
        assert guarded.is_closing()
        lease.held = True
        current.release()
        assert await reader.read() == b"hello!"

    talk(Echo, say)


def test_what_was_held_back_for_long_is_cut_and_never_leaves(lease: Lease) -> None:
    async def say(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, current: Outlet
    ) -> None:
        lease.held = False
        writer.write(b"hello")
        await comes_to_hold(current)
        current.refuse()
        assert await cut(reader)
        assert not current.holding

    talk(CarefulEcho, say)


def test_a_door_that_knows_nothing_of_this_is_cut_when_requests_are_refused(lease: Lease) -> None:
    async def say(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, current: Outlet
    ) -> None:
        writer.write(b"hello")
        await reader.readexactly(6)
        lease.held = False
        current.refuse()
        assert await cut(reader)

    talk(Echo, say)


def test_a_door_refuses_where_nothing_else_may_leave(lease: Lease) -> None:
    async def say(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, current: Outlet
    ) -> None:
        writer.write(b"hello")
        await reader.readexactly(6)
        lease.held = False
        current.refuse()
        writer.write(b"hello")
        assert await reader.readexactly(8) == b"refused!"
        lease.held = True
        current.release()
        writer.write(b"again")
        assert await reader.readexactly(6) == b"again!"

    talk(CarefulEcho, say)


def test_outside_of_a_cluster_nothing_is_guarded() -> None:
    assert outlet.current() is None
    assert outlet.guarded(Echo) is Echo


def test_connections_are_made_where_they_are_guarded() -> None:
    """A new place fails this: it goes through the outlet, or says why it need not."""
    found = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] not in PROGRAMS
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in CONNECTS
    }
    assert found == set(GUARDED)
