"""A stranger's message does not make a queue manager connect to others ([MC-MQSRM], G50)."""

import json
import time
from collections.abc import Iterator

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.srmp import srmp_text
from tests.support.srmp.srmp_stranger import Stranger, Trap, outgoing
from tests.support.srmp.srmp_text import Elements
from tests.support.waiting import PATIENCE

ORDERS = "http://victim/msmq/private$/orders"
STREAM = "http://victim/msmq/private$/stream"
GUID = "6a74a825-57b2-43e5-9d34-f1d8b2b8950a"
LISTED = "127.0.0.2"

HOSTS = [
    "127.0.0.1:{port}",
    "localhost:{port}",
    "LOCALHOST.:{port}",
    "127.1:{port}",
    "2130706433:{port}",
    "0x7f.0.0.1:{port}",
    "0.0.0.0:{port}",
    "[::1]:{port}",
    "[::ffff:127.0.0.1]:{port}",
    "127.0.0.1:{port}@" + LISTED,
    LISTED + "@127.0.0.1:{port}",
    LISTED + "%00@127.0.0.1:{port}",
    LISTED + "\\@127.0.0.1:{port}",
    LISTED + "#@127.0.0.1:{port}",
    LISTED + "?@127.0.0.1:{port}",
    "127.0.0.1:{port}/" + LISTED,
    "169.254.169.254",
    "192.0.2.7",
]
"""What is not listed, written as well as strangers can."""


@pytest.fixture(scope="module")
def victim() -> Iterator[PrivateQueueManager]:
    settings = (
        'name = "victim"\nhttp_port = 0\n[logging]\nformat = "json"\n'
        f'[srmp]\nretry_milliseconds = 50\nreceipts_to = ["{LISTED}"]\n'
        "receipt_coalescing_milliseconds = 1\n"
    )
    with private_queue_manager(configuration=settings) as running:
        running.run("queue", "create", "orders")
        running.run("queue", "create", "stream", "--transactional")
        yield running


@pytest.fixture
def trap() -> Iterator[Trap]:
    trap = Trap()
    yield trap
    trap.close()


@pytest.fixture
def listed() -> Iterator[Trap]:
    trap = Trap(LISTED)
    yield trap
    trap.close()


def asking(url: str, number: int) -> list[srmp_text.Post]:
    """Every way to ask for a receipt: delivery, commitment, both; a stream; a response queue."""
    sends = f"<sendTo>{url}</sendTo>"
    delivery = f"<deliveryReceiptRequest>{sends}</deliveryReceiptRequest>"
    commitment = (
        f"<commitmentReceiptRequest>{sends}<positiveOnly/><negativeOnly/>"
        "</commitmentReceiptRequest>"
    )
    msmq = (
        "<Class>0</Class><Priority>3</Priority><App>0</App><BodyType>0</BodyType>"
        f"<SourceQmGuid>{GUID}</SourceQmGuid><AdminMqf>{url}\n</AdminMqf>"
        f"<ResponseMqf>{url}\n</ResponseMqf><TTrq>{srmp_text.LATER}</TTrq>"
    )
    stream = srmp_text.in_stream(GUID, 1, url, 0, number)
    return [
        srmp_text.message(ORDERS, b"x", Elements(services=delivery, via=url)),
        srmp_text.message(ORDERS, b"x", Elements(services=srmp_text.durable(commitment))),
        srmp_text.message(ORDERS, b"x", Elements(services=delivery, msmq=msmq, ordinal=number)),
        srmp_text.message(
            STREAM, b"x", Elements(services="<durable/>", stream=stream, msmq=msmq, ordinal=number)
        ),
    ]


def await_requests(trap: Trap, what: bytes, count: int) -> None:
    end = time.monotonic() + PATIENCE
    while sum(what in request for request in trap.requests) < count:
        assert time.monotonic() < end, trap.requests
        time.sleep(0.01)


def test_receipts_go_to_no_host_that_a_stranger_alone_has_named(
    victim: PrivateQueueManager, trap: Trap, listed: Trap
) -> None:
    """What goes to a listed host afterwards has gone when all that went before would have."""
    urls = [f"http://{host.format(port=trap.port)}/msmq/private$/acks" for host in HOSTS]
    with Stranger(victim) as stranger:
        for number, url in enumerate(urls, 1000):
            for post in asking(url, number):
                assert stranger.post(post) in (200, 400)
        for post in asking(f"http://{LISTED}:{listed.port}/msmq/private$/acks", 2000):
            assert stranger.post(post) == 200
    await_requests(listed, b"<deliveryReceipt>", 2)
    await_requests(listed, b"<streamReceipt>", 1)
    victim.run("receive", "orders", "--all")
    await_requests(listed, b"<commitmentReceipt>", 1)
    assert trap.called == 0
    assert all(LISTED in name for name in outgoing(victim))


@pytest.mark.parametrize("url", ["http://192.0.2.9/msmq/private$/x", "https://192.0.2.9/msmq/x"])
def test_nothing_is_relayed_unless_somebody_says_so(
    victim: PrivateQueueManager, trap: Trap, url: str
) -> None:
    to_trap = f"http://127.0.0.3:{trap.port}/msmq/private$/x"
    with Stranger(victim) as stranger:
        assert stranger.post(srmp_text.message(url, b"x")) == 400
        assert stranger.post(srmp_text.message(to_trap, b"x")) == 400
    assert not any("192.0.2.9" in name or "127.0.0.3" in name for name in outgoing(victim))


def test_a_redirect_is_not_followed(victim: PrivateQueueManager, trap: Trap, listed: Trap) -> None:
    listed.answer = f"HTTP/1.1 307 X\r\nLocation: http://127.0.0.1:{trap.port}/msmq/\r\n".encode()
    url = f"http://{LISTED}:{listed.port}/msmq/private$/redirected"
    with Stranger(victim) as stranger:
        assert stranger.post(asking(url, 3000)[0]) == 200
    await_requests(listed, b"/msmq/private$/redirected", 1)
    victim.run("queue", "list")
    assert trap.called == 0


QUEUES = 64
"""Outgoing queues that one address may cause; see docs/limits.md."""


def test_receipts_make_no_more_queues_than_one_stranger_may_have(
    victim: PrivateQueueManager, listed: Trap
) -> None:
    dead = Trap(LISTED)
    dead.close()
    with Stranger(victim) as stranger:
        for number in range(3 * QUEUES):
            url = f"http://{LISTED}:{dead.port}/msmq/private$/q{number}"
            assert stranger.post(asking(url, 4000 + number)[0]) == 200
    many = [name for name in outgoing(victim) if f":{dead.port}/" in name]
    assert len(many) <= QUEUES
    said = [json.loads(line)["event"] for line in victim.log.splitlines()]
    assert max(said.count(event) for event in set(said)) < 100
