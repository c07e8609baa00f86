"""Guesses at passwords are slowed by account and address together, over all doors."""

import asyncio
from collections.abc import Iterator

import pytest

from rpcqm.base.errors import RpcFault
from rpcqm.codec.interface import load
from rpcqm.codec.types import remoteread
from rpcqm.rpc.client import RpcClient, _association
from rpcqm.rpc.security.context import AuthenticationError, Credentials
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.rpc.security.spnego import SpnegoCredentials
from rpcqm.testing import PrivateQueueManager, private_queue_manager

PASSWORD = "correct horse battery"
HERE, THERE = "127.0.0.2", "127.0.0.3"


@pytest.fixture
def queue_manager() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(configuration="[storage]\nreserve = 1\n") as queue_manager:
        for name in ("alice", "bob"):
            queue_manager.run("user", "add", name, "--password-stdin", input=PASSWORD)
        yield queue_manager


def logs_on(
    queue_manager: PrivateQueueManager,
    password: str,
    *,
    account: str = "alice",
    address: str = HERE,
    door: str = "rpc",
    spnego: bool = False,
) -> bool:
    """Whether a call under these credentials is served."""
    credentials: Credentials = NtlmCredentials(account, password)
    if spnego:
        credentials = SpnegoCredentials((credentials,))

    async def call() -> bool:
        host, port = queue_manager.endpoint(door)
        client = RpcClient(_association(credentials, None, None, host))
        await asyncio.get_running_loop().create_connection(
            lambda: client._protocol, host, port, local_addr=(address, 0)
        )
        async with client:
            try:
                binding = await client.bind(load("remoteread"))
                await binding.call("R_GetServerPort", remoteread.R_GetServerPortRequest())
            except (AuthenticationError, RpcFault, OSError):
                return False
        return True

    return asyncio.run(asyncio.wait_for(call(), 30))


def test_after_six_wrong_guesses_the_right_password_waits(
    queue_manager: PrivateQueueManager,
) -> None:
    """Over both doors and both ways to say it together; others log on meanwhile."""
    for number in range(6):
        door = ("rpc", "qm2qm")[number % 2]
        spnego = number >= 3
        assert not logs_on(queue_manager, f"guess {number}", door=door, spnego=spnego)
    # More guesses, each after its delay, so that the delay is long enough to look at it.
    while queue_manager.log.count("wrong passwords for this account from this address") < 3:
        assert not logs_on(queue_manager, "again")
    assert not logs_on(queue_manager, PASSWORD)
    assert not logs_on(queue_manager, PASSWORD, spnego=True, door="qm2qm")
    assert logs_on(queue_manager, PASSWORD, address=THERE)
    assert logs_on(queue_manager, PASSWORD, account="bob")


def test_five_wrong_guesses_have_no_consequences(queue_manager: PrivateQueueManager) -> None:
    for number in range(5):
        assert not logs_on(queue_manager, f"guess {number}")
    assert logs_on(queue_manager, PASSWORD)


def test_the_right_password_after_the_delay_ends_it(queue_manager: PrivateQueueManager) -> None:
    for number in range(6):
        assert not logs_on(queue_manager, f"guess {number}")
    while not logs_on(queue_manager, PASSWORD):
        """A second, in which nothing is looked at."""
    for number in range(5):
        assert not logs_on(queue_manager, f"guess {number}")
    assert logs_on(queue_manager, PASSWORD)
