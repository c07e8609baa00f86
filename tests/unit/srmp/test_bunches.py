"""Several messages in one request between queue managers of ours (G691)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from rpcqm.base.completion import Completion, completed
from rpcqm.base.errors import DecodeError, HResult, MQError
from rpcqm.http.exchange import HttpRequest
from rpcqm.srmp import bunch
from rpcqm.srmp.connection.bunches import answer_to
from tests.support.srmp.http_network import Answering, HttpNode, HttpSimulation, http_simulation
from tests.support.srmp.http_sending import NAME, Sending

ORDERS = "DIRECT=HTTP://bob/msmq/private$/orders"
ONE = (("Content-Type", "text/xml"), ("SOAPAction", '"MSMQMessage"'))
OTHER = (("Content-Type", "multipart/related"), ("Via", "1.1 somewhere"))


def request(content: bytes, *more: tuple[str, str]) -> HttpRequest:
    headers = (("Host", "bob"), *bunch.HEADERS, *more)
    return HttpRequest("POST", "/msmq/private$/orders", headers, content, "192.0.2.1", port=80)


# A request and what it holds


def test_a_bunch_holds_requests_as_each_would_have_come_alone() -> None:
    headers, content = bunch.write_bunch([(ONE, b"first"), (OTHER, b""), (ONE, b"third")])
    assert headers == bunch.HEADERS
    found = bunch.split_bunch(request(content))
    assert [each.body for each in found] == [b"first", b"", b"third"]
    assert [each.headers for each in found] == [
        (("Host", "bob"), *ONE, ("Content-Length", "5")),
        (("Host", "bob"), *OTHER, ("Content-Length", "0")),
        (("Host", "bob"), *ONE, ("Content-Length", "5")),
    ]
    assert {(each.method, each.target, each.peer, each.port) for each in found} == {
        ("POST", "/msmq/private$/orders", "192.0.2.1", 80)
    }


def sized(head: int, size: int, octets: bytes) -> bytes:
    return head.to_bytes(4, "little") + size.to_bytes(4, "little") + octets


@pytest.mark.bound("srmp.bunch")
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\1",
        sized(0, 0, b"")[:-1],
        sized(3, 5, b"a:b" + b"1234"),
        sized(1 << 31, 0, b"a:b"),
        sized(5000, 0, b"a:" + bytes(4998)),
        sized(0xFFFFFFFF, 0xFFFFFFFF, b"x" * 100),
        sized(5, 0, b"no co"),
        sized(7, 0, b"a:\r\nb:c"[:7]).replace(b"a:\r\nb:c", b"a:b\nc:d"),
        sized(7, 0, b"Host: x"),
        sized(8, 0, b"Host : x"),
        sized(8, 0, b" Host: x"),
        sized(18, 0, b"Content-Length : 9"),
        sized(17, 0, b"Content-Length: 9"),
        sized(3, 0, b"a:b") * (bunch.MOST + 1),
    ],
)
def test_what_holds_no_messages_is_refused(content: bytes) -> None:
    with pytest.raises(DecodeError):
        bunch.split_bunch(request(content))


@pytest.mark.bound("srmp.bunch")
def test_as_many_messages_as_are_offered_are_taken() -> None:
    assert len(bunch.split_bunch(request(sized(3, 0, b"a:b") * bunch.MOST))) == bunch.MOST


@pytest.mark.parametrize(
    ("value", "count"),
    [(None, 1), ("64", 64), ("2", 2), ("0", 1), ("-1", 1), ("1e3", 1), ("9" * 99, 1), ("512", 64)],
)
def test_an_offer_is_a_number_within_what_is_sent_at_most(value: str | None, count: int) -> None:
    assert bunch.offered(value) == count


@pytest.mark.parametrize("octets", [b"", b"\xc8", b"\xc8\0" * 3, b"\xc8\0\0\0", b"\xc8\0\xff\xff"])
def test_an_answer_to_other_messages_is_refused(octets: bytes) -> None:
    with pytest.raises(DecodeError):
        bunch.read_statuses(octets, 2)


# From one queue manager to another


@dataclass
class Two:
    simulation: HttpSimulation
    alice: HttpNode
    bob: HttpNode
    transactional: bool

    def send(self, count: int, begin: int = 0) -> None:
        for number in range(begin, begin + count):
            self.alice.send(ORDERS, b"%d" % number, self.transactional)

    @property
    def bodies(self) -> list[int]:
        return list(map(int, self.bob.bodies()))


@pytest.fixture
def two(request: pytest.FixtureRequest) -> Iterator[Two]:
    transactional = getattr(request, "param", False)
    with http_simulation(seed=7) as simulation:
        alice, bob = simulation.node("alice"), simulation.node("bob")
        bob.create("orders", transactional)
        yield Two(simulation, alice, bob, transactional)


both = pytest.mark.parametrize("two", [False, True], ids=["any", "in order"], indirect=True)


@both
def test_what_waits_for_one_of_ours_leaves_in_few_requests(two: Two) -> None:
    two.bob.kill()
    two.send(200)
    two.simulation.advance(60_000)
    two.bob.start()
    two.simulation.advance(120_000)
    assert sorted(two.bodies) == list(range(200))
    if two.transactional:
        assert two.bodies == sorted(two.bodies)
    assert two.alice.unsent == 0
    # One alone that asks, and 64 in each of the others; receipts of a stream go the other way.
    assert two.bob.requests <= 2 + 200 // bunch.MOST + 1


@both
@pytest.mark.parametrize("seed", range(4))
def test_each_arrives_once_over_a_network_that_fails(two: Two, seed: int) -> None:
    two.simulation.random.seed(seed)
    two.simulation.faults.cut = 0.2
    for begin in range(0, 240, 40):
        two.send(40, begin)
        two.simulation.advance(3_000)
        if begin == 120:
            two.bob.kill()
            two.bob.start()
        if begin == 160:
            two.alice.kill()
            two.alice.start()
    two.simulation.faults.cut = 0
    two.simulation.advance(3_600_000)
    assert two.alice.unsent == 0
    found = two.bodies
    assert sorted(found) == list(range(240))
    if two.transactional:
        assert found == sorted(found)
    assert two.bob.requests < 240


def test_what_a_receiver_has_no_room_for_is_sent_again(two: Two) -> None:
    two.send(1)
    two.simulation.advance(5_000)
    machine = two.bob.engine.queue_manager
    before, machine.queue_manager_quota = machine.queue_manager_quota, 0
    two.send(20, begin=1)
    two.simulation.advance(5_000)
    assert (two.bodies, two.alice.unsent) == ([0], 20)
    machine.queue_manager_quota = before
    two.simulation.advance(120_000)
    assert (two.bodies, two.alice.unsent) == (list(range(21)), 0)


# With receivers that are not ours


@pytest.fixture
def sending() -> Iterator[Sending]:
    with http_simulation() as simulation:
        yield Sending(simulation)


def many(sending: Sending, count: int = 10, **more: Any) -> None:
    sending.shop.usual = ConnectionRefusedError(111, "refused")
    for number in range(count):
        sending.send(b"%d" % number, **more)
    sending.settle(1)
    sending.shop.usual = 200


def test_a_receiver_that_says_nothing_gets_one_message_in_a_request(sending: Sending) -> None:
    many(sending)
    sending.settle(60)
    assert sending.shop.bodies[-10:] == [b"%d" % number for number in range(10)]
    asked = [dict(headers).get(bunch.OFFER) for _, headers in sending.shop.heads[-10:]]
    assert asked == [str(bunch.MOST), *[None] * 9]


@pytest.mark.parametrize(
    ("status", "content"),
    [(400, b""), (413, b""), (404, b"?"), (200, b""), (200, b"\xc8\0" * 8), (200, b"\0\0" * 9)],
)
def test_where_a_bunch_is_not_understood_its_messages_go_alone(
    sending: Sending, status: int, content: bytes
) -> None:
    sending.shop.offers = bunch.MOST
    sending.shop.to_bunches = Answering(status, content)
    many(sending)
    sending.settle(60)
    assert sending.shop.bunches == 1
    assert [body for body in sending.shop.bodies if body is not None][-9:] == [
        b"%d" % number for number in range(1, 10)
    ]
    assert sending.queue.message_count == 0


def test_each_message_of_a_bunch_has_an_answer_of_its_own(sending: Sending) -> None:
    sending.shop.offers = bunch.MOST
    statuses = [200, 400, 500, 200, 200, 413, 200, 200, 200]
    sending.shop.to_bunches = Answering(200, bunch.write_statuses(statuses))
    many(sending, negative_journaling_requested=True)
    sending.settle(60)
    assert sending.shop.bodies[-2:] == [b"0", b"3"]  # and the one with 500 once more, alone
    assert [body for body, _ in sending.kept("deadletter")] == [b"2", b"6"]
    assert sending.queue.message_count == 0


def test_the_first_message_of_a_stream_is_answered_before_others_leave(sending: Sending) -> None:
    """G226: what follows an expired number 1 would begin another stream."""
    sending.shop.offers = bunch.MOST
    sending.send(b"asks")
    sending.settle(5)
    sending.shop.usual = None
    for number in range(5):
        sending.alice.send_later(NAME, b"%d" % number, transactional=True)
    sending.settle(5)
    assert (sending.shop.bodies, sending.shop.bunches) == ([b"asks", b"0"], 0)


def test_a_bunch_that_a_receiver_cannot_take_now_is_sent_again(sending: Sending) -> None:
    sending.shop.offers = bunch.MOST
    sending.shop.to_bunches = Answering(503, b"")
    many(sending)
    sending.settle(600)
    assert sending.shop.bunches > 1
    assert sending.queue.message_count == 10 - len(set(sending.shop.bodies))


def test_a_mistake_with_one_message_is_no_answer_to_the_others() -> None:
    broken: Completion[int] = Completion()
    broken.fail(MQError(HResult.MQ_ERROR))
    outcomes = iter([completed(200), broken, completed(400)])
    _, content = bunch.write_bunch([(ONE, b"x")] * 3)
    answer = answer_to(request(content), lambda each: next(outcomes)).result()
    assert bunch.read_statuses(answer.body, 3) == [200, 500, 400]
