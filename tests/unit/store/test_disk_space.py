"""A full disk refuses new messages, and nothing else; it recovers by itself."""

from dataclasses import replace
from pathlib import Path

import pytest

from rpcqm.base.errors import HResult, MQError
from rpcqm.store.ballast import RUNNING, Ballast
from rpcqm.store.database import Database
from rpcqm.store.settings import MIB, StoreSettings
from rpcqm.store.store import Store
from tests.support.store.stores import Turns

Q, JOURNAL = 16, 17
SETTINGS = StoreSettings(reserve=100, space_check_interval=1_000, space_check_bytes=50)


class Disk:
    """Free bytes, and how often they were asked for."""

    def __init__(self) -> None:
        self.free = 10_000
        self.asked = 0

    def __call__(self) -> int:
        self.asked += 1
        return self.free


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def guarded(turns: Turns, disk: Disk) -> Store:
    return turns.open(settings=SETTINGS, free=disk)


def insert(store: Store, key: int, size: int = 10, consequence: bool = False) -> None:
    with store.transaction("insert") as txn:
        txn.insert(Q, key, bytes(size), arrival=0, consequence=consequence)


def remove(store: Store, key: int) -> None:
    with store.transaction("remove") as txn:
        txn.remove(Q, key)


def refuses(store: Store, key: int) -> bool:
    try:
        insert(store, key)
    except MQError as error:
        return error.status is HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
    return False


def test_new_messages_are_refused_below_the_reserve(
    guarded: Store, turns: Turns, disk: Disk
) -> None:
    insert(guarded, 1)
    disk.free = 99
    turns.clock.advance(1_000)
    insert(guarded, 2)
    turns.end()
    assert refuses(guarded, 3)
    assert guarded.space.refusing
    assert guarded.index(Q).account.count == 2
    with pytest.raises(MQError), guarded.transaction("stage") as txn:
        txn.stage_message(b"t" * 16, Q, b"packet", b"")
    assert not guarded.uncommitted
    guarded.close()


def test_removals_moves_and_their_consequences_go_on(
    guarded: Store, turns: Turns, disk: Disk
) -> None:
    for key in (1, 2):
        insert(guarded, key)
    turns.end()
    disk.free = 0
    turns.clock.advance(1_000)
    with guarded.transaction("receive") as txn:
        txn.remove(Q, 1)
        txn.rehome(Q, 2, JOURNAL, 2)
        txn.insert(Q, 3, b"acknowledgement", arrival=0, consequence=True)
    turns.end()
    assert refuses(guarded, 4)
    assert list(guarded.index(Q).keys()) == [3]
    assert list(guarded.index(JOURNAL).keys()) == [2]
    guarded.close()


def test_admission_resumes_by_itself(guarded: Store, turns: Turns, disk: Disk) -> None:
    disk.free = 0
    for key in range(10):
        if refuses(guarded, key):
            break
    else:
        pytest.fail("a full disk was not noticed")
    disk.free = 10_000
    assert not refuses(guarded, 100)
    assert not guarded.space.refusing
    guarded.close()


def test_a_flood_is_noticed_without_waiting_for_the_clock(guarded: Store, disk: Disk) -> None:
    """Bytes that are not written yet count; five messages may pass before the first look."""
    disk.free = 120
    assert [refuses(guarded, key) for key in range(8)] == [False] * 5 + [True] * 3
    guarded.close()


def test_a_message_larger_than_what_is_left_is_refused(guarded: Store, disk: Disk) -> None:
    disk.free = 200
    with pytest.raises(MQError):
        insert(guarded, 1, size=101)
    insert(guarded, 2, size=50)
    guarded.close()


def test_free_space_is_not_asked_for_every_message(turns: Turns, disk: Disk) -> None:
    disk.free = 1 << 40
    store = turns.open(settings=StoreSettings(space_check_bytes=MIB), free=disk)
    asked = disk.asked
    for key in range(1_000):
        insert(store, key)
    turns.end()
    assert disk.asked - asked <= 2
    store.close()


def test_trouble_of_the_databases_own_threads_is_told(
    guarded: Store, turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Database, "background_errors", lambda self: 2)
    for key in range(3):
        insert(guarded, key)
        turns.clock.advance(1_000)
        turns.end()
    assert guarded.metrics.snapshot()["store_background_errors"] == 2
    guarded.close()


def test_a_disk_that_cannot_be_asked_is_taken_for_full(
    guarded: Store, turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert(guarded, 1)

    def fail() -> int:
        raise OSError(5, "I/O error")

    monkeypatch.setattr(guarded.space, "_free", fail)
    turns.clock.advance(1_000)
    turns.end()
    assert guarded.index(Q).count == 1
    assert refuses(guarded, 2)
    assert guarded.space.free == 0
    guarded.close()


def test_a_refusal_gives_space_back_when_nothing_is_written_any_more(
    guarded: Store, turns: Turns, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    tidied: list[int] = []
    monkeypatch.setattr(Database, "tidy", lambda _: tidied.append(turns.clock.now()))
    disk.free = 0
    turns.clock.advance(1_000)
    insert(guarded, 1)
    turns.end()
    assert len(tidied) == 1
    assert refuses(guarded, 2)
    assert len(tidied) == 1
    turns.clock.advance(SETTINGS.tidy_interval)
    assert refuses(guarded, 2)
    assert refuses(guarded, 2)
    assert len(tidied) == 2
    guarded.close()


class DiskWithBallast(Disk):
    """A disk on which the ballast of a directory takes room."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.free = 1_000
        self._directory = directory

    def __call__(self) -> int:
        taken = sum(path.stat().st_size for path in self._directory.glob("ballast*"))
        return super().__call__() - taken


BALLAST = StoreSettings(reserve=10, ballast=100, space_check_interval=1_000)


def test_the_ballast_is_given_up_on_a_full_disk_and_made_again(turns: Turns) -> None:
    """Another program may fill the disk between two looks at it: every write looks."""
    disk = DiskWithBallast(turns.directory)
    store = turns.open(settings=BALLAST, free=disk)
    assert (disk(), store.space.refusing) == (900, False)
    insert(store, 1)
    turns.end()
    disk.free = 120  # 20 are free
    remove(store, 1)
    turns.end()
    assert disk() == 70, "one file is left, for a start"
    assert not (turns.directory / RUNNING).exists()
    assert refuses(store, 2), "what is left is for removals"
    disk.free = 200
    turns.clock.advance(1_000)
    assert not refuses(store, 3)
    turns.end()
    assert not store.space.refusing
    assert not (turns.directory / RUNNING).exists()
    disk.free = 350
    remove(store, 3)
    turns.end()
    assert (turns.directory / RUNNING).stat().st_size == 50
    assert not store.space.refusing
    store.close()


def test_a_start_on_a_full_disk_gives_the_rest_of_the_ballast_up(
    turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = DiskWithBallast(turns.directory)
    turns.open(settings=BALLAST, free=disk).close()
    monkeypatch.setattr("rpcqm.store.ballast._free", lambda _: disk() - 950)
    Ballast(turns.directory, 100).make_room()
    assert not list(turns.directory.glob("ballast*"))


def test_ballast_of_another_size_or_none_follows_the_setting(turns: Turns) -> None:
    disk = DiskWithBallast(turns.directory)
    for size in (100, 40, 0):
        store = turns.open(settings=replace(BALLAST, ballast=size), free=disk)
        assert disk() == 1_000 - size
        store.close()
        turns.callbacks.clear()


def test_nobody_misses_ballast_that_a_small_disk_has_no_room_for(turns: Turns) -> None:
    disk = DiskWithBallast(turns.directory)
    disk.free = 150
    store = turns.open(settings=BALLAST, free=disk)
    assert (disk(), store.space.refusing) == (150, False)
    store.close()
