"""What a reader makes of messages and servers that are not as they should be."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from rpcqm.adm.message import Message
from rpcqm.base.completion import Completion
from rpcqm.base.errors import DecodeError, FaultStatus, RpcFault
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.message import MessageAttributes, build_user_message
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.types.epm import ept_mapRequest, twr_t
from rpcqm.codec.types.remoteread import SectionBuffer
from rpcqm.rpc.endpoint_mapper import EndpointMapper
from tests.support.qm.sending import take
from tests.support.rpc.older_server import OlderServer, older_server, reading_server

SENDER = UUID("6b29fc40-ca47-1067-b31d-00dd010662da")


async def done(completion: Completion[Any]) -> Any:
    """The outcome of something that the engine does."""
    finished: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    completion.add_done_callback(lambda each: finished.set_result(each.result()))
    return await finished


async def arrive(server: OlderServer, name: str, *priorities: int) -> None:
    """Transactional messages of a sender who gives them priorities all the same."""
    for number, priority in enumerate(priorities, 1):
        attributes = MessageAttributes(
            destination_queue_format_name=FormatName.parse(name),
            identifier=MessageIdentifier(SENDER, number),
            body=b"%d" % number,
            sent_time=server.engine.clock.now() // 1000,
            transaction_identifier=number,
        )
        packet = bytearray(build_user_message(attributes))
        packet[2] |= priority
        await done(take(server.engine, Message(bytes(packet))))


@pytest.mark.conformance("MQDMPR-event-serialize_message_to_buffer", "MQRR-client-3.2.4.3")
def test_the_priority_of_a_transactional_message_is_ignored(tmp_path: Path) -> None:
    async def main() -> None:
        async with reading_server(tmp_path) as server:
            name = await server.create(transactional=True)
            await arrive(server, name, 5, 0, 7)
            async with (
                QueueManagerClient(server.target) as client,
                client.open_reader(FormatName.parse(name)) as reader,
            ):
                seen = [message async for message in reader.browse()]
                assert [message.body for message in seen] == [b"1", b"2", b"3"]
                assert [message.priority for message in seen] == [0, 0, 0]
                async with await reader.receive_by_lookup_identifier(
                    seen[2].lookup_identifier
                ) as last:
                    assert last.body == b"3"

    asyncio.run(main())


def _cut(sections: list[SectionBuffer]) -> None:
    octets = sections[0].pSectionBuffer
    assert octets is not None
    sections[0].pSectionBuffer = octets[:-8]
    sections[0].SectionSize = sections[0].SectionSizeAlloc = len(octets) - 8


def _wrong_label_length(sections: list[SectionBuffer]) -> None:
    """More characters of a label than the packet has octets."""
    octets = bytearray(sections[0].pSectionBuffer or b"")
    packet = Message(bytes(octets)).attributes
    octets[packet.layout.properties + 1] = 0xFF
    sections[0].pSectionBuffer = bytes(octets)


@pytest.mark.conformance("MQRR-client-3.2.4.4")
@pytest.mark.parametrize("spoil", [_cut, _wrong_label_length])
def test_a_message_that_cannot_be_read_is_given_back(
    tmp_path: Path, spoil: Callable[[list[SectionBuffer]], None]
) -> None:
    async def main() -> None:
        async with reading_server(tmp_path, spoil) as server:
            name = await server.create()
            server.enqueue(name, b"one")
            async with (
                QueueManagerClient(server.target) as client,
                client.open_reader(FormatName.parse(name)) as reader,
            ):
                with pytest.raises(DecodeError):
                    await reader.receive(0)
                assert server.count(name) == 1
                with pytest.raises(DecodeError):  # it is there for the next one
                    await reader.receive(0)

    asyncio.run(main())


@pytest.mark.conformance("MQRR-client-3.2.4.4")
def test_what_cannot_be_read_is_not_removed_in_bulk(tmp_path: Path) -> None:
    async def main() -> None:
        async with reading_server(tmp_path, _cut) as server:
            name = await server.create()
            server.enqueue(name, b"one", b"two")
            queue = server.engine.registry.find_by_format_name(FormatName.parse(name))
            assert queue is not None
            async with (
                QueueManagerClient(server.target) as client,
                client.open_bulk_reader(FormatName.parse(name)) as reader,
            ):
                first, second = queue.message_position_list.page(None, 2)
                refused = [pair async for pair in reader.remove([first, second])]
                assert [identifier for identifier, _ in refused] == [first, second]
                assert all(isinstance(error, DecodeError) for _, error in refused)
                assert server.count(name) == 2
                server.calls.clear()
                again = [pair async for pair in reader.remove([first])]
                assert isinstance(again[0][1], DecodeError)  # and not that it is locked

    asyncio.run(main())


@pytest.mark.conformance("MQRR-client-3.2.4.1")
def test_only_a_server_without_remote_read_is_read_by_the_older_protocol(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An endpoint mapper that fails says nothing about what the server has."""
    answered = EndpointMapper._answered
    failed = FaultStatus.RPC_S_OUT_OF_RESOURCES

    def fails(request: ept_mapRequest, found: list[twr_t], handle: bytes, status: int) -> Any:
        return answered(request, [], handle, failed)

    monkeypatch.setattr(EndpointMapper, "_answered", staticmethod(fails))

    async def main() -> None:
        async with older_server(tmp_path) as server:
            name = await server.create()
            async with QueueManagerClient(server.target) as client:
                with pytest.raises(RpcFault) as fault:
                    await client.open_reader(FormatName.parse(name)).__aenter__()
                assert fault.value.status is failed
            assert server.calls == []

    asyncio.run(main())
