"""A dependent client of one queue manager reads at another one through it ([MS-MQMP] 3.2.4.7).

Both are processes of `rpcqm serve`; the client is not authenticated, its server is.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from rpcqm.base.errors import MQError
from rpcqm.capture.conversation.call import CapturedCall
from rpcqm.client.dependent import DependentQueue
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.target import LocalServer, RemoteServer
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types import qmcomm
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.accounts import PASSWORD
from tests.support.capture.analysed import calls_of
from tests.support.ports import reserved_port

ORDERS = FormatName.parse(r"DIRECT=OS:other\private$\orders")
HERE = 'name = "here"\n[logging]\nformat = "json"\n[security]\nsupporting_server = true\n[remote]\n'
OTHER = 'name = "other"\n'
Program = Callable[[DependentQueue], Awaitable[None]]


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("capture") / "served.pcapng"


@pytest.fixture(scope="module")
def other(capture: Path) -> Iterator[PrivateQueueManager]:
    """The queue manager that has the queue; it records what it serves."""
    options = ["--capture", str(capture), "--epm-port", str(reserved_port())]
    with private_queue_manager(options, OTHER) as made:
        made.run("user", "add", "reader", "--password-stdin", input=PASSWORD + "\n")
        made.run("queue", "create", "orders")
        yield made


@pytest.fixture(scope="module")
def credentials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("credentials") / "remote.toml"
    path.touch(0o600)
    path.write_text(f"[OTHER]\nuser = 'reader'\npassword = '{PASSWORD}'\n")
    return path


@pytest.fixture(scope="module")
def remote(other: PrivateQueueManager, credentials: Path) -> str:
    host, port = other.endpoint("epm")
    return f'peers = "other={host}:{port}"\ncredentials_file = "{credentials}"\n'


@pytest.fixture(scope="module")
def supporting(remote: str) -> Iterator[PrivateQueueManager]:
    """The supporting server."""
    with private_queue_manager(configuration=HERE + remote) as made:
        made.run("user", "add", "reader", "--password-stdin", input=PASSWORD + "\n")
        yield made


@pytest.fixture
def here(supporting: PrivateQueueManager, other: PrivateQueueManager) -> PrivateQueueManager:
    """The supporting server, and nothing in the queue."""

    async def purge() -> None:
        async with local(other) as client, client.open_reader(ORDERS) as reader:
            await reader.purge()

    asyncio.run(purge())
    return supporting


def local(queue_manager: PrivateQueueManager) -> QueueManagerClient:
    return QueueManagerClient(LocalServer(queue_manager.socket))


def target(queue_manager: PrivateQueueManager) -> RemoteServer:
    return RemoteServer(*queue_manager.endpoint("epm"), NtlmCredentials("reader", PASSWORD))


def through(here: PrivateQueueManager, other: PrivateQueueManager, program: Program) -> None:
    """Run a program on the queue, as a dependent client."""

    async def main() -> None:
        async with (
            asyncio.timeout(60),
            QueueManagerClient(target(here)) as client,
            client.open_dependent(ORDERS, target_of=lambda _: target(other)) as queue,
        ):
            await program(queue)

    asyncio.run(main())


async def refusal(attempt: Awaitable[object]) -> str:
    with pytest.raises(MQError) as caught:
        await attempt
    return caught.value.status.name


async def send(other: PrivateQueueManager, *bodies: str) -> None:
    async with local(other) as client, client.open_sender(ORDERS) as sender:
        for body in bodies:
            await sender.send(OutgoingMessage(body.encode()))


async def is_empty(other: PrivateQueueManager) -> bool:
    """Whether nothing is in the queue, seen from its own machine."""
    async with local(other) as client, client.open_reader(ORDERS) as reader:
        return [message async for message in reader.browse()] == []


@pytest.mark.conformance("MQMP-client-3.2.4.7", "MQMP-element-RemoteQueueProxyHandle")
def test_messages_are_read_and_removed_over_there(
    here: PrivateQueueManager, other: PrivateQueueManager
) -> None:
    async def program(queue: DependentQueue) -> None:
        assert queue.remote_path == r"other\private$\orders"
        waiting = asyncio.ensure_future(queue.receive(30_000))
        await send(other, "one", "two", "x" * 10_000)
        assert (await waiting).body == b"one"
        assert (await queue.peek(0)).body == b"two"
        assert (await queue.receive(0)).body == b"two"
        assert (await queue.receive(0)).body == b"x" * 10_000
        assert await refusal(queue.receive(0)) == "MQ_ERROR_IO_TIMEOUT"
        assert await is_empty(other)

    through(here, other, program)


@pytest.mark.conformance("MQMP-element-CursorProxy", "MQMP-op-22", "MQMP-op-c2_3", "MQMP-op-27")
def test_cursors_and_purging_reach_over_there(
    here: PrivateQueueManager, other: PrivateQueueManager
) -> None:
    async def program(queue: DependentQueue) -> None:
        await send(other, "one", "two", "three")
        cursor = await queue.create_cursor()
        assert (await queue.peek(0, cursor=cursor)).body == b"one"
        assert (await queue.peek_next(cursor, 0)).body == b"two"
        assert (await queue.receive(0, cursor=cursor)).body == b"two"
        await queue.close_cursor(cursor)
        assert await refusal(queue.peek(0, cursor=cursor)) == "MQ_ERROR_INVALID_HANDLE"
        await queue.purge()
        assert await is_empty(other)

    through(here, other, program)


class OpenForMoreThere(DependentQueue):
    """A client that opens a queue for receiving over there, and for peeking at its server."""

    async def _open_here(
        self, queue: int, descriptor: int, context: int
    ) -> qmcomm.rpc_QMOpenQueueInternalResponse:
        if queue:
            self._access = QueueAccessType.PEEK_ACCESS
        return await super()._open_here(queue, descriptor, context)


@pytest.mark.conformance("MQMP-op-19", "MQMP-op-27", "MQMP-op-c2_2")
def test_a_handle_for_peeking_only_peeks_over_there(
    here: PrivateQueueManager, other: PrivateQueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def program(queue: DependentQueue) -> None:
        await send(other, "one")
        assert (await queue.peek(0)).body == b"one"
        assert await refusal(queue.receive(0)) == "MQ_ERROR_ACCESS_DENIED"
        assert await refusal(queue.purge()) == "MQ_ERROR_ACCESS_DENIED"
        cursor = await queue.create_cursor()
        assert (await queue.peek(0, cursor=cursor)).body == b"one"

    monkeypatch.setattr("rpcqm.client.dependent.DependentQueue", OpenForMoreThere)
    through(here, other, program)


def test_the_supporting_server_logs_on_and_encrypts(
    here: PrivateQueueManager, other: PrivateQueueManager, capture: Path
) -> None:
    async def program(queue: DependentQueue) -> None:
        await send(other, "secret")
        assert (await queue.receive(0)).body == b"secret"

    through(here, other, program)
    found, _ = calls_of(capture)
    reads = [call for call in found if call.name == "RemoteQMStartReceive2"]
    assert reads
    for call in reads:
        assert isinstance(call, CapturedCall)
        assert (call.conversation.level, call.conversation.account) == (6, "reader")


@pytest.mark.conformance("MQQP-client-3.2.4.9", "MQMP-rundown-RPC_QUEUE_HANDLE")
def test_a_client_that_vanishes_leaves_nothing_open(
    here: PrivateQueueManager, other: PrivateQueueManager
) -> None:
    """Exclusively opened queues tell: nobody else can open them while they are."""

    async def main() -> None:
        client = QueueManagerClient(target(here))
        queue = client.open_dependent(ORDERS, exclusive=True, target_of=lambda _: target(other))
        await queue.__aenter__()
        await send(other, "one")
        assert (await queue.peek(0)).body == b"one"
        assert await refusal(is_empty(other)) == "MQ_ERROR_SHARING_VIOLATION"
        await client.close()
        async with asyncio.timeout(30):
            while not await readable(other):
                await asyncio.sleep(0.01)

    asyncio.run(main())


async def readable(other: PrivateQueueManager) -> bool:
    try:
        return not await is_empty(other)
    except MQError:
        return False


def opened_with(settings: str, here: PrivateQueueManager, other: PrivateQueueManager) -> str:
    """The name of what a client is told that opens the queue once these are in force."""

    async def nothing(_: DependentQueue) -> None: ...

    here.reload(HERE + settings)
    try:
        through(here, other, nothing)
    except MQError as error:
        return error.status.name
    return "MQ_OK"


@pytest.fixture
def reloaded(here: PrivateQueueManager, remote: str) -> Iterator[PrivateQueueManager]:
    """The supporting server, to be reloaded as one likes."""
    yield here
    here.reload(HERE + remote)


def test_without_an_account_reading_there_has_to_be_allowed(
    reloaded: PrivateQueueManager, other: PrivateQueueManager, remote: str
) -> None:
    peers = remote.splitlines()[0] + "\n"
    assert opened_with(peers, reloaded, other) == "MQ_ERROR_ACCESS_DENIED"
    allowed = f"{peers}allow_unauthenticated = true\n"
    assert opened_with(allowed, reloaded, other) == "MQ_ERROR_ACCESS_DENIED"
    other.reload(f"{OTHER}[security]\nallow_nonauthenticated_rpc = true\n")
    try:
        assert opened_with(allowed, reloaded, other) == "MQ_OK"
    finally:
        other.reload(OTHER)


def test_a_reload_reads_the_credentials_again(
    reloaded: PrivateQueueManager, other: PrivateQueueManager, remote: str, credentials: Path
) -> None:
    good = credentials.read_text()
    try:
        credentials.write_text(good.replace(PASSWORD, "nonsense"))
        assert opened_with(remote, reloaded, other) == "MQ_ERROR_ACCESS_DENIED"
        credentials.chmod(0o640)
        assert "others may read it" in reloaded.reload(HERE + remote)
    finally:
        credentials.chmod(0o600)
        credentials.write_text(good)
    assert opened_with(remote, reloaded, other) == "MQ_OK"


@pytest.mark.conformance("MQMP-client-3.2.4.7")
def test_a_queue_manager_that_is_gone_makes_handles_stale(
    here: PrivateQueueManager, other: PrivateQueueManager
) -> None:
    """Whoever waits is told, so is whoever asks later; opening again works when it is back."""

    async def program(queue: DependentQueue) -> None:
        waiting = asyncio.ensure_future(queue.receive())
        await send(other, "one")
        assert (await waiting).body == b"one"
        cursor = await queue.create_cursor()
        waiting = asyncio.ensure_future(queue.receive())
        await asyncio.to_thread(other.kill)
        assert await refusal(waiting) == "MQ_ERROR_STALE_HANDLE"
        await asyncio.to_thread(other.start)
        await send(other, "two")
        assert await refusal(queue.peek(0)) == "MQ_ERROR_STALE_HANDLE"
        assert await refusal(queue.purge()) == "MQ_ERROR_STALE_HANDLE"
        assert await refusal(queue.close_cursor(cursor)) == "MQ_ERROR_STALE_HANDLE"

    async def again(queue: DependentQueue) -> None:
        assert (await queue.receive(0)).body == b"two"

    through(here, other, program)
    through(here, other, again)
    here.run("queue", "create", "own")
