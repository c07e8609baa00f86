"""Shapes of packets are learned, and what that may cost is bounded (docs/request-templates.md)."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from rpcqm.fast.doors import session_arrival as arrival_batch
from rpcqm.fast.doors import session_arrivals as arrival_batches
from rpcqm.fast.doors.session_shapes import (
    LEARN_AT_ONCE,
    LEARN_EVERY,
    MOST_FORMS,
    MOST_SHAPES,
    KnownShapes,
    is_usual_arrival,
)
from tests.unit.fast.test_arrival_batches import Half, Sent, several

NOW = 1_000_000_000


def packet(kind: int, length: int = 5) -> bytes:
    """A packet of a shape for each kind, and of a form for each length of names."""
    return Sent(f"{kind:0{length}}", body=b"body").packet(NOW)


class Learner:
    """Knows nothing yet; each packet is shown as often as it takes."""

    def __init__(self) -> None:
        self.shapes = KnownShapes(is_usual_arrival, Random(0))

    def show(self, shown: bytes, unseen: int = LEARN_EVERY) -> bool:
        """Whether it is known after it has come twice, with so many others before."""
        similar = self.shapes.unknown(shown, unseen, b"")
        self.shapes.unknown(shown, 0, similar)
        return self.knows(shown)

    def knows(self, shown: bytes) -> bool:
        return self.shapes.find(shown, 0) is not None


@pytest.mark.bound("binary.known_shapes")
def test_the_shape_that_was_used_longest_ago_is_forgotten() -> None:
    learner = Learner()
    packets = [packet(kind) for kind in range(MOST_SHAPES)]
    assert all(learner.show(each) for each in packets)
    assert learner.knows(packets[0])
    assert learner.show(packet(MOST_SHAPES))
    assert len(learner.shapes) == MOST_SHAPES
    assert [learner.knows(each) for each in packets[:3]] == [True, False, True]


@pytest.mark.bound("binary.known_forms")
def test_the_form_that_was_learned_longest_ago_is_forgotten() -> None:
    learner = Learner()
    packets = [packet(1, length) for length in range(5, 5 + 2 * MOST_FORMS + 2, 2)]
    assert [learner.show(each) for each in packets] == [True] * (MOST_FORMS + 1)
    assert [learner.knows(each) for each in packets] == [False] + [True] * MOST_FORMS


@pytest.mark.bound("binary.shapes_learned_at_once", "binary.packets_between_shapes")
def test_few_shapes_are_learned_at_once_and_then_one_now_and_then() -> None:
    learner = Learner()
    learned = [learner.show(packet(kind), 0) for kind in range(LEARN_AT_ONCE + 1)]
    assert learned == [True] * LEARN_AT_ONCE + [False]
    later = packet(LEARN_AT_ONCE)
    shown = 2 * LEARN_AT_ONCE + 2
    assert not learner.show(later, LEARN_EVERY - shown - 1)
    assert learner.show(later, 0)
    assert not learner.show(packet(LEARN_AT_ONCE + 1), LEARN_EVERY - 4)


def test_two_packets_have_to_be_similar_before_one_is_learned() -> None:
    learner = Learner()
    first, other = packet(1), Sent("00001", source=UUID(int=9)).packet(NOW)
    similar = learner.shapes.unknown(first, 0, b"")
    similar = learner.shapes.unknown(other, 0, similar)
    assert not learner.knows(other)
    assert learner.shapes.unknown(other, 0, similar) == b""
    assert learner.knows(other)
    assert not learner.knows(first)


@pytest.fixture
def half(tmp_path: Path) -> Iterator[Half]:
    """A queue manager that takes together what is like others before."""
    made = Half(tmp_path, together=True)
    made.deliver(several(3, 90_001), [], header=False)
    made.simulation.settle()
    yield made
    made.simulation.stop()


def commits(half: Half, sent: list[Sent]) -> int:
    """How many commits it takes to have these."""
    before = half.bob.store.metrics.snapshot()["store_commits"]
    half.deliver(sent, [], header=False)
    half.simulation.settle()
    return half.bob.store.metrics.snapshot()["store_commits"] - before


@pytest.mark.bound("binary.messages_taken_together")
def test_a_read_with_many_messages_is_taken_in_several_commits(half: Half) -> None:
    most = arrival_batch.MOST_MESSAGES
    assert commits(half, several(most)) == 1
    assert commits(half, several(most + 2, 2_001)) == 2


@pytest.mark.bound("binary.octets_taken_together")
def test_a_read_with_many_octets_is_taken_in_several_commits(half: Half) -> None:
    body = bytes(arrival_batch.MOST_BYTES // 4)
    assert commits(half, several(4, body=body)) == 1
    assert commits(half, several(8, 5, body=body)) == 2


@pytest.mark.bound("binary.packets_not_looked_at")
def test_what_was_not_recognised_for_long_is_looked_at_now_and_then(
    half: Half, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = 0
    find = half.bob.speed.batches.shapes.find

    def counting(data: bytes, start: int) -> object:
        nonlocal looked
        looked += 1
        return find(data, start)

    monkeypatch.setattr(half.bob.speed.batches.shapes, "find", counting)
    arriving = half.peer.connection.session.take_together
    assert isinstance(arriving, arrival_batches.Arriving)
    arriving.missed = arrival_batches.MOST_MISSED
    monkeypatch.setattr(half.bob.speed.batches.shapes, "_is_usual", lambda message: False)
    strange = [Sent("others", number) for number in range(1, 2_060)]
    half.deliver(strange, [], header=False)
    assert arriving.missed == arrival_batches.MOST_MISSED
    assert looked <= 2 * 3
