"""Strangers cannot fill the log: neither with long texts nor with many lines."""

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from rpcqm.codec.interface import load
from rpcqm.codec.types import mqmq, qmmgmt
from rpcqm.rpc.client import RpcClient
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.waiting import PATIENCE

LINES_AT_ONCE, LINES_PER_SECOND = 20, 1
DIRECT = 3
CHARACTERS = 1_900_000
FLOOD = 2000
CONFIGURATION = '[storage]\nreserve = 1\n[logging]\nformat = "json"\n'


@pytest.fixture
def queue_manager() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(configuration=CONFIGURATION) as queue_manager:
        yield queue_manager


def lines(queue_manager: PrivateQueueManager, event: str) -> list[dict[str, Any]]:
    told = (json.loads(line) for line in queue_manager.log.splitlines())
    return [line for line in told if line["event"] == event]


def long_name() -> qmmgmt.R_QMMgmtActionRequest:
    """A call about a queue whose name has 1,900,000 characters."""
    queue = mqmq.QUEUE_FORMAT(
        m_qft=DIRECT,
        m_SuffixAndFlags=0,
        m_reserved=0,
        u=mqmq.QUEUE_FORMAT_u(DIRECT, "OS:here\\private$\\" + "n" * CHARACTERS),
    )
    about = qmmgmt.MGMT_OBJECT(type=2, u=qmmgmt.MGMT_OBJECT_u(2, queue))
    return qmmgmt.R_QMMgmtActionRequest(pObjectFormat=about, lpwszAction="\u202e\x9b[2J" * 1000)


def test_a_name_of_megabytes_is_a_short_line(queue_manager: PrivateQueueManager) -> None:
    async def ask() -> None:
        async with await RpcClient.connect_unix(queue_manager.socket) as client:
            binding = await client.bind(load("qmmgmt"))
            response = await binding.call("R_QMMgmtAction", long_name())
            assert response.result

    before = len(queue_manager.log)
    asyncio.run(ask())
    assert lines(queue_manager, "a call was refused")
    assert len(queue_manager.log) - before < 4000
    assert queue_manager.log.isascii()


def test_a_flood_of_refusals_of_one_address_is_few_lines_with_a_count(
    queue_manager: PrivateQueueManager,
) -> None:
    address, began = queue_manager.endpoint("rpc"), time.monotonic()

    def break_the_protocol() -> None:
        with socket.create_connection(address, timeout=20) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            while plain.recv(4096):
                """Until the server has closed it."""

    for _ in range(FLOOD):
        break_the_protocol()
    at_most = LINES_AT_ONCE + LINES_PER_SECOND * (time.monotonic() - began) + 1
    told = lines(queue_manager, "the protocol was broken")
    assert LINES_AT_ONCE <= len(told) <= at_most
    while accounted(queue_manager) < FLOOD:
        assert time.monotonic() - began < PATIENCE
        break_the_protocol()


def accounted(queue_manager: PrivateQueueManager) -> int:
    """How many refusals the log tells of, in lines or as a number."""
    told = lines(queue_manager, "the protocol was broken")
    return len(told) + sum(int(line.get("left_out", 0)) for line in told)
