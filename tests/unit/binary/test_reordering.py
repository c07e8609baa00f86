"""Connections that overtake one another ([MS-MQQB] 3.1.1.5, 3.1.5.8.1, 3.1.5.8.6)."""

from collections.abc import Iterator

import pytest

from rpcqm.adm.queue import IncomingTransactionalTransferInfo
from tests.support.binary.binary_network import Faults
from tests.support.binary.binary_pair import ORDERS, STREAM, Exchanging, exchanging

RETRY = 6_000
BODIES = [b"one", b"two", b"three"]


@pytest.fixture
def pair() -> Iterator[Exchanging]:
    with exchanging() as pair:
        yield pair


def send_both(pair: Exchanging, body: bytes) -> None:
    pair.alice.send(STREAM, body, transactional=True)
    pair.alice.send(ORDERS, body)


def connections(pair: Exchanging) -> int:
    return len(
        [connection for connection in pair.bob.protocol.connections if connection.session.is_open]
    )


def incoming(pair: Exchanging) -> IncomingTransactionalTransferInfo:
    (info,) = pair.stream.incoming_transactional_transfer_info_collection
    return info


@pytest.mark.conformance("MQQB-rule-3.1.5.8.1", "MQQB-rule-3.1.5.8.6")
def test_late_bytes_of_a_lost_connection_are_no_new_messages(pair: Exchanging) -> None:
    send_both(pair, b"one")
    pair.settle()
    before = connections(pair)
    pair.simulation.faults = Faults(linger=1.0, late=60_000)
    send_both(pair, b"two")
    pair.simulation.faults = Faults()
    send_both(pair, b"three")
    pair.simulation.advance(RETRY)
    assert connections(pair) == 2 * before
    assert pair.bob.bodies("stream") == BODIES
    pair.settle(120)
    assert pair.bob.bodies("stream") == BODIES
    assert sorted(pair.bob.bodies("orders")) == sorted(BODIES)
    assert pair.alice.unsent == 0
    assert incoming(pair).reject_count > 0


@pytest.mark.conformance("MQQB-rule-3.1.5.5.5")
@pytest.mark.parametrize("standstill", [30_000, 120_000], ids=["in time", "too late"])
def test_a_connection_that_stands_still_loses_and_doubles_nothing(
    pair: Exchanging, standstill: int
) -> None:
    send_both(pair, b"one")
    pair.settle()
    pair.simulation.faults = Faults(stall=1.0, late=1)
    for end in pair.simulation.ends:
        end.arrival = pair.simulation.clock.monotonic() + standstill
    send_both(pair, b"two")
    pair.simulation.faults = Faults()
    send_both(pair, b"three")
    pair.settle(300)
    assert pair.bob.bodies("stream") == BODIES
    assert sorted(pair.bob.bodies("orders")) == sorted(BODIES)
    assert pair.alice.unsent == 0


@pytest.mark.conformance("MQQB-rule-3.1.5.8.1", "MQQB-rule-3.1.5.8.6")
@pytest.mark.parametrize("name", ["orders", "stream"])
def test_what_an_earlier_connection_said_is_taken_once(pair: Exchanging, name: str) -> None:
    destination, transactional = (STREAM, True) if name == "stream" else (ORDERS, False)
    for body in BODIES:
        pair.alice.send(destination, body, transactional)
        pair.settle()
    for connection in list(pair.alice.protocol.connections):
        connection.session.close("enough")
    pair.simulation.faults = Faults(replay=1.0)
    travelled: list[bytes] = []
    pair.simulation.record = travelled
    pair.alice.send(destination, b"four", transactional)
    pair.settle(60)
    assert any(b"three" in data for data in travelled)
    assert pair.bob.bodies(name) == [*BODIES, b"four"]
    assert pair.alice.unsent == 0


@pytest.mark.conformance("MQQB-timer-order_ack_send")
def test_an_order_is_acknowledged_to_everybody_who_said_it(pair: Exchanging) -> None:
    pair.alice.send(STREAM, b"one", transactional=True)
    pair.simulation.advance(100)
    pair.simulation.faults = Faults(late=60_000)
    pair.simulation.replay()
    pair.simulation.advance(100)
    assert connections(pair) == 2
    assert incoming(pair).reject_count == 1
    pair.settle()
    assert pair.alice.unsent == 0
