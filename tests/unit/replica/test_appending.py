"""A primary's records: one at a time, in doubt until it is certain, and a lease meanwhile."""

from dataclasses import dataclass, field

import pytest

from rpcqm.base.completion import Completion
from rpcqm.replica.appending import Appender, FencedError
from rpcqm.replica.lease import Lease
from rpcqm.replica.settling import AGAIN
from rpcqm.store import replication
from rpcqm.store.errors import ReplicationError
from rpcqm.store.replication import LogRecord, Place, RecordKind, place_of
from tests.support.clock import SimulatedClock
from tests.support.replica.memory_log import MemoryEngine, MemoryLog

LEASE = 3_000
INCARNATION = b"i" * 16


@dataclass
class Writer:
    """A primary of one epoch, and what it was told."""

    engine: MemoryEngine
    clock: SimulatedClock
    end: Place
    fenced: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        lease = Lease(LEASE, self.clock.monotonic)
        self.appender = Appender(
            self.engine, self.end, lease, self.clock, self.clock.timers, self.fenced.append
        )

    def append(self, body: bytes = b"body") -> Completion[Place]:
        return self.appender.append(body)


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock()


@pytest.fixture
def log(clock: SimulatedClock) -> MemoryLog:
    return MemoryLog(lambda callback: clock.timers.call_later(0, callback))


@pytest.fixture
def writer(clock: SimulatedClock, log: MemoryLog) -> Writer:
    return Writer(MemoryEngine(log), clock, Place(INCARNATION, 1, 0, bytes(8)))


def records(log: MemoryLog) -> list[LogRecord]:
    return [LogRecord.decode(octets) for octets in log.records]


def taken_over(log: MemoryLog, end: Place) -> bytes:
    """Another writer's record behind `end`."""
    record = LogRecord(
        RecordKind.TAKEOVER, INCARNATION, end.epoch + 1, end.number + 1, end.digest, 2, 0
    ).encode()
    assert log.put(end.number, record)
    return record


def test_records_follow_one_another(clock: SimulatedClock, log: MemoryLog, writer: Writer) -> None:
    outcomes = [writer.append(b"%d" % number) for number in range(3)]
    assert not any(outcome.done for outcome in outcomes)
    assert len(writer.engine.appends) == 1
    clock.advance(10)
    written = records(log)
    assert [record.body for record in written] == [b"0", b"1", b"2"]
    assert [record.number for record in written] == [1, 2, 3]
    places = [place_of(*each) for each in zip(written, log.records, strict=True)]
    assert [outcome.result() for outcome in outcomes] == places
    assert [record.before for record in written[1:]] == [place.digest for place in places[:2]]
    assert writer.appender.end == places[-1]


def test_a_long_write_is_answered_with_its_last_part(
    clock: SimulatedClock, log: MemoryLog, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replication, "MAXIMUM_BODY", 4)
    outcome = writer.append(b"ten octets")
    clock.advance(0)
    while len(log.records) < 3:
        assert not outcome.done
        clock.advance(0)
    clock.advance(10)
    assert outcome.result().number == 3
    assert [(each.part, each.parts, each.body) for each in records(log)] == [
        (1, 3, b"ten "),
        (2, 3, b"octe"),
        (3, 3, b"ts"),
    ]


@pytest.mark.parametrize("lost", ["request", "answer", "late"])
def test_a_lost_append_goes_again_as_it_was(
    clock: SimulatedClock, log: MemoryLog, writer: Writer, lost: str
) -> None:
    """Whatever was lost: the record is there once, and nobody is told before."""
    writer.engine.lost = [lost]
    outcome = writer.append()
    clock.advance(1)
    if lost != "answer":
        assert not outcome.done
        assert writer.appender.doubt
    clock.advance(AGAIN)
    assert outcome.result().number == 1
    assert len(log.records) == 1
    assert len(set(writer.engine.appends)) == 1
    writer.engine.land()
    clock.advance(1)
    assert len(log.records) == 1
    assert not writer.fenced
    assert not writer.appender.doubt


def test_that_the_log_ends_elsewhere_is_no_proof(
    clock: SimulatedClock, log: MemoryLog, writer: Writer
) -> None:
    """A leader that was cut off says so of what it could not commit, and shows nothing."""
    writer.engine.cut = True
    outcome = writer.append()
    clock.advance(20 * AGAIN)
    assert not outcome.done
    assert not writer.fenced
    writer.engine.cut = False
    clock.advance(2 * AGAIN)
    assert outcome.result().number == 1
    assert [record.body for record in records(log)] == [b"body"]


def test_that_nothing_is_seen_is_no_proof(
    clock: SimulatedClock, log: MemoryLog, writer: Writer
) -> None:
    """The record lands after it was given up, while reads still show an old end of the log."""
    writer.engine.lost = ["late"]
    writer.append(b"first")
    second = writer.append(b"second")
    clock.advance(1)
    writer.engine.cut = True
    writer.engine.land()
    clock.advance(5 * AGAIN)
    assert len(log.records) == 1
    writer.engine.cut = False
    clock.advance(5 * AGAIN)
    assert second.result().number == 2
    assert [record.body for record in records(log)] == [b"first", b"second"]


def test_another_record_at_the_place_ends_the_writer(
    clock: SimulatedClock, log: MemoryLog, writer: Writer
) -> None:
    writer.append()
    clock.advance(1)
    assert writer.appender.lease.held
    other = taken_over(log, writer.appender.end)
    outcomes = [writer.append(), writer.append()]
    clock.advance(1)
    assert writer.fenced == [other]
    for outcome in outcomes:
        with pytest.raises(FencedError):
            outcome.result()
    with pytest.raises(FencedError):
        writer.append()
    assert not writer.appender.lease.held
    clock.advance(10 * LEASE)
    assert log.records[1:] == [other]
    assert len(writer.engine.appends) == 2


def test_a_record_that_landed_before_the_takeover_is_acknowledged(
    clock: SimulatedClock, log: MemoryLog, writer: Writer
) -> None:
    """The new writer has applied it first."""
    writer.engine.lost = ["answer"]
    first, second = writer.append(b"first"), writer.append(b"second")
    written = LogRecord.decode(writer.engine.appends[0][1])
    taken_over(log, place_of(written, log.records[0]))
    clock.advance(1)
    assert first.result().number == 1
    assert second.error is not None
    assert len(writer.fenced) == 1


def test_a_place_that_was_trimmed_meanwhile_ends_the_writer(
    clock: SimulatedClock, log: MemoryLog, writer: Writer
) -> None:
    taken_over(log, writer.end)
    writer.engine.trim(2)
    outcome = writer.append()
    clock.advance(1)
    assert writer.fenced == [b""]
    assert isinstance(outcome.error, FencedError)


def test_a_full_log_is_waited_for(clock: SimulatedClock, log: MemoryLog, writer: Writer) -> None:
    log.full = True
    outcome = writer.append()
    clock.advance(5_000)
    assert not outcome.done
    assert writer.appender.doubt == "the log is full"
    assert writer.appender.waited == 5_000
    log.full = False
    clock.advance(2 * AGAIN)
    assert outcome.done
    assert writer.appender.waited == 0


# The lease


def test_an_idle_writer_gives_signs_of_life(
    clock: SimulatedClock, log: MemoryLog, writer: Writer
) -> None:
    clock.advance(10 * LEASE)
    assert {record.kind for record in records(log)} == {RecordKind.NOTHING}
    assert 29 <= len(log.records) <= 30
    assert writer.appender.lease.held
    before = len(log.records)
    for _ in range(20):
        writer.append()
        clock.advance(LEASE // 4)
    assert {record.kind for record in records(log)[before:]} == {RecordKind.ROWS}


def test_the_lease_counts_from_when_the_append_was_begun(
    clock: SimulatedClock, log: MemoryLog, writer: Writer
) -> None:
    """Not from its answer: the standby may have heard of it long before."""
    assert not writer.appender.lease.held
    writer.engine.lost = ["late"] * 50
    writer.append()
    clock.advance(2_000)
    assert not writer.appender.lease.held
    writer.engine.lost = []
    clock.advance(AGAIN + 1)
    assert writer.appender.lease.held
    writer.engine.cut = True
    clock.advance(LEASE - 2_000 - AGAIN - 2)
    assert writer.appender.lease.held
    clock.advance(1)
    assert not writer.appender.lease.held


def test_who_is_cut_off_holds_the_lease_no_longer_than_it_lasts(
    clock: SimulatedClock, writer: Writer
) -> None:
    writer.append()
    clock.advance(0)
    assert writer.appender.lease.held
    writer.engine.cut = True
    clock.advance(LEASE - 1)
    assert writer.appender.lease.held
    clock.advance(1)
    assert not writer.appender.lease.held
    assert not writer.fenced


def test_a_jump_of_the_time_of_day_changes_no_lease(clock: SimulatedClock, writer: Writer) -> None:
    writer.append()
    clock.advance(0)
    clock.set_ahead(3_600_000)
    assert writer.appender.lease.held
    clock.set_ahead(-7_200_000)
    writer.engine.cut = True
    clock.advance(LEASE)
    assert not writer.appender.lease.held


def test_a_standby_waits_longer_than_the_lease_lasts(clock: SimulatedClock) -> None:
    assert Lease(LEASE, clock.monotonic).patience == LEASE + 30 + 500


def test_a_stop_appends_nothing_more(clock: SimulatedClock, log: MemoryLog, writer: Writer) -> None:
    writer.engine.lost = ["request"]
    outcome = writer.append()
    clock.advance(1)
    writer.appender.stop()
    clock.advance(10 * LEASE)
    assert log.records == []
    assert not outcome.done
    with pytest.raises(ReplicationError):
        writer.append()
