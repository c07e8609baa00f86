"""Octets that no decent client sends: damaged captures, hostile stubs, forged identifiers."""

import contextlib
import json
import random
import socket

import pytest

from rpcqm.client.names import format_name
from rpcqm.codec.interface import Operation, load
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.testing import PrivateQueueManager
from tests.fuzz import captures
from tests.fuzz.mutation import mutated, mutated_stream
from tests.integration.security.conftest import Connect, allow, bodies, filled
from tests.support.binary.binary_stranger import BinaryStranger
from tests.support.rpc.callers import Fault
from tests.support.rpc.network_caller import NetworkCaller
from tests.support.rpc.rpc_sockets import read_all

STREAMS = 120
EVERYBODY = "D:(A;;0xF003F;;;WD)(A;;0xF003F;;;AN)"


def unexpected(queue_manager: PrivateQueueManager) -> list[str]:
    """Lines of the log that tell of a mistake of ours."""
    lines = map(json.loads, queue_manager.log.splitlines())
    return [str(line) for line in lines if line["level"] in ("error", "critical")]


def ports(queue_manager: PrivateQueueManager) -> list[int]:
    return [queue_manager.endpoint(door)[1] for door in ("rpc", "qm2qm", "epm")]


def test_mutated_captures_end_their_own_connection_only(
    queue_manager: PrivateQueueManager, connect: Connect
) -> None:
    """What real clients have said, damaged, to every port that speaks RPC."""
    watching = connect("remoteread", user="alice")
    chance = random.Random(1)
    streams = list(captures.streams_of_clients())
    for number in range(STREAMS):
        octets = mutated_stream(chance, streams[number % len(streams)], streams)
        port = chance.choice(ports(queue_manager))
        with (
            contextlib.suppress(ConnectionError),
            socket.create_connection(("127.0.0.1", port), timeout=30) as plain,
        ):
            plain.sendall(octets)
            plain.shutdown(socket.SHUT_WR)
            read_all(plain)
    watching.call("R_GetServerPort")
    assert unexpected(queue_manager) == []


INTERFACES = ("remoteread", "qmcomm", "qmcomm2", "qm2qm", "qmmgmt")
OPERATIONS = [
    pytest.param(interface, operation, id=f"{interface}-{operation.name}")
    for interface in INTERFACES
    for operation in load(interface).operations
    if operation is not None
]


def stubs(chance: random.Random) -> list[bytes]:
    """Nothing, ones, zeros, counts that are too large, and noise."""
    huge = b"".join(chance.choice((b"\xff\xff\xff\x7f", b"\4\0\2\0", bytes(4))) for _ in range(60))
    plain = [b"", b"\0", bytes(400), b"\xff" * 400, b"\xff\xff\xff\x7f" * 100, huge]
    return plain + [mutated(chance, huge, plain) for _ in range(6)]


def answered(caller: NetworkCaller, interface: str, operation: Operation, stub: bytes) -> None:
    """Send a stub; its answer may be a fault."""
    call, octets = caller.made_of(caller.interfaces[interface], operation, stub)
    caller.plain.sendall(octets)
    caller.settle()
    with contextlib.suppress(Fault):
        call.result()


@pytest.mark.parametrize(("interface", "operation"), OPERATIONS)
def test_hostile_stubs_are_answered_and_the_connection_lives(
    supporting: PrivateQueueManager, connect: Connect, interface: str, operation: Operation
) -> None:
    """From a caller who has logged on, and to a server that has every method."""
    caller = connect(interface, "remoteread", user="alice", server=supporting)
    for stub in stubs(random.Random(operation.opnum)):
        answered(caller, interface, operation, stub)
    caller.call("R_GetServerPort")
    assert unexpected(supporting) == []


def test_a_message_that_was_refused_does_not_shut_out_its_namesake(
    queue_manager: PrivateQueueManager, name: str
) -> None:
    """A forged message takes the identifier of one to come, which is no duplicate for that."""
    filled(queue_manager, name)
    allow(queue_manager, name)
    to = f"DIRECT=OS:{queue_manager.ready.name}\\private$\\{name}"
    with BinaryStranger(queue_manager.endpoint("binary")) as session:
        session.deliver(to, 5)
        assert bodies(queue_manager, name) == [b"secret"]
        with queue_manager.client() as client:
            client.run(client.queues.set_security(format_name(name), parse_sddl(EVERYBODY)))
        for _ in range(2):
            session.deliver(to, 5, b"genuine")
    assert bodies(queue_manager, name) == [b"secret", b"genuine"]
