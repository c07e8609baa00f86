"""How a data directory becomes that of a node: by another node's backup, or by beginning a log."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rpcqm.binary.connection.new_sequences import begin_new_sequences
from rpcqm.store import restored
from rpcqm.store.adopting import adopt, place_to_go_on_from
from rpcqm.store.backup import join_backup, mark_as_restored, write_backup
from rpcqm.store.database import Database
from rpcqm.store.errors import StoreError, StoreLockedError
from rpcqm.store.migration import is_of_cluster
from rpcqm.store.records import Family
from rpcqm.store.restored import GONE_ON_KEY, RESTORED_NAME, is_pending
from rpcqm.store.settings import StoreSettings
from rpcqm.store.store import Store
from tests.support.store.kept_log import KeptLog, begin_cluster, replay, rows_of
from tests.support.store.stores import Turns

Q = 16


def settle(turns: Turns, log: KeptLog) -> None:
    turns.end()
    while log.answer():
        turns.end()


def send(turns: Turns, log: KeptLog, store: Store, key: int) -> None:
    with store.transaction("insert") as txn:
        txn.insert(Q, key, b"packet", arrival=0, durable=True)
    settle(turns, log)


def put(turns: Turns, log: KeptLog, store: Store, key: bytes) -> None:
    with store.transaction("put") as txn:
        txn.put(Family.META, key, b"value")
    settle(turns, log)


@pytest.fixture
def log(turns: Turns) -> KeptLog:
    log = begin_cluster(turns.directory)
    log.take_over()
    return log


def backed_up(directory: Path, backup: Path) -> Path:
    database = Database(directory, StoreSettings())
    write_backup(database, backup, [directory / "accounts"], {"made": "2026-11-28T00:00:00+00:00"})
    database.close()
    return backup


def test_a_new_node_goes_on_from_a_backup_that_the_primary_made_while_it_served(
    turns: Turns, log: KeptLog, tmp_path: Path
) -> None:
    (turns.directory / "accounts").write_text("alice")
    store = turns.open(log=log)
    put(turns, log, store, b"before")
    backup, joined = tmp_path / "backup", tmp_path / "joined"
    write_backup(store._database, backup, [turns.directory / "accounts"], {"made": "now"})
    place = log.end
    put(turns, log, store, b"after")
    assert join_backup(backup, joined) == place
    assert not (joined / RESTORED_NAME).exists()
    assert (joined / "accounts").read_text() == "alice"
    assert replay(joined, log.records[place.number :]) == log.end
    store.close()
    assert rows_of(joined) == rows_of(turns.directory)


def test_a_backup_of_no_cluster_does_not_join(turns: Turns, tmp_path: Path) -> None:
    turns.open().close()
    backup = backed_up(turns.directory, tmp_path / "backup")
    with pytest.raises(StoreError, match="in no cluster"):
        join_backup(backup, tmp_path / "joined")
    assert list((tmp_path / "joined").iterdir()) == []


def test_what_is_there_is_not_joined_over(turns: Turns, log: KeptLog, tmp_path: Path) -> None:
    backup = backed_up(turns.directory, tmp_path / "backup")
    with pytest.raises(StoreError, match="not empty"):
        join_backup(backup, turns.directory)


def looked_at(directory: Path, look: Callable[[Database], object]) -> object:
    database = Database(directory, StoreSettings())
    try:
        return look(database)
    finally:
        database.close()


def test_one_node_begins_a_new_log_with_new_numbers(
    turns: Turns, log: KeptLog, tmp_path: Path
) -> None:
    store = turns.open(log=log)
    send(turns, log, store, 1)
    limit = store.counters.message_ordinal.limit
    store.close()
    place = replay(turns.directory, [])
    assert place_to_go_on_from(turns.directory) == place
    assert adopt(turns.directory, begin_new_sequences, turns.clock) == place
    assert not looked_at(turns.directory, is_of_cluster)
    assert not looked_at(turns.directory, lambda found: is_pending(found, turns.directory))
    turns.callbacks.clear()
    store = turns.open(log=begin_cluster(turns.directory))
    assert store.counters.message_ordinal.limit > limit + (1 << 27)
    assert store.index(Q).first_available() == 1
    store.close()


def test_data_that_were_restored_begin_a_log(turns: Turns, tmp_path: Path) -> None:
    turns.open().close()
    mark_as_restored(turns.directory)
    assert place_to_go_on_from(turns.directory) is None
    assert adopt(turns.directory, begin_new_sequences, turns.clock) is None
    assert not looked_at(turns.directory, lambda found: is_pending(found, turns.directory))


def test_data_that_are_neither_need_no_adoption(turns: Turns) -> None:
    turns.open().close()
    before = rows_of(turns.directory)
    with pytest.raises(StoreError, match="neither of a cluster nor restored"):
        adopt(turns.directory, begin_new_sequences, turns.clock)
    assert rows_of(turns.directory) == before


def test_no_data_and_data_in_use_are_not_adopted(turns: Turns, log: KeptLog) -> None:
    with pytest.raises(StoreError, match="no data"):
        adopt(turns.directory / "nothing", begin_new_sequences, turns.clock)
    store = turns.open(log=log)
    with pytest.raises(StoreLockedError):
        adopt(turns.directory, begin_new_sequences, turns.clock)
    store.close()


def test_a_crash_in_an_adoption_leaves_what_can_be_adopted(
    turns: Turns, log: KeptLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(restored, "go_on", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            adopt(turns.directory, begin_new_sequences, turns.clock)
    assert adopt(turns.directory, begin_new_sequences, turns.clock) is None
    assert looked_at(turns.directory, lambda found: found.get(Family.META, GONE_ON_KEY))
