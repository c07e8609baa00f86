"""Two queue managers, each a process of its own, send to each other over loopback."""

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.target import LocalServer, ServerUnreachableError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.ports import ports_of
from tests.support.waiting import PATIENCE

NAME_OF_OTHER = "DIRECT=OS:other\\private$\\"


@pytest.fixture(scope="module")
def ports() -> dict[str, int]:
    """A port for each, which both know."""
    return ports_of(("here", "other"))


@contextmanager
def running(name: str, ports: dict[str, int]) -> Iterator[PrivateQueueManager]:
    peers = ", ".join(f"{each}=127.0.0.1:{port}" for each, port in ports.items())
    configuration = f'name = "{name}"\n[binary]\npeers = "{peers}"\n'
    with private_queue_manager(("--binary-port", str(ports[name])), configuration) as machine:
        yield machine


@pytest.fixture(scope="module")
def other(ports: dict[str, int]) -> Iterator[PrivateQueueManager]:
    with running("other", ports) as queue_manager:
        for name in ("orders", "late"):
            queue_manager.run("queue", "create", name)
        queue_manager.run("queue", "create", "stream", "--transactional")
        yield queue_manager


@pytest.fixture(scope="module")
def here(other: PrivateQueueManager, ports: dict[str, int]) -> Iterator[PrivateQueueManager]:
    with running("here", ports) as queue_manager:
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
    to = f"{NAME_OF_OTHER}orders"
    here.run("send", to, "--body", "hello", *options)
    assert received(other, "orders", 1) == ["hello"]
    listed = json.loads(here.run("queue", "list", "--outgoing", "--json").stdout)
    assert (to, "CONNECTED") in [(queue["format_name"], queue["state"]) for queue in listed]


def test_a_message_goes_to_several_queues_here_and_elsewhere(
    here: PrivateQueueManager, other: PrivateQueueManager
) -> None:
    here.run("queue", "create", "several")
    names = f"{NAME_OF_OTHER}orders,{NAME_OF_OTHER}late,several"
    here.run("send", names, "--body", "for all")
    assert received(other, "orders", 1) == received(other, "late", 1) == ["for all"]
    assert received(here, "several", 1) == ["for all"]


@pytest.mark.conformance("MQQB-rule-3.1.1.5")
def test_transactional_messages_arrive_once_in_order(
    here: PrivateQueueManager, other: PrivateQueueManager
) -> None:
    for number in range(3):
        here.run("send", f"{NAME_OF_OTHER}stream", "--body", f"{number}", "--transactional")
    assert received(other, "stream", 3) == [f"{number}" for number in range(3)]
    give_up = time.monotonic() + PATIENCE
    while json.loads(here.run("trace", f"{NAME_OF_OTHER}stream", "--json").stdout)["messages"]:
        assert time.monotonic() < give_up
    assert "Last acknowledged  everything" in here.run("trace", f"{NAME_OF_OTHER}stream").stdout


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


def test_a_message_is_traced_over_its_hop_to_its_receipt(
    here: PrivateQueueManager, other: PrivateQueueManager
) -> None:
    here.run("queue", "create", "told")
    to = f"{NAME_OF_OTHER}orders"
    asks = ("--ack", "arrival,receive", "--admin-queue", "told")
    identifier = here.run("send", to, "--body", "traced", *asks).stdout.strip()
    assert received(other, "orders", 1) == ["traced"]
    here.run("receive", "told", "--count", "2", "--timeout", "20000")
    shown = json.loads(here.run("trace", identifier, "--json").stdout)
    told = {(event["happening"], event["queue"], event["detail"]) for event in shown["events"]}
    assert ("sent", to, "IP=127.0.0.1") in told
    for name in ("ACK_REACH_QUEUE", "ACK_RECEIVE"):
        assert ("acknowledged", "here\\private$\\told", name) in told
    assert "IP=127.0.0.1" in here.run("explain", identifier).stdout


@pytest.mark.conformance("MQQB-event-pause_queue", "MQQB-event-resume_queue")
@pytest.mark.parametrize(
    ("stop", "go", "state"),
    [("pause", "resume", "ONHOLD"), ("disconnect", "connect", "DISCONNECTED")],
)
def test_an_administrator_holds_messages_back_and_lets_them_go(
    here: PrivateQueueManager, other: PrivateQueueManager, stop: str, go: str, state: str
) -> None:
    to = f"{NAME_OF_OTHER}stream"
    subject = (to,) if stop == "pause" else ()
    here.run("send", to, "--body", "before", "--transactional")
    here.run("network", stop, *subject)
    here.run("send", to, "--body", "held", "--transactional")
    shown = json.loads(here.run("trace", to, "--json").stdout)
    assert (shown["state"], shown["messages"] > 0) == (state, True)
    here.run("network", go, *subject)
    here.run("network", "resend", to)
    assert received(other, "stream", 2) == ["before", "held"]


def test_what_is_not_on_its_way_cannot_be_held(here: PrivateQueueManager) -> None:
    here.run("queue", "create", "own")
    for queue, sentence in ((f"{NAME_OF_OTHER}never", "Nothing was sent"), ("own", "this machine")):
        said = here.run("network", "pause", queue, check=False)
        assert said.returncode == 1
        assert sentence in said.stderr


def test_what_is_on_its_way_is_listed_and_traced(here: PrivateQueueManager) -> None:
    waiting = "DIRECT=OS:nobody.invalid\\private$\\orders"
    here.run("send", waiting, "--body", "stays")
    said = here.run("queue", "list", "--outgoing").stdout
    assert waiting in said
    shown = json.loads(here.run("trace", waiting, "--json").stdout)
    assert (shown["messages"], shown["state"]) == (1, "NEED VALIDATION")
    assert shown["connections"][-1]["status"] == "name not found"
    assert "name not found" in here.run("trace", waiting).stdout


async def hold_the_first_and_purge(queue_manager: PrivateQueueManager, queue: str) -> None:
    """Somebody has received it, and has not said so yet, when the machine loses its power."""
    name = FormatName.parse(f"DIRECT=OS:.\\private$\\{queue}")
    async with (
        QueueManagerClient(LocalServer(queue_manager.socket)) as client,
        client.open_reader(name) as reader,
    ):
        await reader.receive(20_000)
        await reader.purge()
        await asyncio.to_thread(queue_manager.kill)


@pytest.mark.conformance("MQQB-rule-3.1.7.2.2")
def test_what_the_start_removes_is_told_to_its_source(
    here: PrivateQueueManager, other: PrivateQueueManager
) -> None:
    to = f"{NAME_OF_OTHER}stream"
    here.run("send", to, "--body", "purged", "--transactional", "--dead-letter")
    with suppress(ServerUnreachableError):
        asyncio.run(hold_the_first_and_purge(other, "stream"))
    other.start()
    here.run("send", f"{NAME_OF_OTHER}orders", "--body", "opens a session")
    assert received(other, "orders", 1) == ["opens a session"]
    give_up = time.monotonic() + PATIENCE
    while not (kept := json.loads(here.run("dead-letter", "list", "--json").stdout)):
        assert time.monotonic() < give_up
    assert len(kept) == 1
