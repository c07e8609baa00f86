"""A client of several nodes finds the one that answers, and the other one after a takeover."""

import asyncio
from collections.abc import Iterator

import pytest

from rpcqm.client.names import format_name
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.remote_read import QueueReader
from rpcqm.client.target import (
    HandleLostError,
    RemoteServer,
    ServerUnreachableError,
    any_of,
)
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.ports import reserved_port

CREDENTIALS = NtlmCredentials("boss", "secret")


def made(name: str) -> Iterator[PrivateQueueManager]:
    with private_queue_manager(configuration="[storage]\nreserve = 1\n") as queue_manager:
        queue_manager.run("queue", "create", "orders")
        queue_manager.run("send", "orders", "--body", name)
        queue_manager.run(
            *("user", "add", "boss", "--group", "administrators", "--password-stdin"),
            input="secret\n",
        )
        yield queue_manager


@pytest.fixture(scope="module")
def first() -> Iterator[PrivateQueueManager]:
    yield from made("first")


@pytest.fixture(scope="module")
def second() -> Iterator[PrivateQueueManager]:
    yield from made("second")


def server(queue_manager: PrivateQueueManager) -> RemoteServer:
    host, port = queue_manager.endpoint("epm")
    return RemoteServer(host, port, CREDENTIALS)


def nobody() -> RemoteServer:
    return RemoteServer("127.0.0.1", reserved_port(), CREDENTIALS)


async def seen(reader: QueueReader) -> str:
    return (await reader.peek(0)).body.decode("utf-16-le")


async def first_body(client: QueueManagerClient) -> str:
    async with client.open_reader(format_name("orders")) as reader:
        return await seen(reader)


def test_the_node_that_answers_is_used(first: PrivateQueueManager) -> None:
    async def main() -> None:
        target = any_of([nobody(), nobody(), server(first)])
        async with QueueManagerClient(target) as client:
            assert await first_body(client) == "first"
        async with QueueManagerClient(any_of([nobody(), nobody()])) as client:
            with pytest.raises(ServerUnreachableError):
                await first_body(client)

    asyncio.run(main())


def test_after_a_lost_connection_the_other_node_is_asked(
    first: PrivateQueueManager, second: PrivateQueueManager
) -> None:
    async def main() -> None:
        target = any_of([server(first), server(second)])
        async with QueueManagerClient(target) as client:
            async with client.open_reader(format_name("orders")) as reader:
                assert await seen(reader) == "first"
                first.kill()
                with pytest.raises(HandleLostError):
                    await reader.create_cursor()
            assert await first_body(client) == "second"
        first.start()

    asyncio.run(main())


def test_a_command_takes_several_servers(first: PrivateQueueManager) -> None:
    host, port = first.endpoint("epm")
    servers = f"127.0.0.1:{reserved_port()},{host}:{port}"
    options = ("--server", servers, "--user", "boss", "--password-stdin")
    done = first.run("peek", "orders", *options, "--format", "body", input="secret\n")
    assert "first" in done.stdout
    wrong = first.run("peek", "orders", "--server", f"{host},:1", check=False)
    assert wrong.returncode == 2
    assert "HOST:PORT" in wrong.stderr
