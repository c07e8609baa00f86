"""Server-sent events of a queue manager that runs: programs need not ask again and again."""

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.api.programs import Program

CONSOLE = ("--console-port", "0")


@pytest.fixture(scope="module")
def running() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(CONSOLE) as queue_manager:
        for name, *groups in (("boss", "administrators"), ("alice",)):
            words = [word for group in groups for word in ("--group", group)]
            queue_manager.run("user", "add", name, *words, "--password-stdin", input="secret\n")
        boss = Program(queue_manager.endpoint("console"), "boss")
        sddl = "O:BAG:BAD:(A;;0x6;;;WD)(A;;0xf003f;;;BA)"
        assert boss.ask("POST", "/queues", {"name": "orders", "sddl": sddl}).status == 201
        yield queue_manager


def add_boss(running: PrivateQueueManager) -> None:
    words = ("user", "add", "boss", "--group", "administrators", "--password-stdin")
    running.run(*words, input="secret\n")


class Listening:
    """A program that reads a stream of events."""

    def __init__(
        self, running: PrivateQueueManager, name: str, query: str = "", last: str | None = None
    ) -> None:
        program = Program(running.endpoint("console"), name)
        more = {} if last is None else {"Last-Event-ID": last}
        program.connection.request("GET", f"/api/v1/events{query}", headers=program.headers | more)
        self.connection = program.connection
        self.answer: http.client.HTTPResponse = program.connection.getresponse()

    def next(self, kind: str = "") -> dict[str, Any]:
        """The next event, or the next of a kind."""
        while True:
            fields = self._read()
            if "data" not in fields:
                continue
            told: dict[str, Any] = json.loads(fields["data"])
            assert told["kind"] == fields["event"]
            assert told["id"] == fields.get("id")
            if kind in ("", fields["event"]):
                return told

    def _read(self) -> dict[str, str]:
        """The fields before the next empty line."""
        fields: dict[str, str] = {}
        while (line := self.answer.readline()) != b"\n":
            assert line, "the stream has ended"
            name, _, value = line.decode().rstrip("\n").partition(": ")
            fields[name] = value
        return fields

    def close(self) -> None:
        self.answer.close()
        self.connection.close()


def test_a_program_is_told_what_happens(running: PrivateQueueManager) -> None:
    listening = Listening(running, "boss")
    assert listening.answer.status == 200
    assert listening.answer.headers["Content-Type"] == "text/event-stream"
    assert listening.answer.headers["Cache-Control"] == "no-store"
    boss = Program(running.endpoint("console"), "boss")
    boss.ask("POST", "/queues/orders/messages", b"x")
    changed = listening.next("queue-changed")
    assert (changed["about"].rpartition("\\")[2], changed["messages"]) == ("orders", 1)
    boss.ask("PATCH", "/queues/orders", {"label": "Orders"})
    acted = listening.next("operator-acts")
    assert (acted["who"], acted["action"], acted["origin"]) == (
        "boss",
        "set properties",
        "127.0.0.1",
    )
    running.run("send", r"DIRECT=OS:nowhere.invalid\private$\x", "--body", "x")
    assert listening.next("session-state")["about"].startswith("DIRECT=OS:nowhere")
    listening.close()
    again = Listening(running, "boss", last=str(int(acted["id"]) - 1))
    assert again.next() == acted
    again.close()


def test_an_act_over_the_local_socket_is_told_too(running: PrivateQueueManager) -> None:
    listening = Listening(running, "boss")
    running.run("user", "add", "carol", "--password-stdin", input="secret\n")
    acted = listening.next("operator-acts")
    assert (acted["action"], acted["about"], acted["origin"]) == ("add account", "carol", "local")
    running.run("network", "disconnect")
    assert listening.next("machine-state")["connected"] is False
    running.run("network", "connect")
    listening.close()


def test_a_stream_ends_after_the_longest_wait_and_the_connection_goes_on() -> None:
    with private_queue_manager(CONSOLE, "[console]\nlongest_wait = 1\n") as running:
        add_boss(running)
        listening = Listening(running, "boss")
        assert listening.answer.readline() == b"retry: 1000\n"
        listening.answer.read()
        assert listening.answer.isclosed()
        program = Program(running.endpoint("console"), "boss")
        program.connection = listening.connection
        assert program.ask("GET", "/queue-manager").status == 200


def test_others_listen_to_queues_that_they_may_peek_at(running: PrivateQueueManager) -> None:
    for query, status in (
        ("", 403),
        ("?queues=nothing", 404),
        ("?queues=.%5Csystem%24;deadletter", 403),
        ("?queues=orders", 200),
    ):
        listening = Listening(running, "alice", query)
        assert listening.answer.status == status, query
        if status != 200:
            listening.close()
    assert listening.next()["change"] == "is"
    running.run("send", "orders", "--body", "x")
    assert listening.next()["kind"] == "queue-changed"
    listening.close()
    assert Listening(running, "boss", last="1x").answer.status == 400


def test_listeners_that_have_gone_are_forgotten(running: PrivateQueueManager) -> None:
    for _ in range(40):
        listening = Listening(running, "boss")
        assert listening.answer.status == 200
        listening.close()


def test_a_queue_manager_with_listeners_stops_at_once() -> None:
    with private_queue_manager(CONSOLE, "[console]\nlongest_wait = 3600\n") as running:
        add_boss(running)
        listening = Listening(running, "boss")
        assert listening.answer.readline() == b"retry: 1000\n"
        running.stop()
        listening.answer.read()
        assert listening.answer.isclosed()
