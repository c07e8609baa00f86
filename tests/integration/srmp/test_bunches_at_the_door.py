"""Several messages in one request (G691), as a served queue manager takes and sends them.

The other side is written here, from what docs/http.md and the decision say.
"""

import http.client
import json
import struct
import time
from collections.abc import Iterator
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import NamedTuple

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.ports import reserved_port
from tests.support.srmp import srmp_text
from tests.support.srmp.srmp_text import Elements
from tests.support.waiting import PATIENCE

KIND = "application/vnd.rpcqm.messages"
ASKS = {"Rpcqm-Messages": "64"}
MSMQ = (
    "<Class>0</Class><Priority>3</Priority><BodyType>0</BodyType>"
    f"<SourceQmGuid>{srmp_text.SOURCE}</SourceQmGuid>"
)
CONFIGURATION = "[srmp]\nretry_milliseconds = 200\n"


@pytest.fixture(scope="module")
def running() -> Iterator[PrivateQueueManager]:
    options = ("--http-port", str(reserved_port()))
    with private_queue_manager(options, CONFIGURATION) as queue_manager:
        queue_manager.run("queue", "create", "orders")
        yield queue_manager


class Answer(NamedTuple):
    status: int
    headers: Message
    content: bytes


def post(running: PrivateQueueManager, headers: dict[str, str], content: bytes) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", running.endpoint("http")[1])
    connection.request("POST", "/msmq/private$/orders", content, headers)
    response = connection.getresponse()
    answer = Answer(response.status, response.headers, response.read())
    connection.close()
    return answer


def message(ordinal: int) -> srmp_text.Post:
    to = "http://127.0.0.1/msmq/private$/orders"
    elements = Elements(
        label=str(ordinal), ordinal=ordinal, services=srmp_text.durable(), msmq=MSMQ
    )
    return srmp_text.message(to, b"body", elements)


def written(*posts: srmp_text.Post) -> bytes:
    parts = []
    for each in posts:
        head = "\r\n".join(f"{name}: {value}" for name, value in each.headers.items()).encode()
        parts += [struct.pack("<II", len(head), len(each.body)), head, each.body]
    return b"".join(parts)


def labels(running: PrivateQueueManager) -> list[str]:
    lines = running.run("peek", "orders", "--all", "--json").stdout.splitlines()
    return [str(json.loads(line)["label"]) for line in lines]


def test_each_message_of_a_request_has_its_answer_and_is_kept_over_a_restart(
    running: PrivateQueueManager,
) -> None:
    first = post(running, {**message(1).headers, **ASKS}, message(1).body)
    assert (first.status, first.headers["Rpcqm-Messages"]) == (200, "64")
    assert "Rpcqm-Messages" not in post(running, message(5).headers, message(5).body).headers
    broken = srmp_text.Post("", b"<no envelope>", message(3).headers)
    content = written(message(2), broken, message(4), message(1))
    for _ in range(2):  # what comes again is known
        answer = post(running, {"Content-Type": KIND}, content)
        assert (answer.status, answer.headers["Content-Type"]) == (200, KIND)
        assert struct.unpack("<4H", answer.content) == (200, 400, 200, 200)
        running.kill()
        running.start()
    assert labels(running) == ["1", "5", "2", "4"]


@pytest.mark.parametrize(
    "content", [b"", b"x", written(message(9))[:-1], written(*[message(9)] * 65)]
)
def test_what_holds_no_messages_changes_nothing(
    running: PrivateQueueManager, content: bytes
) -> None:
    before = labels(running)
    assert post(running, {"Content-Type": KIND}, content).status == 400
    assert labels(running) == before


class _Taking(BaseHTTPRequestHandler):
    """A receiver that takes many messages in one request."""

    protocol_version = "HTTP/1.1"
    counts: list[int]

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        together = self.headers["Content-Type"] == KIND
        count = self._count(content) if together else 1
        self.counts.append(count)
        answer = struct.pack("<H", 200) * count if together else b""
        self.send_response(200)
        if "Rpcqm-Messages" in self.headers:
            self.send_header("Rpcqm-Messages", "64")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def _count(self, content: bytes) -> int:
        count = at = 0
        while at < len(content):
            head, size = struct.unpack_from("<II", content, at)
            assert content[at + 8 : at + 8 + head].startswith(b"Content-Type: multipart/related;")
            at += 8 + head + size
            count += 1
        return count

    def log_request(self, code: object = "-", size: object = "-") -> None:
        pass


def test_a_sender_puts_what_waits_into_few_requests(running: PrivateQueueManager) -> None:
    port = reserved_port()
    name = f"DIRECT=HTTP://127.0.0.1:{port}/msmq/private$/far"
    running.run("send", name, "--body", "x", "--count", "150")
    _Taking.counts = []
    with ThreadingHTTPServer(("127.0.0.1", port), _Taking) as server:
        Thread(target=server.serve_forever).start()
        try:
            end = time.monotonic() + PATIENCE
            while sum(_Taking.counts) < 150:
                assert time.monotonic() < end, (_Taking.counts, running.log)
        finally:
            server.shutdown()
    assert (sum(_Taking.counts), _Taking.counts[0]) == (150, 1)
    assert len(_Taking.counts) <= 5
