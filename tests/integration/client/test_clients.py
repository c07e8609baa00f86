"""The clients as a program uses them, against a real server."""

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from rpcqm.base.errors import HResult, MQError, NtStatus
from rpcqm.client.blocking import BlockingClient
from rpcqm.client.names import format_name, path_name
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.passwords import nt_hash
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.queue_settings import QueueSettings
from rpcqm.client.target import LocalServer, RemoteServer, ServerUnreachableError
from rpcqm.codec.interface import load
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import BodyType
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.codec.types.mqvalues import (
    IP_HANDSHAKE,
    IP_READ,
    MQ_LOOKUP_PEEK_NEXT,
    MQ_LOOKUP_PEEK_PREV,
    MQ_LOOKUP_RECEIVE_NEXT,
)
from rpcqm.codec.types.qm2qm import RemoteQMGetQMQMServerPortRequest
from rpcqm.codec.types.qmcomm import R_QMGetRTQMServerPortRequest
from rpcqm.codec.types.remoteread import R_GetServerPortRequest
from rpcqm.rpc.client import RpcClient
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.testing import PrivateQueueManager, private_queue_manager

Program = Callable[[QueueManagerClient, FormatName], Awaitable[None]]
ROOT = Path(__file__).parents[3]
_CONFIGURATION = "[storage]\nreserve = 1\n"


@pytest.fixture(scope="module")
def queue_manager() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(configuration=_CONFIGURATION) as queue_manager:
        yield queue_manager


@pytest.fixture
def on_a_queue(
    queue_manager: PrivateQueueManager, request: pytest.FixtureRequest
) -> Callable[[Program], None]:
    """Run a program on a queue of its own, named after the test."""
    path = path_name(re.sub(r"\W", "-", request.node.name)[:100])

    async def main(program: Program) -> None:
        async with QueueManagerClient(LocalServer(queue_manager.socket)) as client:
            await client.queues.create(path, QueueSettings(), None)
            await program(client, await client.queues.format_name(path))

    return lambda program: asyncio.run(main(program))


async def send(client: QueueManagerClient, name: FormatName, *bodies: bytes) -> None:
    async with client.open_sender(name) as sender:
        for body in bodies:
            await sender.send(OutgoingMessage(body))


@pytest.mark.conformance("MQRR-client-3.2.4.4")
def test_a_received_message_goes_when_the_block_ends_well(
    on_a_queue: Callable[[Program], None],
) -> None:
    async def program(client: QueueManagerClient, name: FormatName) -> None:
        await send(client, name, b"one")
        async with client.open_reader(name) as reader:
            with pytest.raises(ZeroDivisionError):
                async with await reader.receive(0):
                    raise ZeroDivisionError
            async with await reader.receive(0) as message:
                assert message.body == b"one"
            with pytest.raises(MQError) as caught:
                await reader.receive(0)
            assert caught.value.status is HResult.MQ_ERROR_IO_TIMEOUT

    on_a_queue(program)


@pytest.mark.conformance("MQRR-client-3.2.4.11")
def test_a_cancelled_wait_is_withdrawn_and_the_reader_goes_on(
    on_a_queue: Callable[[Program], None],
) -> None:
    async def program(client: QueueManagerClient, name: FormatName) -> None:
        async with client.open_reader(name) as reader:
            waiting = asyncio.ensure_future(reader.receive())
            await reader.create_cursor()  # answered after the wait has begun
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await send(client, name, b"next")
            async with await reader.receive(0) as message:
                assert message.body == b"next"

    on_a_queue(program)


def test_a_message_that_meets_its_cancellation_is_given_back(
    on_a_queue: Callable[[Program], None],
) -> None:
    async def program(client: QueueManagerClient, name: FormatName) -> None:
        async with client.open_reader(name) as reader:
            for _ in range(20):
                waiting = asyncio.ensure_future(reader.receive())
                await reader.create_cursor()
                sending = asyncio.ensure_future(send(client, name, b"x"))
                await asyncio.sleep(0)
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)
                await sending
                async with await reader.receive(0) as message:
                    assert message.body == b"x"

    on_a_queue(program)


@pytest.mark.conformance("MQRR-client-3.2.4.8", "MQRR-client-3.2.4.9", "MQRR-client-3.2.4.10")
def test_cursors_go_through_the_queue(on_a_queue: Callable[[Program], None]) -> None:
    async def program(client: QueueManagerClient, name: FormatName) -> None:
        await send(client, name, b"a", b"b", b"c")
        async with client.open_reader(name) as reader:
            cursor = await reader.create_cursor()
            seen = [(await reader.peek(0, cursor=cursor)).body]
            seen += [(await reader.peek_next(cursor, 0)).body for _ in range(2)]
            assert seen == [b"a", b"b", b"c"]
            async with await reader.receive(0, cursor=cursor) as message:
                assert message.body == b"c"
            await reader.close_cursor(cursor)
            with pytest.raises(MQError) as caught:
                await reader.peek(0, cursor=cursor)
            assert caught.value.status is NtStatus.STATUS_INVALID_HANDLE

    on_a_queue(program)


@pytest.mark.conformance("MQRR-client-3.2.4.12", "MQRR-client-3.2.4.13")
@pytest.mark.parametrize("what", ["cursor", "queue"])
def test_closing_ends_what_still_waits(on_a_queue: Callable[[Program], None], what: str) -> None:
    async def program(client: QueueManagerClient, name: FormatName) -> None:
        async with client.open_reader(name) as reader:
            cursor = await reader.create_cursor()
            waiting = asyncio.ensure_future(reader.peek(cursor=cursor))
            await asyncio.sleep(0)
            await (reader.close_cursor(cursor) if what == "cursor" else reader.close())
            with pytest.raises(MQError) as caught:
                await waiting
            assert caught.value.status is HResult.MQ_ERROR_OPERATION_CANCELLED

    on_a_queue(program)


@pytest.mark.conformance("MQRR-client-3.2.4.13")
def test_a_queue_that_was_closed_is_free_for_the_next_reader(
    on_a_queue: Callable[[Program], None],
) -> None:
    """Though the connection stays."""

    async def program(client: QueueManagerClient, name: FormatName) -> None:
        await send(client, name, b"a")
        async with client.open_reader(name, peek_only=True) as other:
            for _ in range(2):
                async with client.open_reader(name, exclusive=True) as reader:
                    assert (await reader.peek(0)).body == b"a"
            assert (await other.peek(0)).body == b"a"

    on_a_queue(program)


def test_neighbours_are_found_by_lookup_identifier(
    on_a_queue: Callable[[Program], None],
) -> None:
    async def program(client: QueueManagerClient, name: FormatName) -> None:
        await send(client, name, b"a", b"b", b"c")
        async with client.open_reader(name) as reader:
            first, second, _ = [m.lookup_identifier async for m in reader.browse()]
            after = await reader.peek_by_lookup_identifier(first, MQ_LOOKUP_PEEK_NEXT)
            before = await reader.peek_by_lookup_identifier(second, MQ_LOOKUP_PEEK_PREV)
            assert (before.body, after.body) == (b"a", b"b")
            taken = await reader.receive_by_lookup_identifier(second, MQ_LOOKUP_RECEIVE_NEXT)
            async with taken as message:
                assert message.body == b"c"

    on_a_queue(program)


@pytest.mark.conformance("MQRR-client-3.2.4.3")
def test_a_part_of_a_body_can_be_asked_for(on_a_queue: Callable[[Program], None]) -> None:
    async def program(client: QueueManagerClient, name: FormatName) -> None:
        await send(client, name, bytes(range(250)))
        async with client.open_reader(name) as reader:
            for size in (0, 1, 3, 249, 250, 251):
                message = await reader.peek(0, body=size)
                assert message.body_size == 250
                assert message.available_body == bytes(range(250))[:size]
                assert message.withheld == max(250 - size, 0)

    on_a_queue(program)


def test_text_is_read_in_its_own_encoding(on_a_queue: Callable[[Program], None]) -> None:
    async def program(client: QueueManagerClient, name: FormatName) -> None:
        bodies = [
            ("Grüße".encode(), BodyType.VT_EMPTY, "Grüße"),
            ("Grüße\0".encode("utf-16-le"), BodyType.VT_LPWSTR, "Grüße"),
            (b"\xff\xfe\xfd", BodyType.VT_EMPTY, None),
        ]
        async with client.open_sender(name) as sender, client.open_reader(name) as reader:
            for body, body_type, text in bodies:
                await sender.send(OutgoingMessage(body, body_type=body_type))
                async with await reader.receive(0) as message:
                    assert message.text == text

    on_a_queue(program)


@pytest.mark.conformance("MQRR-client-3.2.4.6", "MQRR-client-3.2.4.7")
def test_a_message_is_moved_and_the_rest_is_purged(on_a_queue: Callable[[Program], None]) -> None:
    async def program(client: QueueManagerClient, name: FormatName) -> None:
        await send(client, name, b"a", b"b", b"c")
        direct = (await client.management.queue_information(name)).format_name
        late = FormatName.parse(f"{direct};late")
        async with client.open_reader(name) as reader, client.open_move_target(late) as target:
            first = await reader.peek(0)
            await reader.move(first.lookup_identifier, target)
            await reader.purge()
            assert [message async for message in reader.browse()] == []
        async with client.open_reader(late) as reader:
            moved = await reader.peek(0)
        assert (moved.body, moved.subqueue, moved.move_count) == (b"a", "late", 1)
        assert moved.lookup_identifier == first.lookup_identifier

    on_a_queue(program)


@pytest.mark.conformance(
    "MQMP-client-3.2.4.1",
    "MQMP-client-3.2.4.2",
    "MQMP-client-3.2.4.5",
    "MQMP-client-3.2.4.6",
    "MQMP-client-3.2.4.13",
    "MQMR-client-3.2.4",
)
def test_a_queue_is_created_changed_and_deleted(queue_manager: PrivateQueueManager) -> None:
    settings = QueueSettings(journal=True, quota=10, label="one", privacy=0, transactional=True)

    async def main() -> None:
        async with QueueManagerClient(LocalServer(queue_manager.socket)) as client:
            path = path_name("administered")
            await client.queues.create(path, settings, None)
            name = await client.queues.format_name(path)
            assert str(name).startswith("PRIVATE="), "the server has told it"
            created = await client.queues.properties(name)
            assert (created.journal, created.quota, created.label) == (True, 10, "one")
            assert (await client.management.queue_information(name)).transactional
            await client.queues.set_properties(name, QueueSettings(label="two", journal=False))
            changed = await client.queues.properties(name)
            assert (changed.journal, changed.quota, changed.label) == (False, 10, "two")
            await client.queues.delete(name)
            with pytest.raises(MQError) as caught:
                await client.management.queue_information(name)
            assert caught.value.status is HResult.MQ_ERROR_QUEUE_NOT_FOUND

    asyncio.run(main())


@pytest.mark.conformance("MQMP-client-3.2.4.3", "MQMP-client-3.2.4.4")
def test_a_long_descriptor_is_read_with_a_second_buffer(
    on_a_queue: Callable[[Program], None],
) -> None:
    entries = "".join(f"(A;;0x4;;;S-1-5-21-1-2-3-{number})" for number in range(1000, 1200))
    descriptor = parse_sddl(f"D:(A;;GA;;;BA){entries}")
    assert len(descriptor.encode()) > 4096

    async def program(client: QueueManagerClient, name: FormatName) -> None:
        await client.queues.set_security(name, descriptor)
        found = await client.queues.security(name)
        assert found.dacl is not None
        assert descriptor.dacl is not None
        assert len(found.dacl.aces) == len(descriptor.dacl.aces)
        assert found.owner is not None

    on_a_queue(program)


@pytest.mark.conformance("MQMP-client-3.2.4.10")
def test_an_aborted_transaction_sends_nothing(queue_manager: PrivateQueueManager) -> None:
    async def main() -> None:
        async with QueueManagerClient(LocalServer(queue_manager.socket)) as client:
            path = path_name("aborted")
            await client.queues.create(path, QueueSettings(transactional=True), None)
            name = await client.queues.format_name(path)
            async with client.open_sender(name) as sender:
                transaction = client.begin_transaction()
                async with transaction:
                    await sender.send(OutgoingMessage(b"x"), transaction)
                    await transaction.abort()
            assert (await client.management.queue_information(name)).message_count == 0

    asyncio.run(main())


def test_a_lost_server_is_told_as_such(tmp_path: Path) -> None:
    async def main(queue_manager: PrivateQueueManager) -> None:
        async with QueueManagerClient(LocalServer(queue_manager.socket)) as client:
            await client.queues.create(path_name("orders"), QueueSettings(), None)
            reader = client.open_reader(format_name("orders"))
            async with reader:
                queue_manager.kill()
                with pytest.raises(ServerUnreachableError, match="was lost"):
                    await reader.receive(0)

    with private_queue_manager(configuration=_CONFIGURATION) as queue_manager:
        asyncio.run(main(queue_manager))


def test_a_client_across_the_network_speaks_for_an_account(
    queue_manager: PrivateQueueManager,
) -> None:
    host, port = queue_manager.endpoint("epm")

    async def main() -> None:
        async with QueueManagerClient(LocalServer(queue_manager.socket)) as near:
            await near.accounts.add("remote", nt_hash("secret"))
            await near.queues.create(path_name("far"), QueueSettings(), None)
            await send(near, format_name("far"), b"x")
        target = RemoteServer(host, port, NtlmCredentials("remote", "secret"))
        async with (
            QueueManagerClient(target) as far,
            far.open_reader(format_name("far", host)) as reader,
            await reader.receive(0) as message,
        ):
            assert message.body == b"x"

    asyncio.run(main())


@pytest.mark.conformance("MQRR-op-0")
def test_the_server_tells_the_port_that_it_listens_at(queue_manager: PrivateQueueManager) -> None:
    async def main() -> int:
        async with await RpcClient.connect_tcp(*queue_manager.endpoint("qm2qm")) as client:
            binding = await client.bind(load("remoteread"))
            response = await binding.call("R_GetServerPort", R_GetServerPortRequest())
            assert isinstance(response.result, int)
            return response.result

    assert asyncio.run(main()) == queue_manager.endpoint("rpc")[1]


@pytest.mark.conformance("MQMP-port-IP_HANDSHAKE", "MQMP-port-IP_READ", "MQQP-op-7")
@pytest.mark.parametrize(("number", "door"), [(IP_HANDSHAKE, "rpc"), (IP_READ, "qm2qm")])
def test_qmcomm_and_qm2qm_tell_the_ports_that_the_server_listens_at(
    queue_manager: PrivateQueueManager, number: int, door: str
) -> None:
    async def main() -> list[object]:
        async with await RpcClient.connect_tcp(*queue_manager.endpoint("rpc")) as client:
            comm, reading = [await client.bind(load(each)) for each in ("qmcomm", "qm2qm")]
            of_clients = R_QMGetRTQMServerPortRequest(fIP=number)
            of_readers = RemoteQMGetQMQMServerPortRequest(dwPortType=number)
            answers = (
                await comm.call("R_QMGetRTQMServerPort", of_clients),
                await reading.call("RemoteQMGetQMQMServerPort", of_readers),
            )
            return [answer.result for answer in answers]

    assert asyncio.run(main()) == [queue_manager.endpoint(door)[1]] * 2


@pytest.fixture
def blocking(queue_manager: PrivateQueueManager) -> Iterator[BlockingClient]:
    with BlockingClient(LocalServer(queue_manager.socket)) as client:
        yield client


def test_a_program_without_a_loop_can_do_the_same(blocking: BlockingClient) -> None:
    blocking.run(blocking.queues.create(path_name("blocking"), QueueSettings(), None))
    name, late = format_name("blocking"), format_name("blocking;late")
    with blocking.open_sender(name) as sender:
        sent = [sender.send(OutgoingMessage(body)) for body in (b"a", b"b", b"c")]
    with blocking.open_reader(name) as reader, blocking.open_move_target(late) as target:
        assert [message.identifier for message in reader.browse()] == sent
        first = reader.peek(0)
        reader.move(first.lookup_identifier, target)
        with reader.receive(0) as message:
            assert message.body == b"b"
        with pytest.raises(ZeroDivisionError), reader.receive(0):
            raise ZeroDivisionError
        with reader.receive_by_lookup_identifier(reader.peek(0).lookup_identifier) as message:
            assert message.body == b"c"
        reader.purge()
    information = blocking.run(blocking.management.queue_information(late))
    assert information.message_count == 1


def test_threads_share_a_blocking_client(blocking: BlockingClient) -> None:
    blocking.run(blocking.queues.create(path_name("threads"), QueueSettings(), None))
    name = format_name("threads")

    def work() -> None:
        with blocking.open_sender(name) as sender:
            for _ in range(10):
                sender.send(OutgoingMessage(b"x"))

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert blocking.run(blocking.management.queue_information(name)).message_count == 50


def test_the_example_of_the_readme_works(
    queue_manager: PrivateQueueManager,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    queue_manager.run("queue", "create", "orders")
    (example,) = [
        block.partition("```")[0]
        for block in (ROOT / "README.md").read_text("utf-8").split("```python\n")
        if "mq.open(" in block and "import" in block
    ]
    monkeypatch.setenv("RPCQM_DATA_DIR", str(queue_manager.data_dir))
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out == "greeting hello\n"
