"""Sessions of a queue manager that takes no new message (G631, G632)."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.binary.binary_pair import ORDERS, STREAM, Exchanging, exchanging

FROM_BOB = "DIRECT=OS:alice\\private$\\replies"


@pytest.fixture
def pair() -> Iterator[Exchanging]:
    with exchanging() as pair:
        yield pair


def several(pair: Exchanging, to: str, first: int = 0, **more: Any) -> list[bytes]:
    """Send messages in one turn, so that they come in one read; say which."""
    bodies = [b"%03d" % number for number in range(first, first + 5)]
    for body in bodies:
        pair.alice.send_later(to, body, **more)
    pair.settle()
    return bodies


KINDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "express": (ORDERS, "orders", {"delivery_guarantee": 0}),
    "recoverable": (ORDERS, "orders", {}),
    "transactional": (STREAM, "stream", {"transactional": True}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("minutes", [1, 30])
def test_what_came_during_maintenance_arrives_once_and_in_order_behind_it(
    pair: Exchanging, kind: str, minutes: int
) -> None:
    """Before and after are acknowledged; what comes between is kept by its sender."""
    to, queue, more = KINDS[kind]
    before = several(pair, to, **more)
    pair.bob.engine.begin_maintenance()
    sent = several(pair, to, 10, **more)
    pair.settle(60 * minutes)
    assert pair.bob.bodies(queue) == before
    assert pair.alice.outgoing(to).message_count == len(sent)
    pair.bob.engine.end_maintenance()
    after = several(pair, to, 20, **more)
    pair.settle(30)
    assert pair.bob.bodies(queue) == [*before, *sent, *after]
    assert pair.alice.unsent == 0


@pytest.mark.parametrize("kind", ["recoverable", "transactional"])
def test_a_restart_between_loses_and_doubles_nothing(pair: Exchanging, kind: str) -> None:
    to, queue, more = KINDS[kind]
    before = several(pair, to, **more)
    pair.bob.engine.begin_maintenance("alice", "a new disk")
    sent = several(pair, to, 10, **more)
    pair.settle(30)
    pair.bob.restart()
    pair.settle(60)
    assert pair.bob.bodies(queue) == before
    pair.alice.restart()
    pair.settle(60)
    pair.bob.engine.end_maintenance()
    pair.settle(60)
    assert pair.bob.bodies(queue) == [*before, *sent]


def test_only_sessions_that_withhold_something_end_with_maintenance(pair: Exchanging) -> None:
    pair.alice.send(ORDERS, b"before")
    pair.settle()
    before = list(pair.bob.protocol.connections)
    pair.bob.engine.begin_maintenance()
    pair.settle()
    pair.bob.engine.end_maintenance()
    assert list(pair.bob.protocol.connections) == before
    pair.bob.engine.begin_maintenance()
    pair.alice.send(ORDERS, b"one")
    pair.settle()
    assert list(pair.bob.protocol.connections) == before
    pair.bob.engine.end_maintenance()
    assert before[0] not in pair.bob.protocol.connections


def test_no_sequence_counts_what_was_withheld_as_refused(pair: Exchanging) -> None:
    """Nothing is noted of it, also not that others come behind it that are not the next."""
    pair.alice.send(STREAM, b"before", transactional=True)
    pair.settle()
    pair.bob.engine.begin_maintenance()
    several(pair, STREAM, transactional=True)
    pair.settle(120)
    (info,) = pair.stream.incoming_transactional_transfer_info_collection
    assert (info.sequence_number, info.reject_count) == (1, 0)


def test_acknowledgements_of_all_kinds_go_on(pair: Exchanging) -> None:
    """Bob has sent before, and hears what became of it while Alice's own messages wait for him."""
    pair.alice.create("replies", transactional=True)
    pair.bob.create("acks")
    more = {
        "administration_queue_format_name": "DIRECT=OS:bob\\private$\\acks",
        "acknowledgements_requested": 0x0F,
        "positive_journaling_requested": True,
    }
    pair.bob.send(FROM_BOB, b"reply", transactional=True, **more)
    pair.bob.engine.begin_maintenance()
    several(pair, ORDERS)
    pair.settle(60)
    assert pair.alice.bodies("replies") == [b"reply"]
    assert pair.alice.receive("replies", transactional=True) == b"reply"
    pair.settle(60)
    assert pair.bob.unsent == 0  # the order and the final acknowledgement have come
    assert pair.bob.find("acks").message_count == 2
    assert pair.bob.bodies() == []
