"""Two queue managers, each a process of its own, send to each other over loopback."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager

NAME_OF_OTHER = "DIRECT=OS:other\\private$\\"


@pytest.fixture(scope="module")
def other() -> Iterator[PrivateQueueManager]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ("--binary-port", str(port))
    with private_queue_manager(options, 'name = "other"\n') as queue_manager:
        for name in ("orders", "late"):
            queue_manager.run("queue", "create", name)
        queue_manager.run("queue", "create", "stream", "--transactional")
        yield queue_manager


@pytest.fixture(scope="module")
def here(other: PrivateQueueManager) -> Iterator[PrivateQueueManager]:
    host, port = other.endpoint("binary")
    configuration = f'name = "here"\n[binary]\npeers = "other={host}:{port}"\n'
    with private_queue_manager(configuration=configuration) as queue_manager:
        yield queue_manager


def received(queue_manager: PrivateQueueManager, queue: str, count: int) -> list[str]:
    """The bodies of the next messages, waiting for each."""
    bodies: list[Any] = []
    for _ in range(count):
        said = queue_manager.run("receive", queue, "--timeout", "20000", "--format", "json")
        bodies.append(json.loads(said.stdout)["body"])
    return bodies


@pytest.mark.conformance("MQQB-rule-2.1.1", "MQQB-packet-UserMessage")
@pytest.mark.parametrize("options", [(), ("--express",)], ids=["recoverable", "express"])
def test_a_message_sent_to_another_queue_manager_arrives(
    here: PrivateQueueManager, other: PrivateQueueManager, options: tuple[str, ...]
) -> None:
    here.run("send", f"{NAME_OF_OTHER}orders", "--body", "hello", *options)
    assert received(other, "orders", 1) == ["hello"]


@pytest.mark.conformance("MQQB-rule-3.1.1.5")
def test_transactional_messages_arrive_once_in_order(
    here: PrivateQueueManager, other: PrivateQueueManager
) -> None:
    for number in range(3):
        here.run("send", f"{NAME_OF_OTHER}stream", "--body", f"{number}", "--transactional")
    assert received(other, "stream", 3) == [f"{number}" for number in range(3)]


@pytest.mark.conformance("MQQB-event-queue_manager_started")
def test_what_waits_is_sent_when_the_other_one_is_back(
    here: PrivateQueueManager, other: PrivateQueueManager
) -> None:
    here.run("send", f"{NAME_OF_OTHER}late", "--body", "before")
    assert received(other, "late", 1) == ["before"]
    other.kill()
    here.run("send", f"{NAME_OF_OTHER}late", "--body", "meanwhile", "--count", "3")
    here.kill()
    other.start()
    here.start()
    assert received(other, "late", 3) == ["meanwhile"] * 3


def test_what_is_on_its_way_is_listed_and_traced(here: PrivateQueueManager) -> None:
    waiting = "DIRECT=OS:nobody.invalid\\private$\\orders"
    here.run("send", waiting, "--body", "stays")
    said = here.run("queue", "list", "--outgoing").stdout
    assert waiting in said
    shown = json.loads(here.run("trace", waiting, "--json").stdout)
    assert (shown["messages"], shown["state"]) == (1, "NEED VALIDATION")
    assert shown["connections"][-1]["status"] == "name not found"
    assert "name not found" in here.run("trace", waiting).stdout
