"""Cursors at servers that leave making them to the client ([MS-MQMP] 3.2.4.8)."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from rpcqm.base.errors import HResult, MQError
from rpcqm.client.dependent import DependentQueue
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.qmcomm import CACCreateRemoteCursor
from tests.support.scripted import Scripted

PATH = r"ELSEWHERE\private$\orders"
OURS, THEIRS, QUEUE = 11, 22, 33


def at_an_old_server(**answers: Any) -> tuple[DependentQueue, Scripted, Scripted]:
    pcc = CACCreateRemoteCursor(hCursor=OURS, srv_hACQueue=QUEUE, cli_pQMQueue=44)
    here = Scripted(
        rpc_ACCreateCursorEx=SimpleNamespace(
            result=HResult.MQ_INFORMATION_REMOTE_OPERATION, pcc=pcc
        ),
        R_QMGetRemoteQueueName=SimpleNamespace(result=0, lplpRemoteQueueName=PATH),
        **answers,
    )
    there = Scripted(R_QMCreateRemoteCursor=SimpleNamespace(result=0, phCursor=THEIRS))
    machines = {"ELSEWHERE": there}
    return (
        DependentQueue(here, FormatName.parse("DIRECT=OS:x\\q"), machines.__getitem__),
        here,
        there,
    )


@pytest.mark.conformance("MQMP-error-0x400E03E8", "MQMP-client-3.2.4.8")
def test_a_cursor_is_made_where_the_queue_is() -> None:
    queue, here, there = at_an_old_server()
    queue.remote_path = r"ANOTHER\private$\orders"  # what the server tells now counts
    assert asyncio.run(queue.create_cursor()) == OURS
    assert [name for name, _ in here.calls] == [
        "rpc_ACCreateCursorEx",
        "R_QMGetRemoteQueueName",
        "rpc_ACSetCursorProperties",
    ]
    ((_, made),) = there.calls
    assert made.hQueue == QUEUE
    told = here.calls[-1][1]
    assert (told.hCursor, told.hRemoteCursor) == (OURS, THEIRS)


@pytest.mark.conformance("MQMP-error-0x400E03E8")
def test_a_cursor_that_cannot_be_made_there_is_closed_here() -> None:
    refused = MQError(HResult.MQ_ERROR_ILLEGAL_OPERATION)
    queue, here, _ = at_an_old_server(rpc_ACSetCursorProperties=refused)
    with pytest.raises(MQError) as caught:
        asyncio.run(queue.create_cursor())
    assert caught.value.status is HResult.MQ_ERROR_ILLEGAL_OPERATION
    name, closed = here.calls[-1]
    assert (name, closed.hCursor) == ("rpc_ACCloseCursor", OURS)
