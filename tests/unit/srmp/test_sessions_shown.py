"""What administrators see of the connections that outgoing queues to HTTP names open."""

from collections.abc import Iterator

import pytest

from rpcqm.qm.sessions import OPEN, OPENING, SessionView
from tests.support.srmp.http_network import http_simulation
from tests.support.srmp.http_sending import NAME, Sending


@pytest.fixture
def sending() -> Iterator[Sending]:
    with http_simulation() as simulation:
        yield Sending(simulation)


def shown(sending: Sending) -> list[SessionView]:
    return list(sending.alice.srmp.transfers.sessions())


def test_a_connection_that_is_being_opened_is_shown_with_what_waits(sending: Sending) -> None:
    sending.shop.usual = None
    began = sending.alice.engine.clock.now()
    for _ in range(3):
        sending.send()
    sending.settle(10)
    (session,) = shown(sending)
    assert (session.protocol, session.opened_here, session.state) == ("http", True, OPENING)
    assert (session.queues, session.waiting, session.unacknowledged) == ((NAME,), 3, 1)
    assert (session.sent, session.address) == (0, "")
    assert began <= session.since <= began + 1000


def test_a_connection_is_shown_until_it_is_idle_for_long(sending: Sending) -> None:
    sending.send()
    sending.settle()
    since = shown(sending)[0].since
    sending.settle(100)
    sending.send()
    sending.settle()
    (session,) = shown(sending)
    assert (session.state, session.sent, session.waiting) == (OPEN, 2, 0)
    assert (session.since, session.address) == (since, sending.shop.address)
    sending.settle(400)
    assert shown(sending) == []
    sending.send()
    sending.settle()
    (session,) = shown(sending)
    assert session.sent == 1
    assert session.since > since


def test_what_awaits_its_stream_receipt_is_not_acknowledged(sending: Sending) -> None:
    for _ in range(2):
        sending.send_in_order()
    sending.settle(2)
    (session,) = shown(sending)
    assert (session.sent, session.unacknowledged, session.waiting) == (2, 2, 2)


def test_a_host_that_cannot_be_reached_has_no_session(sending: Sending) -> None:
    sending.shop.usual = ConnectionRefusedError(111, "refused")
    sending.send()
    sending.settle(10)
    assert shown(sending) == []


def test_many_posts_at_once_are_one_session_also_after_one_of_them_has_failed(
    sending: Sending,
) -> None:
    sending.shop.answers = [500]
    for _ in range(70):
        sending.alice.send_later(NAME, b"x")
    sending.settle(60)
    (session,) = shown(sending)
    assert (session.state, session.waiting) == (OPEN, 0)
