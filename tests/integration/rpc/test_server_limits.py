"""Deadlines, limits and hostile input at the server's edge."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from rpcqm.base.errors import FaultStatus
from rpcqm.rpc import pdu
from rpcqm.rpc.association_states import State
from rpcqm.rpc.client import RpcClient
from rpcqm.rpc.limits import Limits
from rpcqm.rpc.security.ntlm import NtlmCredentials
from tests.support.accounts import PASSWORD, TestAccounts
from tests.support.memory import resident
from tests.support.rpc.probe import (
    PROBE,
    ProbeHandlers,
    ProbeInterface,
    ProbeRequest,
    ProbeResponse,
    alter,
    bind,
    element,
    request,
    split,
)
from tests.support.rpc.rpc_server import RunningServer, serving
from tests.support.rpc.rpc_sockets import flood, only_connection, raw, read_all, read_pdu
from tests.support.rpc.sweeping import Sweeping


@pytest.fixture
def running() -> Iterator[RunningServer]:
    with serving((ProbeInterface(), ProbeHandlers())) as server:
        yield server


# Deadlines and limits.


@pytest.mark.bound("limits.unfinished_seconds")
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


@pytest.mark.bound("limits.idle_seconds")
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


@pytest.mark.bound("limits.unauthenticated_seconds")
def test_only_who_has_not_logged_on_is_ended_when_idle(tmp_path: Path) -> None:
    rig = Sweeping(unauthenticated_milliseconds=120_000)
    with (
        serving(
            (ProbeInterface(), rig.handlers),
            accounts=TestAccounts(tmp_path),
            limits=rig.limits,
            make=rig.make,
            directory=tmp_path,
        ) as running,
        raw(running) as idle,
        raw(running) as waiting,
        raw(running) as holding,
        socket.socket(socket.AF_UNIX) as local,
    ):
        local.connect(str(running.path))
        local.sendall(bind())
        read_pdu(local)
        waiting.sendall(request(2, b"a"))
        holding.sendall(request(4, b"queue"))
        read_pdu(holding)
        known = running.run(logged_on(running))
        running.until(lambda: bool(rig.handlers.waiting) and running.server.connections == 5)
        assert rig.sweep(running, 119_000) == 5
        assert rig.sweep(running, 3_000) == 4
        assert read_all(idle) == b""
        assert rig.sweep(running, 500_000) == 4
        running.do(known.close)


async def logged_on(running: RunningServer) -> RpcClient:
    """A client over TCP that has called once."""
    client = await RpcClient.connect_tcp(
        "127.0.0.1", running.port, credentials=NtlmCredentials("alice", PASSWORD)
    )
    interface: Any = ProbeInterface()
    await (await client.bind(interface)).call("null", ProbeRequest())
    return client


def test_the_kernel_asks_for_silent_clients() -> None:
    limits = Limits(keepalive_milliseconds=90_000)
    with serving((ProbeInterface(), ProbeHandlers()), limits=limits) as running:
        plain = raw(running)
        transport = only_connection(running)._transport
        assert transport is not None
        accepted = transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 90
        plain.close()


@pytest.mark.bound("limits.connections")
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
        flood(running, greedy)
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


def test_long_answers_to_many_short_requests_are_not_all_kept() -> None:
    limits = Limits(output_bytes=10_000, unsent_bytes=1 << 20)
    handlers = ProbeHandlers()
    with serving((ProbeInterface(), handlers), limits=limits) as running, raw(running) as greedy:
        for number in range(300):
            greedy.sendall(request(2, b"x", number))
        running.until(lambda: len(handlers.waiting) == 300)
        association = only_connection(running).association

        def answer_all() -> int:
            before, answer = resident(), ProbeResponse(octets=bytes(200_000))
            for completion in handlers.waiting:
                completion.succeed(answer)
            return resident() - before

        assert running.do(answer_all) < 16 << 20
        assert association.pdus_out * limits.fragment_size < 16 << 20
        running.until(lambda: running.server.connections == 0)
        assert handlers.seen.count("undelivered x") == 300


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
    before = resident()
    plain.sendall(request(1, b"x", alloc_hint=0xFFFFFFFF, pfc_flags=1))
    fault = read_pdu(plain)
    assert isinstance(fault, pdu.Fault)
    assert fault.status == FaultStatus.RPC_S_ACCESS_DENIED
    assert read_all(plain) == b""
    assert resident() - before < 4 << 20


@pytest.mark.parametrize("served", [False, True])
def test_ten_thousand_contexts_meet_the_limit(running: RunningServer, served: bool) -> None:
    """Nothing is kept of those that are refused, and 1024 of the others; in 8 MiB."""
    other, before = raw(running), resident()
    with raw(running) as plain:
        connection = next(
            each
            for each in running.do(lambda: list(running.server.served.open))
            if each.association.peer.endswith(f":{plain.getsockname()[1]}")
        )
        for start in range(1, 10_001, 500):
            numbers = range(start, start + 500)
            with contextlib.suppress(ConnectionError):
                plain.sendall(b"".join(proposal(number, served) for number in numbers))
        if served:
            running.until(lambda: connection.association.state is State.CLOSED)
        else:
            answers = split(read_pdus(plain, 10_000))
            assert {type(each) for each in answers} == {pdu.AlterContextResp}
        kept = connection.association._negotiation.presentation.contexts
        assert len(kept) == (1024 if served else 1)
        assert resident() - before < 8 << 20
    other.sendall(request(0))
    assert isinstance(read_pdu(other), pdu.Response)
    other.close()


def proposal(number: int, served: bool) -> bytes:
    """An alter_context for one more presentation context."""
    interface = PROBE if served else pdu.SyntaxId(UUID(int=number))
    return alter(p_context_elem=(element(number, interface),))


def read_pdus(plain: socket.socket, count: int) -> bytes:
    """So many answers to such proposals."""
    octets, size = b"", 0
    while len(octets) < count * max(size, 1):
        octets += plain.recv(1 << 20)
        size = int.from_bytes(octets[8:10], "little")
    return octets
