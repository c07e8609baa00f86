"""Connections that are shared, break and come back; nothing is done twice."""

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from uuid import UUID

import pytest

from rpcqm.base.errors import HResult, MQError
from rpcqm.client import mq, pool
from rpcqm.client.names import format_name, path_name
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.remote_read import QueueReader
from rpcqm.client.target import (
    HandleLostError,
    LocalServer,
    OutcomeUnknownError,
    RemoteServer,
    ServerUnreachableError,
)
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import AcknowledgementsRequested
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.rpc.client import RpcClient
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.rpc.older_server import older_server, supporting_server

NAME = format_name("orders")
CONFIGURATION = "[storage]\nreserve = 1\n"


@pytest.fixture(scope="module")
def served() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(configuration=CONFIGURATION) as queue_manager:
        queue_manager.run("queue", "create", "orders")
        yield queue_manager


@pytest.fixture
def queue_manager(served: PrivateQueueManager) -> PrivateQueueManager:
    """One for all tests; each begins with an empty queue."""
    with mq.open("orders", LocalServer(served.socket)) as queue:
        queue.purge()
    return served


async def send(client: QueueManagerClient, *bodies: bytes) -> None:
    async with client.open_sender(NAME) as sender:
        for body in bodies:
            await sender.send(OutgoingMessage(body))


async def body_of(reader: QueueReader) -> bytes:
    async with await reader.receive(5000) as message:
        return message.body


def test_a_server_that_was_restarted_is_found_again(queue_manager: PrivateQueueManager) -> None:
    async def main() -> None:
        async with QueueManagerClient(LocalServer(queue_manager.socket)) as client:
            await send(client, b"one")
            async with client.open_reader(NAME) as reader:
                assert (await reader.peek(0)).body == b"one"
                queue_manager.kill()
                queue_manager.start()
                assert await body_of(reader) == b"one"
                await client.queues.properties(await client.queues.format_name(path_name("orders")))

    asyncio.run(main())


def test_a_wait_goes_on_at_the_server_that_comes_back(queue_manager: PrivateQueueManager) -> None:
    async def main() -> None:
        target = LocalServer(queue_manager.socket)
        async with (
            QueueManagerClient(target, patience=30) as client,
            client.open_reader(NAME) as reader,
        ):
            waiting = asyncio.ensure_future(body_of(reader))
            await reader.create_cursor()
            queue_manager.kill()
            await asyncio.to_thread(queue_manager.start)
            await send(client, b"late")
            assert await waiting == b"late"

    asyncio.run(main())


def test_a_sender_opens_its_queue_again_where_nothing_was_sent(
    queue_manager: PrivateQueueManager,
) -> None:
    """Also when something else has connected again before; a transaction is not gone on with."""

    async def main() -> None:
        async with (
            QueueManagerClient(LocalServer(queue_manager.socket), patience=30) as client,
            client.open_sender(NAME) as sender,
            client.open_reader(NAME) as reader,
        ):
            await sender.send(OutgoingMessage(b"one"))
            async with client.begin_transaction() as unit:
                for body in (b"two", b"three"):
                    queue_manager.kill()
                    await asyncio.to_thread(queue_manager.start)
                    if body == b"three":
                        await reader.peek(0)
                    with pytest.raises(HandleLostError):
                        await sender.send(OutgoingMessage(b"never"), unit)
                    await sender.send(OutgoingMessage(body))
                with pytest.raises(HandleLostError):
                    await unit.commit()
            assert [each.body async for each in reader.browse()] == [b"one", b"two", b"three"]

    asyncio.run(main())


def test_a_send_whose_answer_is_lost_is_never_repeated(tmp_path: Path) -> None:
    async def main() -> None:
        async with supporting_server(tmp_path, RemoteServer) as server:
            name = await server.create()
            async with (
                QueueManagerClient(server.target, patience=1) as client,
                client.open_sender(FormatName.parse(name)) as sender,
            ):
                server.cut_off = "rpc_ACSendMessageEx"
                with pytest.raises(OutcomeUnknownError, match="lost"):
                    await sender.send(OutgoingMessage(b"once"))
                assert server.count(name) == 1
                await sender.send(OutgoingMessage(b"again"))
                assert server.count(name) == 2

    asyncio.run(main())


def test_what_was_open_in_another_life_is_lost_not_a_fault(
    queue_manager: PrivateQueueManager,
) -> None:
    async def main() -> None:
        async with QueueManagerClient(LocalServer(queue_manager.socket), patience=30) as client:
            await send(client, b"one")
            async with client.open_reader(NAME) as reader, client.open_reader(NAME) as other:
                pending = await reader.receive(0)
                queue_manager.kill()
                await asyncio.to_thread(queue_manager.start)
                await other.peek(0)
                with pytest.raises(HandleLostError, match="closed with its connection"):
                    await pending.acknowledge()
                assert await body_of(reader) == b"one"

    asyncio.run(main())


def test_an_acknowledgement_is_not_sent_to_another_life_of_the_server(
    queue_manager: PrivateQueueManager,
) -> None:
    async def main() -> None:
        async with QueueManagerClient(LocalServer(queue_manager.socket), 30) as client:
            await send(client, b"one")
            async with client.open_reader(NAME) as reader:
                pending = await reader.receive(0)
                queue_manager.kill()
                await asyncio.to_thread(queue_manager.start)
                with pytest.raises(HandleLostError):
                    await pending.acknowledge()
                assert await body_of(reader) == b"one"
                with pytest.raises(MQError) as caught:
                    await reader.receive(0)
                assert caught.value.status is HResult.MQ_ERROR_IO_TIMEOUT

    asyncio.run(main())


def test_an_acknowledgement_whose_answer_is_lost_is_never_repeated(tmp_path: Path) -> None:
    async def main() -> None:
        async with older_server(tmp_path) as server:
            name = await server.create()
            server.enqueue(name, b"one")
            async with (
                QueueManagerClient(server.target, patience=1) as client,
                client.open_reader(FormatName.parse(name)) as reader,
            ):
                pending = await reader.receive(0)
                server.cut_off = "RemoteQMEndReceive"
                with pytest.raises(OutcomeUnknownError, match="lost"):
                    await pending.acknowledge()
                assert server.calls.count("RemoteQMEndReceive") == 1

    asyncio.run(main())


def test_a_lost_opening_is_repeated(tmp_path: Path) -> None:
    async def main() -> None:
        async with older_server(tmp_path) as server:
            name = await server.create()
            server.enqueue(name, b"one")
            server.cut_off = "R_QMOpenRemoteQueue"
            async with (
                QueueManagerClient(server.target) as client,
                client.open_reader(FormatName.parse(name)) as reader,
            ):
                assert await body_of(reader) == b"one"
            assert server.calls.count("R_QMOpenRemoteQueue") == 2

    asyncio.run(main())


def test_patience_ends(tmp_path: Path) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with QueueManagerClient(LocalServer(tmp_path / "nobody"), patience=0.3) as client:
            began = loop.time()
            with pytest.raises(ServerUnreachableError, match="can be reached"):
                await client.queues.format_name(path_name("orders"))
            assert loop.time() - began >= 0.1

    asyncio.run(main())


# Sharing


def test_a_server_that_serves_one_call_at_a_time_gets_more_connections(
    queue_manager: PrivateQueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wait does not keep its own cancellation waiting, and handles are good on all of them."""
    monkeypatch.setattr(RpcClient, "multiplexed", False)

    async def main() -> None:
        client = QueueManagerClient(LocalServer(queue_manager.socket))
        async with client, client.open_reader(NAME) as reader:
            waiting = asyncio.ensure_future(reader.receive())
            await reader.create_cursor()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await send(client, b"one")
            assert await body_of(reader) == b"one"

    asyncio.run(asyncio.wait_for(main(), 20))


def test_many_calls_are_spread_over_connections_of_one_group(
    queue_manager: PrivateQueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "CALLS", 4)
    opened: list[int] = []
    connect = RpcClient.connect_unix

    async def counted(path: Path, group_id: int = 0) -> RpcClient:
        opened.append(group_id)
        return await connect(path, group_id=group_id)

    monkeypatch.setattr(RpcClient, "connect_unix", counted)

    async def main() -> None:
        client = QueueManagerClient(LocalServer(queue_manager.socket))
        async with client, client.open_reader(NAME) as reader:
            waiting = [asyncio.ensure_future(reader.peek(20_000)) for _ in range(10)]
            await asyncio.sleep(0)
            await send(client, b"one")
            assert {message.body for message in await asyncio.gather(*waiting)} == {b"one"}

    asyncio.run(asyncio.wait_for(main(), 20))
    assert opened[0] == 0
    assert len(opened) >= 3
    assert len(set(opened[1:])) == 1
    assert opened[1] != 0


# mq


def test_a_message_is_acknowledged_by_coming_back(queue_manager: PrivateQueueManager) -> None:
    target = LocalServer(queue_manager.socket)
    with mq.open("orders", target) as queue:
        for number in range(4):
            queue.send(number)
        for message in queue.receive(timeout=0):
            if message.value == 1:
                break
        assert [message.value for message in queue.browse()] == [2, 3]
    with mq.open("orders", target) as queue:
        assert [message.value for message in queue.browse()] == [2, 3]
        assert [message.value for message in queue.receive(timeout=0, limit=1)] == [2]
        assert queue.receive_one(0) is not None
        assert queue.receive_one(0) is None
        assert queue.peek(0) is None


def test_an_exception_gives_the_message_in_hand_back(queue_manager: PrivateQueueManager) -> None:
    target = LocalServer(queue_manager.socket)
    with mq.open("orders", target) as queue:
        queue.send("first")
        queue.send("second")

    def fail() -> None:
        with mq.open("orders", target) as queue:
            for message in queue.receive(timeout=0):
                if message.value == "second":
                    raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with mq.open("orders", target) as queue:
        assert [message.value for message in queue.browse()] == ["second"]


def test_a_message_can_be_settled_at_once(queue_manager: PrivateQueueManager) -> None:
    with mq.open("orders", LocalServer(queue_manager.socket)) as queue:
        queue.send("first")
        message = queue.receive_one(0)
        assert message is not None
        message.release()
        assert [message.value for message in queue.browse()] == ["first"]
        message = queue.receive_one(0)
        assert message is not None
        message.acknowledge()
        message.release()
        assert message.settled
        assert list(queue.browse()) == []
        queue.send(OutgoingMessage(b"x"))
        with pytest.raises(TypeError, match="already"):
            queue.send(OutgoingMessage(b"x"), label="y")
        queue.purge()
        assert list(queue.browse()) == []


def test_what_is_sent_in_a_transaction_arrives_together_or_not_at_all(
    queue_manager: PrivateQueueManager,
) -> None:
    queue_manager.run("queue", "create", "bills", "--transactional")
    with mq.open("bills", queue_manager) as queue:
        with pytest.raises(mq.MQError, match="TRANSACTION_USAGE"):
            queue.send("alone")
        with queue.transaction():
            queue.send("one")
            queue.send("two")
            assert list(queue.browse()) == []
            with pytest.raises(RuntimeError, match="already"), queue.transaction():
                pass
        with contextlib.suppress(ZeroDivisionError), queue.transaction():
            queue.send("three")
            raise ZeroDivisionError
        assert [message.value for message in queue.browse()] == ["one", "two"]
        queue.purge()


def test_a_program_with_a_loop_sends_in_transactions_too(
    queue_manager: PrivateQueueManager,
) -> None:
    queue_manager.run("queue", "create", "more", "--transactional")

    async def main() -> None:
        async with mq.open_async("more", queue_manager) as queue:
            async with queue.transaction():
                await queue.send("one")
                await queue.send("two")
                assert await queue.peek(0) is None
            assert [message.value async for message in queue.receive(timeout=0)] == ["one", "two"]

    asyncio.run(main())


def test_what_was_sent_is_received_under_the_same_names(
    queue_manager: PrivateQueueManager,
) -> None:
    sent = OutgoingMessage(
        body=b"body",
        label="label",
        priority=6,
        recoverable=False,
        body_type=8,
        time_to_be_received=1000,
        time_to_reach_queue=500,
        acknowledgements=AcknowledgementsRequested.ACK_FULL_RECEIVE,
        administration_queue=format_name("acks"),
        response_queue=format_name("answers"),
        correlation_identifier=MessageIdentifier(UUID(int=5), 7),
        application_tag=11,
        extension=b"extension",
        connector_type=UUID(int=9),
        dead_letter=True,
        journal=True,
    )
    names = {field.name for field in fields(sent)} - {"dead_letter_queue"}
    with mq.open(NAME, queue_manager) as queue:
        queue.send(sent)
        message = queue.receive_one(0)
    assert message is not None
    assert {n: getattr(message, n) for n in names} == {n: getattr(sent, n) for n in names}


def test_an_answer_goes_to_the_queue_that_the_question_names(
    queue_manager: PrivateQueueManager,
) -> None:
    queue_manager.run("queue", "create", "answers")
    with mq.open("orders", queue_manager) as queue:
        asked = queue.send("question", response_queue=format_name("answers"))
        question = queue.receive_one(0)
        assert question is not None
        with mq.open(question.response_queue, queue_manager) as answers:
            answers.send("answer", correlation_identifier=question.identifier)
            answer = answers.receive_one(0)
    assert answer is not None
    assert (answer.value, answer.correlation_identifier) == ("answer", asked)


def test_a_refusal_says_what_it_means(queue_manager: PrivateQueueManager) -> None:
    with mq.open("missing", queue_manager) as queue, pytest.raises(mq.MQError) as caught:
        queue.receive_one(0)
    assert str(caught.value) == (
        "MQ_ERROR_QUEUE_NOT_FOUND: There is no such queue, or the caller may not see it."
    )
    assert caught.value.status is mq.HResult.MQ_ERROR_QUEUE_NOT_FOUND


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("mailhost", "mailhost", 135),
        ("mailhost:1135", "mailhost", 1135),
        ("192.0.2.1:99", "192.0.2.1", 99),
        ("2001:db8::1", "2001:db8::1", 135),
        ("[2001:db8::1]:99", "2001:db8::1", 99),
    ],
)
def test_servers_are_named_with_or_without_a_port(address: str, host: str, port: int) -> None:
    server = mq.server_at(address)
    assert (server.host, server.endpoint_mapper_port, server.credentials) == (host, port, None)
    named = mq.server_at(address, "EXAMPLE\\alice", "secret").credentials
    assert isinstance(named, NtlmCredentials)
    assert (named.domain, named.username) == ("EXAMPLE", "alice")


def test_without_a_queue_manager_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(ServerUnreachableError, match="No queue manager runs on"):
        mq.local_server(tmp_path)
