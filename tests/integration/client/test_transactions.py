"""Receiving, sending and moving in one transaction, as programs do it with `mq`."""

import asyncio
import contextlib
import itertools
from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest

from rpcqm.base.errors import HResult, MQError
from rpcqm.client import mq
from rpcqm.client.remote_read import RemoteReadSession
from rpcqm.testing import PrivateQueueManager, private_queue_manager

_numbers = itertools.count(1)
PASSWORD = "Correct-Horse-9"


class Raised(Exception):
    """What a program raises."""


@contextlib.contextmanager
def refused_by_the_program() -> Iterator[None]:
    """The block raises Raised."""
    with pytest.raises(Raised):
        yield


@pytest.fixture(scope="module")
def queue_manager() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(configuration="[storage]\nreserve = 1\n") as queue_manager:
        queue_manager.run("user", "add", "carol", "--password-stdin", input=f"{PASSWORD}\n")
        yield queue_manager


@pytest.fixture
def names(queue_manager: PrivateQueueManager) -> tuple[str, str]:
    """Two empty transactional queues."""
    number = next(_numbers)
    names = (f"in-{number}", f"out-{number}")
    for name in names:
        queue_manager.run("queue", "create", name, "--transactional")
    return names


def fill(queue_manager: PrivateQueueManager, name: str, *bodies: str) -> None:
    with mq.open(name, queue_manager) as queue, queue.transaction():
        for body in bodies:
            queue.send(body)


def held(queue_manager: PrivateQueueManager, name: str) -> list[object]:
    with mq.open(name, queue_manager, peek_only=True) as queue:
        return [message.value for message in queue.browse()]


def test_an_exception_gives_back_what_was_received_and_sends_nothing(
    queue_manager: PrivateQueueManager, names: tuple[str, str]
) -> None:
    orders, bills = names
    fill(queue_manager, orders, "one", "two")
    with mq.open(orders, queue_manager) as source, mq.open(bills, queue_manager) as target:
        with refused_by_the_program(), source.transaction(target):
            first = source.receive_one(timeout=5)
            assert first is not None
            target.send(f"bill of {first.value}")
            assert [message.value for message in source.receive(timeout=0)] == ["two"]
            raise Raised
        assert held(queue_manager, bills) == []
        assert held(queue_manager, orders) == ["one", "two"]
        again = source.peek(timeout=0)
        assert again is not None
        assert again.abort_count == 1


def test_receive_send_and_move_happen_together(
    queue_manager: PrivateQueueManager, names: tuple[str, str]
) -> None:
    orders, bills = names
    fill(queue_manager, orders, "one", "two", "three")
    with mq.open(orders, queue_manager) as source, mq.open(bills, queue_manager) as target:
        with source.transaction(target):
            received = source.receive_one(timeout=0)
            assert received is not None
            received.acknowledge()  # it does so with the transaction
            target.send("bill")
            second = source.receive_one(timeout=0)
            assert second is not None
            source.move(second, "late")
            third = source.peek(timeout=0)
            assert third is not None
            source.move(third, "late")
            assert held(queue_manager, bills) == []
            assert held(queue_manager, f"{orders};late") == []
        assert held(queue_manager, orders) == []
        assert held(queue_manager, bills) == ["bill"]
        assert held(queue_manager, f"{orders};late") == ["two", "three"]


def test_a_program_that_dies_gives_everything_back(
    queue_manager: PrivateQueueManager, names: tuple[str, str]
) -> None:
    orders, _ = names
    fill(queue_manager, orders, "one")

    async def dies() -> None:
        queue = mq.open_async(orders, queue_manager)
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(queue.transaction())
            assert await queue.receive_one(0) is not None
            await queue.client.close()
            stack.pop_all()

    asyncio.run(dies())
    with mq.open(orders, queue_manager) as queue, queue.transaction():
        message = queue.receive_one(timeout=5)
        assert message is not None
        assert message.value == "one"


def test_messages_of_a_transaction_are_not_released_one_by_one(
    queue_manager: PrivateQueueManager, names: tuple[str, str]
) -> None:
    fill(queue_manager, names[0], "one")
    with mq.open(names[0], queue_manager) as queue, queue.transaction():
        message = queue.receive_one(timeout=0)
        assert message is not None
        with pytest.raises(RuntimeError, match="an exception that leaves the transaction"):
            message.release()


def test_an_ordinary_queue_takes_part_in_no_transaction(
    queue_manager: PrivateQueueManager, names: tuple[str, str]
) -> None:
    queue_manager.run("queue", "create", f"plain-{names[0]}")
    with mq.open(f"plain-{names[0]}", queue_manager) as queue:
        queue.send("stays")
        with pytest.raises(MQError) as refused, queue.transaction():
            queue.receive_one(timeout=0)
        assert refused.value.status is HResult.MQ_ERROR_TRANSACTION_USAGE
        assert held(queue_manager, f"plain-{names[0]}") == ["stays"]


@pytest.fixture
def elsewhere(queue_manager: PrivateQueueManager) -> mq.RemoteServer:
    """The same queue manager as somebody on the network reaches it; it serves no dependents."""
    host, port = queue_manager.endpoint("epm")
    return mq.server_at(f"{host}:{port}", "carol", PASSWORD)


def test_a_transaction_over_the_network_receives_and_moves_or_does_nothing(
    queue_manager: PrivateQueueManager, names: tuple[str, str], elsewhere: mq.RemoteServer
) -> None:
    orders, bills = names
    fill(queue_manager, orders, "one", "two")
    fill(queue_manager, bills, "bill")
    with mq.open(orders, elsewhere) as far, mq.open(bills, elsewhere) as other:
        with refused_by_the_program(), far.transaction(other):
            assert [message.value for message in far.receive(timeout=0)] == ["one", "two"]
            assert other.receive_one(timeout=0) is not None
            raise Raised
        assert held(queue_manager, orders) == ["one", "two"]
        assert held(queue_manager, bills) == ["bill"]
        with far.transaction(other):
            message = far.receive_one(timeout=0)
            assert message is not None
            far.move(message, "late")
            assert other.receive_one(timeout=0) is not None
    assert held(queue_manager, orders) == ["two"]
    assert held(queue_manager, f"{orders};late") == ["one"]
    assert held(queue_manager, bills) == []


def test_queues_of_two_queue_managers_are_refused_with_a_sentence(
    queue_manager: PrivateQueueManager, names: tuple[str, str], elsewhere: mq.RemoteServer
) -> None:
    with (
        mq.open(names[0], queue_manager) as here,
        mq.open(names[1], elsewhere) as there,
        pytest.raises(ValueError, match="a transaction is of one queue manager"),
        here.transaction(there),
    ):
        pass


def test_a_server_that_needs_a_coordinator_is_refused_with_a_sentence(
    queue_manager: PrivateQueueManager, names: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows refuses R_QMEnlistRemoteTransaction without a token of its coordinator."""
    fill(queue_manager, names[0], "one")

    enlist = RemoteReadSession.enlist

    async def of_another(session: RemoteReadSession, transaction: UUID) -> None:
        await enlist(session, uuid4())

    monkeypatch.setattr(RemoteReadSession, "enlist", of_another)
    with mq.open(names[0], queue_manager) as queue:
        with (
            pytest.raises(MQError, match="only rpcqm lets its clients") as refused,
            queue.transaction(),
        ):
            queue.receive_one(timeout=0)
        assert refused.value.status is HResult.MQ_ERROR_TRANSACTION_ENLIST
    assert held(queue_manager, names[0]) == ["one"]
