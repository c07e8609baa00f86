"""What is known of messages that were sent: their hops and their acknowledgements."""

from collections.abc import Iterator
from uuid import UUID

import pytest

from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.qm import message_trace
from rpcqm.qm.message_trace import MessageTrace
from tests.support.binary.binary_pair import ORDERS, STREAM, Exchanging, exchanging, packets


@pytest.fixture
def pair() -> Iterator[Exchanging]:
    with exchanging() as pair:
        yield pair


def told(pair: Exchanging, identifier: MessageIdentifier) -> list[tuple[str, str, str]]:
    """What Alice tells of a message: what happened, with which queue, and the detail."""
    events = sorted(
        pair.alice.engine.message_trace.events(identifier), key=lambda event: event.time
    )
    return [(event.happening.name, event.queue, event.detail) for event in events]


def test_a_message_was_sent_and_acknowledged_by_everybody(pair: Exchanging) -> None:
    pair.send(ORDERS)
    pair.settle()
    (arrived,) = packets(pair.bob, pair.orders)
    pair.bob.receive("orders")
    pair.settle()
    assert told(pair, arrived.identifier) == [
        ("SENT", ORDERS, f"IP={pair.bob.address}"),
        ("ACKNOWLEDGED", "alice\\private$\\admin", "ACK_REACH_QUEUE"),
        ("ACKNOWLEDGED", ORDERS, "by the next hop"),
        ("ACKNOWLEDGED", "alice\\private$\\admin", "ACK_RECEIVE"),
    ]


def test_a_message_in_sequence_was_sent_twice_and_received(pair: Exchanging) -> None:
    pair.alice.send(STREAM, b"one", True, negative_journaling_requested=True)
    pair.simulation.advance(100)
    for end in pair.simulation.ends:
        end.arrival = pair.simulation.clock.monotonic() + 3_000
    pair.simulation.advance(2_000)
    pair.alice.engine.outgoing.resend(pair.alice.outgoing(STREAM))
    pair.settle()
    (arrived,) = packets(pair.bob, pair.stream)
    pair.bob.receive("stream")
    pair.settle()
    assert told(pair, arrived.identifier) == [
        ("SENT", STREAM, f"IP={pair.bob.address}"),
        ("SENT", STREAM, f"IP={pair.bob.address}"),
        ("ACKNOWLEDGED", STREAM, "in order"),
        ("ACKNOWLEDGED", STREAM, "finally, ACK_RECEIVE"),
    ]


def test_what_is_known_of_many_at_once_is_bounded(
    pair: Exchanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_trace, "MOST", 10)
    monkeypatch.setattr(message_trace, "MOST_STEPS", 4)
    pair.send(ORDERS)
    queue, clock = pair.alice.outgoing(ORDERS), pair.simulation.clock
    together, one_by_one = MessageTrace(clock), MessageTrace(clock)
    keys = list(range(20))
    octets = [UUID(int=7).bytes_le + key.to_bytes(4, "little") for key in keys]
    for hop, some in enumerate([slice(8), slice(2, 8), slice(8), slice(5, 8), slice(4, 14)]):
        together.sent_together(queue, keys[some], octets[some], octets[some], str(hop))
        together.acknowledged_together(queue, keys[some], f"by {hop}")
        for key in keys[some]:
            one_by_one.sent_together(queue, [key], [octets[key]], [octets[key]], str(hop))
        for key in keys[some]:
            one_by_one.acknowledged(queue, key, f"by {hop}")
        assert together.steps(queue, keys) == one_by_one.steps(queue, keys)
    assert len(together) == 10
    steps = together._steps[queue.queue_id, 7]
    assert [detail for _, _, detail in steps] == ["0", "by 3", "4", "by 4"]
    together.sent_together(queue, keys, octets, octets, "last")
    assert [key for key in keys if together.steps(queue, [key])] == keys[10:]


def test_what_is_known_is_bounded(pair: Exchanging, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_trace, "MOST", 10)
    monkeypatch.setattr(message_trace, "MOST_STEPS", 4)
    pair.bob.kill()
    for number in range(12):
        pair.alice.send(ORDERS, b"%d" % number)
    queue, engine = pair.alice.outgoing(ORDERS), pair.alice.engine
    identifiers = []
    for key in queue.message_position_list.page(None, 12):
        message = engine.positions.message_at(queue, key)
        identifiers.append(message.attributes.identifier)
        for hop in range(6):
            engine.message_trace.sent(queue, message, str(hop))
    assert len(engine.message_trace) == 10
    assert told(pair, identifiers[0]) == []
    assert [detail for _, _, detail in told(pair, identifiers[-1])] == [
        "IP=0",
        "IP=3",
        "IP=4",
        "IP=5",
    ]
