"""Requests over HTTP that readers may understand differently, or that never end ([MC-MQSRM] 2.1.1).

Each has its status, one line of the log and no other consequence.
"""

import json
import time
from collections.abc import Iterator

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.srmp import srmp_text
from tests.support.srmp.srmp_stranger import Stranger, outgoing
from tests.support.waiting import PATIENCE

ORDERS = "http://victim/msmq/private$/orders"
GOOD = srmp_text.message(ORDERS, b"planted")
LENGTH = len(GOOD.body)
CHUNKED = "Transfer-Encoding: chunked\r\n"


@pytest.fixture(scope="module")
def victim() -> Iterator[PrivateQueueManager]:
    settings = (
        'name = "victim"\nhttp_port = 0\n[logging]\nformat = "json"\n'
        "[limits]\nunfinished_seconds = 1\n"
    )
    with private_queue_manager(configuration=settings) as running:
        running.run("queue", "create", "orders")
        yield running


def request(
    line: str = "POST /msmq/private$/orders HTTP/1.1",
    more: str = "",
    length: str | None = str(LENGTH),
    body: bytes = GOOD.body,
) -> bytes:
    """The good request with another line, more headers, another length or body."""
    headers = "".join(f"{name}: {value}\r\n" for name, value in GOOD.headers.items())
    counted = "" if length is None else f"Content-Length: {length}\r\n"
    return f"{line}\r\nHost: victim\r\n{headers}{more}{counted}\r\n".encode("latin-1") + body


def chunks(text: bytes) -> bytes:
    return request(more=CHUNKED, length=None, body=text)


def parts(old: bytes, new: bytes) -> bytes:
    body = GOOD.body.replace(old, new, 1)
    assert body != GOOD.body
    return request(length=str(len(body)), body=body)


SHAPES = {
    "both lengths": (request(more=CHUNKED), 400),
    "two lengths": (request(more="Content-Length: 5\r\n"), 400),
    "the same length twice": (request(more=f"Content-Length: {LENGTH}\r\n"), 400),
    "a list of lengths": (request(length=f"{LENGTH}, {LENGTH}"), 400),
    "a length with a sign": (request(length=f"+{LENGTH}"), 400),
    "a length below zero": (request(length="-1"), 400),
    "a length of more digits": (request(length="9" * 30), 400),
    "a coding behind chunks": (request(more="Transfer-Encoding: chunked, gzip\r\n"), 400),
    "a coding with a tabulator": (request(more="Transfer-Encoding: \x0bchunked\r\n"), 400),
    "a blank before the colon": (request(more="Transfer-Encoding : chunked\r\n"), 400),
    "a header on two lines": (request(more="X: a\r\n b\r\n"), 400),
    "a line feed alone": (request(line="POST / HTTP/1.1\nX: y"), 400),
    "two hosts": (request(more="Host: other\r\n"), 400),
    "two types": (request(more="Content-Type: text/xml\r\n"), 400),
    "a chunk of a sign": (chunks(b"-1\r\na\r\n0\r\n\r\n"), 400),
    "a chunk beyond 64 bits": (chunks(b"F" * 17 + b"\r\na\r\n"), 400),
    "a chunk in C": (chunks(b"0x1\r\na\r\n0\r\n\r\n"), 400),
    "chunks by line feeds": (chunks(b"1\na\n0\n\n"), 400),
    "compressed": (request(more="Content-Encoding: gzip\r\n"), 415),
    "a tunnel": (request(line="CONNECT other:80 HTTP/1.1"), 405),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "HTTP/0.9": (request(line="POST / HTTP/0.9"), 505),
    "TLS": (bytes.fromhex("160301020001000001fc0303") + bytes(500), 400),
    "a flood of headers": (request(more="X: y\r\n" * 100), 400),
    "another length of a part": (parts(b"Content-Length: 7", b"Content-Length: 6"), 400),
    "a longer part": (parts(b"Content-Length: 7", b"Content-Length: 999999"), 400),
    "another boundary": (parts(b"--MSMQ - SOAP boundary, 53287\r\n", b"--other\r\n"), 400),
}


@pytest.mark.parametrize(("octets", "status"), SHAPES.values(), ids=SHAPES)
def test_what_can_be_read_in_two_ways_is_refused(
    victim: PrivateQueueManager, octets: bytes, status: int
) -> None:
    before = len(victim.log.splitlines())
    with Stranger(victim, f"127.0.1.{1 + list(SHAPES.values()).index((octets, status))}") as who:
        assert who.say(octets) == status
    assert events(victim, before) in (
        ["a request was refused"],
        ["an HTTP request was refused"],
    )
    assert nothing_but_good(victim)


def events(victim: PrivateQueueManager, before: int) -> list[str]:
    """What has been logged since; at least one line, which may come behind the answer."""
    end = time.monotonic() + PATIENCE
    while len(said := victim.log.splitlines()[before:]) < 1:
        assert time.monotonic() < end
        time.sleep(0.01)
    return [json.loads(line)["event"] for line in said]


def nothing_but_good(victim: PrivateQueueManager) -> bool:
    """Whether another client is served, and nothing else is there."""
    with Stranger(victim) as bystander:
        assert bystander.post(srmp_text.message(ORDERS, b"good")) == 200
    said = victim.run("receive", "orders", "--all", "--format", "body")
    return said.stdout.splitlines() == ["good"]


ENDLESS = {
    "a body": GOOD.wire()[:-1],
    "chunks": chunks(b"1\r\na\r\n"),
    "trailers": chunks(b"1\r\na\r\n0\r\nX: y\r\n"),
    "the extension of a chunk": chunks(b"1;" + b"a" * 100_000),
}


def test_what_never_ends_is_cut_off_and_others_go_on(victim: PrivateQueueManager) -> None:
    strangers = [Stranger(victim, f"127.0.2.{each + 1}") for each in range(len(ENDLESS))]
    for stranger, octets in zip(strangers, ENDLESS.values(), strict=True):
        stranger._line.sendall(octets)
    assert nothing_but_good(victim)
    for stranger in strangers:
        assert stranger.answer() == 0
        stranger.close()


DESTINATIONS = [
    "http://victim@192.0.2.9/msmq/private$/orders",
    "http://victim:80@192.0.2.9/msmq/private$/orders",
    "http://192.0.2.9@victim/msmq/private$/orders",
    "http://victim\\@192.0.2.9/msmq/private$/orders",
    "http://2130706433/msmq/private$/orders",
    "http://victim:1/msmq/private$/orders",
    "http://victim:99999/msmq/private$/orders",
    "http:///msmq/private$/orders",
    "http://victim/msmq/private$/x/../orders",
    "http://victim//msmq/private$/orders",
    "http://victim/msmq%2fprivate$%2forders",
    "DIRECT=HTTP://victim/msmq/private$/orders",
    "ftp://victim/msmq/private$/orders",
    "MSMQ:DIRECT=OS:192.0.2.9\\private$\\orders",
]


def test_nobody_is_a_relay_by_how_a_host_is_written(victim: PrivateQueueManager) -> None:
    for number, url in enumerate(DESTINATIONS):
        with Stranger(victim, f"127.0.3.{number + 1}") as stranger:
            assert stranger.post(srmp_text.receipt(url, srmp_text.Elements())) == 400, url
    for target in ("http://192.0.2.9/msmq/private$/orders", "/msmq/private$/nowhere"):
        with Stranger(victim) as stranger:
            assert stranger.say(request(line=f"POST {target} HTTP/1.1")) == 200
    assert outgoing(victim) == {}
    said = victim.run("receive", "orders", "--all", "--format", "body").stdout
    assert said == "planted" * 2
