"""One address gets so many connections over all doors, and leaves those of others alone."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from rpcqm.rpc import pdu
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.rpc.probe import bind
from tests.support.rpc.rpc_sockets import read_pdu

BOUND = 12
CONFIGURATION = f"[storage]\nreserve = 1\n[limits]\nconnections_per_address = {BOUND}\n"
DOORS = ("rpc", "epm", "qm2qm", "binary")


@pytest.fixture
def queue_manager() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(configuration=CONFIGURATION) as queue_manager:
        yield queue_manager


def connected(queue_manager: PrivateQueueManager, door: str, source: str) -> socket.socket:
    return socket.create_connection(
        queue_manager.endpoint(door), timeout=20, source_address=(source, 0)
    )


def is_served(queue_manager: PrivateQueueManager, source: str) -> bool:
    with connected(queue_manager, "rpc", source) as client:
        try:
            client.sendall(bind())
            return isinstance(read_pdu(client), pdu.BindAck | pdu.BindNak)
        except (AssertionError, OSError):
            return False


@pytest.mark.bound("limits.connections_per_address")
def test_an_address_is_bounded_over_all_doors_together(queue_manager: PrivateQueueManager) -> None:
    with ExitStack() as stack:
        for number in range(BOUND - 1):
            door = DOORS[number % len(DOORS)]
            stack.enter_context(connected(queue_manager, door, "127.0.0.2"))
        last = stack.enter_context(connected(queue_manager, "rpc", "127.0.0.2"))
        last.sendall(bind())
        assert isinstance(read_pdu(last), pdu.BindAck | pdu.BindNak)
        assert not is_served(queue_manager, "127.0.0.2")
        assert is_served(queue_manager, "127.0.0.3")
        queue_manager.run("queue", "list")
        last.close()
        while not is_served(queue_manager, "127.0.0.2"):
            """Until the server has seen that one has gone."""
