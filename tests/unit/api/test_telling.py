"""What an answer tells is bounded, and leases begin when their answers leave (G396)."""

import asyncio
import base64
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from rpcqm.api import messages, parameters
from rpcqm.api.asked import Asked
from rpcqm.api.telling import VALUE_OCTETS
from rpcqm.codec.bodies.described import LONGEST_DECODED, described_body
from rpcqm.codec.bodies.formatters import DOTNET_BINARY
from rpcqm.codec.names.written import format_name
from rpcqm.operations.drafts import Draft
from rpcqm.operations.messages import PAGE_BYTES
from rpcqm.operations.operations import Operations
from rpcqm.qm.lease_bounds import BYTES_AT_ONCE
from tests.support.codec.costly_bodies import COSTLY
from tests.support.qm.operators import operations_of
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ADMINISTRATOR

ORDERS = format_name("orders")
MANY = 40
LEASE = 30_000


@pytest.fixture
def qm(tmp_path: Path) -> Iterator[RunningQueueManager]:
    running = RunningQueueManager(tmp_path)
    running.create()
    yield running
    running.stop()


@pytest.fixture
def operations(qm: RunningQueueManager, tmp_path: Path) -> Operations:
    return operations_of(qm, tmp_path)


def send(qm: RunningQueueManager, operations: Operations, body: bytes, count: int = 1) -> None:
    draft = Draft(body, body_type=DOTNET_BINARY if body[:1] == b"\0" else 0)
    qm.done(operations.messages.send(ADMINISTRATOR, (ORDERS,), [draft] * count))


def asked(operations: Operations, parameters: object, **path: str) -> Asked:
    names = {"name": "orders", **path}
    return Asked(operations, ADMINISTRATOR, 0, names, parameters, None, b"", lambda: ADMINISTRATOR)


def told(reply: Any) -> Any:
    return json.loads(reply.octets)


def costly() -> bytes:
    return COSTLY["booleans of .NET"][1](30_000)


@pytest.mark.bound("program.value_octets")
def test_a_page_ends_when_enough_is_told(qm: RunningQueueManager, operations: Operations) -> None:
    """Its packets alone would fit: values and what is told of them count."""
    send(qm, operations, costly(), MANY)
    after, pages = None, []
    while True:
        wanted = parameters.PageOfMessages(limit=MANY, after=after)
        reply = asyncio.run(messages.peek_messages(asked(operations, wanted)))
        page = told(reply)["messages"]
        size = len(reply.octets or b"") + VALUE_OCTETS * 30_000 * len(page)
        assert size - size // len(page) < PAGE_BYTES
        pages.append(len(page))
        after = told(reply)["next"]
        if after is None:
            break
    assert sum(pages) == MANY
    assert len(pages) > 4


def test_the_values_of_extensions_count_for_a_page(
    qm: RunningQueueManager, operations: Operations
) -> None:
    extension = json.dumps({str(number): "" for number in range(10_000)}).encode()
    draft = Draft(b"x", extension_base64=base64.b64encode(extension).decode())
    qm.done(operations.messages.send(ADMINISTRATOR, (ORDERS,), [draft] * MANY))
    reply = asyncio.run(
        messages.peek_messages(asked(operations, parameters.PageOfMessages(limit=MANY)))
    )
    page = told(reply)["messages"]
    assert len(page[0]["headers"]) == 10_000
    size = len(reply.octets or b"") + VALUE_OCTETS * 10_000 * len(page)
    assert size - size // len(page) < PAGE_BYTES
    reply = asyncio.run(
        messages.peek_messages(
            asked(operations, parameters.PageOfMessages(limit=MANY, decode=False))
        )
    )
    assert "extension" not in told(reply)["messages"][0]


def test_a_receive_gives_no_more_than_is_told(
    qm: RunningQueueManager, operations: Operations
) -> None:
    send(qm, operations, costly(), MANY)
    wanted = parameters.Receive(max=MANY, lease=30)
    given = told(asyncio.run(messages.receive_messages(asked(operations, wanted))))["messages"]
    assert 0 < len(given) < MANY
    assert len(given) * VALUE_OCTETS * 30_000 < BYTES_AT_ONCE + VALUE_OCTETS * 30_000
    assert all(each["lease"] and each["value_type"] == "dotnet" for each in given)
    left = operations.messages.peek(ADMINISTRATOR, ORDERS, limit=MANY)
    assert len(left.messages) == MANY - len(given)


def slow(qm: RunningQueueManager) -> Any:
    """Decoding that takes five seconds."""

    def described(*arguments: Any) -> dict[str, object]:
        qm.clock.advance(5_000)
        return described_body(*arguments)

    return mock.patch("rpcqm.operations.shapes.described_body", described)


def test_a_lease_begins_when_its_answer_leaves(
    qm: RunningQueueManager, operations: Operations
) -> None:
    send(qm, operations, b"[1]", 3)
    with slow(qm):
        wanted = parameters.Receive(max=3, lease=30)
        given = told(asyncio.run(messages.receive_messages(asked(operations, wanted))))["messages"]
    leases = operations.messages.leases(ADMINISTRATOR)
    assert [each.begun for each in leases] == [qm.clock.now()] * 3
    assert [each.expires - each.begun for each in leases] == [LEASE] * 3
    assert len({each["lease_expires"] for each in given}) == 1
    qm.clock.advance(LEASE - 1)
    qm.done(operations.messages.complete(ADMINISTRATOR, [each["lease"] for each in given]))


def test_a_long_body_is_decoded_off_the_loop_and_only_when_asked_for(
    qm: RunningQueueManager, operations: Operations
) -> None:
    bodies = [b"[1]".ljust(LONGEST_DECODED + more) for more in (0, 1)]
    for body in bodies:
        send(qm, operations, body)
    threads: list[threading.Thread] = []

    def read(*arguments: Any) -> Any:
        threads.append(threading.current_thread())
        return read_body(*arguments)

    from rpcqm.codec.bodies.kinds import read_body

    with mock.patch("rpcqm.codec.bodies.described.read_body", read):
        page = parameters.PageOfMessages(limit=2)
        short, long = told(asyncio.run(messages.peek_messages(asked(operations, page))))["messages"]
        assert (short["value"], long["value_type"], long["value"]) == ([1], "undecoded", None)
        assert threads == [threading.main_thread()]
        threads.clear()
        for each in (short, long):
            wanted = asked(
                operations, parameters.PeekBody(decode=True), lookup_id=each["lookup_id"]
            )
            assert told(asyncio.run(messages.peek_body(wanted)))["value"] == [1]
    assert [each is threading.main_thread() for each in threads] == [True, False]


def test_what_is_not_to_be_decoded_is_not_looked_at(
    qm: RunningQueueManager, operations: Operations
) -> None:
    send(qm, operations, b"[1]")
    page = asked(operations, parameters.PageOfMessages(decode=False))
    with mock.patch("rpcqm.codec.bodies.described.read_body") as read:
        (message,) = told(asyncio.run(messages.peek_messages(page)))["messages"]
    assert not read.called
    assert (message["value_type"], message["value"]) == ("bytes", message["body_base64"])
    assert message["body"] == "[1]"
