"""Replies that nobody reads: how much of them a connection, and all of them, may leave unread."""

import asyncio
from typing import cast

import pytest

from rpcqm.base.identity import ANONYMOUS
from rpcqm.rpc.connection import Connection
from rpcqm.rpc.interface_registry import NCACN_IP_TCP
from rpcqm.rpc.limits import Limits
from rpcqm.rpc.security.context import NONE, unauthenticated
from rpcqm.rpc.server import RpcServer


class FullTransport:
    """Its peer takes nothing."""

    def __init__(self) -> None:
        self.buffered = 0
        self.aborted = False

    def get_write_buffer_size(self) -> int:
        return self.buffered

    def is_closing(self) -> bool:
        return self.aborted

    def pause_reading(self) -> None:
        """Nothing is read anyhow."""

    def abort(self) -> None:
        self.aborted = True


def connected(server: RpcServer) -> tuple[Connection, FullTransport]:
    """A connection of the server, over a transport of the test's."""
    connection = Connection(server, server._endpoint(NCACN_IP_TCP, b"0", ()))
    connection._start("192.0.2.1:1", "192.0.2.1", unauthenticated(ANONYMOUS, NONE))
    transport = FullTransport()
    connection._transport = cast(asyncio.Transport, transport)
    connection.pause_writing()
    server.served.open.add(connection)
    return connection, transport


@pytest.mark.bound("limits.unsent_bytes")
def test_one_octet_too_many_that_is_unread_ends_the_connection() -> None:
    connection, transport = connected(RpcServer(limits=Limits(unsent_bytes=1000)))
    transport.buffered = 1000
    connection.flush()
    assert not transport.aborted
    transport.buffered = 1001
    connection.flush()
    assert transport.aborted


@pytest.mark.bound("limits.held_bytes")
def test_one_octet_too_many_in_all_ends_the_connection_that_holds_most() -> None:
    server = RpcServer(limits=Limits(held_bytes_in_all=1000))
    (_, small), (_, large) = connected(server), connected(server)
    small.buffered, large.buffered = 400, 600
    server.served.sweep()
    assert not small.aborted
    assert not large.aborted
    small.buffered = 401
    server.served.sweep()
    assert large.aborted
    assert not small.aborted
