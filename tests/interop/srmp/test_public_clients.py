"""Other people's HTTP clients post messages, and rpcqm's queues have them."""

import base64
import itertools
import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.http import http_clients
from tests.support.srmp import srmp_text
from tests.support.srmp.srmp_text import Elements, Post

PostAll = Callable[[PrivateQueueManager, list[Post]], list[int]]

GUID = "caf195ea-615c-4264-ae08-11a4e60194c0"


SAMPLES = Path(__file__).parents[2] / "vectors" / "srmp"
_numbers = itertools.count(1)


def serving(name: str) -> AbstractContextManager[PrivateQueueManager]:
    return private_queue_manager(("--http-port", "0"), f'name = "{name}"\n')


@pytest.fixture(scope="module")
def machine1() -> Iterator[PrivateQueueManager]:
    with serving("machine1") as running:
        running.run("queue", "create", "receipts")
        yield running


@pytest.fixture(scope="module")
def machine2() -> Iterator[PrivateQueueManager]:
    with serving("machine2") as running:
        running.run("queue", "create", "simpleq")
        running.run("queue", "create", "tsimpleq", "--transactional")
        yield running


@pytest.fixture(params=http_clients.CLIENTS)
def post(request: pytest.FixtureRequest, require: Callable[..., None], tmp_path: Path) -> PostAll:
    """Posts requests with one client; the statuses of the answers."""
    client, programs = http_clients.CLIENTS[request.param]
    require(*programs)
    if request.param in http_clients.NODE_CLIENTS and not (NODE / "node_modules").exists():
        pytest.skip("axios and undici are not installed (scripts/install-peers)")

    def post(to: PrivateQueueManager, posts: list[Post]) -> list[int]:
        host, port = to.endpoint("http")
        directory = srmp_text.posts_in(tmp_path / f"posts{next(_numbers)}", posts)
        return client(f"http://{host}:{port}", directory)

    return post


NODE = http_clients.PLACE / "node"


def received(queue_manager: PrivateQueueManager, queue: str) -> list[dict[str, Any]]:
    """All messages of a queue, as `receive --json` prints them."""
    printed = queue_manager.run("receive", queue, "--all", "--json", check=False).stdout
    return [json.loads(line) for line in printed.splitlines()]


def shown(message: dict[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(message[name] for name in names)


MSMQ = (
    "<Class>0</Class><Priority>6</Priority><Correlation>AQIDBAUGBwgJCgsMDQ4PEAUAAAA=</Correlation>"
    "<App>77</App><BodyType>0</BodyType><HashAlgorithm>32772</HashAlgorithm>"
    f"<SourceQmGuid>{GUID}</SourceQmGuid><TTrq>20360101T000000</TTrq>"
)
CORRELATION = "{04030201-0605-0807-090a-0b0c0d0e0f10}\\5"


def test_messages_of_a_public_client_are_in_their_queue(
    machine2: PrivateQueueManager, post: PostAll
) -> None:
    to, ordinal = "http://machine2/msmq/private$/simpleq", next(_numbers)
    order = Elements("an order", ordinal, GUID, services=srmp_text.durable(), msmq=MSMQ)
    posts = [
        srmp_text.message(to, b"First Message", Elements("mqsender label")),
        srmp_text.message(to, b"<?xml version='1.0'?><Order/>", order),
        srmp_text.message(to, b"a repetition", order),
        srmp_text.message("http://machine2/msmq/private$/none", b"lost"),
        Post("/msmq/private$/simpleq", b"<no envelope", {"Content-Type": "text/xml"}),
        srmp_text.message(to, OCTETS, Elements("octets")),
    ]
    assert post(machine2, posts) == [200, 200, 200, 400, 400, 200]
    machine2.kill()
    machine2.start()
    assert post(machine2, [posts[0], posts[1], posts[5]]) == [200, 200, 200]
    # What is not recoverable has gone with the process; what is has not come a second time.
    urgent, first, octets = received(machine2, "simpleq")
    assert base64.b64decode(octets["body_base64"]) == OCTETS
    assert shown(first, "label", "body", "delivery", "class", "priority") == (
        *("mqsender label", "First Message", "express", "NORMAL", 3),
    )
    assert shown(urgent, "label", "priority", "delivery", "id", "application_tag") == (
        *("an order", 6, "recoverable", f"{{{GUID}}}\\{ordinal}", 77),
    )
    assert shown(urgent, "correlation_id", "source_machine") == (CORRELATION, GUID)


OCTETS = bytes(range(256)) * 300


def sample(name: str) -> Post:
    """A request of [MC-MQSRM] section 4 as it is on the wire."""
    return srmp_text.read((SAMPLES / f"{name}.http").read_bytes())


def fresh(names: list[str]) -> list[Post]:
    """The same of today and of another sender, octets for octets: nothing is a repetition."""
    number = f"{next(_numbers):08}".encode()
    changed = []
    for post in map(sample, names):
        body = re.sub(rb"<(expiresAt|TTrq)>20\d\d", rb"<\1>2037", post.body)
        body = re.sub(rb"(<SourceQmGuid>|@)(?!0{8}-0{4})[0-9a-f]{8}-", rb"\g<1>%b-" % number, body)
        body = re.sub(rb"(<streamId>.*?)\d{8}<", rb"\g<1>%b<" % number, body)
        assert len(body) == len(post.body)
        changed.append(replace(post, body=body))
    return changed


MESSAGES = ["4.1_simple", "4.2_msmq", "4.3_receipt_requests"]
STREAM = ["4.4_first", "4.4_second", "4.4_third"]
RECEIPTS = ["4.3_delivery_receipt", "4.3_commitment_receipt"]
STREAM_RECEIPTS = ["4.4_first_receipt", "4.4_second_receipt", "4.4_third_receipt"]


@pytest.mark.conformance("MQSRM-rule-2.1.1", "MQSRM-rule-2.2.2", "MQSRM-rule-3.1.5.1.1")
def test_the_samples_of_the_specification_arrive(
    machine2: PrivateQueueManager, post: PostAll
) -> None:
    assert post(machine2, fresh([*MESSAGES, *STREAM])) == [200] * 6
    simple, msmq, asking = received(machine2, "simpleq")
    assert shown(simple, "label", "body", "correlation_id") == (
        *("mqsender label", "First Message", None),
    )
    assert shown(msmq, "priority", "body_type", "label") == (3, 0, "")
    assert msmq["body_size"] == 223
    assert msmq["id"].endswith("-615c-4264-ae08-11a4e60194c0}\\20503")
    assert shown(asking, "body", "admin_queue", "response_queue") == (
        "Both delivery and commitment receipt requests",
        "DIRECT=HTTP://machine1/MSMQ/private$/receipts",
        "DIRECT=HTTP://machine1/MSMQ/private$/Q1",
    )
    stream = received(machine2, "tsimpleq")
    assert [message["body"] for message in stream] == ["First Message", "Message 0", "Last Message"]
    assert all(message["transactional"] for message in stream)


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.4")
def test_the_samples_as_they_are_have_expired(machine2: PrivateQueueManager, post: PostAll) -> None:
    old = [*MESSAGES[:1], *MESSAGES[2:], *STREAM]
    assert post(machine2, [sample(name) for name in old]) == [200] * len(old)
    assert received(machine2, "simpleq") == received(machine2, "tsimpleq") == []


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.7", "MQSRM-rule-3.1.5.1.10")
def test_receipts_are_acknowledgements_in_their_queue(
    machine1: PrivateQueueManager, post: PostAll
) -> None:
    assert post(machine1, fresh([*RECEIPTS, *STREAM_RECEIPTS])) == [200] * 5
    delivery, commitment = received(machine1, "receipts")
    assert (delivery["class"], commitment["class"]) == ("ACK_REACH_QUEUE", "ACK_RECEIVE")
    assert delivery["correlation_id"] == commitment["correlation_id"] == NOBODYS_FIRST


NOBODYS_FIRST = "{00000000-0000-0000-0000-000000000000}\\1"
