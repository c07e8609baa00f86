"""Readers are told the address that a message was received from ([MS-MQRR] 2.2.5.1, 2.2.5.5).

Two queue managers, each a process of its own, send to each other over loopback.
"""

import asyncio
from collections.abc import Iterator

import pytest

from rpcqm.client.message import ReceivedMessage
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.target import LocalServer
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.remote_read import AddressOverlay, ExtendedAddressHeader, HostAddress
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.ports import reserved_port

ORDERS = FormatName.parse(r"DIRECT=OS:.\private$\orders")


@pytest.fixture(params=["127.0.0.1", "::1"])
def host(request: pytest.FixtureRequest) -> str:
    address: str = request.param
    return address


@pytest.fixture
def port() -> int:
    return reserved_port()


@pytest.fixture
def receiver(host: str, port: int) -> Iterator[PrivateQueueManager]:
    options = ("--host", host, "--binary-port", str(port))
    with private_queue_manager(options, 'name = "receiver"\n') as made:
        made.run("queue", "create", "orders")
        yield made


@pytest.fixture
def sender(host: str, port: int) -> Iterator[PrivateQueueManager]:
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    configuration = f'name = "sender"\n[binary]\npeers = "receiver={place}"\n'
    with private_queue_manager((), configuration) as made:
        yield made


def first_message(queue_manager: PrivateQueueManager) -> ReceivedMessage:
    async def main() -> ReceivedMessage:
        async with (
            asyncio.timeout(30),
            QueueManagerClient(LocalServer(queue_manager.socket)) as client,
            client.open_reader(ORDERS) as reader,
        ):
            return await reader.peek(20_000)

    return asyncio.run(main())


@pytest.mark.conformance("MQRR-packet-UserMessage", "MQRR-header-ExtendedAddressHeader")
def test_a_message_tells_the_address_of_the_host_that_sent_it(
    receiver: PrivateQueueManager, sender: PrivateQueueManager, host: str
) -> None:
    sender.run("send", r"DIRECT=OS:receiver\private$\orders", "--body", "hello")
    expected = HostAddress.parse(host)
    for _ in range(2):
        message = first_message(receiver)
        assert message.text == "hello"
        assert message.extensions.extended_address == ExtendedAddressHeader.of(expected)
        assert bytes(message.buffer[32:48]) == AddressOverlay.of(expected).encode()
        receiver.kill()
        receiver.start()
