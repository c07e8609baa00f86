"""The client at servers that have no RemoteRead: it reads by qm2qm ([MS-MQQP] 3.2)."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from rpcqm.base.errors import FaultStatus, HResult, MQError, RpcFault
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.remote_read import QueueReader
from rpcqm.client.target import LocalServer
from rpcqm.codec.interface import TransferSyntax
from rpcqm.codec.interface import load as load_interface
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqvalues import MQ_LOOKUP_PEEK_NEXT, MQ_LOOKUP_RECEIVE_CURRENT
from rpcqm.rpc.client import RpcClient
from tests.support.rpc.older_server import OlderServer, older_server

Program = Callable[[OlderServer, QueueReader], Awaitable[None]]


def reading(
    directory: Path,
    program: Program,
    *bodies: bytes,
    version: tuple[int, int, int] = (6, 1, 7601),
    peek_only: bool = False,
) -> list[str]:
    """Run a program on a queue with some messages; which calls the server has seen."""

    async def main() -> list[str]:
        async with older_server(directory, version) as server:
            name = await server.create()
            server.enqueue(name, *bodies)
            async with (
                QueueManagerClient(server.target) as client,
                client.open_reader(FormatName.parse(name), peek_only=peek_only) as reader,
            ):
                await program(server, reader)
            return server.calls

    return asyncio.run(main())


async def body_of(reader: QueueReader) -> bytes:
    async with await reader.receive(0) as message:
        return message.body


@pytest.mark.conformance(
    "MQRR-client-3.2.4.1", "MQQP-client-3.2.4.1", "MQQP-client-3.2.4.9", "MQQP-rule-2.1"
)
def test_a_server_without_remote_read_is_read_by_qm2qm(tmp_path: Path) -> None:
    async def program(server: OlderServer, reader: QueueReader) -> None:
        assert await body_of(reader) == b"one"

    calls = reading(tmp_path, program, b"one")
    assert calls == [
        "R_QMOpenRemoteQueue",
        "RemoteQMGetQMQMServerPort",
        "RemoteQMOpenQueue",
        "R_QMCloseRemoteQueueContext",
        "RemoteQmGetVersion",
        "RemoteQMStartReceive2",
        "RemoteQMEndReceive",
        "RemoteQMCloseQueue",
    ]


@pytest.mark.conformance("MQRR-client-3.2.4.1")
def test_any_other_failure_to_open_is_told(tmp_path: Path) -> None:
    async def main() -> None:
        async with older_server(tmp_path) as server:
            missing = FormatName.parse(r"DIRECT=OS:WORKSTATION\private$\missing")
            async with QueueManagerClient(server.target) as client:
                with pytest.raises(MQError) as refused:
                    await client.open_reader(missing).__aenter__()
                assert refused.value.status is HResult.MQ_ERROR_QUEUE_NOT_FOUND

    asyncio.run(main())


@pytest.mark.conformance("MQQP-client-3.2.4.1", "MQQP-rule-2.1")
def test_reading_goes_to_the_port_that_the_server_tells(tmp_path: Path) -> None:
    async def program(server: OlderServer, reader: QueueReader) -> None:
        called_at, ports = server.called_at, server.ports
        assert called_at["RemoteQMGetQMQMServerPort"] == ports["rpc"]
        assert called_at["RemoteQMOpenQueue"] == ports["qm2qm"]

    reading(tmp_path, program)


@pytest.mark.conformance("MQQP-client-3.2.4.2", "MQQP-client-3.2.4.3")
@pytest.mark.parametrize(
    ("version", "operation"),
    [
        ((4, 9, 9999), "RemoteQMStartReceive"),
        ((5, 0, 2195), "RemoteQMStartReceive"),
        ((5, 1, 950), "RemoteQMStartReceive"),
        ((5, 1, 951), "RemoteQMStartReceive2"),
        ((6, 0, 0), "RemoteQMStartReceive2"),
    ],
)
def test_the_version_decides_by_which_method(
    tmp_path: Path, version: tuple[int, int, int], operation: str
) -> None:
    async def program(server: OlderServer, reader: QueueReader) -> None:
        assert (await reader.peek(0)).body == b"one"
        assert await body_of(reader) == b"one"
        with pytest.raises(MQError) as caught:
            await reader.receive(0)
        assert caught.value.status is HResult.MQ_ERROR_IO_TIMEOUT

    calls = reading(tmp_path, program, b"one", version=version)
    assert calls.count("RemoteQmGetVersion") == 1
    starts = [name for name in calls if "Start" in name]
    assert starts == [operation] * 3


@pytest.mark.conformance("MQQP-client-3.2.4.3")
def test_a_message_is_given_back_when_the_block_fails(tmp_path: Path) -> None:
    async def program(server: OlderServer, reader: QueueReader) -> None:
        with pytest.raises(ZeroDivisionError):
            async with await reader.receive(0):
                raise ZeroDivisionError
        assert [m.body async for m in reader.browse()] == [b"one", b"two"]

    reading(tmp_path, program, b"one", b"two")


@pytest.mark.conformance("MQQP-client-3.2.4.4")
def test_a_queue_is_purged(tmp_path: Path) -> None:
    async def program(server: OlderServer, reader: QueueReader) -> None:
        await reader.purge()
        assert [m.body async for m in reader.browse()] == []

    assert "RemoteQMPurgeQueue" in reading(tmp_path, program, b"one", b"two")


@pytest.mark.conformance("MQQP-client-3.2.4.4")
def test_a_thrown_refusal_is_told_like_a_returned_one(tmp_path: Path) -> None:
    async def program(server: OlderServer, reader: QueueReader) -> None:
        with pytest.raises(MQError) as caught:
            await reader.purge()
        assert caught.value.status is HResult.MQ_ERROR_ACCESS_DENIED

    reading(tmp_path, program, peek_only=True)


@pytest.mark.conformance("MQQP-client-3.2.4.5", "MQQP-client-3.2.4.6", "MQQP-client-3.2.4.8")
def test_cursors_come_from_qmcomm(tmp_path: Path) -> None:
    async def program(server: OlderServer, reader: QueueReader) -> None:
        cursor = await reader.create_cursor()
        assert (await reader.peek(0, cursor=cursor)).body == b"one"
        assert (await reader.peek_next(cursor, 0)).body == b"two"
        async with await reader.receive(0, cursor=cursor) as message:
            assert message.body == b"two"
        await reader.close_cursor(cursor)
        with pytest.raises(MQError):
            await reader.peek(0, cursor=cursor)

    calls = reading(tmp_path, program, b"one", b"two")
    assert calls.count("R_QMCreateRemoteCursor") == calls.count("RemoteQMCloseCursor") == 1


@pytest.mark.conformance("MQQP-client-3.2.4.7", "MQQP-client-3.2.4.9")
def test_a_wait_is_cancelled_and_the_reader_goes_on(tmp_path: Path) -> None:
    async def program(server: OlderServer, reader: QueueReader) -> None:
        waiting = asyncio.ensure_future(reader.receive())
        await reader.create_cursor()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        server.enqueue("DIRECT=OS:.\\private$\\orders", b"next")
        assert await body_of(reader) == b"next"
        waiting = asyncio.ensure_future(reader.receive())
        while server.calls[-1] != "RemoteQMStartReceive2":
            await asyncio.sleep(0.001)
        await reader.close()
        with pytest.raises(MQError) as caught:
            await waiting
        assert caught.value.status is HResult.MQ_ERROR_OPERATION_CANCELLED

    assert reading(tmp_path, program).count("RemoteQMCancelReceive") >= 2


def test_neighbours_are_found_by_lookup_identifier(tmp_path: Path) -> None:
    async def program(server: OlderServer, reader: QueueReader) -> None:
        first = await reader.peek(0)
        second = await reader.peek_by_lookup_identifier(
            first.lookup_identifier, MQ_LOOKUP_PEEK_NEXT
        )
        assert second.body == b"two"
        pending = await reader.receive_by_lookup_identifier(
            second.lookup_identifier, MQ_LOOKUP_RECEIVE_CURRENT
        )
        async with pending as message:
            assert message.body == b"two"

    reading(tmp_path, program, b"one", b"two")


@pytest.mark.conformance("MQQP-rule-2.2")
def test_a_client_may_choose_the_transfer_syntax(tmp_path: Path) -> None:
    async def main() -> None:
        async with older_server(tmp_path) as server:
            for syntax in TransferSyntax:
                port = server.ports["qm2qm"]
                async with await RpcClient.connect_tcp("127.0.0.1", port) as client:
                    binding = await client.bind(load_interface("qm2qm"), syntax)
                    assert binding.syntax is syntax
                    with pytest.raises(RpcFault) as caught:
                        await client.start(binding.context_id, 11, b"").result()
                    assert caught.value.status is FaultStatus.nca_s_op_rng_error

    asyncio.run(main())


def test_a_local_server_is_never_an_old_one(tmp_path: Path) -> None:
    """Without an endpoint mapper there is nothing that could say EPT_S_NOT_REGISTERED."""

    async def main() -> None:
        async with QueueManagerClient(LocalServer(tmp_path / "nobody")) as client:
            with pytest.raises(Exception, match="can be reached"):
                await client.open_reader(FormatName.parse("DIRECT=OS:.\\q")).__aenter__()

    asyncio.run(main())
