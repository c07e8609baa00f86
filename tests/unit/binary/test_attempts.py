"""How often other hosts are asked for a connection (G99)."""

from collections.abc import Iterator
from itertools import pairwise

import pytest

from rpcqm.adm.enums import OutgoingQueueState
from rpcqm.base.completion import Completion
from rpcqm.base.retry import LONGEST_RETRY, delay_after
from rpcqm.binary.connection.attempts import PLACES, ConnectionAttempts
from rpcqm.binary.connection.peer_connection import NextHop, PeerConnection
from tests.support.binary.binary_pair import Exchanging, exchanging
from tests.support.clock import SimulatedClock

FIRST = 5_000
DOWN = "192.0.2.77"


def to(number: int = 0, host: str = DOWN) -> str:
    return f"DIRECT=TCP:{host}\\private$\\victim-{number}"


class Asking:
    """Wants to connect, and counts how often it is told to look again."""

    def __init__(self, attempts: ConnectionAttempts, *hops: NextHop) -> None:
        self.attempts = attempts
        self.hops = hops
        self.turn: int | None = None

    def look_again(self) -> None:
        self.turn = self.attempts.begin(self.hops, self)


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock()


@pytest.fixture
def attempts(clock: SimulatedClock) -> ConnectionAttempts:
    return ConnectionAttempts(clock, clock.timers, lambda: FIRST)


@pytest.fixture
def pair() -> Iterator[Exchanging]:
    with exchanging() as pair:
        yield pair


@pytest.fixture
def connects(pair: Exchanging, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """When Alice has asked for a connection, in milliseconds."""
    times: list[int] = []
    connect = pair.alice.connect

    def counted(hop: NextHop, connection: PeerConnection) -> Completion[None]:
        times.append(pair.simulation.clock.monotonic())
        return connect(hop, connection)

    monkeypatch.setattr(pair.alice, "connect", counted)
    return times


def test_the_delay_doubles_up_to_five_minutes() -> None:
    delays = [delay_after(failures, FIRST) for failures in range(1, 9)]
    assert delays == [5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]
    assert delay_after(1_000_000, FIRST) == LONGEST_RETRY
    assert delay_after(3, 400_000) == 400_000


def test_only_one_connects_to_a_place_at_a_time(attempts: ConnectionAttempts) -> None:
    first, second, third = (Asking(attempts, NextHop(DOWN)) for _ in range(3))
    for each in (first, second, third):
        each.look_again()
    assert [first.turn, second.turn, third.turn] == [0, None, None]
    attempts.ended(first, True)
    assert [second.turn, third.turn] == [0, None]
    attempts.leave(second)
    assert third.turn == 0


def test_another_port_or_another_address_is_another_place(attempts: ConnectionAttempts) -> None:
    for hop in (NextHop(DOWN), NextHop(DOWN, 1802), NextHop("192.0.2.78")):
        assert attempts.begin([hop], Asking(attempts, hop)) == 0


def test_an_address_that_is_waited_for_is_passed_over(
    attempts: ConnectionAttempts, clock: SimulatedClock
) -> None:
    several = Asking(attempts, NextHop(DOWN), NextHop("192.0.2.78"))
    several.look_again()
    attempts.ended(several, False)
    several.look_again()
    assert several.turn == 1
    attempts.ended(several, False)
    several.look_again()
    assert several.turn is None
    clock.advance(FIRST)
    assert several.turn == 0


@pytest.mark.bound("binary.places")
def test_no_more_places_are_remembered_than_the_bound(attempts: ConnectionAttempts) -> None:
    waiting = Asking(attempts, NextHop("first"))
    waiting.look_again()
    for number in range(PLACES + 1):
        hop = NextHop(f"host-{number}")
        asking = Asking(attempts, hop)
        asking.look_again()
        attempts.ended(asking, False)
    assert len(attempts._places) == PLACES
    assert attempts.begin([NextHop("first")], Asking(attempts), wait=False) is None


def test_many_queues_to_one_host_ask_it_as_seldom_as_one(
    pair: Exchanging, connects: list[int]
) -> None:
    for number in range(30):
        pair.alice.send(to(number), b"content")
    pair.settle(1_200)
    waits = [(later - sooner) // 1000 for sooner, later in pairwise(connects)]
    assert waits[:6] == [5, 10, 20, 40, 80, 160]
    assert len(connects) <= 11


def test_a_host_that_has_answered_once_is_tried_at_the_first_delay(
    pair: Exchanging, connects: list[int]
) -> None:
    pair.send()
    pair.settle()
    pair.bob.kill()
    pair.send()
    pair.settle(61)
    assert len(connects) >= 12


def test_an_operator_who_resumes_a_queue_has_it_tried_at_once(
    pair: Exchanging, connects: list[int]
) -> None:
    pair.alice.send(to(), b"content")
    pair.settle(100)
    outgoing, before = pair.alice.outgoing(to()), len(connects)
    pair.alice.engine.outgoing.admin_pause_queue(outgoing)
    pair.settle(1_000)
    assert len(connects) == before
    pair.alice.engine.outgoing.admin_resume_queue(outgoing)
    pair.settle(1)
    assert len(connects) == before + 1
    pair.alice.engine.take_offline()
    pair.settle(1)
    pair.alice.engine.bring_online()
    pair.settle(1)
    assert len(connects) == before + 2
    assert outgoing.state is OutgoingQueueState.DISCONNECTED


def test_every_queue_of_a_host_that_is_back_gets_its_session(pair: Exchanging) -> None:
    queues = [f"q{number}" for number in range(10)]
    for name in queues:
        pair.bob.create(name)
    pair.bob.kill()
    for name in queues:
        pair.alice.send(f"DIRECT=OS:bob\\private$\\{name}", b"content")
    pair.settle(100)
    pair.bob.start()
    pair.settle(600)
    assert [pair.bob.bodies(name) for name in queues] == [[b"content"]] * 10
