"""Two queue managers that send to each other by HTTP, over sockets, and are killed."""

import json
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from rpcqm.testing.private import PrivateQueueManager
from tests.support.ports import reserved_port
from tests.support.waiting import PATIENCE

FAST = """
retry_milliseconds = 1000
receipt_coalescing_milliseconds = 50
stream_receipt_wait_milliseconds = 500
receipts_to = ["127.0.0.1"]
"""


class Pair:
    """A sender and a receiver on ports that they keep over restarts."""

    def __init__(self, directory: Path) -> None:
        self.ports = reserved_port(), reserved_port()
        self.sender, self.receiver = (
            PrivateQueueManager(directory / str(port), configuration=self._configuration(port))
            for port in self.ports
        )
        self.sender.start()
        self.receiver.start()
        for queue in ("orders", "admin"):
            self.sender.run("queue", "create", queue)
            self.receiver.run("queue", "create", queue)
        self.receiver.run("queue", "create", "stream", "--transactional")

    def _configuration(self, port: int) -> str:
        receipts = f'"http://127.0.0.1:{port}/msmq/private$/order_queue$"'
        return f"http_port = {port}\n[srmp]{FAST}default_stream_receipt_url = {receipts}\n"

    def url(self, queue: str, port: int | None = None) -> str:
        return f"DIRECT=HTTP://127.0.0.1:{port or self.ports[1]}/msmq/private$/{queue}"

    def send(self, queue: str, *options: str) -> str:
        return self.sender.run("send", self.url(queue), *options).stdout.strip()

    def send_in_order(self, label: str) -> None:
        """Five transactional messages."""
        self.send("stream", "--label", label, "--transactional", "--body", "x", "--count", "5")

    def receive(self, queue: str, of: PrivateQueueManager | None = None) -> dict[str, object]:
        found = (of or self.receiver).run("receive", queue, "--json", "--timeout", "30000").stdout
        read = json.loads(found.splitlines()[0])
        assert isinstance(read, dict)
        return read

    def outgoing(self) -> list[dict[str, object]]:
        text = self.sender.run("queue", "list", "--outgoing", "--json").stdout
        read = json.loads(text)
        assert isinstance(read, list)
        return read

    def receive_all(self, queue: str) -> list[str]:
        """The bodies of everything that is there, in order."""
        lines = self.receiver.run("receive", queue, "--all", "--json").stdout.splitlines()
        return [str(json.loads(line)["label"]) for line in lines]

    def await_empty(self) -> None:
        """Wait until nothing waits in an outgoing queue."""
        end = time.monotonic() + PATIENCE
        while any(queue["messages"] for queue in self.outgoing()):
            assert time.monotonic() < end, self.sender.log


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    pair = Pair(tmp_path_factory.mktemp("pair"))
    yield pair
    pair.sender.stop()
    pair.receiver.stop()


@pytest.mark.conformance("MQSRM-http-200")
def test_a_message_arrives_with_its_properties(pair: Pair) -> None:
    sent = pair.send("orders", "--body", "hello", "--label", "a label", "--priority", "6")
    read = pair.receive("orders")
    assert (read["id"], read["body"], read["label"]) == (sent, "hello", "a label")
    assert (read["priority"], read["delivery"], read["transactional"]) == (6, "recoverable", False)
    assert read["destination"] == pair.url("orders")
    (queue,) = pair.outgoing()
    assert (queue["format_name"], queue["state"]) == (pair.url("orders"), "CONNECTED")
    assert queue["next_hops"] == ["IP=127.0.0.1"]


def test_receipts_come_back_to_the_administration_queue(pair: Pair) -> None:
    admin = pair.url("admin", pair.ports[0])
    asked = ("--ack", "full-receive", "--ack", "arrival", "--admin-queue", admin)
    sent = pair.send("orders", "--body", "tell me", *asked)
    pair.receive("orders")
    told = [pair.receive("admin", pair.sender) for _ in range(2)]
    assert {str(each["class"]) for each in told} == {"ACK_REACH_QUEUE", "ACK_RECEIVE"}
    assert {each["correlation_id"] for each in told} == {sent}


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.8", "MQSRM-rule-3.1.7.2.3")
def test_a_stream_arrives_once_and_in_order_though_both_are_killed(pair: Pair) -> None:
    pair.receiver.kill()
    for number in range(4):
        pair.send(
            "stream", "--label", str(number), "--transactional", "--body", "x", "--count", "5"
        )
    pair.sender.kill()
    pair.receiver.start()
    pair.sender.start()
    for number in range(4, 6):
        pair.send(
            "stream", "--label", str(number), "--transactional", "--body", "x", "--count", "5"
        )
    pair.receiver.kill()
    pair.receiver.start()
    pair.await_empty()
    assert pair.receive_all("stream") == [str(number) for number in range(6) for _ in range(5)]


class _Taking(BaseHTTPRequestHandler):
    """Takes everything, and sends no receipt."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_request(self, code: object = "-", size: object = "-") -> None:
        pass


@pytest.fixture
def taking() -> Iterator[int]:
    """The port of a receiver that cannot reach its senders."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Taking) as server:
        Thread(target=server.serve_forever).start()
        yield server.server_port
        server.shutdown()


def test_an_administrator_learns_of_receipts_that_do_not_come_and_can_give_up(
    pair: Pair, taking: int
) -> None:
    name = pair.url("stream", taking)
    sender = pair.sender
    sender.run("send", name, "--transactional", "--body", "x", "--count", "5")
    end = time.monotonic() + PATIENCE
    while "default_stream_receipt_url" not in sender.run("explain", name).stdout:
        assert time.monotonic() < end
    told = json.loads(sender.run("doctor", "--json", check=False).stdout)
    assert [each["text"].split("`")[1] for each in told if each["subject"] == "receipts"] == [name]
    sender.run("network", "pause", name)
    assert sender.run("purge", name).stdout == "Purged 5 messages.\n"
