"""Identifiers are never given twice, whatever is left after a restart."""

import pytest

from rpcqm.store.counters import Counter
from rpcqm.store.store import Store
from tests.support.store.stores import Turns

NAMES = ("serial", "lookup_identifier", "message_ordinal", "queue_id")


def test_a_counter_reserves_blocks_before_it_gives_numbers() -> None:
    reserved: list[tuple[bytes, bytes]] = []
    counter = Counter("test", block=3, first=1, reserve=lambda k, v: reserved.append((k, v)))
    assert [counter.take() for _ in range(7)] == list(range(1, 8))
    assert [value[0] for _, value in reserved] == [4, 7, 10]
    assert {key for key, _ in reserved} == {b"counter:test"}


def test_runs_of_numbers_reserve_the_blocks_that_single_ones_do() -> None:
    reserved: list[tuple[bytes, bytes]] = []
    counter = Counter("test", block=3, first=1, reserve=lambda k, v: reserved.append((k, v)))
    taken = [counter.take_many(count) for count in (0, 2, 1, 1, 7, 2)]
    assert [list(run) for run in taken] == [
        [],
        [1, 2],
        [3],
        [4],
        [5, 6, 7, 8, 9, 10, 11],
        [12, 13],
    ]
    assert [value[0] for _, value in reserved] == [4, 7, 13, 16]
    assert counter.take() == 14


def test_identifiers_of_several_priorities_are_those_that_each_would_get(
    store: Store, turns: Turns
) -> None:
    counters = store.counters
    first = counters.next_lookup_identifier(0) & 0xFFFF
    keys = counters.next_lookup_identifiers([3, 0, 7])
    assert keys == [4 << 56 | first + 1, 7 << 56 | first + 2, first + 3]


def test_numbers_that_nobody_saw_may_be_given_again_but_no_others(turns: Turns) -> None:
    store = turns.open()
    seen = {name: getattr(store.counters, name).take() for name in NAMES}
    turns.end()
    later = {name: getattr(store.counters, name).take() for name in NAMES}
    store = turns.reopen(store)
    for name in NAMES:
        assert getattr(store.counters, name).take() > later[name] > seen[name]
    store.close()


def test_a_block_that_failed_still_reserves_its_numbers(turns: Turns) -> None:
    store = turns.open()
    taken = 0
    with pytest.raises(ZeroDivisionError), store.transaction("fails"):
        taken = store.counters.serial.take() // 0
    serial = store.counters.serial.take()
    turns.end()
    store = turns.reopen(store)
    assert store.counters.serial.take() > serial > taken
    store.close()


def test_many_restarts_never_repeat_an_identifier(turns: Turns) -> None:
    seen: set[int] = set()
    for _ in range(4):
        store = turns.open()
        for _ in range(40):
            number = store.counters.queue_id.take()
            assert number not in seen
            seen.add(number)
        turns.end()
        store.close()
    assert min(seen) == 16


@pytest.mark.parametrize(("priority", "high"), [(0, 7), (3, 4), (7, 0)])
def test_a_lookup_identifier_carries_the_priority(store: Store, priority: int, high: int) -> None:
    """G1: the high byte is 7 - priority, so that identifiers follow the order of the queue."""
    first = store.counters.next_lookup_identifier(priority)
    second = store.counters.next_lookup_identifier(priority)
    assert first >> 56 == second >> 56 == high
    assert second == first + 1
