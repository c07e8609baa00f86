"""Opening a data directory: the lock, the format, and what is not a database at all."""

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

import pytest
from rocksdict import WriteBatch

from rpcqm.store import migration
from rpcqm.store.database import CONFIG_NAME, DATABASE_NAME, Database
from rpcqm.store.errors import StoreError, StoreFormatError, StoreLockedError
from rpcqm.store.records import Family
from rpcqm.store.settings import KIB, StoreSettings
from rpcqm.store.store import Store
from tests.support.store.stores import Turns

SECOND_PROCESS = """
import sys
from rpcqm.store.errors import StoreLockedError
from rpcqm.store.fsck import check
from rpcqm.store.store import Store
for attempt in (lambda: Store.open(sys.argv[1], end_of_turn=print), lambda: check(sys.argv[1])):
    try:
        attempt()
    except StoreLockedError as error:
        print(error)
"""


def test_a_second_process_is_refused_with_one_sentence(store: Store) -> None:
    command = [sys.executable, "-c", SECOND_PROCESS, str(store.directory)]
    lines = subprocess.check_output(command, text=True).splitlines()
    assert len(lines) == 2
    for line in lines:
        assert line.startswith("Another process has")
        assert str(store.directory) in line


def test_a_second_store_in_the_same_process_is_refused(store: Store, turns: Turns) -> None:
    with pytest.raises(StoreLockedError):
        turns.open()


def test_a_directory_can_be_opened_again_after_closing(turns: Turns) -> None:
    for _ in range(3):
        turns.open().close()


def test_a_directory_that_cannot_hold_a_database_is_explained(tmp_path: Path) -> None:
    (tmp_path / DATABASE_NAME).write_text("a file is in the way")
    with pytest.raises(StoreError, match="cannot be used"):
        Store.open(tmp_path, end_of_turn=print)


def test_a_damaged_database_is_explained(turns: Turns) -> None:
    turns.open().close()
    (turns.directory / DATABASE_NAME / "CURRENT").write_text("MANIFEST-999999\n")
    with pytest.raises(StoreError, match="cannot be opened"):
        turns.open()


def test_a_torn_note_of_the_binding_is_made_anew(turns: Turns) -> None:
    turns.open().close()
    config = turns.directory / DATABASE_NAME / CONFIG_NAME
    config.write_text('{"raw_mo')
    turns.open().close()
    assert json.loads(config.read_text())


def raw(turns: Turns) -> Database:
    return Database(turns.directory, StoreSettings())


def write(database: Database, family: Family, key: bytes, value: bytes) -> None:
    batch = WriteBatch(raw_mode=True)
    batch.put(key, value, database.handles[family])
    database.write(batch, sync=True)


def test_a_database_of_something_else_is_refused(turns: Turns) -> None:
    turns.directory.mkdir()
    database = raw(turns)
    write(database, Family.QUEUE, b"key", b"value")
    database.close()
    for _ in range(2):
        with pytest.raises(StoreFormatError, match="not one of rpcqm"):
            turns.open()


def test_a_newer_format_is_refused_with_a_clear_sentence(turns: Turns) -> None:
    turns.open().close()
    database = raw(turns)
    migration.bring_to_format(database, 4, {2: lambda *_: None, 3: lambda *_: None})
    database.close()
    with pytest.raises(StoreFormatError, match=r"has format 4, but this version .* up to 2"):
        turns.open()


def test_an_older_format_is_migrated_step_by_step(turns: Turns) -> None:
    store = turns.open()
    with store.transaction("put") as txn:
        txn.put(Family.STREAM, b"old", b"value")
    store.close()

    def rename(database: Database, batch: WriteBatch) -> None:
        for key, value in database.items(Family.STREAM):
            batch.delete(key, database.handles[Family.STREAM])
            batch.put(b"new " + key, value, database.handles[Family.STREAM])

    database = raw(turns)
    migration.bring_to_format(database, 4, {2: rename, 3: rename})
    assert list(database.items(Family.STREAM)) == [(b"new new old", b"value")]
    assert migration.read_format(database) == 4
    database.close()


def test_a_migration_that_fails_changes_nothing(turns: Turns) -> None:
    turns.open().close()

    def fail(database: Database, batch: WriteBatch) -> None:
        batch.put(b"key", b"half", database.handles[Family.STREAM])
        raise ZeroDivisionError

    database = raw(turns)
    with pytest.raises(ZeroDivisionError):
        migration.bring_to_format(database, 3, {2: fail})
    assert migration.read_format(database) == 2
    assert database.get(Family.STREAM, b"key") is None
    database.close()


def test_too_old_a_format_is_refused(turns: Turns) -> None:
    turns.open().close()
    database = raw(turns)
    with pytest.raises(StoreFormatError, match="too old"):
        migration.bring_to_format(database, 3, {})
    database.close()


def test_a_backup_is_a_consistent_copy_taken_while_running(
    store: Store, turns: Turns, tmp_path: Path
) -> None:
    for key in range(100):
        with store.transaction("insert") as txn:
            txn.insert(16, key, bytes(10_000), arrival=0)
    turns.end()
    assert store.backup(tmp_path / "copy").done
    with store.transaction("remove") as txn:
        txn.remove(16, 0)
    turns.end()
    copied = Turns(tmp_path / "copy").open()
    assert list(copied.index(16).keys()) == list(range(100))
    assert copied.read_packet(copied.index(16).serial(7) or 0) == bytes(10_000)
    copied.close()


def test_a_backup_does_not_overwrite(store: Store, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "file").touch()
    assert isinstance(store.backup(tmp_path / "copy").error, StoreError)


def size_of(store: Store) -> int:
    """Bytes in tables and files of large bodies; some vanish while they are counted."""
    total = 0
    for path in (store.directory / DATABASE_NAME).glob("*.[sb]*"):
        with suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


def test_compaction_gives_back_the_space_of_removed_messages(store: Store, turns: Turns) -> None:
    for start in range(0, 1_000, 100):
        with store.transaction("insert") as txn:
            for key in range(start, start + 100):
                txn.insert(16, key, bytes(10_000), arrival=0)
        turns.end()
    store.compact().result()
    full = size_of(store)
    with store.transaction("remove") as txn:
        for key in range(999):
            txn.remove(16, key)
    turns.end()
    store.compact().result()
    assert full > 10_000_000
    assert size_of(store) < 1_000_000
    assert store.read_packet(store.index(16).serial(999) or 0) == bytes(10_000)


def test_messages_that_come_and_go_need_bounded_space(turns: Turns) -> None:
    """Forty mebibytes pass through a queue that never holds more than two."""
    store = turns.open(settings=StoreSettings(reserve=0, memtable=256 * KIB))
    largest = 0
    for number in range(4_000):
        with store.transaction("insert") as txn:
            txn.insert(16, number, bytes(10_000), arrival=0)
            if number >= 200:
                txn.remove(16, number - 200)
        if number % 20 == 0:
            turns.end()
            largest = max(largest, size_of(store))
    assert largest < 16_000_000
    store.close()


def test_long_work_goes_on_in_a_thread(turns: Turns) -> None:
    work: list[Callable[[], None]] = []
    back: list[Callable[[], None]] = []
    store = turns.open(executor=work.append, call_from_thread=back.append)
    compaction = store.compact()
    assert not compaction.done
    work.pop()()
    assert not compaction.done
    back.pop()()
    assert compaction.done
    assert compaction.error is None
    store.close()


def test_closing_ends_long_work(turns: Turns) -> None:
    with ThreadPoolExecutor(1) as pool:
        back: SimpleQueue[Callable[[], None]] = SimpleQueue()
        store = turns.open(executor=pool.submit, call_from_thread=back.put)
        for key in range(2_000):
            with store.transaction("insert") as txn:
                txn.insert(16, key, bytes(10_000), arrival=0)
        turns.end()
        compactions = [store.compact() for _ in range(3)]
        store.close()
    while not back.empty():
        back.get()()
    assert all(compaction.done for compaction in compactions)
    store = turns.open()
    assert store.index(16).count == 2_000
    store.close()
