"""Cursors at servers that leave making them to the client ([MS-MQMP] 3.2.4.8)."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from rpcqm.base.errors import HResult, MQError
from rpcqm.client.dependent import DependentQueue
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.qmcomm import CACCreateRemoteCursor
from tests.support.rpc.scripted import Scripted

PATH = r"ELSEWHERE\private$\orders"
HANDLE = b"an open queue"
OURS, THEIRS, QUEUE, PROXY = 11, 22, 33, 44


def at_an_old_server(**answers: Any) -> tuple[DependentQueue, Scripted, Scripted]:
    """A queue, its supporting server, and the machine that has it; some answers are others."""
    pcc = CACCreateRemoteCursor(hCursor=OURS, srv_hACQueue=QUEUE, cli_pQMQueue=PROXY)
    usual = {
        "rpc_QMOpenQueueInternal": SimpleNamespace(
            result=0, lplpRemoteQueueName=None, phQueue=HANDLE, pdwQMContext=1
        ),
        "rpc_ACCreateCursorEx": SimpleNamespace(
            result=HResult.MQ_INFORMATION_REMOTE_OPERATION, pcc=pcc
        ),
        "R_QMGetRemoteQueueName": SimpleNamespace(result=0, lplpRemoteQueueName=PATH),
        "R_QMCreateRemoteCursor": SimpleNamespace(result=0, phCursor=THEIRS),
    }
    here, there = Scripted(**usual | answers), Scripted(**usual | answers)
    machines = {"ELSEWHERE": there}
    return (
        DependentQueue(here, FormatName.parse("DIRECT=OS:x\\q"), machines.__getitem__),
        here,
        there,
    )


async def create_cursor(queue: DependentQueue) -> int:
    return await (await queue.__aenter__()).create_cursor()


@pytest.mark.conformance("MQMP-error-0x400E03E8", "MQMP-client-3.2.4.8")
def test_a_cursor_is_made_where_the_queue_is() -> None:
    queue, here, there = at_an_old_server()
    queue.remote_path = r"ANOTHER\private$\orders"  # what the server tells now counts
    assert asyncio.run(create_cursor(queue)) == OURS
    assert [name for name, _ in here.calls] == [
        "rpc_QMOpenQueueInternal",
        "rpc_ACCreateCursorEx",
        "R_QMGetRemoteQueueName",
        "rpc_ACSetCursorProperties",
    ]
    _, asked, named, told = (request for _, request in here.calls)
    assert asked.hQueue == HANDLE
    assert (named.pQueue, named.lplpRemoteQueueName) == (PROXY, None)
    ((_, made),) = there.calls
    assert made.hQueue == QUEUE
    assert (told.hProxy, told.hCursor, told.hRemoteCursor) == (HANDLE, OURS, THEIRS)


@pytest.mark.conformance("MQMP-error-0x400E03E8")
@pytest.mark.parametrize(
    "step", ["R_QMGetRemoteQueueName", "R_QMCreateRemoteCursor", "rpc_ACSetCursorProperties"]
)
def test_a_cursor_that_cannot_be_made_there_is_closed_here(step: str) -> None:
    refused = MQError(HResult.MQ_ERROR_ILLEGAL_OPERATION)
    queue, here, _ = at_an_old_server(**{step: refused})
    with pytest.raises(MQError) as caught:
        asyncio.run(create_cursor(queue))
    assert caught.value.status is HResult.MQ_ERROR_ILLEGAL_OPERATION
    name, closed = here.calls[-1]
    assert (name, closed.hQueue, closed.hCursor) == ("rpc_ACCloseCursor", HANDLE, OURS)
