"""A standby: what it writes, when it takes over, and that nothing acknowledged is lost then."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from rpcqm.replica.appending import Appender, FencedError
from rpcqm.replica.following import Standby, Writer
from rpcqm.replica.lease import Lease
from rpcqm.replica.settling import AGAIN
from rpcqm.store.database import Database
from rpcqm.store.errors import ReplicationError
from rpcqm.store.migration import enter_cluster, place_of_database
from rpcqm.store.records import Family
from rpcqm.store.replication import LogRecord, Place, RecordKind, RowWriter
from rpcqm.store.settings import StoreSettings
from rpcqm.store.store import Store
from tests.support.clock import SimulatedClock
from tests.support.replica.memory_log import MemoryEngine, MemoryLog
from tests.support.store.kept_log import INCARNATION, replay, rows_of

LEASE = 3_000
PATIENCE = 3_530
Q = 16


@dataclass
class Node:
    """A node with a data directory, which begins as a standby."""

    name: str
    directory: Path
    log: MemoryLog
    clock: SimulatedClock
    automatic: bool = True
    places: list[Place] = field(default_factory=list)
    errors: list[ReplicationError] = field(default_factory=list)
    fenced: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.engine = MemoryEngine(self.log)
        self.database = Database(self.directory, StoreSettings())
        if not self.database.get(Family.META, b"format"):
            enter_cluster(self.database, Place.beginning(INCARNATION))
        self.rows = RowWriter(self.database.handles)
        self.lease = Lease(LEASE, self.clock.monotonic)
        self.standby = Standby(
            self.engine,
            self.database,
            Writer(self.name.encode().ljust(16), self.name),
            self.lease,
            self.clock,
            self.clock.timers,
            self.places.append,
            self.errors.append,
            self.automatic,
        )
        self.store: Store | None = None

    def row(self, key: bytes) -> bytes:
        return self.rows.write([(key, b"value", self.database.handles[Family.STREAM])])

    def keys(self) -> list[bytes]:
        return [key for key, _ in self.database.items(Family.STREAM)]

    def writes(self) -> Appender:
        """What it appends by, once it has taken over."""
        (place,) = self.places
        return Appender(
            self.engine, place, self.lease, self.clock, self.clock.timers, self.fenced.append
        )

    def close(self) -> None:
        self.standby.stop()
        self.database.close()


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock()


@pytest.fixture
def log(clock: SimulatedClock) -> MemoryLog:
    return MemoryLog(lambda callback: clock.timers.call_later(0, callback))


MakeNode = Callable[..., Node]


@pytest.fixture
def node(tmp_path: Path, log: MemoryLog, clock: SimulatedClock) -> MakeNode:
    """Makes nodes of one cluster."""

    def make(name: str, automatic: bool = True) -> Node:
        return Node(name, tmp_path / name, log, clock, automatic)

    return make


@pytest.fixture
def primary(node: MakeNode, clock: SimulatedClock) -> tuple[Node, Appender]:
    first = node("first")
    first.standby.promote()
    clock.advance(1)
    return first, first.writes()


def test_a_standby_writes_what_the_log_has(
    node: MakeNode, primary: tuple[Node, Appender], clock: SimulatedClock
) -> None:
    first, appender = primary
    appender.append(first.row(b"before"))
    clock.advance(1)
    second = node("second")
    clock.advance(1)
    assert second.keys() == [b"before"]
    appender.append(first.row(b"after"))
    clock.advance(1)
    assert second.keys() == [b"after", b"before"]
    assert second.standby.end == appender.end
    assert second.standby.writer == Writer(b"first".ljust(16), "first")
    first.close()
    second.close()


def test_signs_of_life_keep_a_standby_waiting(
    node: MakeNode, primary: tuple[Node, Appender], clock: SimulatedClock
) -> None:
    second = node("second")
    clock.advance(20 * PATIENCE)
    assert second.places == []
    assert len(second.engine.appends) == 0
    second.close()
    primary[0].close()


def test_silence_makes_a_standby_take_over(
    node: MakeNode, primary: tuple[Node, Appender], clock: SimulatedClock
) -> None:
    first, appender = primary
    second = node("second")
    appender.append(first.row(b"row"))
    clock.advance(1)
    appender.stop()
    clock.advance(PATIENCE - 2)
    assert second.engine.appends == []
    clock.advance(10)
    (place,) = second.places
    assert (place.epoch, place.number) == (2, 3)
    assert second.keys() == [b"row"]
    assert second.lease.held
    first.close()
    second.close()


def test_the_lease_of_a_primary_ends_before_anybody_takes_over(
    node: MakeNode, primary: tuple[Node, Appender], clock: SimulatedClock
) -> None:
    first, _ = primary
    second = node("second")
    clock.advance(1_000)
    first.engine.cut = True
    held = 0
    while not second.places:
        held = clock.monotonic() if first.lease.held else held
        clock.advance(1)
    assert held
    assert clock.monotonic() - held > 500
    assert not first.lease.held
    first.close()
    second.close()


def test_who_is_manual_waits_to_be_promoted(
    node: MakeNode, primary: tuple[Node, Appender], clock: SimulatedClock
) -> None:
    second = node("second", automatic=False)
    primary[1].stop()
    clock.advance(10 * PATIENCE)
    assert second.places == []
    second.standby.promote()
    clock.advance(1)
    assert len(second.places) == 1
    second.close()
    primary[0].close()


def test_an_append_that_was_given_up_lands_before_the_takeover(
    node: MakeNode, primary: tuple[Node, Appender], clock: SimulatedClock
) -> None:
    """It is written first, and counts as a sign of life."""
    first, appender = primary
    second = node("second")
    clock.advance(1)
    first.engine.lost = ["late"]
    appender.append(first.row(b"late"))
    clock.advance(1)
    appender.stop()
    second.engine.cut = True
    clock.advance(PATIENCE)
    assert len(second.engine.appends) >= 1
    first.engine.land()
    second.engine.cut = False
    clock.advance(AGAIN + 1)
    assert second.keys() == [b"late"]
    assert second.places == []
    clock.advance(PATIENCE + 10)
    assert len(second.places) == 1
    assert second.keys() == [b"late"]
    first.close()
    second.close()


def test_a_standby_that_only_lagged_deposes_nobody(
    node: MakeNode, primary: tuple[Node, Appender], log: MemoryLog, clock: SimulatedClock
) -> None:
    first, appender = primary
    second = node("second")
    clock.advance(1)
    push, log.push = log.push, lambda: None  # type: ignore[method-assign]
    for _ in range(10):
        appender.append(first.row(b"row"))
        clock.advance(PATIENCE // 2)
    assert 1 <= len(second.engine.appends) <= 5
    assert second.places == []
    log.push = push  # type: ignore[method-assign]
    clock.advance(PATIENCE // 3)
    assert second.standby.end == appender.end
    assert not second.places
    assert not first.fenced
    first.close()
    second.close()


def test_a_promoted_standby_takes_over_from_one_that_writes(
    node: MakeNode, primary: tuple[Node, Appender], clock: SimulatedClock
) -> None:
    first, appender = primary
    second = node("second")
    clock.advance(1)
    written = appender.append(first.row(b"at the same time"))
    second.standby.promote()
    clock.advance(AGAIN)
    assert written.result().number == 2
    (place,) = second.places
    assert place.number == 3
    assert second.keys() == [b"at the same time"]
    refused = appender.append(first.row(b"too late"))
    clock.advance(1)
    assert isinstance(refused.error, FencedError)
    assert len(first.fenced) == 1
    assert not first.lease.held
    first.close()
    second.close()


def test_of_two_standbys_one_takes_over(
    node: MakeNode, primary: tuple[Node, Appender], clock: SimulatedClock
) -> None:
    others = [node("second"), node("third")]
    clock.advance(1)
    primary[1].stop()
    clock.advance(PATIENCE + 10)
    assert sorted(len(other.places) for other in others) == [0, 1]
    (winner,) = [other for other in others if other.places]
    appender = winner.writes()
    clock.advance(10 * PATIENCE)
    assert sorted(len(other.places) for other in others) == [0, 1]
    assert {other.standby.end.epoch for other in others} == {2}
    appender.stop()
    for each in (primary[0], *others):
        each.close()


@pytest.mark.parametrize("lost", ["request", "answer", "late"])
def test_a_takeover_in_doubt_goes_again_as_it_was(
    node: MakeNode,
    primary: tuple[Node, Appender],
    log: MemoryLog,
    clock: SimulatedClock,
    lost: str,
) -> None:
    second = node("second")
    clock.advance(1)
    primary[1].stop()
    second.engine.lost = [lost]
    clock.advance(PATIENCE + 2 * AGAIN)
    assert len(second.places) == 1
    assert len(set(second.engine.appends)) == 1
    second.engine.land()
    kinds = [LogRecord.decode(octets).kind for octets in log.records]
    assert kinds.count(RecordKind.TAKEOVER) == 2
    primary[0].close()
    second.close()


def test_a_standby_does_not_take_over_from_a_log_that_it_cannot_read(
    node: MakeNode, primary: tuple[Node, Appender], log: MemoryLog, clock: SimulatedClock
) -> None:
    second = node("second")
    clock.advance(1)
    primary[1].stop()
    log.put(log.last, log.records[0][:-1] + b"?")
    clock.advance(10 * PATIENCE)
    assert len(second.errors) == 1
    assert "Record 2 of the log is damaged" in str(second.errors[0])
    assert not second.places
    assert not second.engine.appends
    second.standby.promote()
    clock.advance(1)
    assert second.engine.appends == []
    second.close()
    primary[0].close()


def test_a_standby_too_far_behind_says_so(
    node: MakeNode, primary: tuple[Node, Appender], clock: SimulatedClock
) -> None:
    first, appender = primary
    for _ in range(3):
        appender.append(first.row(b"row"))
        clock.advance(1)
    first.engine.trim(3)
    second = node("second")
    clock.advance(10 * PATIENCE)
    assert len(second.errors) == 1
    assert second.places == []
    first.close()
    second.close()


def test_a_node_goes_on_where_it_was(
    node: MakeNode, primary: tuple[Node, Appender], clock: SimulatedClock
) -> None:
    first, appender = primary
    second = node("second")
    for number in range(3):
        appender.append(first.row(b"%d" % number))
        clock.advance(1)
    second.close()
    appender.append(first.row(b"3"))
    clock.advance(1)
    again = node("second")
    assert again.standby.end.number == 4
    clock.advance(1)
    assert again.keys() == [b"0", b"1", b"2", b"3"]
    assert place_of_database(again.database) == again.standby.end == appender.end
    again.close()
    first.close()


def test_the_takeover_has_the_latest_time_of_all_writers(
    node: MakeNode, primary: tuple[Node, Appender], log: MemoryLog, clock: SimulatedClock
) -> None:
    second = node("second")
    clock.set_ahead(3_600_000)
    primary[1].append(primary[0].row(b"row"))
    clock.advance(1)
    clock.set_ahead(-7_200_000)
    primary[1].stop()
    clock.advance(PATIENCE + 10)
    times = [LogRecord.decode(octets).time for octets in log.records]
    assert times[-1] == times[-2] == second.standby.latest
    primary[0].close()
    second.close()


@pytest.mark.parametrize("octets", [b"short", bytes(16) + b"n" * 256], ids=["short", "long"])
def test_a_takeover_of_nobody_is_not_taken(octets: bytes) -> None:
    with pytest.raises(ReplicationError, match="names no writer"):
        Writer.decode(octets)


# Stores that take over from one another


class Active:
    """The store of a node that has taken over, and the changes that were answered."""

    def __init__(self, node: Node, turn: list[Callable[[], None]], answered: list[int]) -> None:
        self.node = node
        self.appender = node.writes()
        self._answered = answered
        node.standby.stop()
        node.database.close()
        self.fatal: list[BaseException] = []
        self.store = Store.open(
            node.directory,
            end_of_turn=turn.append,
            clock=node.clock,
            settings=StoreSettings(reserve=0),
            fatal=self.fatal.append,
            log=self.appender,
        )

    def insert(self, number: int) -> None:
        with self.store.transaction("insert") as txn:
            txn.insert(Q, number, b"%d" % number, arrival=0)
        txn.call_after(lambda: self._answered.append(number))


@pytest.mark.parametrize("seed", range(6))
def test_what_was_answered_is_there_after_each_takeover(
    tmp_path: Path, log: MemoryLog, clock: SimulatedClock, seed: int
) -> None:
    """Appends are lost, late, or unanswered; primaries are cut off, and do not hear of it."""
    random, turn = Random(seed), list[Callable[[], None]]()
    answered: list[int] = []
    former: list[Active] = []
    number = 0
    for round_ in range(4):
        node = Node(f"n{round_}", tmp_path / f"n{round_}", log, clock)
        if round_ == 0:
            node.standby.promote()
        while not node.places:
            clock.advance(100)
        active = Active(node, turn, answered)
        keys = list(active.store.index(Q).keys())
        assert set(keys) >= set(answered)
        assert keys == sorted(set(keys))
        for old in former:
            old.node.engine.land()
        for _ in range(12):
            node.engine.lost += random.choices(["", "answer", "late", "request"], [6, 1, 1, 1])
            number += 1
            active.insert(number)
            while turn:
                turn.pop(0)()
            clock.advance(random.choice([0, 1, 150]))
        node.engine.cut = True
        active.insert(number := number + 1)
        former.append(active)
        clock.advance(LEASE)
        assert not active.appender.lease.held
        before = len(answered)
        while turn:
            turn.pop(0)()
        assert len(answered) == before
    for old in former:
        old.node.engine.cut = False
    clock.advance(2 * PATIENCE)
    assert [len(old.fatal) for old in former[:-1]] == [1, 1, 1]
    for old in former:
        old.store.close()
    assert len(answered) == len(set(answered)) > 20
    epochs = [LogRecord.decode(octets).epoch for octets in log.records]
    assert epochs == sorted(epochs)
    last = former[-1].node.directory
    place = replay(last, [])
    replay(last, log.records[place.number :])
    begun = Node("empty", tmp_path / "empty", log, clock)
    begun.close()
    replay(begun.directory, log.records)
    assert rows_of(begun.directory) == rows_of(last)
