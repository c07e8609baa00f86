"""Messages that fail again and again: counted, moved by hand, and put aside by the queue."""

import json
from collections.abc import Iterator
from contextlib import suppress

import pytest

from rpcqm.client import mq
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.integration.cli.conftest import Command


@pytest.fixture
def machine() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(configuration="[storage]\nreserve = 1\n") as machine:
        yield machine


def bodies(queue_manager: PrivateQueueManager, name: str) -> list[object]:
    with mq.open(name, queue_manager, peek_only=True) as queue:
        return [message.value for message in queue.browse()]


def fail_once(queue: mq.Queue) -> int:
    """Receive a message and give it back; the aborts that it had when it came."""
    message = queue.receive_one(timeout=5)
    assert message is not None
    message.release()
    return int(message.abort_count)


def test_each_release_raises_the_number_of_aborts_over_a_restart(
    machine: PrivateQueueManager,
) -> None:
    machine.run("queue", "create", "orders")
    with mq.open("orders", machine) as queue:
        queue.send("bad")
        assert [fail_once(queue) for _ in range(3)] == [0, 1, 2]
    machine.restart()
    with mq.open("orders", machine) as queue:
        message = queue.peek(timeout=0)
        assert message is not None
        assert message.abort_count == 3


class Unfinished(Exception):
    """A program ends its transaction because the service has stopped."""


def test_a_transaction_that_ends_with_the_service_is_no_delivery_in_vain(
    machine: PrivateQueueManager,
) -> None:
    """G180."""
    machine.run("queue", "create", "orders", "--transactional")
    machine.run("queue", "set", "orders", "--max-deliveries", "1", "--poison", "bad")
    with mq.open("orders", machine) as queue, queue.transaction():
        queue.send("received")
        queue.send("moved")
    with suppress(Unfinished), mq.open("orders", machine) as queue, queue.transaction():
        assert queue.receive_one(timeout=5) is not None
        second = queue.peek(timeout=0)
        assert second is not None
        queue.move(second, "late")
        machine.restart()
        raise Unfinished
    with mq.open("orders", machine, peek_only=True) as queue:
        found = [(message.value, message.abort_count) for message in queue.browse()]
    assert found == [("received", 0), ("moved", 0)]


def test_a_queue_puts_a_message_aside_after_its_last_delivery_over_a_restart(
    machine: PrivateQueueManager,
) -> None:
    machine.run("queue", "create", "orders")
    machine.run("queue", "set", "orders", "--max-deliveries", "3", "--poison", "bad")
    with mq.open("orders", machine) as queue:
        queue.send("bad")
        queue.send("good")
        assert [fail_once(queue) for _ in range(2)] == [0, 1]
    machine.restart()
    shown = json.loads(machine.run("queue", "show", "orders", "--json").stdout)
    assert (shown["max_deliveries"], shown["poison"]) == (3, "bad")
    with mq.open("orders", machine) as queue:
        assert fail_once(queue) == 2
        assert fail_once(queue) == 0
    assert bodies(machine, "orders") == ["good"]
    assert bodies(machine, "orders;bad") == ["bad"]
    assert "a message that was delivered in vain is put aside" in machine.log
    machine.kill()
    machine.start()
    assert bodies(machine, "orders;bad") == ["bad"]
    machine.run("queue", "set", "orders", "--max-deliveries", "unlimited")
    with mq.open("orders", machine) as queue:
        assert [fail_once(queue) for _ in range(4)][-1] >= 3


def test_aborted_transactions_count_as_deliveries(
    machine: PrivateQueueManager,
) -> None:
    machine.run("queue", "create", "bills", "--transactional")
    machine.run("queue", "set", "bills", "--max-deliveries", "2")
    with mq.open("bills", machine) as queue:
        with queue.transaction():
            queue.send("bad")
        for _ in range(2):
            assert bodies(machine, "bills;poison") == []
            failed = machine.run(
                *("receive", "bills", "--transactional", "--exec", "false"), check=False
            )
            assert failed.returncode == 1
    assert bodies(machine, "bills") == []
    assert bodies(machine, "bills;poison") == ["bad"]


def take_move_and_fail(queue: mq.Queue) -> None:
    with suppress(KeyError), queue.transaction():
        message = queue.receive_one(timeout=5)
        assert message is not None
        queue.move(message, "late")
        raise KeyError


def test_a_move_in_a_transaction_that_is_aborted_counts_as_a_delivery(
    machine: PrivateQueueManager,
) -> None:
    machine.run("queue", "create", "bills", "--transactional")
    machine.run("queue", "set", "bills", "--max-deliveries", "2")
    with mq.open("bills", machine) as queue:
        with queue.transaction():
            queue.send("bad")
        for _ in range(2):
            assert bodies(machine, "bills;poison") == []
            take_move_and_fail(queue)
    assert bodies(machine, "bills") == []
    assert bodies(machine, "bills;poison") == ["bad"]


def test_a_program_moves_the_message_that_it_holds(
    run: Command, queue: str, queue_manager: PrivateQueueManager
) -> None:
    with mq.open(queue, queue_manager) as orders:
        orders.send("bad")
        orders.send("good")
        for message in orders.receive(timeout=0.2):
            if message.value == "bad":
                orders.move(message, "poison")
        assert bodies(queue_manager, queue) == []
        assert bodies(queue_manager, f"{queue};poison") == ["bad"]
    with mq.open(f"{queue};poison", queue_manager) as poison:
        first = poison.peek(timeout=0)
        assert first is not None
        poison.move(first, "")
    assert bodies(queue_manager, queue) == ["bad"]


def test_a_subqueue_for_poison_needs_a_limit_and_a_name_that_can_be(
    attempt: Command, queue: str
) -> None:
    assert attempt("queue", "set", queue, "--poison", "bad").status == 2
    assert attempt("queue", "set", queue, "--max-deliveries", "0").status == 2
    wrong = attempt("queue", "set", queue, "--max-deliveries", "3", "--poison", "a;b")
    assert wrong.status == 1
    assert "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME" in wrong.errors
