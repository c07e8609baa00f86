"""The server's edge with the project's own client: transports, many clients, hostile ones."""

import asyncio
import os
import socket
import stat
import struct
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from rpcqm.base.errors import HResult, MQError, RpcFault
from rpcqm.base.identity import Identity
from rpcqm.codec.interface import TransferSyntax, load
from rpcqm.codec.types.remoteread import (
    R_GetServerPortRequest,
    R_GetServerPortResponse,
)
from rpcqm.rpc.client import RpcClient
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.endpoint_mapper import resolve
from rpcqm.rpc.interface_registry import NCALRPC, InterfacePolicy
from rpcqm.rpc.limits import Limits
from rpcqm.rpc.pdu import unpack_header
from rpcqm.rpc.security.context import PKT_PRIVACY, AuthenticationError
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.rpc.server import RpcServer
from tests.support.accounts import PASSWORD, TestAccounts
from tests.support.rpc.probe import (
    ProbeHandlers,
    ProbeInterface,
    ProbeRequest,
    ProbeResponse,
    request,
)
from tests.support.rpc.rpc_server import RunningServer, serving
from tests.support.rpc.rpc_sockets import only_connection, raw, read_all, read_pdu

PROBE: Any = ProbeInterface()
REMOTE_READ = load("remoteread")


class RemoteRead:
    """One method of a real interface, for its codecs."""

    def R_GetServerPort(self, call: Any, request: R_GetServerPortRequest) -> int:
        return 2103


@pytest.fixture
def handlers() -> ProbeHandlers:
    return ProbeHandlers()


@pytest.fixture
def running(tmp_path: Path, handlers: ProbeHandlers) -> Iterator[RunningServer]:
    with serving(
        (ProbeInterface(), handlers),
        (REMOTE_READ, RemoteRead()),
        accounts=TestAccounts(tmp_path),
        directory=tmp_path,
    ) as server:
        yield server


def go(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a client on a loop of its own."""

    async def limited() -> Any:
        async with asyncio.timeout(20):
            return await coroutine

    return asyncio.run(limited())


async def probe(running: RunningServer, **connect: Any) -> Any:
    """A binding to the probe interface over TCP."""
    client = await RpcClient.connect_tcp("127.0.0.1", running.port, **connect)
    return await client.bind(PROBE)


# Transports and syntaxes.


@pytest.mark.parametrize("syntax", list(TransferSyntax), ids=lambda syntax: syntax.name)
def test_a_real_interface_in_both_transfer_syntaxes(
    running: RunningServer, syntax: TransferSyntax
) -> None:
    async def main() -> R_GetServerPortResponse:
        async with await RpcClient.connect_tcp("127.0.0.1", running.port) as client:
            binding = await client.bind(REMOTE_READ, syntax)
            assert binding.syntax is syntax
            response = await binding.call("R_GetServerPort", R_GetServerPortRequest())
            assert isinstance(response, R_GetServerPortResponse)
            return response

    assert go(main()).result == 2103


def test_interfaces_share_a_connection(running: RunningServer) -> None:
    async def main() -> None:
        async with await RpcClient.connect_tcp("127.0.0.1", running.port) as client:
            first = await client.bind(PROBE)
            second = await client.bind(REMOTE_READ)
            assert first.context_id != second.context_id
            assert (await first.call("echo", ProbeRequest(octets=b"x"))).octets == b"x"
            response = await second.call("R_GetServerPort", R_GetServerPortRequest())
            assert response.result == 2103
            with pytest.raises(RpcFault, match="nca_s_unk_if"):
                await client.bind(load("epm"))
            assert (await first.call("echo", ProbeRequest(octets=b"y"))).octets == b"y"

    go(main())


@pytest.mark.parametrize("level", [2, 4, 5, 6])
def test_the_client_authenticates_at_every_level(
    running: RunningServer, handlers: ProbeHandlers, level: int
) -> None:
    async def main() -> None:
        credentials = NtlmCredentials("alice", PASSWORD)
        binding = await probe(running, credentials=credentials, level=AuthenticationLevel(level))
        octets = os.urandom(30_000)
        assert (await binding.call("echo", ProbeRequest(octets=octets))).octets == octets
        binding.client.close()

    go(main())
    (call,) = handlers.calls
    assert (call.identity.name, call.authentication_level) == ("alice", level)


def test_a_wrong_password_is_access_denied(running: RunningServer) -> None:
    async def main() -> None:
        binding = await probe(running, credentials=NtlmCredentials("alice", "wrong"))
        with pytest.raises(RpcFault, match="RPC_S_ACCESS_DENIED"):
            await binding.call("null", ProbeRequest())
        await binding.client.wait_closed()

    go(main())


def test_a_server_without_accounts_refuses_authentication() -> None:
    with serving((ProbeInterface(), ProbeHandlers())) as running:

        async def main() -> None:
            with pytest.raises(AuthenticationError):
                await probe(running, credentials=NtlmCredentials("alice", PASSWORD))

        go(main())


def test_a_unix_socket_knows_its_peer(running: RunningServer, handlers: ProbeHandlers) -> None:
    async def main() -> None:
        async with await RpcClient.connect_unix(running.path) as client:
            binding = await client.bind(PROBE)
            await binding.call("null", ProbeRequest())

    go(main())
    (call,) = handlers.calls
    assert call.transport == NCALRPC
    assert call.authentication_level == PKT_PRIVACY
    assert call.identity.is_administrator


def test_a_unix_socket_is_open_to_everybody_and_goes_with_the_server(tmp_path: Path) -> None:
    with serving((ProbeInterface(), ProbeHandlers()), directory=tmp_path) as running:
        assert stat.S_IMODE(running.path.stat().st_mode) == 0o666
    assert not running.path.exists()


def test_who_a_unix_user_is_can_be_told(tmp_path: Path) -> None:
    asked: list[int] = []

    def make(**settings: Any) -> RpcServer:
        def identity(uid: int) -> Identity:
            asked.append(uid)
            return Identity("somebody", "S-1-5-21-1-2-3-7")

        return RpcServer(local_identity=identity, **settings)

    handlers = ProbeHandlers()
    with serving((ProbeInterface(), handlers), directory=tmp_path, make=make) as running:

        async def main() -> None:
            async with await RpcClient.connect_unix(running.path) as client:
                await (await client.bind(PROBE)).call("null", ProbeRequest())

        go(main())
    assert asked == [os.geteuid()]
    assert handlers.calls[0].identity.name == "somebody"
    assert not handlers.calls[0].identity.is_administrator


def test_an_interface_may_be_local_only(tmp_path: Path) -> None:
    local = InterfacePolicy(transports=frozenset({NCALRPC}))
    with serving((ProbeInterface(), ProbeHandlers(), local), directory=tmp_path) as running:

        async def main() -> None:
            async with await RpcClient.connect_tcp("127.0.0.1", running.port) as client:
                with pytest.raises(RpcFault, match="nca_s_unk_if"):
                    await client.bind(PROBE)
            async with await RpcClient.connect_unix(running.path) as client:
                await (await client.bind(PROBE)).call("null", ProbeRequest())

        go(main())


def test_the_endpoint_mapper_resolves_an_interface(running: RunningServer) -> None:
    async def main() -> None:
        assert await resolve("127.0.0.1", running.epm_port, REMOTE_READ) == running.port
        with pytest.raises(RpcFault, match="EPT_S_NOT_REGISTERED"):
            await resolve("127.0.0.1", running.epm_port, load("mgmt"))

    go(main())


# Many clients.


def test_fifty_connections_block_and_each_answer_finds_its_call(
    running: RunningServer, handlers: ProbeHandlers
) -> None:
    async def blocked(number: int) -> bytes:
        binding = await probe(running)
        response = await binding.call("wait", ProbeRequest(octets=b"%d" % number))
        binding.client.close()
        return bytes(response.octets)

    def answer_all() -> None:
        for name, completion in reversed(list(zip(handlers.names, handlers.waiting, strict=True))):
            completion.succeed(ProbeResponse(octets=name.encode()))

    async def main() -> list[bytes]:
        tasks = [asyncio.create_task(blocked(number)) for number in range(50)]
        await asyncio.to_thread(running.until, lambda: len(handlers.waiting) == 50)
        free = await probe(running)
        assert (await free.call("echo", ProbeRequest(octets=b"x"))).octets == b"x"
        await asyncio.to_thread(running.do, answer_all)
        return await asyncio.gather(*tasks)

    assert go(main()) == [b"%d" % number for number in range(50)]


def test_cancel_wakes_exactly_the_call_asked_for(
    running: RunningServer, handlers: ProbeHandlers
) -> None:
    def answer_cancelled() -> None:
        index = handlers.names.index("17")
        handlers.waiting[index].fail(MQError(HResult.MQ_ERROR_OPERATION_CANCELLED))

    async def main() -> None:
        binding = await probe(running)
        calls = [binding.start("wait", ProbeRequest(octets=b"%d" % n)) for n in range(30)]
        await asyncio.to_thread(running.until, lambda: len(handlers.waiting) == 30)
        calls[17].cancel()
        await asyncio.to_thread(running.until, lambda: bool(handlers.seen))
        await asyncio.to_thread(running.do, answer_cancelled)
        response = await calls[17].response()
        assert response.result == HResult.MQ_ERROR_OPERATION_CANCELLED
        assert running.do(lambda: list(handlers.seen)) == ["cancelled 17"]
        binding.client.close()
        await binding.client.wait_closed()

    go(main())


def test_a_cancelled_task_orphans_its_call(running: RunningServer, handlers: ProbeHandlers) -> None:
    async def main() -> None:
        binding = await probe(running)
        task = asyncio.create_task(binding.call("wait", ProbeRequest(octets=b"a")))
        await asyncio.to_thread(running.until, lambda: bool(handlers.waiting))
        task.cancel()
        await asyncio.to_thread(running.until, lambda: handlers.seen == ["abandoned a"])
        assert (await binding.call("echo", ProbeRequest(octets=b"x"))).octets == b"x"

    go(main())


def test_a_client_that_vanishes_is_run_down_once(
    running: RunningServer, handlers: ProbeHandlers
) -> None:
    plain = raw(running)
    plain.sendall(request(4, b"queue") + request(2, b"read", 2))
    read_pdu(plain)
    running.until(lambda: bool(handlers.waiting))
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    plain.close()
    running.until(lambda: handlers.run_down == ["queue"])
    assert handlers.seen == ["abandoned read"]
    assert running.do(lambda: (len(running.server.groups), running.server.connections)) == (0, 0)


def test_a_group_outlives_one_of_its_connections(
    running: RunningServer, handlers: ProbeHandlers
) -> None:
    async def main() -> None:
        first = await probe(running)
        handle = (await first.call("open", ProbeRequest(octets=b"queue"))).handle
        second = await probe(running, group_id=first.client.group_id)
        first.client.close()
        await asyncio.to_thread(running.until, lambda: running.server.connections == 1)
        assert (await second.call("use", ProbeRequest(handle=handle))).octets == b"queue"
        second.client.close()
        await asyncio.to_thread(running.until, lambda: handlers.run_down == ["queue"])

    go(main())


def test_a_lost_connection_fails_the_calls_in_flight(
    running: RunningServer, handlers: ProbeHandlers
) -> None:
    def cut() -> None:
        for connection in list(running.server.served.open):
            connection.abort()

    async def main() -> None:
        binding = await probe(running)
        call = binding.start("wait", ProbeRequest(octets=b"a"))
        await asyncio.to_thread(running.until, lambda: bool(handlers.waiting))
        await asyncio.to_thread(running.do, cut)
        with pytest.raises(ConnectionError):
            await call.response()
        with pytest.raises(ConnectionError):
            await binding.call("null", ProbeRequest())

    go(main())


# Delivery (G52).


def test_an_answer_after_the_client_has_gone_is_undelivered(
    running: RunningServer, handlers: ProbeHandlers
) -> None:
    plain = raw(running)
    plain.sendall(request(2, b"read", 2))
    running.until(lambda: bool(handlers.waiting))
    plain.close()
    running.until(lambda: handlers.seen == ["abandoned read"])
    running.do(lambda: handlers.waiting[0].succeed(ProbeResponse(octets=b"message")))
    assert handlers.seen == ["abandoned read", "undelivered read"]


def test_an_answer_that_nobody_reads_is_undelivered_in_the_end(
    running: RunningServer, handlers: ProbeHandlers
) -> None:
    plain = raw(running)
    plain.sendall(request(2, b"read", 2))
    running.until(lambda: bool(handlers.waiting))
    running.do(lambda: handlers.waiting[0].succeed(ProbeResponse(octets=bytes(16 << 20))))
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    plain.close()
    running.until(lambda: handlers.seen == ["undelivered read"])


def test_an_answer_that_went_out_is_delivered(
    running: RunningServer, handlers: ProbeHandlers
) -> None:
    plain = raw(running)
    plain.sendall(request(2, b"read", 2))
    running.until(lambda: bool(handlers.waiting))
    running.do(lambda: handlers.waiting[0].succeed(ProbeResponse(octets=b"message")))
    read_pdu(plain)
    connection = only_connection(running)
    running.until(lambda: not connection._unsettled)
    plain.close()
    running.until(lambda: running.server.connections == 0)
    assert handlers.seen == []


# Stopping.


def test_a_client_that_ends_with_its_request_has_its_answer(running: RunningServer) -> None:
    for _ in range(3):
        with raw(running) as plain:
            plain.sendall(request(0, b"x", 7))
            plain.shutdown(socket.SHUT_WR)
            answer = read_all(plain)
        assert unpack_header(answer).call_id == 7


def test_a_stopping_server_gives_readers_an_answer(tmp_path: Path) -> None:
    handlers = ProbeHandlers()
    with serving((ProbeInterface(), handlers)) as running:

        async def main() -> None:
            binding = await probe(running)
            call = binding.start("wait", ProbeRequest(octets=b"a"))
            await asyncio.to_thread(running.until, lambda: bool(handlers.waiting))
            stopping = asyncio.create_task(asyncio.to_thread(running.run, running.server.stop()))
            await asyncio.to_thread(running.until, lambda: running.server._stopping)
            cancelled = MQError(HResult.MQ_ERROR_OPERATION_CANCELLED)
            await asyncio.to_thread(running.do, lambda: handlers.waiting[0].fail(cancelled))
            response = await call.response()
            assert response.result == HResult.MQ_ERROR_OPERATION_CANCELLED
            await stopping
            with pytest.raises(ConnectionRefusedError):
                await probe(running)

        go(main())


@pytest.mark.bound("limits.stop_seconds")
def test_a_stopping_server_does_not_wait_for_ever() -> None:
    handlers = ProbeHandlers()
    with serving((ProbeInterface(), handlers), limits=Limits(stop_milliseconds=50)) as running:
        plain = raw(running)
        plain.sendall(request(2, b"a", 2))
        running.until(lambda: bool(handlers.waiting))
        running.run(running.server.stop())
        assert read_all(plain) == b""
        assert handlers.seen == ["abandoned a"]


def test_the_server_works_on_plain_asyncio_too(tmp_path: Path) -> None:
    with serving(
        (ProbeInterface(), ProbeHandlers()), directory=tmp_path, on_uvloop=False
    ) as running:

        async def main() -> None:
            for client in (
                await RpcClient.connect_tcp("127.0.0.1", running.port),
                await RpcClient.connect_unix(running.path),
            ):
                binding = await client.bind(PROBE)
                octets = os.urandom(100_000)
                assert (await binding.call("echo", ProbeRequest(octets=octets))).octets == octets
                client.close()

        go(main())
