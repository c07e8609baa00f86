"""Whether the log goes on from the data of a node; nothing is changed where it does not."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rpcqm.service.cluster import entering
from rpcqm.service.cluster.entering import Entered, enter
from rpcqm.store.database import Database
from rpcqm.store.errors import LogSilentError, ReplicationError
from rpcqm.store.migration import bring_to_format, is_of_cluster, place_of_database
from rpcqm.store.replay import Replay
from rpcqm.store.replication import LogRecord, Place, RecordKind, place_of
from rpcqm.store.settings import StoreSettings
from tests.support.replica.memory_log import MemoryEngine, MemoryLog

MakeDatabase = Callable[[str], Database]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[MakeDatabase]:
    opened: list[Database] = []

    def make(name: str) -> Database:
        opened.append(Database(tmp_path / name, StoreSettings()))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entering, "AGAIN_SECONDS", 0)


class Log:
    """A log in memory, for one look after the other."""

    def __init__(self) -> None:
        self.memory = MemoryLog(lambda callback: asyncio.get_running_loop().call_soon(callback))
        self.end: Place | None = None

    def enter(self, database: Database, cut: bool = False) -> Entered:
        engine = MemoryEngine(self.memory)
        engine.cut = cut
        entered = asyncio.run(enter(engine, database, "orders"))
        self.end = self.end or place_of_database(database)
        return entered

    def add(self, count: int = 1, time: int = 7) -> None:
        """Takeovers, which every record but rows may be here."""
        for _ in range(count):
            assert self.end is not None
            end = self.end
            record = LogRecord(
                RecordKind.TAKEOVER,
                end.incarnation,
                end.epoch + 1,
                end.number + 1,
                end.digest,
                2,
                time,
                bytes(16) + b"node",
            )
            octets = record.encode()
            self.memory.records.append(octets)
            self.end = place_of(record, octets)


def follow(database: Database, log: Log, count: int) -> None:
    """Write so many records, and that this is where the log ended."""
    replay = Replay(database)
    for octets in log.memory.records[:count]:
        replay.feed(octets)
    replay._write([], replay.end)


def everything(database: Database) -> list[object]:
    from rpcqm.store.records import Family

    return [list(database.items(family)) for family in Family]


def with_data(make: MakeDatabase, name: str) -> Database:
    made = make(name)
    bring_to_format(made)
    return made


def refused(log: Log, database: Database, words: str) -> None:
    before = everything(database)
    with pytest.raises(ReplicationError, match=words) as caught:
        log.enter(database)
    assert str(caught.value).endswith(".")
    assert everything(database) == before


def test_two_nodes_without_data_begin_with_one_log(database: MakeDatabase) -> None:
    log, first, second = Log(), database("first"), database("second")
    log.enter(first)
    assert place_of_database(first).number == 0
    log.enter(second)
    assert place_of_database(second) != place_of_database(first)
    log.add()
    log.enter(second)
    assert place_of_database(second) == place_of_database(first)


def test_a_node_with_data_gives_the_log_a_digest_of_its_own(database: MakeDatabase) -> None:
    log, first = Log(), with_data(database, "first")
    log.enter(first)
    assert is_of_cluster(first)
    assert place_of_database(first).digest != bytes(8)


def test_no_other_data_go_on_in_that_log(database: MakeDatabase) -> None:
    log = Log()
    log.enter(with_data(database, "first"))
    log.add()
    refused(log, with_data(database, "second"), "goes on from other data")
    refused(log, database("third"), "goes on from other data")


def test_data_do_not_go_on_in_a_log_that_began_with_nothing(database: MakeDatabase) -> None:
    log = Log()
    log.enter(database("first"))
    log.add()
    refused(log, with_data(database, "second"), "goes on from other data")


def test_a_new_node_does_not_enter_a_log_that_was_trimmed(database: MakeDatabase) -> None:
    log = Log()
    log.enter(database("first"))
    log.add(3)
    del log.memory.records[0]
    log.memory.first = 2
    refused(log, database("second"), "goes on from other data")


def test_a_place_behind_the_end_of_the_log_is_refused(database: MakeDatabase) -> None:
    log, first = Log(), database("first")
    log.enter(first)
    log.add(2)
    follow(first, log, 2)
    del log.memory.records[1:]
    refused(log, first, "ends with record 1, but record 2 is written here")


def test_a_log_that_is_cut_off_is_looked_at_again(database: MakeDatabase) -> None:
    log, first = Log(), database("first")
    log.enter(first)
    log.add(2)
    follow(first, log, 2)
    assert log.enter(first).bounds.last == 2
    with pytest.raises(LogSilentError):
        log.enter(first, cut=True)


def test_another_record_at_the_place_is_refused(database: MakeDatabase) -> None:
    log, first = Log(), database("first")
    log.enter(first)
    begun = log.end
    log.add(1)
    follow(first, log, 1)
    log.memory.records.clear()
    log.end = begun
    log.add(1, time=8)
    refused(log, first, "is another one than the one written here")


def test_a_place_that_was_trimmed_is_refused(database: MakeDatabase) -> None:
    log, first = Log(), database("first")
    log.enter(first)
    log.add(4)
    follow(first, log, 1)
    del log.memory.records[:3]
    log.memory.first = 4
    refused(log, first, "was trimmed behind record 1")


def test_the_time_of_the_last_record_is_not_gone_back_behind(database: MakeDatabase) -> None:
    log, first = Log(), database("first")
    log.enter(first)
    log.add(1, time=1_234)
    follow(first, log, 1)
    assert log.enter(first).latest == 1_234
