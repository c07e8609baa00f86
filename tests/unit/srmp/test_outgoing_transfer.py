"""Outgoing queues to HTTP names ([MC-MQSRM] 3.1.7, 3.1.6.1, 3.1.6.4)."""

from collections.abc import Iterator

import pytest

from tests.support.http_network import Host, HttpNode, HttpSimulation, http_simulation

NAME = "DIRECT=HTTP://shop/msmq/private$/orders"


class Sending:
    """Alice, and a shop that is no queue manager."""

    def __init__(self, simulation: HttpSimulation) -> None:
        self.simulation = simulation
        self.alice: HttpNode = simulation.node("alice")
        self.shop: Host = simulation.host("shop")

    def settle(self, seconds: int = 5) -> None:
        self.simulation.advance(seconds * 1000)


@pytest.fixture
def sending() -> Iterator[Sending]:
    with http_simulation() as simulation:
        yield Sending(simulation)


def test_messages_are_posted_in_order(sending: Sending) -> None:
    for number in range(5):
        sending.alice.send(NAME, b"%d" % number)
    sending.settle()
    assert sending.shop.bodies == [b"0", b"1", b"2", b"3", b"4"]
    assert sending.alice.unsent == 0
