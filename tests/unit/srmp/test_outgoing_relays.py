"""Messages that came by HTTP and go on ([MC-MQSRM] 3.1.5.1.3, G222)."""

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from rpcqm.http.exchange import HttpRequest
from rpcqm.srmp.elements import Envelope
from rpcqm.srmp.hops import MAXIMUM_HOPS
from rpcqm.srmp.reading import read_request
from rpcqm.srmp.settings import Redirection
from tests.support.srmp.http_network import SETTINGS, Host, HttpNode, http_simulation
from tests.support.srmp.http_sending import NAME
from tests.support.srmp.srmp_door import msmq
from tests.support.srmp.srmp_text import Elements, Post, changed, envelope, message, multipart


class Relaying:
    """Alice posts to the shop by way of Bob, who passes on what is for others."""

    def __init__(self, alice: HttpNode, bob: HttpNode, shop: Host, stranger: Host) -> None:
        self.alice, self.bob, self.shop, self.stranger = alice, bob, shop, stranger


@pytest.fixture
def relaying() -> Iterator[Relaying]:
    with http_simulation() as simulation:
        alice, bob = simulation.node("alice"), simulation.node("bob")
        bob.adjust(replace(SETTINGS, transparent_store_and_forward=True))
        rule = ("http://shop/*", "http://bob/")
        alice.adjust(replace(SETTINGS, outbound=(Redirection(*rule),)))
        yield Relaying(alice, bob, simulation.host("shop"), simulation.host(STRANGER))


def passed_on(relaying: Relaying) -> list[Envelope]:
    relaying.alice.simulation.advance(2_000)
    return relaying.shop.envelopes


def test_a_message_goes_on_as_it_came(relaying: Relaying) -> None:
    sent = relaying.alice.send(NAME, b"body", extension=b"more", label="a label")
    (envelope,) = passed_on(relaying)
    (request,) = relaying.shop.requests
    assert (request.body, request.extension) == (b"body", b"more")
    assert (envelope.id.guid, envelope.id.ordinal) == (sent.queue_manager_guid, sent.ordinal)
    assert envelope.msmq is not None
    assert envelope.msmq.source_qm_guid == sent.queue_manager_guid
    assert (envelope.to, envelope.action) == (
        "http://shop/msmq/private$/orders",
        "MSMQ:a label",
    )
    assert (relaying.alice.unsent, relaying.bob.unsent) == (0, 0)


@pytest.mark.conformance("MQSRM-element-TransparentStoreAndForward")
def test_a_stream_goes_on_as_it_came_and_is_gone(relaying: Relaying) -> None:
    for body in (b"1", b"2"):
        relaying.alice.send(NAME, body, transactional=True, negative_journaling_requested=True)
    first, second = passed_on(relaying)
    assert first.stream is not None
    assert second.stream is not None
    own = relaying.alice.engine.queue_manager.identifier
    assert first.stream.stream_id == second.stream.stream_id
    assert first.stream.stream_id.guid == own
    assert (first.stream.current, second.stream.current) == (1, 2)
    assert first.stream.send_receipts_to == "http://alice/msmq/private$/order_queue$"
    assert (relaying.alice.unsent, relaying.bob.unsent) == (2, 0)
    relaying.alice.simulation.advance(3_000)
    assert len(relaying.shop.requests) == 2


STRANGER = "198.51.100.2"
MORE_HEADER = '<x:priority xmlns:x="urn:example:routes" se:mustUnderstand="0">high</x:priority>'
MORE_BODY = '<o:order xmlns:o="urn:example:orders" number="7">pears &amp; apples</o:order>'


def post_to(to: str, msmq: str = "") -> Post:
    """A message with elements that the product does not know, in the header and in the body."""
    text = envelope(to, Elements(ordinal=9, receipt=MORE_HEADER, msmq=msmq))
    text = text.replace("<se:Body>", f"<se:Body>{MORE_BODY}")
    kind, content = multipart(text, b"body")
    return Post("/" + to.split("/", 3)[3], content, {"Content-Type": kind})


def relayed(relaying: Relaying, post: Post) -> tuple[str, str]:
    """The envelope that a stranger posts to Bob, and the one that the shop gets."""
    request = HttpRequest("POST", post.target, tuple(post.headers.items()), post.body, "10.0.0.9")
    relaying.bob.srmp.receiver.receive(request)
    passed_on(relaying)
    return read_request(request).envelope_text, relaying.shop.requests[-1].envelope_text


@pytest.mark.parametrize("content", ["", msmq(), msmq(priority=6, number=7)])
def test_an_envelope_goes_on_octet_for_octet(relaying: Relaying, content: str) -> None:
    """What nobody here knows stays, too, and an <id> that no <Msmq> explains (G222)."""
    sent, got = relayed(relaying, post_to("http://shop/msmq/private$/orders", content))
    assert got == sent
    assert MORE_HEADER in got
    assert MORE_BODY in got


@pytest.mark.conformance("MQSRM-element-InboundRedirectionCollection")
def test_the_inbound_map_changes_the_destination_and_nothing_else(relaying: Relaying) -> None:
    rule = Redirection("http://public/*", "http://shop/msmq/private$/*")
    relaying.bob.adjust(replace(SETTINGS, inbound=(rule,)))
    sent, got = relayed(relaying, post_to("http://public/orders"))
    assert got == sent.replace("http://public/orders", "http://shop/msmq/private$/orders")


@pytest.mark.parametrize("end", ["it expires", "it is purged"])
def test_a_relay_sends_no_receipt_of_what_ends_in_it(relaying: Relaying, end: str) -> None:
    """Its sender would hear of an end, and later of the arrival of a repetition (G216)."""
    relaying.shop.usual = ConnectionRefusedError(111, "refused")
    receipts = relaying.stranger
    assert receipts.address == STRANGER
    wanted = f"<sendTo>http://{STRANGER}/msmq/private$/receipts</sendTo>"
    services = f"<commitmentReceiptRequest>{wanted}<negativeOnly/></commitmentReceiptRequest>"
    to, bob = "http://shop/msmq/private$/orders", relaying.bob
    now = bob.simulation.clock.now() // 1000
    sent, soon = (time.strftime("%Y%m%dT%H%M%S", time.gmtime(at)) for at in (now, now + 60))
    post = message(to, b"body", Elements(services=services, expires=soon, msmq=msmq()))
    post = changed(post, b"20260101T000000", sent.encode())
    request = HttpRequest("POST", post.target, tuple(post.headers.items()), post.body, STRANGER)
    bob.srmp.receiver.receive(request)
    passed_on(relaying)
    (queue,) = bob.engine.outgoing.list()
    assert queue.message_count == 1
    if end == "it is purged":
        bob.engine.queues.purge_queue(queue)
    bob.simulation.advance(120_000)
    assert (queue.message_count, receipts.requests) == (0, [])


def test_a_relay_that_is_killed_goes_on(relaying: Relaying) -> None:
    relaying.shop.usual = ConnectionRefusedError(111, "refused")
    relaying.alice.send(NAME, b"recoverable")
    passed_on(relaying)
    assert relaying.alice.unsent == 0
    relaying.bob.kill()
    relaying.shop.usual = 200
    relaying.shop.requests.clear()
    relaying.bob.start()
    passed_on(relaying)
    assert relaying.shop.bodies == [b"recoverable"]
    assert relaying.bob.unsent == 0


@pytest.fixture
def circle() -> Iterator[HttpNode]:
    """One of two relays, each of which takes the other for the way to the shop."""
    with http_simulation() as simulation:
        bob, carol = simulation.node("bob"), simulation.node("carol")
        for node, other in ((bob, "http://carol/"), (carol, "http://bob/")):
            outbound = (Redirection("http://shop/*", other),)
            node.adjust(replace(SETTINGS, outbound=outbound, transparent_store_and_forward=True))
        yield bob


@pytest.mark.bound("srmp.hops")
@pytest.mark.conformance("MQSRM-element-TransparentStoreAndForward")
def test_relays_that_name_each_other_give_a_message_up_in_the_end(circle: HttpNode) -> None:
    post = message("http://shop/msmq/private$/orders", b"without an identifier")
    headers = tuple(post.headers.items())
    circle.srmp.receiver.receive(HttpRequest("POST", post.target, headers, post.body, "10.0.0.9"))
    with capture_logs() as lines:
        circle.simulation.advance(2_000)
    told = [each for each in lines if each["event"] == "an HTTP request was refused"]
    assert [each["reason"] for each in told] == ["it has come by 15 hosts"]
    assert MAXIMUM_HOPS == 15


def test_a_relay_says_that_a_message_has_come_by_it(relaying: Relaying) -> None:
    relaying.alice.send(NAME, b"body")
    passed_on(relaying)
    assert [value for _, head in relaying.shop.heads for n, value in head if n == "Via"] == [
        "1.1 msmq"
    ]
