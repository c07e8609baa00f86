"""Who may connect: counted over all doors, and asked before a connection costs anything."""

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from rpcqm.base import acceptor
from rpcqm.base.acceptor import Acceptor, tcp_socket
from rpcqm.base.addresses import owner_of
from rpcqm.base.admission import (
    FEWEST,
    LOCAL_RESERVE,
    USERS_RESERVE,
    Admission,
    Caller,
    Ticket,
    room_for_connections,
)

HERE, THERE = "192.0.2.1", "192.0.2.2"
ALL = "too many connections"
ONE = "too many connections of one address"


def filled(connections: int = 3, per_address: int = 100) -> Admission:
    """As many strangers as may be."""
    admission = Admission(connections, per_address)
    for number in range(connections):
        assert admission.refusal(f"10.0.0.{number}") == ""
        admission.let_in(f"10.0.0.{number}")
    return admission


@pytest.mark.bound("limits.connections")
def test_one_connection_too_many_is_refused_until_another_one_ends() -> None:
    admission = Admission(2, 100)
    ticket = admission.let_in(HERE)
    assert admission.refusal(THERE) == ""
    admission.let_in(THERE)
    assert admission.refusal(THERE) == ALL
    ticket.leave()
    ticket.leave()
    assert (admission.count, admission.refusal(HERE)) == (1, "")


@pytest.mark.bound("limits.connections_per_address")
def test_one_connection_of_an_address_too_many_is_refused_and_others_are_not() -> None:
    admission = Admission(100, 2)
    ticket = admission.let_in(HERE)
    assert admission.refusal(HERE) == ""
    admission.let_in(HERE)
    assert admission.refusal(HERE) == ONE
    assert admission.refusal(THERE) == ""
    ticket.leave()
    assert admission.refusal(HERE) == ""


def test_addresses_without_connections_are_forgotten() -> None:
    admission = Admission(100, 2)
    for number in range(1000):
        admission.refusal(f"10.0.0.{number}")
        admission.let_in(f"10.0.0.{number}").leave()
    assert len(admission._of_owner) == 0


def test_the_connections_of_an_ipv6_network_are_counted_together() -> None:
    admission = Admission(100, 1)
    admission.let_in(owner_of("2001:db8::1"))
    assert admission.refusal(owner_of("2001:db8::2")) == ONE
    assert admission.refusal(owner_of("2001:db8:0:1::1")) == ""


@pytest.mark.bound("connections.local_reserve", "connections.users_reserve")
@pytest.mark.parametrize(
    ("caller", "reserve"),
    [(Caller.STRANGER, 0), (Caller.USER, USERS_RESERVE), (Caller.ADMINISTRATOR, LOCAL_RESERVE)],
)
def test_strangers_do_not_shut_out_local_users_nor_these_administrators(
    caller: Caller, reserve: int
) -> None:
    admission = filled()
    for _ in range(reserve):
        assert admission.refusal("uid 7", caller) == ""
        admission.let_in("uid 7")
    assert admission.refusal("uid 7", caller) == ALL
    assert (admission.refusal("uid 0", Caller.ADMINISTRATOR) == "") is (reserve < LOCAL_RESERVE)


def test_connections_of_our_own_are_counted_and_never_refused() -> None:
    admission = filled()
    ticket = admission.go_out()
    assert admission.count == 4
    ticket.leave()
    assert admission.count == 3


@pytest.mark.bound("connections.other_descriptors", "connections.fewest")
@pytest.mark.parametrize("descriptors", [64, 256, 1024, 4096, 65_536, 1 << 20])
def test_connections_leave_descriptors_for_everything_else(descriptors: int) -> None:
    room = room_for_connections(descriptors)
    assert room == FEWEST or room + LOCAL_RESERVE + 128 <= descriptors
    assert Admission(1 << 20, 1, room).bound == room
    assert Admission(5, 1, room).bound == 5


# Accepting.


class Greeter(asyncio.Protocol):
    """Says one octet; leaves when it is lost."""

    def __init__(self, ticket: Ticket) -> None:
        self._ticket = ticket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(b"!")

    def connection_lost(self, exc: Exception | None) -> None:
        self._ticket.leave()


def accepting(
    test: Callable[[Acceptor, Admission, tuple[str, int]], Any], connections: int = 2
) -> None:
    """Run a test against an acceptor on loopback."""

    async def run() -> None:
        admission = Admission(connections, 100)

        def admit(accepted: socket.socket, address: tuple[str, int]) -> Ticket | None:
            return None if admission.refusal(address[0]) else admission.let_in(address[0])

        listening = tcp_socket("127.0.0.1", 0)
        address = listening.getsockname()
        accepts = Acceptor(listening, admit, Greeter)
        try:
            await asyncio.wait_for(test(accepts, admission, address), 20)
        finally:
            accepts.close()
            accepts.close()

    asyncio.run(run())


async def greeted(address: tuple[str, int]) -> tuple[bytes, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(*address)
    try:
        return await reader.read(1), writer
    except ConnectionError:
        return b"", writer


def test_who_is_not_let_in_is_closed_and_never_connected() -> None:
    async def connect(accepts: Acceptor, admission: Admission, address: tuple[str, int]) -> None:
        found = [await greeted(address) for _ in range(3)]
        assert [said for said, _ in found] == [b"!", b"!", b""]
        for _, writer in found:
            writer.close()
        while admission.count:
            await asyncio.sleep(0)
        assert (await greeted(address))[0] == b"!"

    accepting(connect)


def test_a_crowd_takes_no_more_descriptors_than_are_let_in() -> None:
    async def connect(accepts: Acceptor, admission: Admission, address: tuple[str, int]) -> None:
        crowd = [socket.create_connection(address) for _ in range(200)]
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(20):
            await asyncio.sleep(0)
            assert len(os.listdir("/proc/self/fd")) <= before + 5
        assert admission.count == 5
        for each in crowd:
            each.close()

    accepting(connect, connections=5)


class Exhausted(socket.socket):
    """A listening socket of a process that has no descriptor left."""

    attempts = 0
    open_files = 0

    def accept(self) -> Any:
        Exhausted.attempts += 1
        if not Exhausted.open_files:
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


@pytest.mark.bound("connections.pause_seconds")
def test_without_a_descriptor_accepting_rests_and_then_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(acceptor, "PAUSE_SECONDS", 0.01)
    Exhausted.attempts = Exhausted.open_files = 0

    async def run() -> None:
        listening = Exhausted()
        listening.bind(("127.0.0.1", 0))
        accepts = Acceptor(listening, lambda *_: Admission(9, 9).let_in(HERE), Greeter)
        with capture_logs() as logs, socket.create_connection(listening.getsockname()) as client:
            while not logs:
                await asyncio.sleep(0)
            for _ in range(100):
                await asyncio.sleep(0)
            assert Exhausted.attempts <= 3, "it does not spin"
            Exhausted.open_files = 1
            assert await asyncio.wait_for(asyncio.to_thread(client.recv, 1), 20) == b"!"
        assert logs[0]["event"] == "no connection can be accepted"
        accepts.close()

    asyncio.run(run())
