"""What a start makes of logs whose ends a crash has torn, or that are damaged otherwise."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rpcqm.store.database import CONFIG_NAME, Database
from rpcqm.store.errors import StoreError
from rpcqm.store.fsck import check
from rpcqm.store.log_format import BLOCK, whole_records
from rpcqm.store.records import Family
from rpcqm.store.store import Store
from tests.support.store.logs import write_records
from tests.support.store.stores import Turns, copy_of_running

Crash = Callable[[], tuple[Turns, Path]]


def insert(turns: Turns, store: Store, *keys: int, size: int = 1_000) -> None:
    """One message for each key, each in a write of its own."""
    for key in keys:
        with store.transaction("insert") as txn:
            store.counters.lookup_identifier.take()
            txn.insert(1, key, bytes([key]) * size, arrival=0)
        turns.end()


def keys_after_restart(turns: Turns) -> list[int]:
    store = turns.open()
    keys = list(store.index(1).keys())
    for key in keys:
        assert packet_of(store, key).strip(bytes([key])) == b""
    store.close()
    assert check(turns.directory) == []
    return keys


def packet_of(store: Store, key: int) -> bytes:
    return store.read_packet(store.index(1).expected(key).serial)


def flush(store: Store) -> None:
    """Write tables, and so edits of the manifest."""
    store._database.families[Family.META].compact_range(None, None)


@pytest.fixture
def crashed(turns: Turns, store: Store, tmp_path: Path) -> Crash:
    """Stops at once; what to start again with, and where the database is."""

    def crash() -> tuple[Turns, Path]:
        copy_of_running(turns.directory, tmp_path / "crashed")
        store.close()
        return Turns(tmp_path / "crashed"), tmp_path / "crashed" / "messages"

    return crash


def manifest_of(database: Path) -> Path:
    return database / (database / "CURRENT").read_text().strip()


def damage(path: Path, at: int) -> None:
    """Lose a few bytes, as a lost sector does."""
    data = bytearray(path.read_bytes())
    data[at : at + 8] = bytes(8)
    path.write_bytes(data)


def edits(manifest: Path) -> list[int]:
    """Where each edit ends."""
    return [end for _, end in whole_records(manifest.read_bytes())]


def test_a_hole_in_the_end_of_the_manifest_is_cut_off(
    turns: Turns, store: Store, crashed: Crash
) -> None:
    insert(turns, store, 1, 2)
    turns, database = crashed()
    manifest = manifest_of(database)
    size = manifest.stat().st_size
    torn = write_records([b"\x02\x09" * 60, b"\x02\x09" * 60], None, size)
    manifest.write_bytes(manifest.read_bytes() + torn)
    damage(manifest, size + 20)
    assert keys_after_restart(turns) == [1, 2]


def test_the_check_takes_a_torn_manifest_as_the_next_start_does(
    turns: Turns, store: Store, crashed: Crash
) -> None:
    insert(turns, store, 1)
    turns, database = crashed()
    manifest = manifest_of(database)
    manifest.write_bytes(manifest.read_bytes() + b"torn" * 100)
    assert check(turns.directory) == []


def test_an_edit_that_was_acted_upon_is_not_cut_off(
    turns: Turns, store: Store, crashed: Crash
) -> None:
    """The log that it made superfluous is gone, so its loss would lose messages."""
    insert(turns, store, 1, 2)
    before = len(edits(manifest_of(turns.directory / "messages")))
    flush(store)
    insert(turns, store, 3)
    flush(store)
    insert(turns, store, 4)
    turns, database = crashed()
    manifest = manifest_of(database)
    damage(manifest, edits(manifest)[before] - 20)
    with pytest.raises(StoreError, match="logs that it needs are gone"):
        turns.open()


def test_a_manifest_that_is_damaged_from_its_beginning_is_refused(
    turns: Turns, store: Store, crashed: Crash
) -> None:
    turns, database = crashed()
    damage(manifest_of(database), 8)
    with pytest.raises(StoreError, match="durable long ago"):
        turns.open()


def test_a_manifest_that_would_lose_a_family_is_refused(
    turns: Turns, store: Store, crashed: Crash
) -> None:
    store.close()
    store = turns.open()
    database = turns.directory / "messages"
    store.close()
    manifest = manifest_of(database)
    damage(manifest, edits(manifest)[5] - 20)
    with pytest.raises(StoreError, match="durable long ago"):
        turns.open()


def log_of(database: Path) -> Path:
    return max(database.glob("*.log"))


def ends_in(log: Path) -> list[int]:
    return [end for _, end in whole_records(log.read_bytes(), int(log.stem))]


def not_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing that is written from now on be synced, as what a transaction stages."""
    write = Database.write
    monkeypatch.setattr(Database, "write", lambda self, batch, _: write(self, batch, False))


def test_nothing_behind_a_hole_in_a_log_is_taken(
    turns: Turns, store: Store, crashed: Crash, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zeros up to the end of a block look like padding: what follows must not be believed."""
    not_synced(monkeypatch)
    insert(turns, store, 1, 2)
    *_, start, end = ends_in(log_of(turns.directory / "messages"))
    overhead = end - start - 1_000
    insert(turns, store, 3, size=BLOCK - end % BLOCK - overhead - 5)
    insert(turns, store, 4)
    turns, database = crashed()
    log = log_of(database)
    assert BLOCK - 11 < ends_in(log)[-2] <= BLOCK
    damage(log, end)
    assert keys_after_restart(turns) == [1, 2]


@pytest.mark.parametrize("behind", [2, 3])
def test_damage_of_what_was_synced_is_refused(
    turns: Turns, store: Store, crashed: Crash, behind: int
) -> None:
    """A second synced write had not begun before the damaged one was durable."""
    insert(turns, store, 1)
    *_, end = ends_in(log_of(turns.directory / "messages"))
    insert(turns, store, *range(2, 2 + behind))
    turns, database = crashed()
    damage(log_of(database), end + 20)
    with pytest.raises(StoreError, match=f"damaged at byte {end}, and writes that were answered"):
        turns.open()
    with pytest.raises(StoreError, match="restore a backup"):
        check(turns.directory)
    with log_of(database).open("r+b") as log:
        log.truncate(end)
    assert keys_after_restart(turns) == [1]


def test_damage_at_the_beginning_of_a_log_is_refused(
    turns: Turns, store: Store, crashed: Crash
) -> None:
    insert(turns, store, 1, 2)
    turns, database = crashed()
    damage(log_of(database), 20)
    with pytest.raises(StoreError, match="damaged at byte 0, and writes that were answered"):
        turns.open()


def test_damage_in_a_log_that_a_later_one_follows_is_refused(
    turns: Turns, store: Store, crashed: Crash
) -> None:
    insert(turns, store, 1)
    kept = len(ends_in(log_of(turns.directory / "messages")))
    insert(turns, store, 2, 3, 4)
    turns, database = crashed()
    log = log_of(database)
    number = int(log.stem)
    records = [record for record, _ in whole_records(log.read_bytes(), number)]
    log.write_bytes(write_records(records[: kept + 1], number))
    later = write_records(records[kept + 1 :], number + 1)
    log.with_name(f"{number + 1:06}.log").write_bytes(later)
    damage(log, ends_in(log)[-1] - 20)
    with pytest.raises(StoreError, match=f"{log.name} is damaged at byte"):
        turns.open()


def test_a_hole_before_a_synced_write_that_was_going_on_is_what_a_crash_leaves(
    turns: Turns, store: Store, crashed: Crash, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it was to sync as well may be torn while it is whole."""
    insert(turns, store, 1)
    *_, end = ends_in(log_of(turns.directory / "messages"))
    with monkeypatch.context() as patch:
        not_synced(patch)
        insert(turns, store, 2)
    insert(turns, store, 3)
    turns, database = crashed()
    damage(log_of(database), end + 20)
    assert keys_after_restart(turns) == [1]


def test_a_record_that_is_not_the_next_one_is_not_taken(
    turns: Turns, store: Store, crashed: Crash
) -> None:
    """A body that looks like a record may lie in a reused log right where its new part ends."""
    insert(turns, store, 1, 2)
    turns, database = crashed()
    log = log_of(database)
    data = log.read_bytes()
    batch = next(
        record for record, _ in whole_records(data, int(log.stem)) if b"\x02" * 99 in record
    )
    forged = (1 << 40).to_bytes(8, "little") + batch[8:].replace(b"\x02" * 1_000, b"\x09" * 1_000)
    log.write_bytes(data + write_records([forged], int(log.stem), len(data)))
    store = turns.open()
    assert packet_of(store, 2) == b"\x02" * 1_000
    store.close()


def test_a_log_that_does_not_join_on_to_the_one_before_is_not_taken(
    turns: Turns, store: Store, crashed: Crash
) -> None:
    insert(turns, store, 1, 2)
    turns, database = crashed()
    log = log_of(database)
    number = int(log.stem)
    *_, (last, _) = whole_records(log.read_bytes(), number)
    later = log.with_name(f"{number + 1:06}.log")
    gap = int.from_bytes(last[:8], "little") + 1_000
    later.write_bytes(write_records([gap.to_bytes(8, "little") + last[8:]], number + 1))
    assert keys_after_restart(turns) == [1, 2]


def test_a_log_without_numbers_is_left_alone(turns: Turns, store: Store, crashed: Crash) -> None:
    """An earlier version, or another program, may have written it."""
    insert(turns, store, 1, 2)
    turns, database = crashed()
    log = log_of(database)
    records = [record for record, _ in whole_records(log.read_bytes(), int(log.stem))]
    log.write_bytes(write_records(records))
    assert keys_after_restart(turns) == [1, 2]


def test_a_directory_without_a_database_yet_is_none_to_mend(turns: Turns) -> None:
    database = turns.directory / "messages"
    database.mkdir(parents=True)
    (database / CONFIG_NAME).write_text("torn")
    assert keys_after_restart(turns) == []


def test_what_a_reused_log_ends_in_does_not_count_as_damage(
    turns: Turns, store: Store, crashed: Crash
) -> None:
    """Not even when tables of one family are newer already, as they are during a stop."""
    insert(turns, store, 1, 2)
    store._database.families[Family.BODY].flush(True)
    turns, database = crashed()
    log, newer = sorted(database.glob("*.log"))
    assert newer.stat().st_size == 0
    data = log.read_bytes()
    log.write_bytes(data + write_records([b"left over"], int(log.stem) - 1, len(data)))
    assert keys_after_restart(turns) == [1, 2]
