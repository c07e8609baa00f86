"""Many messages are read and removed with many calls on their way at once."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rpcqm.base.errors import DecodeError, HResult, MQError
from rpcqm.client import bulk, pipelining
from rpcqm.client.bulk import BulkReader
from rpcqm.client.connection import Connections
from rpcqm.client.message import ReceivedMessage
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.target import HandleLostError, LocalServer
from rpcqm.codec.names.format_name import FormatName
from rpcqm.testing import private_queue_manager
from tests.support.rpc.older_server import OlderServer, older_server

GONE = HResult.MQ_ERROR_MESSAGE_NOT_FOUND
BODIES = tuple(b"%d" % number for number in range(150))


@pytest.fixture(autouse=True)
def _small_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that there are several windows."""
    monkeypatch.setattr(pipelining, "WINDOW", 16)


def reading(directory: Path, program: Callable[[OlderServer, BulkReader], Awaitable[None]]) -> None:
    """Run a program on a queue of a server without RemoteRead."""

    async def main() -> None:
        async with older_server(directory) as server:
            name = await server.create()
            server.enqueue(name, *BODIES)
            async with (
                QueueManagerClient(server.target) as client,
                client.open_bulk_reader(FormatName.parse(name)) as reader,
            ):
                await program(server, reader)

    asyncio.run(main())


def status_of(error: MQError | DecodeError) -> object:
    return error.status if isinstance(error, MQError) else type(error)


async def use(reader: BulkReader) -> None:
    identifiers = [each async for each in reader.visible()]
    assert len(identifiers) == len(BODIES)
    absent = identifiers[-1] + 1
    wanted = [*identifiers[:5], absent, *identifiers[5:]]
    found = [pair async for pair in reader.peek(wanted)]
    assert [identifier for identifier, _ in found] == wanted
    bodies = [each.body for _, each in found if isinstance(each, ReceivedMessage)]
    assert bodies == list(BODIES)
    sizes = await reader.sizes(wanted)
    assert (sizes[5], min(sizes[:5] + sizes[6:]) > 0) == (0, True)
    assert [each.body async for each in reader.browse()] == list(BODIES)
    missing = found[5][1]
    assert isinstance(missing, MQError)
    assert missing.status == GONE
    refused = [pair async for pair in reader.remove([*identifiers[:100], absent])]
    assert [(identifier, status_of(error)) for identifier, error in refused] == [(absent, GONE)]
    assert [each async for each in reader.visible()] == identifiers[100:]
    again = [status_of(error) async for _, error in reader.remove(identifiers[:3])]
    assert again == [GONE] * 3


async def _no_bulk(*_: object) -> None:
    """As a server answers that lacks the interface."""


@pytest.mark.parametrize("way", ["rpcqm_bulk", "RemoteRead"])
def test_a_queue_is_read_and_emptied_in_bulk(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "RemoteRead":
        monkeypatch.setattr(bulk, "open_bulk", _no_bulk)

    async def main(target: LocalServer) -> None:
        name = FormatName.parse("DIRECT=OS:.\\private$\\orders")
        async with QueueManagerClient(target) as client:
            async with client.open_sender(name) as sender:
                for body in BODIES:
                    await sender.send(OutgoingMessage(body, recoverable=False))
            async with client.open_bulk_reader(name) as reader:
                await use(reader)

    with private_queue_manager() as queue_manager:
        queue_manager.run("queue", "create", "orders")
        asyncio.run(main(LocalServer(queue_manager.socket)))


def test_few_calls_read_and_empty_a_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    call = Connections.call

    def counted(self: Connections, request: Any, *more: Any) -> Any:
        asked.append(request.operation.name)
        return call(self, request, *more)

    async def main(target: LocalServer) -> None:
        name = FormatName.parse("DIRECT=OS:.\\private$\\orders")
        async with QueueManagerClient(target) as client:
            async with client.open_sender(name) as sender:
                for body in BODIES:
                    await sender.send(OutgoingMessage(body, recoverable=False))
            monkeypatch.setattr(Connections, "call", counted)
            async with client.open_bulk_reader(name) as reader:
                keys = [key async for key in reader.visible()]
                assert len([pair async for pair in reader.peek(keys)]) == len(BODIES)
                assert [each.body async for each in reader.browse()] == list(BODIES)
                assert await reader.count() == len(keys)
                assert len(await reader.sizes(keys)) == len(keys)
                assert [pair async for pair in reader.remove(keys)] == []

    with private_queue_manager() as queue_manager:
        queue_manager.run("queue", "create", "orders")
        asyncio.run(main(LocalServer(queue_manager.socket)))
    done = "Open List Read List Read Count Sizes Remove Close"
    assert asked == [f"R_Bulk{each}" for each in done.split()]


def test_many_messages_are_sent_in_their_order_many_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only the first answer is waited for; what is on its way is bounded by octets, too."""
    alone: list[str] = []
    waiting: list[int] = []
    call, send = Connections.call, pipelining._send

    def counted(self: Connections, request: Any, *more: Any) -> Any:
        alone.append(request.operation.name)
        return call(self, request, *more)

    def watched(binding: Any, requests: Any, room: int, calls: Any) -> int:
        left = send(binding, requests, room, calls)
        waiting.append(len(calls))
        return left

    async def main(target: LocalServer) -> None:
        names = [FormatName.parse(f"DIRECT=OS:.\\private$\\{name}") for name in ("orders", "dead")]
        async with QueueManagerClient(target) as client:
            async with client.open_sender(names[0]) as sender:
                monkeypatch.setattr(Connections, "call", counted)
                monkeypatch.setattr(pipelining, "_send", watched)
                small = [OutgoingMessage(body, recoverable=False) for body in BODIES]
                sent = [each async for each in sender.send_all(small)]
                assert len(set(sent)) == len(small)
                assert (alone, max(waiting)) == (["rpc_ACSendMessageEx"], 16)
                waiting.clear()
                monkeypatch.setattr(pipelining, "MOST_OCTETS", 1000)
                large = [OutgoingMessage(bytes(400) + body, recoverable=False) for body in BODIES]
                mixed = [replace(large[0], dead_letter_queue=names[1]), *large[1:]]
                assert len([each async for each in sender.send_all(mixed)]) == len(mixed)
                assert max(waiting) == 3
                labels = (OutgoingMessage(label="x" * each) for each in (1, 2, 500, 3))
                with pytest.raises(MQError, match="LABEL_TOO_LONG"):
                    [each async for each in sender.send_all(labels)]
            async with client.open_reader(names[0], peek_only=True) as reader:
                found = [each.body async for each in reader.browse()]
        assert found == [each.body for each in (*small, *large)] + [b""] * 2

    with private_queue_manager() as queue_manager:
        for name in ("orders", "dead"):
            queue_manager.run("queue", "create", name)
        asyncio.run(main(LocalServer(queue_manager.socket)))


def test_servers_without_remote_read_are_read_one_by_one(tmp_path: Path) -> None:
    async def program(server: OlderServer, reader: BulkReader) -> None:
        await use(reader)

    reading(tmp_path, program)


def test_a_server_that_goes_away_ends_the_reading() -> None:
    async def main(target: LocalServer, stop: Callable[[], object]) -> None:
        name = FormatName.parse("DIRECT=OS:.\\private$\\orders")
        async with (
            QueueManagerClient(target) as client,
            client.open_bulk_reader(name, peek_only=True) as reader,
        ):
            stop()
            with pytest.raises(HandleLostError):
                [pair async for pair in reader.peek([1, 2, 3])]

    with private_queue_manager() as queue_manager:
        queue_manager.run("queue", "create", "orders")
        asyncio.run(main(LocalServer(queue_manager.socket), queue_manager.kill))
