"""Dependent clients, and reading elsewhere for them ([MS-MQMP] 3.2.4.7 to .16, 3.1.4.17)."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from rpcqm.base.errors import HResult, MQError
from rpcqm.client.dependent import DependentQueue
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.target import RemoteServer
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqvalues import NO_CURSOR
from rpcqm.codec.types.qm2qm import RemoteQMOpenQueueRequest
from rpcqm.config import RemoteSection
from rpcqm.rpc.security.providers import security_providers
from rpcqm.service.remote_targets import RemoteTargets
from tests.support.accounts import TestAccounts
from tests.support.rpc.kdc import HOST, SERVICE, Kdc, require_kdc
from tests.support.rpc.older_server import OlderServer, older_server, supporting_server

LONG = b"x" * 10_000


async def refusal(attempt: Awaitable[object]) -> str:
    with pytest.raises(MQError) as caught:
        await attempt
    return caught.value.status.name


# At the supporting server's own queues


def locally(
    directory: Path,
    program: Callable[[OlderServer, QueueManagerClient, DependentQueue, str], Awaitable[None]],
    **attributes: Any,
) -> list[str]:
    """Run a program on a queue of the supporting server; which calls it has seen."""

    async def main() -> list[str]:
        async with supporting_server(directory, RemoteServer) as server:
            name = await server.create(**attributes)
            async with (
                QueueManagerClient(server.target) as client,
                client.open_dependent(FormatName.parse(name)) as queue,
            ):
                await program(server, client, queue, name)
            return server.calls

    return asyncio.run(main())


@pytest.mark.conformance("MQMP-client-3.2.4.11", "MQMP-client-3.2.4.12", "MQMP-client-3.2.4.15")
def test_a_message_is_peeked_at_and_received(tmp_path: Path) -> None:
    async def program(
        server: OlderServer, client: QueueManagerClient, queue: DependentQueue, name: str
    ) -> None:
        server.enqueue(name, b"one", label="label", priority=5, application_tag=7)
        peeked = await queue.peek(0)
        taken = await queue.receive(0)
        assert (taken.body, taken.label, taken.priority) == (b"one", "label", 5)
        assert taken.application_tag == 7
        assert taken.identifier == peeked.identifier
        assert str(taken.destination_queue[0]) == name
        assert taken.response_queue == ()
        assert await refusal(queue.receive(0)) == "MQ_ERROR_IO_TIMEOUT"

    assert locally(tmp_path, program)[-1] == "rpc_ACCloseHandle"


@pytest.mark.conformance("MQMP-client-3.2.4.12", "MQMP-op-c2_2")
def test_names_that_are_too_long_to_travel_do_not_keep_a_message_from_its_reader(
    tmp_path: Path,
) -> None:
    """1024 characters travel ([MS-MQMP] 3.1.5.3): the names that come whole are told."""
    names = tuple(FormatName.parse(rf"DIRECT=OS:host{n:02}\private$\{'q' * 90}") for n in range(20))

    async def program(
        server: OlderServer, client: QueueManagerClient, queue: DependentQueue, name: str
    ) -> None:
        server.enqueue(
            name,
            b"one",
            destination_multi_queue_format_name=(FormatName.parse(name),),
            response_multi_queue_format_name=names,
        )
        server.enqueue(name, b"two")
        first = await queue.receive(0)
        assert first.body == b"one"
        assert first.response_queue == names[: 1024 // (len(str(names[0])) + 1)]
        assert (await queue.receive(0)).body == b"two"

    locally(tmp_path, program)


@pytest.mark.conformance("MQMP-client-3.2.4.11", "MQMP-client-3.2.4.12")
def test_buffers_grow_until_a_message_fits(tmp_path: Path) -> None:
    async def program(
        server: OlderServer, client: QueueManagerClient, queue: DependentQueue, name: str
    ) -> None:
        server.enqueue(name, LONG)
        assert (await queue.peek(0)).body == LONG
        assert (await queue.receive(0)).body == LONG
        assert server.count(name) == 0

    assert locally(tmp_path, program).count("rpc_ACReceiveMessageEx") == 4


@pytest.mark.conformance("MQMP-client-3.2.4.12")
def test_a_message_is_received_in_a_transaction(tmp_path: Path) -> None:
    async def program(
        server: OlderServer, client: QueueManagerClient, queue: DependentQueue, name: str
    ) -> None:
        async with (
            client.open_sender(FormatName.parse(name)) as sender,
            client.begin_transaction() as unit,
        ):
            await sender.send(OutgoingMessage(b"one"), unit)
        async with client.begin_transaction() as unit:
            assert (await queue.receive(0, transaction=unit)).body == b"one"
            await unit.abort()
        assert server.count(name) == 1
        async with client.begin_transaction() as unit:
            assert (await queue.receive(0, transaction=unit)).body == b"one"
        assert server.count(name) == 0

    locally(tmp_path, program, transactional=True)


@pytest.mark.conformance("MQMP-client-3.2.4.8", "MQMP-client-3.2.4.16")
def test_a_cursor_goes_through_the_queue(tmp_path: Path) -> None:
    async def program(
        server: OlderServer, client: QueueManagerClient, queue: DependentQueue, name: str
    ) -> None:
        server.enqueue(name, b"one", LONG, b"three")
        cursor = await queue.create_cursor()
        assert (await queue.peek(0, cursor=cursor)).body == b"one"
        assert (await queue.peek_next(cursor, 0)).body == LONG
        assert (await queue.peek_next(cursor, 0)).body == b"three"
        await queue.close_cursor(cursor)
        assert await refusal(queue.peek(0, cursor=cursor)) == "MQ_ERROR_INVALID_HANDLE"

    locally(tmp_path, program)


@pytest.mark.conformance("MQMP-client-3.2.4.9")
def test_a_queue_is_purged(tmp_path: Path) -> None:
    async def program(
        server: OlderServer, client: QueueManagerClient, queue: DependentQueue, name: str
    ) -> None:
        server.enqueue(name, b"one")
        await queue.purge()
        assert server.count(name) == 0

    locally(tmp_path, program)


@pytest.mark.conformance("MQMP-client-3.2.4.14")
def test_a_long_format_name_is_asked_for_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with supporting_server(tmp_path, RemoteServer) as server:
            name = await server.create("q" * 120)
            async with (
                QueueManagerClient(server.target) as client,
                client.open_dependent(FormatName.parse(name)) as queue,
            ):
                assert await queue.format_name() == name
            assert server.calls.count("rpc_ACHandleToFormatName") == 2

    asyncio.run(main())


# At another queue manager


Program = Callable[[OlderServer, OlderServer, DependentQueue, str], Awaitable[None]]


def elsewhere(
    directory: Path, program: Program, *bodies: bytes, peek_only: bool = False
) -> tuple[list[str], list[str]]:
    """Run a program on a queue of another queue manager; the calls that the two have seen."""

    async def main() -> tuple[list[str], list[str]]:
        async with older_server(directory / "there") as there:
            name = await there.create()
            there.enqueue(name, *bodies)

            def target_of(machine: str) -> RemoteServer:
                assert machine == "WORKSTATION"
                return there.target

            async with supporting_server(directory / "here", target_of) as here:
                async with (
                    QueueManagerClient(here.target) as client,
                    client.open_dependent(
                        FormatName.parse(name), peek_only=peek_only, target_of=target_of
                    ) as queue,
                ):
                    await program(here, there, queue, name)
                for _ in range(200):
                    if "RemoteQMCloseQueue" in there.calls:
                        break
                    await asyncio.sleep(0.005)
                return here.calls, there.calls

    return asyncio.run(main())


@pytest.mark.conformance("MQMP-client-3.2.4.7", "MQMP-element-RemoteQueueProxyHandle")
def test_a_queue_elsewhere_is_read_through_the_supporting_server(tmp_path: Path) -> None:
    async def program(
        here: OlderServer, there: OlderServer, queue: DependentQueue, name: str
    ) -> None:
        assert queue.remote_path == r"WORKSTATION\private$\orders"
        assert (await queue.receive(0)).body == b"one"
        assert there.count(name) == 0

    here, there = elsewhere(tmp_path, program, b"one")
    assert here == [
        "rpc_QMOpenQueueInternal",
        "rpc_QMOpenQueueInternal",
        "rpc_ACReceiveMessageEx",
        "rpc_ACCloseHandle",
    ]
    assert there == [
        "R_QMOpenRemoteQueue",
        "RemoteQMGetQMQMServerPort",
        "RemoteQMOpenQueue",
        "R_QMCloseRemoteQueueContext",
        "RemoteQmGetVersion",
        "RemoteQMStartReceive2",
        "RemoteQMEndReceive",
        "RemoteQMCloseQueue",
    ]


@pytest.mark.conformance("MQQP-client-3.2.4.1")
@pytest.mark.parametrize(
    ("role", "told"), [("", 0), ("routing_server", 1), ("directory_server", 1)]
)
def test_a_supporting_server_says_which_it_is_and_whether_it_serves_others(
    tmp_path: Path, role: str, told: int
) -> None:
    async def main() -> None:
        async with older_server(tmp_path / "there") as there:
            name = FormatName.parse(await there.create())
            async with supporting_server(tmp_path / "here", lambda _: there.target) as here:
                me = here.engine.queue_manager
                if role:
                    setattr(me, role, True)
                client = QueueManagerClient(here.target)
                queue = client.open_dependent(name, target_of=lambda _: there.target)
                async with client, queue:
                    made = [r for r in there.requests if isinstance(r, RemoteQMOpenQueueRequest)]
                (opening,) = made
                assert (opening.pLicGuid, opening.dwMQS) == (me.identifier, told)
                assert opening.hQueue == opening.pQueue == opening.dwpContext != 0

    asyncio.run(main())


@pytest.mark.conformance("MQMP-element-RemoteQueueProxyHandle")
def test_what_does_not_fit_stays_there(tmp_path: Path) -> None:
    async def program(
        here: OlderServer, there: OlderServer, queue: DependentQueue, name: str
    ) -> None:
        assert (await queue.receive(0)).body == LONG
        assert there.count(name) == 0

    here, there = elsewhere(tmp_path, program, LONG)
    assert here.count("rpc_ACReceiveMessageEx") == there.count("RemoteQMEndReceive") == 2


@pytest.mark.conformance(
    "MQMP-client-3.2.4.8", "MQMP-client-3.2.4.16", "MQMP-element-CursorProxy", "MQMP-op-22"
)
def test_a_cursor_stands_for_one_over_there(tmp_path: Path) -> None:
    async def program(
        here: OlderServer, there: OlderServer, queue: DependentQueue, name: str
    ) -> None:
        cursor = await queue.create_cursor()
        assert (await queue.peek(0, cursor=cursor)).body == b"one"
        assert (await queue.peek_next(cursor, 0)).body == b"two"
        assert await refusal(queue.peek(0, cursor=cursor ^ 1)) == "MQ_ERROR_INVALID_HANDLE"
        await queue.close_cursor(cursor)
        for closed in (cursor, 0):
            assert await refusal(queue.close_cursor(closed)) == "MQ_ERROR_INVALID_HANDLE"
        await queue.close_cursor(NO_CURSOR)

    _, there = elsewhere(tmp_path, program, b"one", b"two")
    assert there.count("R_QMCreateRemoteCursor") == there.count("RemoteQMCloseCursor") == 1


@pytest.mark.conformance("MQMP-client-3.2.4.9", "MQMP-client-3.2.4.14")
def test_it_is_purged_and_named(tmp_path: Path) -> None:
    async def program(
        here: OlderServer, there: OlderServer, queue: DependentQueue, name: str
    ) -> None:
        assert await queue.format_name() == name
        with capture_logs() as lines:
            await queue.purge()
        assert there.count(name) == 0
        told = [line for line in lines if line["event"] == "an operator acts"]
        assert next((line["action"], line["object"]) for line in told) == ("purge", name)

    elsewhere(tmp_path, program, b"one", b"two")


def test_what_is_refused_there_is_refused_here(tmp_path: Path) -> None:
    async def program(
        here: OlderServer, there: OlderServer, queue: DependentQueue, name: str
    ) -> None:
        assert await refusal(queue.purge()) == "MQ_ERROR_ACCESS_DENIED"
        assert await refusal(queue.receive(0)) == "MQ_ERROR_ACCESS_DENIED"
        assert (await queue.peek(0)).body == b"one"

    elsewhere(tmp_path, program, b"one", peek_only=True)


def test_a_wait_over_there_ends_with_the_client(tmp_path: Path) -> None:
    async def program(
        here: OlderServer, there: OlderServer, queue: DependentQueue, name: str
    ) -> None:
        waiting = asyncio.ensure_future(queue.receive())
        while "RemoteQMStartReceive2" not in there.calls:
            await asyncio.sleep(0.001)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        while "RemoteQMCancelReceive" not in there.calls:
            await asyncio.sleep(0.001)
        there.enqueue(name, b"late")
        assert (await queue.receive(0)).body == b"late"

    elsewhere(tmp_path, program)


def test_transactions_do_not_reach_over_there(tmp_path: Path) -> None:
    async def main() -> None:
        async with older_server(tmp_path / "there") as there:
            name = FormatName.parse(await there.create(transactional=True))
            async with supporting_server(tmp_path / "here", lambda _: there.target) as here:
                client = QueueManagerClient(here.target)
                queue = client.open_dependent(name, target_of=lambda _: there.target)
                async with client, queue, client.begin_transaction() as unit:
                    receiving = queue.receive(0, transaction=unit)
                    assert await refusal(receiving) == "MQ_ERROR_TRANSACTION_USAGE"

    asyncio.run(main())


@pytest.mark.conformance("MQMP-client-3.2.4.7")
def test_a_queue_manager_that_is_not_there_is_told_as_such(tmp_path: Path) -> None:
    async def main() -> None:
        async with older_server(tmp_path / "there") as there:
            name = FormatName.parse(await there.create())
            nowhere = RemoteServer("127.0.0.1", 1)
            async with (
                supporting_server(tmp_path / "here", lambda _: nowhere) as here,
                QueueManagerClient(here.target) as client,
            ):
                queue = client.open_dependent(name, target_of=lambda _: there.target)
                status = await refusal(queue.__aenter__())
                assert status == HResult.MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE.name

    asyncio.run(main())


# Logging on over there by Kerberos


def test_the_supporting_server_logs_on_by_kerberos(tmp_path: Path) -> None:
    """A wrong password beside it shows that it is Kerberos."""
    pytest.importorskip("gssapi")
    require_kdc()
    account = tmp_path / "remote.toml"
    account.touch(0o600)
    account.write_text("user = 'alice'\npassword = 'wrong'\n")

    async def main(kdc: Kdc) -> OlderServer:
        accounts = TestAccounts(tmp_path)
        providers = security_providers(accounts, keytab=kdc.keytab, principal=SERVICE)
        async with older_server(tmp_path / "there", providers=providers) as there:
            name = FormatName.parse(await there.create())
            peers = f"{HOST}={there.target}"
            remote = RemoteSection(kerberos=True, credentials_file=account, peers=peers)
            targets = RemoteTargets(remote)
            async with (
                supporting_server(tmp_path / "here", lambda _: targets(HOST)) as here,
                QueueManagerClient(here.target) as client,
                client.open_dependent(name, target_of=lambda _: there.target) as queue,
            ):
                assert await refusal(queue.peek(0)) == "MQ_ERROR_IO_TIMEOUT"
            return there

    with Kdc(tmp_path / "kdc") as kdc, pytest.MonkeyPatch.context() as patch:
        for variable, value in (kdc.environment | {"KRB5CCNAME": kdc.log_on("alice")}).items():
            patch.setenv(variable, value)
        there = asyncio.run(main(kdc))
    assert there.callers["RemoteQMOpenQueue"] == ("alice", 6)
    assert there.callers["RemoteQMStartReceive2"] == ("alice", 6)
    assert there.callers["R_QMOpenRemoteQueue"][1] == 1
