"""A queue as a file, piece by piece: whole or not taken, for who may peek, within bounds."""

import asyncio
import io
from dataclasses import replace
from pathlib import Path

import pytest

from rpcqm.base.errors import DecodeError, HResult, MQError
from rpcqm.codec.names.written import format_name
from rpcqm.codec.packet.export_file import ExportReader
from rpcqm.operations.drafts import Draft
from rpcqm.operations.exports import EXPORTS_OF_ACCOUNT, MOST_EXPORTS, PIECE_MESSAGES, Export
from rpcqm.operations.operations import Operations
from tests.support.qm.operators import operations_of
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ADMINISTRATOR, ALICE

ORDERS = format_name("orders")


@pytest.fixture
def operations(qm: RunningQueueManager, tmp_path: Path) -> Operations:
    qm.create()
    return operations_of(qm, tmp_path)


def send(qm: RunningQueueManager, operations: Operations, count: int) -> None:
    drafts = [Draft(b"body", str(number)) for number in range(count)]
    qm.done(operations.messages.send(ADMINISTRATOR, (ORDERS,), drafts))


def piece(export: Export) -> bytes | None:
    return asyncio.run(export.next())


def whole(export: Export) -> bytes:
    return b"".join(iter(lambda: piece(export) or b"", b""))


def test_a_file_has_all_messages_whole(qm: RunningQueueManager, operations: Operations) -> None:
    count = PIECE_MESSAGES * 2 + 1
    send(qm, operations, count)
    reader = ExportReader(io.BytesIO(whole(operations.exports.export(ADMINISTRATOR, ORDERS))))
    assert reader.note["queue"] == str(ORDERS)
    packets = [packet for packet, _ in reader]
    kept = operations.messages.peek(ADMINISTRATOR, ORDERS, None, count).messages
    assert packets == [each.packet for each in kept], "they stay, and are as they were"


def test_an_empty_queue_is_a_whole_file(operations: Operations) -> None:
    told = whole(operations.exports.export(ADMINISTRATOR, ORDERS))
    assert list(ExportReader(io.BytesIO(told))) == []


def test_a_file_has_no_more_messages_than_were_there(
    qm: RunningQueueManager, operations: Operations
) -> None:
    send(qm, operations, 3)
    export = operations.exports.export(ADMINISTRATOR, ORDERS)
    send(qm, operations, 2)
    assert len(list(ExportReader(io.BytesIO(whole(export))))) == 3


def test_who_may_not_peek_any_more_gets_no_whole_file(
    qm: RunningQueueManager, operations: Operations
) -> None:
    send(qm, operations, PIECE_MESSAGES + 1)
    export = operations.exports.export(ADMINISTRATOR, ORDERS)
    told = [piece(export), piece(export)]
    qm.done(operations.queues.delete(ADMINISTRATOR, ORDERS))
    with pytest.raises(MQError) as refused:
        piece(export)
    assert refused.value.status is HResult.MQ_ERROR_QUEUE_NOT_FOUND
    with pytest.raises(DecodeError):
        list(ExportReader(io.BytesIO(b"".join(each or b"" for each in told))))


@pytest.mark.bound("console.exports", "console.exports_of_account")
def test_exports_are_bounded(operations: Operations) -> None:
    everybody = [replace(ADMINISTRATOR, sid=f"S-1-5-21-{number}") for number in range(MOST_EXPORTS)]
    own = [operations.exports.export(ADMINISTRATOR, ORDERS) for _ in range(EXPORTS_OF_ACCOUNT)]
    with pytest.raises(MQError) as refused:
        operations.exports.export(ADMINISTRATOR, ORDERS)
    assert refused.value.status is HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
    for each in everybody[: MOST_EXPORTS - EXPORTS_OF_ACCOUNT]:
        operations.exports.export(each, ORDERS)
    with pytest.raises(MQError):
        operations.exports.export(ALICE, ORDERS)
    own[0].close()
    operations.exports.export(ALICE, ORDERS)
