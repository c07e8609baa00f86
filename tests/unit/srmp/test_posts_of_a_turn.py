"""Messages that come by HTTP within one turn are put into their queue as one run."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rpcqm.adm.queue import Queue
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.types.mqvalues import INFINITE
from rpcqm.store.records import Family
from tests.support.queue_manager import MEMORY
from tests.support.srmp_door import HERE, ORDERS, RECEIPTS, STREAM, Door, msmq
from tests.support.srmp_text import Elements, durable, in_stream, message
from tests.support.store_state import state_of

MANY = 8
DELIVERY = f"<deliveryReceiptRequest><sendTo>{RECEIPTS}</sendTo></deliveryReceiptRequest>"
GUID = "d1f0a825-57b2-43e5-9d34-f1d8b2b8950a"


class Half(Door):
    """A door with templates or without, whose queues may be there already."""

    templates = True

    def _start(self) -> None:
        super()._start()
        self.engine.turn.is_on = self.templates
        self.engine.trail._number = 0  # where it begins is random

    def create(self, name: str = r"private$\orders", **attributes: Any) -> Queue:
        found = self.engine.registry.find_by_path(rf".\{name}")
        return found or super().create(name, **attributes)

    @property
    def commits(self) -> int:
        return self.store.metrics.snapshot()["store_commits"]

    def start(self, ordinal: int, to: str = ORDERS, body: bytes = b"", **more: Any) -> Any:
        """Begin to take a message, a durable one if `more` does not say."""
        elements = Elements(ordinal=ordinal, **{"services": durable(), "msmq": msmq(), **more})
        return self.begin(message(to, body, elements))


class Careful(Half):
    templates = False


@pytest.fixture
def half(directory: Path) -> Iterator[Half]:
    door = Half(directory)
    yield door
    door.stop()


def results(door: Door, answers: list[Completion[int]]) -> list[int]:
    door.settle()
    return [answer.result() for answer in answers]


@pytest.mark.parametrize("kind", [Half, Careful])
def test_what_comes_in_one_turn_is_one_commit_and_there_after_a_restart(
    directory: Path, kind: type[Half]
) -> None:
    door = kind(directory)
    before = door.commits
    answers = [door.start(number, body=b"%d" % number) for number in range(1, MANY + 1)]
    assert not any(answer.done for answer in answers)
    assert results(door, answers) == [200] * MANY
    assert door.commits - before == (1 if kind.templates else MANY)
    door.restart()
    assert door.contents() == [b"%d" % number for number in range(1, MANY + 1)]
    again = [door.start(number, body=b"again") for number in range(1, MANY + 1)]
    assert results(door, again) == [200] * MANY
    assert len(door.contents()) == MANY
    door.stop()


def test_a_message_that_comes_twice_in_a_turn_is_taken_once(half: Half) -> None:
    assert results(half, [half.start(1, body=b"x") for _ in range(3)]) == [200] * 3
    assert half.contents() == [b"x"]


def test_the_second_of_a_message_that_found_no_room_is_not_told_that_it_is_there(
    half: Half,
) -> None:
    """Else its sender would take for stored what is stored nowhere."""
    before, half.engine.queue_manager.queue_manager_quota = (
        half.engine.queue_manager.queue_manager_quota,
        0,
    )
    assert results(half, [half.start(1, body=b"x") for _ in range(2)]) == [500, 500]
    half.engine.queue_manager.queue_manager_quota = before
    assert results(half, [half.start(1, body=b"x")]) == [200]
    assert half.contents() == [b"x"]


def test_a_quota_that_has_room_for_some_takes_as_many_as_without_a_run(half: Half) -> None:
    half.queue().quota = 8
    answers = [half.start(number, body=bytes(900)) for number in range(1, MANY + 1)]
    assert results(half, answers) == [200] * MANY
    taken = half.contents()
    assert 0 < len(taken) < MANY
    half.queue().quota = INFINITE
    assert results(half, [half.start(MANY + 1)]) == [200]
    assert len(half.contents()) == len(taken) + 1


def test_a_full_disk_answers_500_to_each_and_forgets_them(
    half: Half, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(size: int) -> None:
        raise MQError(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES)

    with monkeypatch.context() as full:
        full.setattr(half.store, "admit", refuse)
        assert results(half, [half.start(number) for number in (1, 2)]) == [500, 500]
    assert half.contents() == []
    assert results(half, [half.start(number) for number in (1, 2)]) == [200, 200]
    assert len(half.contents()) == 2


def test_a_receipt_is_still_sent_for_a_message_among_others(half: Half) -> None:
    asking = durable(DELIVERY)
    answers = [half.start(1), half.start(2, services=asking), half.start(3)]
    assert results(half, answers) == [200] * 3
    assert len(half.contents()) == 3
    assert len(half.receipts) == 1


def test_a_message_that_is_late_when_its_turn_ends_is_not_put_there(half: Half) -> None:
    now = "20260601T120001"
    answers = [half.start(1, expires=now), half.start(2)]
    half.clock.advance(5_000)
    assert results(half, answers) == [200, 200]
    assert len(half.contents()) == 1


# Both ways

ADDRESSES = st.sampled_from([ORDERS, ORDERS, ORDERS, f"{HERE}/ORDERS", STREAM, f"{HERE}/nobody"])
EXPIRIES = st.sampled_from(["20370101T000000", "20260601T120130", "20260601T115959"])
SENDS = st.tuples(
    st.just("start"),
    st.integers(1, 12),
    st.fixed_dictionaries(
        {
            "to": ADDRESSES,
            "body": st.binary(max_size=30) | st.just(bytes(1500)),
            "label": st.sampled_from(["", "a", "order of today", "é" * 20]),
            "services": st.sampled_from([durable(), durable(), "", durable(DELIVERY)]),
            "expires": EXPIRIES,
        },
        optional={
            "msmq": st.builds(
                msmq,
                priority=st.integers(0, 7),
                expires=st.sampled_from(["", "20260601T120100", "20370101T000000"]),
            ),
        },
    ),
)
STREAMED = st.tuples(st.just("stream"), st.integers(1, 4))
OTHERS = st.sampled_from(
    [("quota", 2), ("quota", 6), ("quota", INFINITE), ("trail",), ("wait", 70_000), ("all", 1)]
)
TURNS = st.lists(
    st.lists(st.one_of(SENDS, SENDS, SENDS, STREAMED, OTHERS), min_size=1, max_size=8),
    min_size=1,
    max_size=6,
)


def turn(door: Half, actions: list[Any]) -> list[object]:
    answers = []
    for name, *arguments in actions:
        if name == "start":
            answers.append(door.start(arguments[0], **arguments[1]))
        elif name == "stream":
            place = in_stream(GUID, arguments[0], RECEIPTS)
            answers.append(door.start(100 + arguments[0], STREAM, stream=place, msmq=msmq()))
        elif name == "quota":
            door.engine.turn.drain()
            door.queue().quota = arguments[0]
        elif name == "all":
            door.engine.turn.drain()
            quota = 4 if door.engine.queue_manager.queue_manager_quota != 4 else INFINITE
            door.engine.queue_manager.queue_manager_quota = quota
        elif name == "trail":
            door.engine.trail.switch(door.queue(), not door.queue().trail)
        else:
            door.settle()  # no turn is so long
            door.advance(arguments[0])
    return list(results(door, answers))


def kept(door: Door) -> dict[str, Any]:
    """All but the records of queues: those that receipts make have random identifiers."""
    state = state_of(door.store)
    records = state.pop("records")
    return state | {"records": records[Family.STREAM]}


@contextmanager
def both(directory: Path) -> Iterator[tuple[Half, Half]]:
    first = Half(directory / "templates")
    first.stop()
    shutil.copytree(directory / "templates", directory / "careful")
    halves = Half(directory / "templates"), Careful(directory / "careful")
    yield halves
    for half in halves:
        half.stop()


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(turns=TURNS)
def test_both_ways_have_one_outcome(turns: list[list[Any]]) -> None:
    with TemporaryDirectory(dir=MEMORY) as name, both(Path(name)) as halves:
        for actions in turns:
            first, second = (turn(half, actions) for half in halves)
            assert first == second
            first_state, second_state = map(kept, halves)
            assert first_state == second_state
            places = [half.store.counters.places() for half in halves]
            assert places[0] == places[1]
