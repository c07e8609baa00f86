"""A store whose groups a log has before they are written, and what goes past groups."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from rocksdict import WriteBatch

from rpcqm.store import migration
from rpcqm.store.backup import mark_as_restored
from rpcqm.store.database import Database
from rpcqm.store.errors import ReplicationError, StoreError, StoreFormatError, StoreStoppedError
from rpcqm.store.fsck import check
from rpcqm.store.group_commit import WriteMode
from rpcqm.store.migration import place_of_database
from rpcqm.store.records import LOG_POSITION_KEY, Family
from rpcqm.store.replication import GROUP_BYTES, LogRecord, read_rows
from rpcqm.store.settings import StoreSettings
from rpcqm.store.store import Store
from tests.support.store.kept_log import KeptLog, begin_cluster, replay, rows_of
from tests.support.store.stores import Turns

Q = 16
TRANSACTION = b"t" * 16


@pytest.fixture
def log(turns: Turns) -> KeptLog:
    log = begin_cluster(turns.directory)
    log.take_over()
    return log


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happens, in order."""
    events: list[str] = []
    append, write = KeptLog.append, Database.write

    def appended(log: KeptLog, body: bytes) -> Any:
        events.append("append")
        return append(log, body)

    def written(database: Database, batch: Any, sync: bool, position: bytes | None = None) -> None:
        events.append(f"write{' synced' if sync else ''}")
        write(database, batch, sync, position)

    monkeypatch.setattr(KeptLog, "append", appended)
    monkeypatch.setattr(Database, "write", written)
    return events


def insert(store: Store, key: int, told: Callable[[], object], durable: bool = True) -> None:
    with store.transaction("insert") as txn:
        txn.insert(Q, key, b"packet", arrival=0, durable=durable)
    txn.call_after(told)


def settle(turns: Turns, log: KeptLog) -> None:
    turns.end()
    while log.answer():
        turns.end()


def test_nobody_is_answered_and_nothing_written_before_the_log_has_it(
    turns: Turns, log: KeptLog, events: list[str]
) -> None:
    store = turns.open(log=log)
    events.clear()
    insert(store, 1, partial(events.append, "answer"))
    turns.end()
    assert events == ["append"]
    assert store.index(Q).first_available() is None
    assert log.answer()
    assert events == ["append", "write", "answer"]
    assert store.index(Q).first_available() == 1
    store.close()


def test_the_position_is_written_with_the_rows(turns: Turns, log: KeptLog) -> None:
    store = turns.open(log=log)
    insert(store, 1, lambda: None)
    settle(turns, log)
    place = log.end.encode()
    assert store.get(Family.META, LOG_POSITION_KEY) == place
    insert(store, 2, lambda: None)
    turns.end()
    assert store.get(Family.META, LOG_POSITION_KEY) == place
    assert log.end.encode() != place
    store.close()


def test_one_append_is_outstanding_while_others_gather(
    turns: Turns, log: KeptLog, events: list[str]
) -> None:
    store = turns.open(log=log)
    settle(turns, log)
    events.clear()
    for key in range(3):
        insert(store, key, partial(events.append, str(key)))
        turns.end()
    insert(store, 3, partial(events.append, "express"), durable=False)
    assert events == ["append"]
    log.answer()
    assert events == ["append", "write", "append", "0"]
    assert store.index(Q).count == 1
    settle(turns, log)
    assert events[4:] == ["write", "1", "2", "express"]
    store.close()


def test_an_express_message_is_published_behind_what_the_log_has(
    turns: Turns, log: KeptLog
) -> None:
    store = turns.open(log=log, settings=StoreSettings(reserve=0, group_records=2))
    settle(turns, log)
    told: list[str] = []
    for key in range(3):
        insert(store, key, partial(told.append, str(key)), durable=key != 1)
    turns.end()
    assert told == []
    settle(turns, log)
    assert told == ["0", "1", "2"]
    store.close()


def test_what_needs_no_append_is_published_behind_one(turns: Turns, log: KeptLog) -> None:
    store = turns.open(log=log)
    settle(turns, log)
    told: list[str] = []
    insert(store, 1, partial(told.append, "durable"))
    turns.end()
    insert(store, 2, partial(told.append, "express"), durable=False)
    settle(turns, log)
    assert told == ["durable", "express"]
    store.close()


def test_what_is_not_synced_is_appended_too(turns: Turns, log: KeptLog) -> None:
    """A standby has what an open transaction has staged: it drops it when it takes over."""
    store = turns.open(log=log)
    for _ in range(2):  # the first one takes a number, whose limit is synced
        before = len(log.records)
        with store.transaction("stage") as txn:
            txn.stage_message(TRANSACTION, Q, b"packet", b"data")
        settle(turns, log)
        (record,) = map(LogRecord.decode, log.records[before:])
        assert Family.STAGED in [family for family, _, _ in read_rows(record.body)]
    store.close()


def test_an_append_that_cannot_be_ends_everything_without_an_answer(
    turns: Turns, log: KeptLog
) -> None:
    store = turns.open(log=log)
    settle(turns, log)
    told: list[str] = []
    insert(store, 1, partial(told.append, "first"))
    turns.end()
    insert(store, 2, partial(told.append, "second"))
    log.error = ReplicationError("another one has taken over")
    settle(turns, log)
    assert told == []
    assert turns.fatal == [log.error]
    with pytest.raises(StoreStoppedError), store.transaction("after"):
        pass
    store.close()
    positions = [key for family, key in rows_of(turns.directory) if family is Family.POSITION]
    assert positions == []


def test_a_write_that_fails_here_is_made_by_the_next_start(
    turns: Turns, log: KeptLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = turns.open(log=log)
    settle(turns, log)
    insert(store, 1, lambda: None)
    turns.end()
    with monkeypatch.context() as broken:
        broken.setattr(Database, "write", lambda *_, **__: 1 // 0)
        log.answer()
    assert len(turns.fatal) == 1
    store.close()
    replay(turns.directory, log.records[replay(turns.directory, []).number :])
    turns.callbacks.clear()
    store = turns.open(log=log)
    assert store.index(Q).first_available() == 1
    store.close()


def test_a_stop_does_not_wait_for_the_log(turns: Turns, log: KeptLog) -> None:
    store = turns.open(log=log)
    settle(turns, log)
    told: list[int] = []
    insert(store, 1, partial(told.append, 1))
    turns.end()
    insert(store, 2, partial(told.append, 2))
    store.close()
    assert log.answer()  # which comes too late
    assert told == []
    assert not turns.fatal
    assert not any(family is Family.POSITION for family, _ in rows_of(turns.directory))


def test_groups_are_no_larger_than_a_record(turns: Turns, log: KeptLog) -> None:
    store = turns.open(log=log)
    settle(turns, log)
    before = len(log.records)
    for key in range(6):
        with store.transaction("insert") as txn:
            txn.insert(Q, key, bytes(GROUP_BYTES // 4), arrival=0)
    settle(turns, log)
    bodies = [LogRecord.decode(octets) for octets in log.records[before:]]
    assert len(bodies) == 2
    assert {(record.part, record.parts) for record in bodies} == {(1, 1)}
    store.close()


def test_what_was_staged_is_dropped_through_the_log(turns: Turns, log: KeptLog) -> None:
    """So a standby has no row that the primary has dropped past it."""
    store = turns.open(log=log)
    with store.transaction("stage") as txn:
        txn.stage_message(TRANSACTION, Q, b"packet", b"data")
    settle(turns, log)
    store.close()
    log.take_over()
    store = turns.open(log=log)
    assert list(store.records(Family.STAGED))
    settle(turns, log)
    assert not list(store.records(Family.STAGED))
    assert not list(store.records(Family.BODY))
    store.close()
    begin_cluster(turns.directory.parent / "standby")
    replay(turns.directory.parent / "standby", log.records)
    assert rows_of(turns.directory.parent / "standby") == rows_of(turns.directory)


# Whose directory it is


def test_a_directory_of_a_cluster_does_not_go_on_without_the_log(
    turns: Turns, log: KeptLog
) -> None:
    rows = rows_of(turns.directory)
    with pytest.raises(StoreFormatError, match="must not go on without"):
        turns.open(begin_anew=lambda records, now: {})
    assert rows_of(turns.directory) == rows
    assert not check(turns.directory)


def test_an_older_version_refuses_a_directory_of_a_cluster(turns: Turns, log: KeptLog) -> None:
    database = Database(turns.directory, StoreSettings())
    try:
        with pytest.raises(StoreFormatError, match=r"has format 258, .* use a newer rpcqm"):
            migration.check_format(database, migration.read_format(database) or 0)
    finally:
        database.close()


def test_a_backup_of_a_cluster_is_restored_to_a_directory_of_its_own(
    turns: Turns, log: KeptLog
) -> None:
    """The way back: it has format 2 again, and no place in the log."""
    store = turns.open(log=log)
    insert(store, 1, lambda: None)
    settle(turns, log)
    store.close()
    mark_as_restored(turns.directory)
    with pytest.raises(StoreError, match="was restored from a backup"):
        turns.open(log=log)
    with pytest.raises(StoreFormatError):
        turns.open()
    store = turns.open(begin_anew=lambda records, now: {})
    assert store.get(Family.META, LOG_POSITION_KEY) is None
    assert store.get(Family.META, migration.FORMAT_KEY) == b"\x02\0\0\0"
    assert store.index(Q).first_available() == 1
    store = turns.reopen(store)
    store.close()


@pytest.mark.parametrize("version", [0, 1, migration.FORMAT, migration.FORMAT + 1])
def test_a_log_does_not_go_on_from_data_that_it_does_not_have(turns: Turns, version: int) -> None:
    database = Database(turns.directory, StoreSettings())
    if version:
        migration._step(database, WriteBatch(raw_mode=True), version)
    database.close()
    with pytest.raises(StoreFormatError, match=f"format {version}, which the cluster's log"):
        turns.open(log=KeptLog(begin_cluster(turns.directory.parent / "other").end))


@pytest.mark.parametrize("version", [1, 2])
def test_data_of_a_first_version_enters_a_cluster(turns: Turns, version: int) -> None:
    database = Database(turns.directory, StoreSettings())
    migration._step(database, WriteBatch(raw_mode=True), version)
    database.close()
    log = begin_cluster(turns.directory)
    store = turns.open(log=log)
    assert store.get(Family.META, LOG_POSITION_KEY) == log.end.encode()
    store.close()


def test_without_a_log_nothing_is_different(turns: Turns, events: list[str]) -> None:
    store = turns.open()
    insert(store, 1, lambda: None)
    turns.end()
    assert set(events) == {"write synced"}
    assert store._writer.mode is WriteMode.LOOP
    assert {key for key, _ in store.records(Family.META)} == {
        b"synced write",
        b"format",
        b"counter:serial",
    }
    store.close()


def test_the_place_of_a_database_that_has_none_is_an_error(turns: Turns) -> None:
    store = turns.open()
    with pytest.raises(ReplicationError):
        place_of_database(store._database)
    store.close()
