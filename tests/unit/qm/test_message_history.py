"""What is remembered of messages that were taken, alone or many at once, over restarts (G357)."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rpcqm.qm.history_records import HistoryRecords, decode_many
from rpcqm.qm.message_history import MessageIDHistory
from tests.support.clock import SimulatedClock

SIZE, CLEANUP = 20, 1000
PREFIX = b"history:"


class Rig:
    """A history, and the records that are on the disk."""

    def __init__(self, size: int = SIZE) -> None:
        self.clock, self.size = SimulatedClock(), size
        self.disk: dict[bytes, bytes] = {}
        self.durable: set[bytes] = set()
        self.last = 0
        self.start()

    def start(self) -> None:
        timers = self.clock.timers
        self.history = MessageIDHistory(self.clock, timers, PREFIX, self.size, CLEANUP)
        many = self.history.prefix_of_many
        records = sorted(self.disk.items())
        self.history.restore(
            [each for each in records if each[0].startswith(PREFIX)],
            [each for each in records if each[0].startswith(many)],
        )

    def new(self, count: int) -> list[bytes]:
        self.last += count
        return [b"%0*d" % (4 + n % 3 // 2, n) for n in range(self.last - count, self.last)]

    def write(self, changes: dict[bytes, bytes | None]) -> None:
        for key, value in changes.items():
            if value is None:
                self.disk.pop(key, None)
            else:
                self.disk[key] = value

    def many(self, count: int) -> list[bytes]:
        identifiers, changes = self.new(count), dict[bytes, bytes | None]()
        self.history.add_many(dict.fromkeys(identifiers, True), changes)
        self.durable.update(identifiers)
        self.write(changes)
        return identifiers

    def one(self, durable: bool) -> None:
        changes: dict[bytes, bytes | None] = {}
        (identifier,) = self.new(1)
        self.history.add(identifier, changes if durable else None)
        if durable:
            self.durable.add(identifier)
        self.write(changes)

    def again(self, place: int) -> None:
        """One that is known comes again."""
        known = list(self.history._entries)
        if known:
            self.history.refresh(known[place % len(known)])
            self.write(self.history.take_stale())

    def forgotten_comes_again(self, place: int) -> None:
        """One that was forgotten is new, alone or with others."""
        forgotten = sorted(each for each in self.durable if each not in self.history)
        if not forgotten:
            return
        identifier, changes = forgotten[place % len(forgotten)], dict[bytes, bytes | None]()
        if place % 2:
            others = dict.fromkeys([*self.new(2), identifier], True)
            self.history.add_many(others, changes)
            self.durable.update(others)
        else:
            self.history.add(identifier, changes)
        self.write(changes)

    def restart(self) -> None:
        before = [each for each in self.history._entries if each in self.durable]
        times = {each: self.history._entries[each] for each in before}
        self.history.stop()
        self.start()
        now = self.history._entries
        assert set(before) <= set(now)
        assert len(now) <= self.size
        assert list(now.values()) == sorted(now.values())
        assert all(now[each] <= times[each] for each in before)

    def advance(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)

    @property
    def on_disk(self) -> int:
        """How many messages records tell of."""
        many = self.history.prefix_of_many
        values = [value for key, value in self.disk.items() if key.startswith(many)]
        alone = len(self.disk) - len(values)
        return alone + sum(len(decode_many(value)[1]) for value in values)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("many"), st.integers(1, SIZE + 3)),
        st.tuples(st.just("many"), st.integers(2, 6)),
        st.tuples(st.just("one"), st.booleans()),
        st.tuples(st.just("again"), st.integers(0, SIZE)),
        st.tuples(st.just("forgotten_comes_again"), st.integers(0, 40)),
        st.tuples(st.just("advance"), st.sampled_from([0, 1, 300, CLEANUP, 3 * CLEANUP])),
        st.tuples(st.just("restart")),
    ),
    max_size=25,
)
MANY: tuple[Any, ...] = ("many", 8)


@given(STEPS)
@example([MANY, ("again", 0), MANY, MANY, ("restart",), MANY, ("restart",)])
@example([MANY, MANY, MANY, ("forgotten_comes_again", 1), MANY, ("restart",)])
@example([MANY, ("advance", 1), MANY, MANY, ("forgotten_comes_again", 0), ("restart",), MANY])
def test_what_is_remembered_durably_is_remembered_after_a_restart(
    steps: list[tuple[Any, ...]],
) -> None:
    rig = Rig()
    for name, *arguments in steps:
        getattr(rig, name)(*arguments)
        assert len(rig.history) <= SIZE
        remembered = {each for each in rig.history._entries if each in rig.durable}
        assert len(remembered) <= rig.on_disk <= 2 * SIZE + len(steps) + 6
    rig.restart()
    rig.advance(3 * CLEANUP)
    assert not len(rig.history)
    rig.write(rig.history.take_stale())
    assert rig.disk == {}


def test_messages_that_come_together_are_one_record_until_all_are_forgotten() -> None:
    rig = Rig()
    first = rig.many(8)
    assert len(rig.disk) == 1
    rig.many(8)
    rig.many(8)
    assert len(rig.disk) == 3
    assert [each in rig.history for each in first] == [False] * 4 + [True] * 4
    rig.restart()
    assert [each in rig.history for each in first] == [False] * 4 + [True] * 4
    rig.many(4)
    assert len(rig.disk) == 3


def test_one_that_comes_again_is_remembered_longer_than_those_that_came_with_it() -> None:
    rig = Rig()
    first = rig.many(8)
    rig.advance(1)
    rig.again(2)
    rig.many(8)
    rig.many(8)
    rig.restart()
    assert first[2] in rig.history
    assert sum(each in rig.history for each in first) == 4


def test_records_after_a_restart_do_not_take_the_places_of_others() -> None:
    rig = Rig()
    first = rig.many(3)
    rig.restart()
    second = rig.many(3)
    rig.restart()
    assert all(each in rig.history for each in (*first, *second))
    assert len(rig.disk) == 2


def test_messages_of_somebody_are_remembered_one_by_one() -> None:
    """Who has caused most gives way first, which is told of each."""
    rig = Rig()
    changes: dict[bytes, bytes | None] = {}
    rig.history.add(b"somebody's", changes, "somebody")
    rig.history.add_many(dict.fromkeys([b"one", b"two"], True), changes)
    assert set(changes) == {PREFIX + each for each in (b"somebody's", b"one", b"two")}


@pytest.mark.parametrize("cut", [8, 10, 14, 15, 22, 29])
def test_a_record_that_is_cut_off_tells_of_fewer(cut: int) -> None:
    records = HistoryRecords(PREFIX)
    _, value = records.keep(5, [b"first", b"other", b"longer"])
    time, found = decode_many(value[:cut])
    assert time == 5
    assert len(found) <= 3
    assert decode_many(value) == (5, [b"first", b"other", b"longer"])
