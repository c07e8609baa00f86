"""Bodies of which more would be made than they are, at every door that tells or decodes them."""

import base64
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from rpcqm.client import mq
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.codec.bodies.described import LONGEST_DECODED
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.api.programs import Program
from tests.support.binary.binary_stranger import BinaryStranger
from tests.support.codec.costly_bodies import COSTLY
from tests.support.console.browser import open_browser
from tests.support.srmp import srmp_text
from tests.support.srmp.srmp_stranger import Stranger
from tests.support.waiting import until

FREE = 64 * 1024
LARGE = (4 << 20) - 4096
EVERYBODY = "O:BAD:(A;;GA;;;BA)(A;;GA;;;WD)(A;;GA;;;AN)"
ATTACK = "nulls of .NET"
MESSAGES = "/queues/costly/messages"


@pytest.fixture(scope="module")
def running() -> Iterator[PrivateQueueManager]:
    settings = 'name = "here"\nhttp_port = 0\n[storage]\nreserve = 1\n'
    with private_queue_manager(("--console-port", "0"), settings) as queue_manager:
        words = ("user", "add", "boss", "--group", "administrators", "--password-stdin")
        queue_manager.run(*words, input="secret\n")
        queue_manager.run("queue", "create", "costly", "--sddl", EVERYBODY)
        yield queue_manager


@pytest.fixture
def boss(running: PrivateQueueManager) -> Iterator[Program]:
    program = Program(running.endpoint("console"), "boss")
    yield program
    program.ask("DELETE", MESSAGES)
    program.close()


def send(running: PrivateQueueManager, name: str, size: int) -> bytes:
    body_type, make = COSTLY[name]
    body = make(size)
    with mq.open("costly", running) as queue:
        queue.send(OutgoingMessage(body, label=name, body_type=body_type))
    return body


def send_by_port_1801(running: PrivateQueueManager, name: str, size: int) -> bytes:
    """As a stranger who speaks the binary protocol."""
    body_type, make = COSTLY[name]
    body = make(size)
    with BinaryStranger(running.endpoint("binary"), uuid4()) as stranger:
        to = r"DIRECT=OS:here\private$\costly"
        stranger.deliver(to, 1, body, label=name, body_type=body_type)
    return body


def send_by_http(running: PrivateQueueManager, name: str, size: int) -> bytes:
    """As a stranger who posts it."""
    body_type, make = COSTLY[name]
    body = make(size)
    msmq = (
        f"<Class>0</Class><Priority>3</Priority><App>0</App><BodyType>{body_type}</BodyType>"
        f"<SourceQmGuid>{srmp_text.SOURCE}</SourceQmGuid><TTrq>{srmp_text.LATER}</TTrq>"
    )
    elements = srmp_text.Elements(label=name, msmq=msmq)
    with Stranger(running) as stranger:
        url = "http://here/msmq/private$/costly"
        assert stranger.post(srmp_text.message(url, body, elements)) == 200
    return body


def check(answer: bytes, body: bytes) -> None:
    """It has the octets, and is no longer than it may be."""
    assert len(answer) <= 8 * len(body) + FREE
    assert base64.b64encode(body) in answer


@pytest.mark.parametrize("name", list(COSTLY))
def test_requests_are_told_a_small_multiple_of_a_body(
    running: PrivateQueueManager, boss: Program, name: str
) -> None:
    body = send(running, name, LONGEST_DECODED - 10_000)
    page = boss.ask("GET", MESSAGES)
    check(page.body, body)
    path = f"{MESSAGES}/{page.value['messages'][0]['lookup_id']}"
    check(boss.ask("GET", path).body, body)
    check(boss.ask("GET", f"{path}?decode=false").body, body)
    check(boss.ask("GET", f"{path}/body?decode=true").body, body)
    check(boss.ask("POST", "/queues/costly/receive?lease=30").body, body)


@pytest.mark.parametrize("send", [send, send_by_port_1801, send_by_http])
def test_a_message_of_four_megabytes_is_told_by_its_octets_everywhere(
    running: PrivateQueueManager,
    boss: Program,
    tmp_path: Path,
    send: Callable[[PrivateQueueManager, str, int], bytes],
) -> None:
    body = send(running, ATTACK, LARGE)
    page = boss.ask("GET", MESSAGES)
    check(page.body, body)
    (message,) = page.value["messages"]
    assert (message["value_type"], message["value"]) == ("undecoded", None)
    assert message["undecoded"] == "it is longer than 262,144 bytes"
    path = f"{MESSAGES}/{message['lookup_id']}"
    decoded = boss.ask("GET", f"{path}/body?decode=true")
    check(decoded.body, body)
    assert "more than are made of a body of its size" in decoded.value["undecoded"]
    assert boss.ask("GET", f"{path}/body").body == body
    for format_, factor in (("json", 8), ("table", 8), ("body", 1), ("hex", 8)):
        words = ("peek", "costly", "--all", "--format", format_, "--output", str(tmp_path))
        running.run(*words)
        (file,) = tmp_path.glob(f"*.{'txt' if format_ == 'table' else format_}")
        assert len(body) <= file.stat().st_size <= factor * len(body) + FREE
    taken = boss.ask("DELETE", path)
    check(taken.body, body)


def test_a_long_body_is_decoded_where_that_is_asked_for(
    running: PrivateQueueManager, boss: Program
) -> None:
    body = send(running, "ArrayOfInt", LONGEST_DECODED + 5_000)
    (message,) = boss.ask("GET", MESSAGES).value["messages"]
    assert message["value_type"] == "undecoded"
    path = f"{MESSAGES}/{message['lookup_id']}/body?decode=true"
    decoded = boss.ask("GET", path).value
    assert decoded["value_type"] == "xml"
    assert decoded["value"] == [1] * (body.count(b"<int>"))


def test_dead_letters_are_told_the_same(running: PrivateQueueManager, boss: Program) -> None:
    body_type, make = COSTLY["characters of .NET"]
    body = make(100_000)
    with mq.open("costly", running) as queue:
        queue.send(
            OutgoingMessage(body, body_type=body_type, time_to_be_received=0, dead_letter=True)
        )
    letters = "/dead-letters?transactional=false"
    until(lambda: boss.ask("GET", letters).value["messages"])
    page = boss.ask("GET", letters)
    check(page.body, body)
    key = page.value["messages"][0]["lookup_id"]
    check(boss.ask("GET", f"/dead-letters/{key}?transactional=false").body, body)


@pytest.mark.parametrize("name", ["nulls of .NET", "deep JSON", "names of .NET", "lists of JSON"])
def test_a_page_shows_no_more_than_the_beginning(
    running: PrivateQueueManager, boss: Program, name: str
) -> None:
    for size in (LONGEST_DECODED - 10_000, LONGEST_DECODED + 10_000):
        send(running, name, size)
    browser = open_browser(running)
    browser.log_on("boss")
    for message in boss.ask("GET", MESSAGES).value["messages"]:
        path = f"/console/message?queue=costly&id={message['lookup_id']}"
        for page in (browser.get(path), browser.get(f"{path}&decode=1")):
            (shown,) = re.findall(r"<pre[^>]*>(.*?)</pre>", page.text, re.DOTALL)
            assert 0 < len(shown) < 8 * LONGEST_DECODED
        may_decode = message["body_size"] > LONGEST_DECODED
        assert ("Decode this long body" in browser.get(path).text) is may_decode


def test_a_body_that_is_told_by_its_octets_is_shown_to_people_so(
    running: PrivateQueueManager, boss: Program, tmp_path: Path
) -> None:
    body = send(running, "controls of VT_LPSTR", 100_000)
    running.run("peek", "costly", "--format", "table", "--output", str(tmp_path))
    (file,) = tmp_path.glob("*.txt")
    assert base64.b64encode(body).decode() in file.read_text()


def test_what_a_command_decodes_is_bounded(running: PrivateQueueManager, boss: Program) -> None:
    for name in ("references of .NET", "deep JSON", "one number of JSON"):
        body = send(running, name, 200_000)
        (line,) = running.run("receive", "costly", "--json").stdout.splitlines()
        assert len(line.encode()) <= 8 * len(body) + FREE
        assert json.loads(line)["value_type"] == "undecoded" or json.loads(line)["value"]
