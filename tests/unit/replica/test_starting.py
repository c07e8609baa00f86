"""A node that starts: whether it has to wait for silence, and whom a switch-over asks."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rpcqm.replica.appending import Appender
from rpcqm.replica.following import Standby, SwitchOver, Writer
from rpcqm.replica.lease import Lease
from rpcqm.store.database import Database
from rpcqm.store.errors import ReplicationError
from rpcqm.store.migration import enter_cluster
from rpcqm.store.records import Family
from rpcqm.store.replay import last_takeover
from rpcqm.store.replication import Place
from rpcqm.store.settings import StoreSettings
from tests.support.clock import SimulatedClock
from tests.support.replica.memory_log import MemoryEngine, MemoryLog
from tests.support.store.kept_log import INCARNATION

LEASE, PATIENCE = 3_000, 3_530


@dataclass
class Start:
    """One running of a node; `first` is where the log ended when it was started."""

    name: str
    directory: Path
    log: MemoryLog
    clock: SimulatedClock
    places: list[Place] = field(default_factory=list)
    errors: list[ReplicationError] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.engine = MemoryEngine(self.log)
        self.database = Database(self.directory, StoreSettings())
        if not self.database.get(Family.META, b"format"):
            enter_cluster(self.database, Place.beginning(INCARNATION))
        self.itself = Writer(self.name.encode().ljust(16), self.name)
        self.lease = Lease(LEASE, self.clock.monotonic)
        self.standby = Standby(
            self.engine,
            self.database,
            self.itself,
            self.lease,
            self.clock,
            self.clock.timers,
            self.places.append,
            self.errors.append,
            first=self.log.last,
        )

    def writes(self) -> Appender:
        (place,) = self.places
        return Appender(
            self.engine, place, self.lease, self.clock, self.clock.timers, lambda by: None
        )

    def end(self) -> None:
        self.standby.stop()
        self.database.close()


class Cluster:
    def __init__(self, place: Path) -> None:
        self.clock = SimulatedClock()
        self.log = MemoryLog(lambda callback: self.clock.timers.call_later(0, callback))
        self._place = place
        self._running: list[Start] = []

    def start(self, name: str) -> Start:
        started = Start(name, self._place / name, self.log, self.clock)
        self._running.append(started)
        self.clock.advance(1)
        return started

    def end(self, each: Start) -> None:
        self._running.remove(each)
        each.end()

    def close(self) -> None:
        for each in list(self._running):
            self.end(each)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.close()


def test_the_first_node_of_a_cluster_takes_over_at_once(cluster: Cluster) -> None:
    first = cluster.start("first")
    assert [place.number for place in first.places] == [1]
    assert last_takeover(first.database) is not None


def test_who_has_written_last_need_not_wait(cluster: Cluster) -> None:
    first = cluster.start("first")
    first.writes().stop()
    cluster.end(first)
    again = cluster.start("first")
    assert [place.epoch for place in again.places] == [2]


def test_a_node_that_starts_does_not_depose_another_one(cluster: Cluster) -> None:
    first = cluster.start("first")
    appender = first.writes()
    second = cluster.start("second")
    cluster.clock.advance(10 * PATIENCE)
    assert second.places == []
    assert second.engine.appends == []
    assert second.standby.writer == first.itself
    appender.stop()


def test_a_former_primary_hears_first_that_it_is_one(cluster: Cluster) -> None:
    first = cluster.start("first")
    first.writes().stop()
    cluster.end(first)
    second = cluster.start("second")
    second.standby.promote()
    cluster.clock.advance(1)
    appender = second.writes()
    again = cluster.start("first")
    cluster.clock.advance(10 * PATIENCE)
    assert again.places == []
    assert again.standby.writer == second.itself
    appender.stop()


@pytest.mark.parametrize(("to", "who"), [("", "second"), ("second", "second"), ("third", "third")])
def test_a_switch_over_asks_one_that_need_not_wait(cluster: Cluster, to: str, who: str) -> None:
    first = cluster.start("first")
    appender = first.writes()
    names = ("second", "third") if to else ("second",)
    others = {name: cluster.start(name) for name in names}
    cluster.clock.advance(1)
    appender.hand_over(SwitchOver(first.itself, to).encode())
    cluster.clock.advance(1)
    appender.stop()
    cluster.clock.advance(1)
    assert {name for name, each in others.items() if each.places} == {who}


def test_who_has_switched_over_does_not_ask_itself(cluster: Cluster) -> None:
    first = cluster.start("first")
    appender = first.writes()
    appender.hand_over(SwitchOver(first.itself, "").encode())
    cluster.clock.advance(1)
    appender.stop()
    cluster.end(first)
    second = cluster.start("second")
    second.standby.promote()
    cluster.clock.advance(1)
    later = second.writes()
    again = cluster.start("first")
    cluster.clock.advance(1)
    assert again.places == []
    assert again.engine.appends == []
    later.stop()


@pytest.mark.parametrize("octets", [b"", b"\x05abc", b"\x00short"])
def test_a_damaged_order_is_none(octets: bytes) -> None:
    with pytest.raises(ReplicationError):
        SwitchOver.decode(octets)


def test_an_order_is_read_as_it_was_written() -> None:
    order = SwitchOver(Writer(bytes(16), "first"), "second")
    assert SwitchOver.decode(order.encode()) == order
