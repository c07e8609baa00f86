"""What hostile clients may use up: memory stays under a bound, and others are served."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from rpcqm.base.errors import FaultStatus
from rpcqm.rpc import pdu
from rpcqm.rpc.limits import Limits
from tests.support.memory import resident
from tests.support.rpc.probe import ProbeHandlers, ProbeInterface, ProbeResponse, bind, request
from tests.support.rpc.rpc_server import RunningServer, serving
from tests.support.rpc.rpc_sockets import flood, only_connection, raw, read_all, read_pdu
from tests.support.rpc.sweeping import Sweeping

MIB = 1 << 20
SWEEP = 1000


def is_served(running: RunningServer) -> bool:
    """Whether a client that has just come gets its answer."""
    with raw(running) as other:
        other.sendall(request(1, b"others"))
        answer = read_pdu(other)
    return isinstance(answer, pdu.Response) and answer.stub_data.startswith(b"others")


def fragments(size: int, call_id: int = 1) -> bytes:
    """The beginning of a request: so many octets of stub data, and no last fragment."""
    part = bytes(5000)
    first = request(1, part, call_id, pfc_flags=1, alloc_hint=0)
    return first + request(1, part, call_id, pfc_flags=0) * (size // len(part) - 1)


@pytest.fixture
def rig() -> Sweeping:
    return Sweeping(held_bytes_in_all=8 * MIB, unread_milliseconds=20_000, output_bytes=100_000)


@pytest.fixture
def running(rig: Sweeping) -> Iterator[RunningServer]:
    with serving((ProbeInterface(), rig.handlers), limits=rig.limits, make=rig.make) as server:
        yield server


def test_a_thousand_connections_that_are_never_finished() -> None:
    """Each has sent nearly all of a bind, or of the first request; 40 KiB each is the bound."""
    rig = Sweeping(unfinished_milliseconds=10_000)
    half = [bind()[:-1], bind() + request(1, bytes(5000))[:-1]]
    with (
        serving((ProbeInterface(), rig.handlers), limits=rig.limits, make=rig.make) as running,
        ExitStack() as stack,
    ):
        assert is_served(running)
        before = resident()
        for number in range(1000):
            plain = stack.enter_context(raw(running, bound=False))
            plain.sendall(half[number % 2])
        running.until(lambda: running.server.connections == 1000)
        assert resident() - before < 40 * MIB
        assert is_served(running)
        assert rig.sweep(running, 12_000) == 0
        assert is_served(running)


@pytest.mark.bound("limits.unread_seconds")
def test_a_client_that_takes_nothing_is_cut_off_in_time(
    rig: Sweeping, running: RunningServer
) -> None:
    before = resident()
    with raw(running) as greedy:
        flood(running, greedy)
        assert rig.sweep(running, 19_000) == 1
        assert resident() - before < 8 * MIB
        assert is_served(running)
        assert rig.sweep(running, 3_000) == 0


def test_a_client_that_takes_little_by_little_is_not_cut_off() -> None:
    rig = Sweeping(unread_milliseconds=20_000)
    with (
        serving((ProbeInterface(), rig.handlers), limits=rig.limits, make=rig.make) as running,
        raw(running) as slow,
    ):
        slow.sendall(request(2, b"x"))
        running.until(lambda: rig.handlers.waiting != [])
        running.do(lambda: rig.handlers.waiting[0].succeed(ProbeResponse(octets=bytes(40 * MIB))))
        connection = only_connection(running)
        for _ in range(4):
            assert rig.sweep(running, 15_000) == 1
            unsent = running.do(lambda: connection.unsent)
            while running.do(lambda: connection.unsent) == unsent:
                slow.recv(100_000)
        assert rig.sweep(running, 22_000) == 0


def test_the_longest_unread_replies_are_given_up_when_all_are_too_long(
    rig: Sweeping, running: RunningServer
) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(raw(running)) for _ in range(3)]
        for number, client in enumerate(clients):
            client.sendall(request(2, b"x", number))
        running.until(lambda: len(rig.handlers.waiting) == 3)

        def answer_all() -> None:
            for size, completion in zip((5, 12, 4), rig.handlers.waiting, strict=True):
                completion.succeed(ProbeResponse(octets=bytes(size * MIB)))

        running.do(answer_all)
        assert rig.sweep(running, SWEEP) == 2
        assert is_served(running)


def test_the_largest_unfinished_request_is_given_up_when_all_are_too_large(
    rig: Sweeping, running: RunningServer
) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(raw(running)) for _ in range(3)]
        for client, size in zip(clients, (3, 4, 3), strict=True):
            client.sendall(fragments(size * MIB - 20_000))
        connections = running.do(lambda: list(running.server.served.open))
        running.until(lambda: sum(each.held for each in connections) > 9 * MIB)
        assert rig.sweep(running, SWEEP) == 2
        assert read_all(clients[1]) == b""
        assert is_served(running)


def test_a_million_tiny_fragments() -> None:
    """A call may come in 8192 pieces and no more; 16 MiB is the bound for the client's million."""
    limits, total = Limits(), 1_000_000
    burst = request(1, b"x", pfc_flags=1) + request(1, b"x", pfc_flags=0) * limits.call_fragments
    with serving((ProbeInterface(), ProbeHandlers())) as running:
        before = resident()
        for _ in range(-(-total // (limits.call_fragments + 1))):
            with raw(running) as plain:
                plain.sendall(burst)
                fault = read_pdu(plain)
                assert isinstance(fault, pdu.Fault)
                assert fault.status == FaultStatus.RPC_S_ACCESS_DENIED
        assert resident() - before < 16 * MIB
        assert is_served(running)


def test_calls_under_way_end_with_their_connection_only(running: RunningServer) -> None:
    """A client that vanishes amid a thousand calls leaves nothing behind."""
    with raw(running) as plain:
        for number in range(1000):
            plain.sendall(request(2, b"x", number))
        running.until(lambda: running.server.dispatcher.pending == 1000)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    running.until(lambda: running.server.connections == 0)
    assert is_served(running)
