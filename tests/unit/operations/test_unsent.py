"""What has arrived and waits for its final acknowledgement is not told as waiting to be sent."""

from collections.abc import Iterator

import pytest

from rpcqm.operations.exposition import Writer
from rpcqm.operations.metrics import MetricsOperations, MetricsSettings
from rpcqm.operations.overview import Overview, OverviewOperations
from tests.support.binary.binary_pair import ORDERS, STREAM, Exchanging, exchanging
from tests.support.rpc.callers import ADMINISTRATOR


@pytest.fixture
def pair() -> Iterator[Exchanging]:
    with exchanging() as pair:
        yield pair


def look(pair: Exchanging) -> Overview:
    found = OverviewOperations(pair.alice.engine, 0).overview(ADMINISTRATOR)
    pair.settle()
    return found.result()


def metric(pair: Exchanging, name: str) -> float:
    engine = pair.alice.engine
    operations = MetricsOperations(engine, OverviewOperations(engine, 0))
    told = operations.told(ADMINISTRATOR, Writer(), MetricsSettings())
    pair.settle()
    lines = "".join(told.result()).splitlines()
    (line,) = (each for each in lines if each.startswith(name + "{"))
    return float(line.rpartition(" ")[2])


def send(pair: Exchanging, body: bytes) -> None:
    """Send a message whose end its sender wants to know, with nothing for his own queues."""
    wanted = {"transactional": True, "negative_journaling_requested": True}
    pair.send(STREAM, body, acknowledgements_requested=0, **wanted)


def arrived(pair: Exchanging) -> None:
    """Bob has a message of Alice's that nobody receives, and their session has ended."""
    send(pair, b"1")
    pair.settle(20)
    assert pair.bob.bodies("stream") == [b"1"]
    pair.bob.stop()
    pair.settle(3_600)


def test_messages_that_have_arrived_do_not_make_a_queue_stuck(pair: Exchanging) -> None:
    arrived(pair)
    told = look(pair)
    assert [each.code for each in told.attention] == []
    assert (told.outgoing_messages, told.outgoing_oldest) == (0, 0)
    assert told.outgoing_bytes > 0
    send(pair, b"2")
    pair.settle(120)
    told = look(pair)
    (stuck,) = told.attention
    assert stuck.code == "outgoing_stuck"
    assert "1 message waits, the oldest for 2 min" in stuck.text
    assert told.outgoing_messages == 1


def test_a_restart_does_not_make_them_stuck(pair: Exchanging) -> None:
    arrived(pair)
    pair.alice.restart()
    pair.settle(3_600)
    assert [each.code for each in look(pair).attention] == []


def test_metrics_tell_them_apart_from_what_is_to_be_sent(pair: Exchanging) -> None:
    arrived(pair)
    assert metric(pair, "rpcqm_outgoing_messages") == 0
    assert metric(pair, "rpcqm_outgoing_oldest_message_age_seconds") == 0
    assert metric(pair, "rpcqm_outgoing_unread_messages") == 1
    send(pair, b"2")
    pair.settle(120)
    assert metric(pair, "rpcqm_outgoing_messages") == 1
    assert 100 < metric(pair, "rpcqm_outgoing_oldest_message_age_seconds") < 200


def test_messages_that_are_not_transactional_wait_to_be_sent(pair: Exchanging) -> None:
    pair.bob.stop()
    pair.send(ORDERS, acknowledgements_requested=0)
    pair.settle(120)
    told = look(pair)
    assert [each.code for each in told.attention] == ["outgoing_stuck"]
    assert told.outgoing_messages == 1
