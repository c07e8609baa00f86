"""Whoever has not logged on does nothing with a queue over the network but ask for ports.

The methods are those of the IDL, so that a new one is attacked as well.
"""

import asyncio
import json
from collections.abc import Awaitable, Iterator

import pytest

from rpcqm.base.errors import FaultStatus, RpcFault
from rpcqm.codec.interface import Interface, Operation, TransferSyntax, load
from rpcqm.rpc.client import RpcClient
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.security.context import CONNECT, PKT, PKT_INTEGRITY, PKT_PRIVACY, Credentials
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.integration.security.conftest import (
    DEFAULTS,
    PASSWORDS,
    Connect,
    add_accounts,
    bodies,
    filled,
)
from tests.support.rpc.callers import Fault
from tests.support.rpc.dependent_client import Client, open_remote
from tests.support.rpc.every_method import samples
from tests.support.rpc.remote_reader import PEEK_ACCESS, RECEIVE_ACCESS, Reader, status_name

OPEN = {
    "R_GetServerPort",
    "R_QMGetRTQMServerPort",
    "RemoteQMGetQMQMServerPort",
    "RemoteQmGetVersion",
}
"""Questions for ports and versions, which everybody may ask."""

INTERFACES = (
    "remoteread",
    "qmcomm",
    "qmcomm2",
    "qm2qm",
    "qmmgmt",
    "rpcqm_bulk",
    "rpcqm_sending",
    "rpcqm_trace",
)
METHODS = [
    (name, operation.name)
    for name in INTERFACES
    for operation in load(name).operations
    if operation is not None
]
PRIVATE = {"R_BulkOpen", "R_BulkSearch"}
"""What no switch opens to calls that are not encrypted; without it there is no handle."""
READERS = {name for interface, name in METHODS if interface in ("remoteread", "qm2qm")} | {
    "R_QMOpenRemoteQueue",
    "R_QMCloseRemoteQueueContext",
    "R_QMCreateRemoteCursor",
}
"""What the switches of RemoteRead open."""

DENIED = FaultStatus.RPC_S_ACCESS_DENIED


def state(queue_manager: PrivateQueueManager, queue: str) -> tuple[object, ...]:
    """Everything about a queue that a caller could change."""
    shown = json.loads(queue_manager.run("queue", "show", queue, "--json").stdout)
    rights = json.loads(queue_manager.run("queue", "acl", "show", queue, "--json").stdout)
    listed = queue_manager.run("queue", "list", "--json").stdout
    return shown, rights, listed, bodies(queue_manager, queue)


def attacked(
    queue_manager: PrivateQueueManager,
    credentials: Credentials | None,
    level: AuthenticationLevel | None,
    door: str,
) -> dict[str, str]:
    """What became of a call of each method, by its name."""

    async def main() -> dict[str, str]:
        found = {}
        for interface in map(load, INTERFACES):
            async with await RpcClient.connect_tcp(
                *queue_manager.endpoint(door), credentials=credentials, level=level
            ) as client:
                binding = await client.bind(interface, TransferSyntax.NDR)
                for operation in filter(None, interface.operations):
                    stub = sample(interface, operation)
                    call = client.start(binding.context_id, operation.opnum, stub)
                    found[operation.name] = await answer(call.result())
        return found

    return asyncio.run(asyncio.wait_for(main(), 60))


def sample(interface: Interface, operation: Operation) -> bytes:
    """A request that is right in form, the same one each time."""
    value = samples(operation.declaration, False)[0]
    return operation.codec(TransferSyntax.NDR).request.encode(value)


async def answer(result: Awaitable[bytes]) -> str:
    try:
        await result
    except RpcFault as fault:
        return fault.status.name
    return "answered"


@pytest.fixture(scope="module")
def target(queue_manager: PrivateQueueManager) -> str:
    return filled(queue_manager, "unlogged")


@pytest.mark.parametrize(
    ("credentials", "level"),
    [
        pytest.param(None, None, id="without a logon"),
        pytest.param(NtlmCredentials("admin", PASSWORDS["admin"]), CONNECT, id="at CONNECT"),
        pytest.param(NtlmCredentials("admin", PASSWORDS["admin"]), PKT, id="at PKT"),
        pytest.param(NtlmCredentials("admin", PASSWORDS["admin"]), PKT_INTEGRITY, id="signed"),
    ],
)
@pytest.mark.parametrize("door", ["rpc", "qm2qm"])
def test_no_method_of_any_interface_serves_them(
    queue_manager: PrivateQueueManager,
    target: str,
    credentials: Credentials | None,
    level: AuthenticationLevel | None,
    door: str,
) -> None:
    before = state(queue_manager, target)
    found = attacked(queue_manager, credentials, level, door)
    assert len(found) == len(METHODS)
    served = {name for name, outcome in found.items() if outcome != DENIED.name}
    assert served == OPEN
    assert state(queue_manager, target) == before


def test_the_interface_of_administration_is_not_there(queue_manager: PrivateQueueManager) -> None:
    async def main() -> None:
        async with await RpcClient.connect_tcp(*queue_manager.endpoint("rpc")) as client:
            await client.bind(load("rpcqm_admin"))

    with pytest.raises(RpcFault):
        asyncio.run(main())


@pytest.mark.parametrize("access", [RECEIVE_ACCESS, PEEK_ACCESS])
@pytest.mark.parametrize("suffix", ["", ";journal", ";sub"])
def test_no_queue_is_opened_by_any_path(
    connect: Connect, queue_manager: PrivateQueueManager, target: str, access: int, suffix: str
) -> None:
    """An exclusive open that is refused does not shut out the readers of the machine."""
    name = f"DIRECT=OS:.\\private$\\{target}{suffix}"
    caller = connect("remoteread", "qmcomm")
    with pytest.raises(Fault) as caught:
        Reader(caller.caller).open(name, access, 1)
    assert caught.value.status == DENIED
    with pytest.raises(Fault) as caught:
        open_remote(Client(caller.caller), name, access, 1)
    assert caught.value.status == DENIED
    assert bodies(queue_manager, target) == [b"secret"]


# What the switches open, and no more


SWITCHED = DEFAULTS + "[security]\n{} = true\n"


@pytest.fixture(scope="module")
def reading() -> Iterator[PrivateQueueManager]:
    """One that lets callers read who have not logged on."""
    configuration = SWITCHED.format("allow_nonauthenticated_rpc")
    with private_queue_manager(configuration=configuration) as running:
        add_accounts(running)
        yield running


def opened(
    connect: Connect,
    server: PrivateQueueManager,
    queue: str,
    access: int,
    credentials: Credentials | None = None,
    level: AuthenticationLevel = PKT_PRIVACY,
) -> list[str]:
    """What comes of opening a queue by RemoteRead and by qmcomm."""
    name = f"DIRECT=OS:.\\private$\\{queue}"
    caller = connect("remoteread", "qmcomm", server=server, credentials=credentials, level=level)
    found = []
    try:
        Reader(caller.caller).open(name, access)
        found.append("MQ_OK")
    except Fault as fault:
        found.append(status_name(fault.status))
    found.append(status_name(open_remote(Client(caller.caller), name, access).result))
    return found


def test_a_switch_lets_them_read_what_anonymous_is_granted(
    connect: Connect, reading: PrivateQueueManager
) -> None:
    queue = filled(reading, "switched")
    refused = ["MQ_ERROR_ACCESS_DENIED"] * 2
    assert opened(connect, reading, queue, PEEK_ACCESS) == refused
    reading.run("queue", "acl", "grant", queue, "anonymous", "peek")
    assert opened(connect, reading, queue, PEEK_ACCESS) == ["MQ_OK"] * 2
    assert opened(connect, reading, queue, RECEIVE_ACCESS) == refused
    reading.run("queue", "acl", "grant", queue, "anonymous", "full")
    assert opened(connect, reading, queue, RECEIVE_ACCESS) == ["MQ_OK"] * 2


def test_with_that_switch_those_who_have_logged_on_need_no_protection(
    connect: Connect, reading: PrivateQueueManager
) -> None:
    queue = filled(reading, "unprotected")
    alice = NtlmCredentials("alice", PASSWORDS["alice"])
    assert opened(connect, reading, queue, RECEIVE_ACCESS, alice, CONNECT) == ["MQ_OK"] * 2


def test_who_may_only_peek_cannot_open_exclusively(
    connect: Connect, reading: PrivateQueueManager
) -> None:
    queue = filled(reading, "exclusive")
    reading.run("queue", "acl", "grant", queue, "anonymous", "peek")
    caller = connect("remoteread", server=reading)
    with pytest.raises(Fault) as caught:
        Reader(caller.caller).open(f"DIRECT=OS:.\\private$\\{queue}", PEEK_ACCESS, 1)
    assert status_name(caught.value.status) == "MQ_ERROR_ACCESS_DENIED"
    assert bodies(reading, queue) == [b"secret"]


def test_the_switch_for_readers_opens_no_other_interface(reading: PrivateQueueManager) -> None:
    found = attacked(reading, None, None, "rpc")
    assert {name for name, told in found.items() if told != DENIED.name} == READERS | OPEN


def test_signed_calls_need_their_switch() -> None:
    alice = NtlmCredentials("alice", PASSWORDS["alice"])
    configuration = SWITCHED.format("debug_rpc")
    with private_queue_manager(configuration=configuration) as signed:
        add_accounts(signed)
        found = attacked(signed, alice, PKT_INTEGRITY, "rpc")
        assert {name for name, told in found.items() if told == DENIED.name} == PRIVATE
        found = attacked(signed, alice, PKT, "rpc")
        assert {name for name, told in found.items() if told != DENIED.name} == OPEN
        found = attacked(signed, None, None, "rpc")
        assert {name for name, told in found.items() if told != DENIED.name} == OPEN


def test_a_supporting_server_serves_only_who_has_logged_on(
    supporting: PrivateQueueManager,
) -> None:
    found = attacked(supporting, None, None, "rpc")
    assert {name for name, told in found.items() if told != DENIED.name} == OPEN


def test_old_dependent_clients_have_a_switch_of_their_own() -> None:
    configuration = SWITCHED.format("allow_unprotected_rpc")
    with private_queue_manager(configuration=configuration) as old:
        found = attacked(old, None, None, "rpc")
    refused = {name for name, told in found.items() if told == DENIED.name}
    assert refused == READERS - OPEN | PRIVATE
