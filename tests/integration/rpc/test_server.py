"""The server's edge with the project's own client: transports, many clients, hostile ones."""

import asyncio
import contextlib
import itertools
import os
import socket
import stat
import struct
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from rpcqm.base.clock import SimulatedClock
from rpcqm.base.errors import FaultStatus, HResult, MQError, RpcFault
from rpcqm.base.identity import Identity
from rpcqm.codec.interface import TransferSyntax, load
from rpcqm.codec.types.remoteread import (
    R_GetServerPortRequest,
    R_GetServerPortResponse,
)
from rpcqm.rpc import pdu
from rpcqm.rpc.client import RpcClient
from rpcqm.rpc.connection import Connection
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.endpoint_mapper import resolve
from rpcqm.rpc.interface_registry import NCALRPC, InterfacePolicy
from rpcqm.rpc.limits import Limits
from rpcqm.rpc.ntlm import NtlmCredentials
from rpcqm.rpc.security import PKT_PRIVACY, AuthenticationError
from rpcqm.rpc.server import RpcServer
from tests.support.accounts import PASSWORD, TestAccounts
from tests.support.probe import (
    ProbeHandlers,
    ProbeInterface,
    ProbeRequest,
    ProbeResponse,
    bind,
    request,
    split,
)
from tests.support.rpc_server import RunningServer, serving

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


def raw(running: RunningServer, *, bound: bool = True) -> socket.socket:
    """A plain socket to the server."""
    plain = socket.create_connection(("127.0.0.1", running.port), timeout=20)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if bound:
        plain.sendall(bind())
        read_pdu(plain)
    return plain


def only_connection(running: RunningServer) -> Connection:
    """The connection of a server that has one."""
    (connection,) = running.do(lambda: list(running.server._connections))
    return connection


def flood(plain: socket.socket) -> None:
    """Send requests for ever and read no answer; raises TimeoutError when stuck."""
    plain.settimeout(0.5)
    for number in itertools.count():
        plain.sendall(request(1, bytes(5000), number))


def read_pdu(plain: socket.socket) -> pdu.Pdu:
    octets = b""
    while len(octets) < 16 or len(octets) < pdu.unpack_header(octets).frag_length:
        more = plain.recv(1 if len(octets) >= 16 else 16 - len(octets))
        assert more, "the server closed the connection"
        octets += more
    return pdu.unpack(octets)


def read_all(plain: socket.socket) -> bytes:
    octets = b""
    while more := plain.recv(65536):
        octets += more
    return octets


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
        for connection in list(running.server._connections):
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


def test_a_stopping_server_does_not_wait_for_ever() -> None:
    handlers = ProbeHandlers()
    with serving((ProbeInterface(), handlers), limits=Limits(stop_milliseconds=50)) as running:
        plain = raw(running)
        plain.sendall(request(2, b"a", 2))
        running.until(lambda: bool(handlers.waiting))
        running.run(running.server.stop())
        assert read_all(plain) == b""
        assert handlers.seen == ["abandoned a"]


# Deadlines and limits.


class Sweeping:
    """A server whose clock stands still until a test moves it."""

    def __init__(self, **limits: int) -> None:
        self.clock = SimulatedClock()
        self.limits = Limits(**limits)
        self.handlers = ProbeHandlers()

    def make(self, **settings: Any) -> RpcServer:
        return RpcServer(clock=self.clock, **settings)

    def sweep(self, running: RunningServer, milliseconds: int) -> int:
        """Let time pass in steps of a second; how many connections are left."""

        def pass_time() -> int:
            for _ in range(milliseconds // 1000):
                self.clock.advance(1000)
                running.server.sweep()
            return running.server.connections

        running.do(pass_time)
        return running.do(lambda: running.server.connections)


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(b"", id="no bind"),
        pytest.param(bind()[:20], id="half a bind"),
        pytest.param(bind() + request(0)[:10], id="half a request"),
        pytest.param(bind() + request(1, b"x", pfc_flags=1), id="a first fragment only"),
    ],
)
def test_what_is_never_finished_is_cut_off(octets: bytes) -> None:
    rig = Sweeping(unfinished_milliseconds=10_000)
    with serving((ProbeInterface(), rig.handlers), limits=rig.limits, make=rig.make) as running:
        plain = raw(running, bound=False)
        plain.sendall(octets)
        running.until(lambda: running.server.connections == 1)
        if octets:
            connection = only_connection(running)
            running.until(lambda: connection.active)
        assert rig.sweep(running, 9_000) == 1
        assert rig.sweep(running, 3_000) == 0
        plain.close()


def test_one_octet_at_a_time_does_not_help() -> None:
    rig = Sweeping(unfinished_milliseconds=10_000)
    with serving((ProbeInterface(), rig.handlers), limits=rig.limits, make=rig.make) as running:
        plain = raw(running)
        connection = only_connection(running)
        for octet in request(0)[:12]:
            plain.sendall(bytes([octet]))
            running.until(lambda: connection.active)
            left = rig.sweep(running, 1000)
        assert left == 0
        plain.close()


def test_a_busy_connection_is_never_cut_off() -> None:
    rig = Sweeping(unfinished_milliseconds=5_000, idle_milliseconds=5_000)
    with serving((ProbeInterface(), rig.handlers), limits=rig.limits, make=rig.make) as running:
        plain = raw(running)
        association = only_connection(running).association
        for _ in range(20):
            plain.sendall(request(0)[:7])
            running.until(lambda: bool(association._partial))
            assert rig.sweep(running, 1000) == 1
            plain.sendall(request(0)[7:])
            assert isinstance(read_pdu(plain), pdu.Response)
        plain.close()


def test_an_idle_connection_is_ended_but_not_one_that_waits_or_holds() -> None:
    rig = Sweeping(idle_milliseconds=5_000)
    with serving((ProbeInterface(), rig.handlers), limits=rig.limits, make=rig.make) as running:
        idle, waiting, holding = raw(running), raw(running), raw(running)
        waiting.sendall(request(2, b"a"))
        holding.sendall(request(4, b"queue"))
        read_pdu(holding)
        running.until(lambda: bool(rig.handlers.waiting))
        assert rig.sweep(running, 20_000) == 2
        assert read_all(idle) == b""
        waiting.close()
        holding.close()


def test_more_connections_than_allowed_are_closed() -> None:
    limits = Limits(connections=3)
    with serving((ProbeInterface(), ProbeHandlers()), limits=limits) as running:
        kept = [raw(running) for _ in range(3)]
        refused = raw(running, bound=False)
        with contextlib.suppress(ConnectionResetError):
            assert read_all(refused) == b""
        kept[0].close()
        running.until(lambda: running.server.connections == 2)
        raw(running).close()


def test_a_client_that_reads_nothing_is_not_read_from() -> None:
    limits = Limits(output_bytes=100_000, calls=4096)
    handlers = ProbeHandlers()
    with serving((ProbeInterface(), handlers), limits=limits) as running:
        greedy = raw(running)
        with pytest.raises(TimeoutError):
            flood(greedy)
        transport = only_connection(running)._transport
        assert transport is not None
        buffered = running.do(transport.get_write_buffer_size)
        assert buffered < 2_000_000
        other = raw(running)
        other.sendall(request(0))
        assert isinstance(read_pdu(other), pdu.Response)
        greedy.close()


def test_a_client_whose_replies_pile_up_is_given_up() -> None:
    limits = Limits(output_bytes=10_000, unsent_bytes=1 << 20)
    handlers = ProbeHandlers()
    with serving((ProbeInterface(), handlers), limits=limits) as running:
        greedy = raw(running)
        for number in range(60):
            greedy.sendall(request(2, b"x", number))
        running.until(lambda: len(handlers.waiting) == 60)

        def answer_all() -> None:
            for completion in handlers.waiting:
                completion.succeed(ProbeResponse(octets=bytes(200_000)))

        running.do(answer_all)
        running.until(lambda: running.server.connections == 0)
        greedy.close()


# Hostile input.


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", id="HTTP"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(30), id="TLS"),
        pytest.param(bytes(64), id="zeros"),
        pytest.param(b"\xff" * 64, id="ones"),
        pytest.param(b"\x05\x00\x0b\x03\x10\0\0\0\xff\xff\0\0\1\0\0\0", id="64 KiB bind"),
        pytest.param(b"\x05\x00\x0b\x03\x10\0\0\0\x10\0\xff\xff\1\0\0\0", id="long token"),
    ],
)
def test_hostile_connections_end_and_others_go_on(running: RunningServer, octets: bytes) -> None:
    good = raw(running)
    plain = raw(running, bound=False)
    plain.sendall(octets)
    answers = split(read_all(plain))
    assert all(isinstance(each, pdu.BindNak | pdu.Fault) for each in answers)
    good.sendall(request(1, b"still here"))
    answer = read_pdu(good)
    assert isinstance(answer, pdu.Response)
    assert answer.stub_data == b"still here\0\0\0\0"


def test_a_claimed_four_gigabytes_allocates_nothing(running: RunningServer) -> None:
    plain = raw(running)
    plain.sendall(request(1, b"x", alloc_hint=0xFFFFFFFF, pfc_flags=1))
    fault = read_pdu(plain)
    assert isinstance(fault, pdu.Fault)
    assert fault.status == FaultStatus.RPC_S_ACCESS_DENIED
    assert read_all(plain) == b""


def test_ten_thousand_contexts_meet_the_limit(running: RunningServer) -> None:
    plain = raw(running)
    elements = [
        pdu.ContextElement(number, pdu.SyntaxId(UUID(int=number)), (pdu.NULL_SYNTAX,))
        for number in range(1, 10_001)
    ]
    for start in range(0, len(elements), 100):
        proposal = pdu.AlterContext(
            call_id=0,
            max_xmit_frag=5840,
            max_recv_frag=5840,
            p_context_elem=tuple(elements[start : start + 100]),
        )
        plain.sendall(proposal.pack())
        answer = read_pdu(plain)
        assert isinstance(answer, pdu.AlterContextResp)
    connection = only_connection(running)
    assert len(connection.association._negotiation.presentation.contexts) == 1


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
