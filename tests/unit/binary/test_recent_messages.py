"""Messages that come again are compared with those that were taken (G493), and how many."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from rpcqm.binary.connection.recent_messages import LONGEST, MOST_OCTETS, RecentMessages, TakenRun
from rpcqm.qm.identity_conflicts import COUNTED
from tests.support.fast import templates
from tests.support.queue_manager import MEMORY
from tests.unit.fast.test_arrival_batches import Half, Sent

HERE, THERE = "192.0.2.1", "192.0.2.2"
NOW = 1_750_000_000


@pytest.fixture(params=templates.WAYS, ids=["together", "one by one"][-len(templates.WAYS) :])
def half(request: pytest.FixtureRequest) -> Iterator[Half]:
    with TemporaryDirectory(dir=MEMORY) as directory:
        half = Half(Path(directory), request.param)
        yield half
        half.simulation.stop()


def conflicts(half: Half) -> int:
    return half.bob.store.metrics.counts[COUNTED]


def messages(queue: str, body: bytes, count: int = 20) -> list[Sent]:
    """Messages with the numbers from 1 on, in sequence if their queue is transactional."""
    return [
        Sent(
            queue,
            number=number,
            body=body,
            place=(9, number, number - 1) if queue == "stream" else None,
        )
        for number in range(1, count + 1)
    ]


@pytest.mark.parametrize("queue", ["orders", "stream"])
def test_only_other_content_under_a_number_that_was_taken_is_a_conflict(
    half: Half, queue: str
) -> None:
    first = messages(queue, b"first")
    half.deliver(messages("others", b"learned", 60), [], header=False)
    half.deliver(first, [], header=True)
    half.bob.settle()
    assert half.together is bool(half.bob.installed and half.bob.speed.batches.taken)
    half.reconnect()
    half.deliver(first, [], header=True)
    half.bob.settle()
    assert conflicts(half) == 0
    half.reconnect()
    half.deliver([each._replace(body=b"other") for each in first], [], header=True)
    half.bob.settle()
    assert conflicts(half) == len(first)
    half.reconnect()
    half.deliver([each._replace(age=1) for each in first[:3]], [], header=True)
    assert conflicts(half) == len(first) + 3


def test_what_is_not_known_any_more_is_no_conflict(half: Half) -> None:
    first = messages("orders", b"first")
    half.deliver(first, [], header=True)
    half.bob.settle()
    half.die()
    half.deliver([each._replace(body=b"other") for each in first], [], header=True)
    half.bob.settle()
    assert conflicts(half) == 0


@pytest.mark.bound("identity.recent_octets")
def test_messages_are_remembered_up_to_a_number_of_octets() -> None:
    recent = RecentMessages()
    packet = Sent(body=bytes(1_000)).packet(NOW)
    other = Sent(body=bytes(999)).packet(NOW)
    number = 0
    before = -1
    while len(recent) > before:
        before = len(recent)
        number += 1
        recent.note_one(b"", number, packet, HERE)
    assert before * len(packet) < MOST_OCTETS <= (before + 1) * (len(packet) + 600)
    assert recent.differs(b"", 1, other) is None
    assert recent.differs(b"", 2, other) == HERE
    assert recent.differs(b"", 2, packet) is None
    recent.note_one(b"", number + 1, packet, HERE)
    assert recent.differs(b"", 2, other) is None
    assert recent.differs(b"", number + 1, other) == HERE


def test_long_packets_are_remembered_by_a_digest() -> None:
    recent = RecentMessages()
    long = Sent(body=bytes(LONGEST)).packet(NOW)
    other = Sent(body=bytes(LONGEST - 1) + b"x").packet(NOW)
    for number in range(1_000):
        recent.note(TakenRun(b"", (number,), (long,), len(long)), THERE)
    assert len(recent) == 1_000
    assert recent.differs(b"", 0, long) is None
    assert recent.differs(b"", 0, other) == THERE
