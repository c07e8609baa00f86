"""Strangers at the HTTP door: forged receipts, queues of the system, hostile envelopes."""

import json
import re
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import pytest

from rpcqm.srmp.outgoing_stream import next_stream
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.memory import processor_seconds
from tests.support.srmp import srmp_text
from tests.support.srmp.srmp_signatures import rsa_key, signature
from tests.support.srmp.srmp_stranger import Stranger, Trap, outgoing
from tests.support.srmp.srmp_text import Elements, Post
from tests.support.waiting import PATIENCE

ELSEWHERE = "127.0.0.2"
GUID = "6a74a825-57b2-43e5-9d34-f1d8b2b8950a"
ORDERS = "http://victim/msmq/private$/orders"
MSMQ = (
    "<Class>0</Class><Priority>3</Priority><App>0</App><BodyType>0</BodyType>"
    f"<SourceQmGuid>{GUID}</SourceQmGuid><TTrq>{srmp_text.LATER}</TTrq>"
)


@pytest.fixture(scope="module")
def victim() -> Iterator[PrivateQueueManager]:
    settings = 'name = "victim"\nhttp_port = 0\n[logging]\nformat = "json"\n'
    with private_queue_manager(configuration=settings) as running:
        running.run("queue", "create", "orders")
        running.run("queue", "create", "stream", "--transactional")
        yield running


def bodies(queue_manager: PrivateQueueManager, queue: str) -> list[str]:
    said = queue_manager.run("receive", queue, "--all", "--format", "body", check=False)
    return said.stdout.splitlines()


class Sending(NamedTuple):
    """Alice, who sends to Bob a message of a stream, which he has got and not acknowledged."""

    alice: PrivateQueueManager
    bob: Trap
    stream: str

    def receipt(self, stream: str, decision: str = "", up_to: int = 1) -> int:
        """Post a stream receipt, or a final one with a decision, about a stream."""
        receipt = (
            f"<streamReceipt><streamId>{stream}</streamId><lastOrdinal>{up_to}</lastOrdinal>"
            "</streamReceipt>"
        )
        kind = 255
        if decision:
            kind = 0xC000 if decision == "negative" else 0x4000
            receipt += (
                f"<commitmentReceipt><decidedAt>20260101T000000</decidedAt><decision>{decision}"
                f"</decision><id>uuid:1@{GUID}</id></commitmentReceipt>"
            )
        msmq = (
            f"<Class>{kind}</Class><Priority>0</Priority><App>0</App><BodyType>0</BodyType>"
            f"<SourceQmGuid>{GUID}</SourceQmGuid><TTrq>{srmp_text.LATER}</TTrq>"
        )
        elements = Elements(
            "QM Ordering Ack", next(ORDINALS), GUID, services="", receipt=receipt, msmq=msmq
        )
        to = "http://alice/msmq/private$/order_queue$"
        with Stranger(self.alice, ELSEWHERE) as stranger:
            return stranger.post(srmp_text.receipt(to, elements))

    @property
    def guesses(self) -> list[str]:
        """What a stranger can guess who knows when the stream began, and all but its number."""
        source, _, number = self.stream.partition("\\")
        near = [int(number) + step for step in (-1, 1, 1 << 32, -1 << 32)]
        near += [int(number) & 0xFFFFFFFF, int(number) >> 32 << 32 | 1, 0, 1]
        return [f"{source}\\{each}" for each in near] + [f"uid:{GUID}\\{number}"]

    @property
    def unsent(self) -> int:
        return sum(outgoing(self.alice).values())

    def await_nothing_unsent(self) -> None:
        end = time.monotonic() + PATIENCE
        while self.unsent:
            assert time.monotonic() < end

    @property
    def dead(self) -> list[str]:
        said = self.alice.run("dead-letter", "list", "--json").stdout
        return [each["id"] for each in json.loads(said)]


ORDINALS = iter(range(1, 1 << 20))


@pytest.fixture
def sending() -> Iterator[Sending]:
    bob = Trap()
    settings = 'name = "alice"\nhttp_port = 0\n'
    with private_queue_manager(configuration=settings) as alice:
        url = f"DIRECT=HTTP://127.0.0.1:{bob.port}/msmq/private$/stream"
        alice.run("send", url, "--body", "order", "--transactional", "--dead-letter")
        end = time.monotonic() + PATIENCE
        while not bob.requests:
            assert time.monotonic() < end
            time.sleep(0.01)
        found = re.search(rb"<streamId>(.*?)</streamId>", bob.requests[0])
        assert found is not None
        yield Sending(alice, bob, found[1].decode())
    bob.close()


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.8", "MQSRM-rule-3.1.5.1.9")
def test_who_does_not_know_a_stream_acknowledges_nothing_of_it(sending: Sending) -> None:
    """Receipts may come from anywhere, by proxies: the number of the stream proves them (G223)."""
    for guess in sending.guesses:
        for decision in ("", "negative", "positive"):
            assert sending.receipt(guess, decision) == 200
    assert (sending.unsent, sending.dead) == (1, [])
    sending.alice.kill()
    sending.alice.start()
    for beyond in (2, 1 << 31, (1 << 32) - 1):
        assert sending.receipt(sending.stream, "negative", up_to=beyond) == 200
    assert sending.receipt(sending.stream) == 200
    assert (sending.unsent, sending.dead) == (1, [])
    assert sending.receipt(sending.stream, "negative") == 200
    sending.await_nothing_unsent()
    assert len(sending.dead) == 1


def test_no_two_streams_are_near_each_other() -> None:
    """Who is sent one cannot name that of another destination, also not of the same second."""
    numbers = [0]
    for _ in range(100):
        numbers.append(next_stream(numbers[-1], 1_800_000_000))
    assert all(later - one > 1 << 16 for one, later in pairwise(numbers))
    assert len({number & 0xFFFFFF for number in numbers}) > 90


NAMES = [
    *("order_queue$", "admin_queue$", "notify_queue$", "mqis_queue$", "orders;journal"),
    *("orders%3bjournal", "orders;poison", "..%2f..%2fsystem$;deadxact", "orders/", "orders%00"),
    *("..\\..\\system$;deadletter", "../private$/orders/../orders", "a" * 200, "%u006frders"),
    *("orders%2e", "\\\\other\\private$\\orders", "or%d0%b4ers", "%ff%fe"),
]


def test_no_name_leads_a_message_anywhere_else(victim: PrivateQueueManager) -> None:
    with Stranger(victim) as stranger:
        for name in NAMES:
            for place in ("private$/", "private$\\", "", "public$/", "system$/"):
                to = f"http://victim/msmq/{place}{name}"
                assert stranger.post(srmp_text.message(to, b"planted")) in (200, 400), to
    for queue in ("orders", "orders;journal", "orders;poison", "Journal$", "DeadLetter$"):
        assert bodies(victim, queue) == []
    assert bodies(victim, "XactDeadLetter$") == []
    assert outgoing(victim) == {}


def document(text: str) -> Post:
    kind, body = srmp_text.multipart(text, b"x")
    return Post("/msmq/private$/orders", body, {"Content-Type": kind, "SOAPAction": '"M"'})


GOOD = srmp_text.envelope(ORDERS, Elements())
DEEP = 100_000
MANY = " ".join(f'*{number}="u"' for number in range(DEEP))
LAUGHS = "".join(f'<!ENTITY l{n + 1} "{f"&l{n};" * 10}">' for n in range(9))
HOSTILE = {
    "not closed": GOOD[:-3],
    "no document": "",
    "octets": "\x00\x01\x02",
    "a doctype": "<!DOCTYPE x>" + GOOD,
    "laughs": f'<!DOCTYPE x [<!ENTITY l0 "ha">{LAUGHS}]>' + GOOD.replace("MSMQ:", "MSMQ:&l9;"),
    "a file": '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]>'
    + GOOD.replace("MSMQ:", "MSMQ:&f;"),
    "a parameter entity": '<!DOCTYPE x [<!ENTITY % p SYSTEM "http://127.0.0.1:1/">%p;]>' + GOOD,
    "an unknown entity": GOOD.replace("MSMQ:", "MSMQ:&nbsp;"),
    "deep": GOOD.replace("<se:Body>", "<se:Body>" + "<a>" * DEEP + "</a>" * DEEP),
    "wide": GOOD.replace("<se:Body>", "<se:Body>" + "<a/>" * DEEP),
    "attributes": GOOD.replace("<se:Body>", f"<se:Body {MANY.replace('*', 'a')}>"),
    "namespaces": GOOD.replace("<se:Body>", f"<se:Body {MANY.replace('*', 'xmlns:n')}>"),
    "two destinations": GOOD.replace("<to>", "<to>http://victim/msmq/private$/other</to><to>"),
    "two headers": GOOD.replace("<se:Body>", "<se:Header></se:Header><se:Body>"),
    "two bodies": GOOD.replace("<se:Body>", "<se:Body></se:Body><se:Body>"),
    "something that must be understood": GOOD.replace(
        "</se:Header>", '<new xmlns="n" se:mustUnderstand="1"/></se:Header>'
    ),
    "a signature beside a prefix that nothing is bound to": GOOD.replace(
        "</se:Header>", f"{signature(rsa_key(''), {'body': b'x'})}<w xmlns='w'/></se:Header>"
    ).replace("<se:Header>", "<se:Header><x:y/>"),
    "utf-7": '<?xml version="1.0" encoding="utf-7"?>' + GOOD,
    "a huge number": srmp_text.envelope(ORDERS, Elements(msmq=MSMQ)).replace(
        "uuid:1@", f"uuid:{'9' * 100_000}@"
    ),
    "included": GOOD.replace(
        "<to>", '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="/etc/passwd"/><no>'
    ),
}


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.2")
def test_hostile_envelopes_are_refused_quickly(victim: PrivateQueueManager) -> None:
    assert victim.process is not None
    statuses, before = {}, processor_seconds(victim.process.pid)
    with Stranger(victim) as bystander:
        for attack, text in HOSTILE.items():
            with Stranger(victim) as stranger:
                statuses[attack] = stranger.post(document(text))
        assert bystander.post(srmp_text.message(ORDERS, b"good")) == 200
    assert statuses == dict.fromkeys(HOSTILE, 400)
    assert processor_seconds(victim.process.pid) - before < QUICKLY
    assert bodies(victim, "orders") == ["good"]


QUICKLY = 20
"""Seconds of the processor for all; one bomb takes minutes."""
FLOOD = 1500
LINES_AT_ONCE, LINES_PER_SECOND = 20, 1


def test_a_flood_of_bad_requests_is_few_lines(victim: PrivateQueueManager) -> None:
    before, began = len(victim.log.splitlines()), time.monotonic()
    with Stranger(victim) as stranger:
        bad = document("<x/>").wire()
        unknown = srmp_text.message("http://victim/msmq/private$/none", b"x").wire()
        for _ in range(FLOOD // 2):
            assert stranger.say(bad) == 400
            assert stranger.say(unknown) == 400
    said = victim.log.splitlines()[before:]
    at_most = LINES_AT_ONCE + LINES_PER_SECOND * (time.monotonic() - began) + 1
    assert len(said) <= 2 * at_most
    assert all(len(line) < 4000 for line in said)


def test_a_message_that_was_refused_does_not_shut_out_its_namesake(
    victim: PrivateQueueManager,
) -> None:
    """[MC-MQSRM] 3.1.5.1.11 enters an identifier before it is known whether its message is kept."""
    elements = Elements(ordinal=77, guid=GUID, msmq=MSMQ)
    with Stranger(victim, ELSEWHERE) as stranger, Stranger(victim) as sender:
        assert stranger.post(srmp_text.message(ORDERS + "s", b"planted", elements)) == 400
        assert stranger.post(document(srmp_text.envelope(ORDERS, elements)[:-5])) == 400
        assert sender.post(srmp_text.message(ORDERS, b"mine", elements)) == 200
    assert bodies(victim, "orders") == ["mine"]


@pytest.mark.parametrize("kind", [1, 2, 255, 0x4000, 0x8000, 0xC000, 0xFFFF, 65536, -1])
def test_no_message_passes_for_an_acknowledgement_without_a_receipt(
    victim: PrivateQueueManager, kind: int
) -> None:
    msmq = MSMQ.replace("<Class>0", f"<Class>{kind}")
    elements = Elements(ordinal=next(ORDINALS) + 1000, guid=GUID, msmq=msmq)
    with Stranger(victim) as stranger:
        assert stranger.post(srmp_text.message(ORDERS, b"x", elements)) in (200, 400)
    said = victim.run("receive", "orders", "--all", "--json", check=False).stdout
    assert [json.loads(line)["class"] for line in said.splitlines()] in ([], ["NORMAL"])
