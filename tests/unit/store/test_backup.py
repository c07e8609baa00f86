"""Copies of a data directory, and data directories made from them."""

import json
import os
from pathlib import Path

import pytest

from rpcqm.store import backup
from rpcqm.store.backup import NOTE_NAME, UNFINISHED, restore_backup
from rpcqm.store.errors import StoreError
from rpcqm.store.restored import RESTORED_NAME
from rpcqm.store.store import Store
from tests.support.store.store_state import after_restart, state_of
from tests.support.store.stores import Turns

NOTE = {"queue_manager": "WORKSTATION"}


@pytest.fixture
def copy(store: Store, turns: Turns, tmp_path: Path) -> Path:
    """A backup of some messages, small and large, and a file beside them."""
    for number in range(50):
        with store.transaction("insert") as txn:
            key = store.counters.next_lookup_identifier(3)
            txn.insert(1, key, bytes([number]) * (200 * number), arrival=0)
        turns.end()
    accounts = tmp_path / "accounts"
    accounts.write_text("alice")
    accounts.chmod(0o600)
    assert store.backup(tmp_path / "copy", [accounts, tmp_path / "none"], NOTE).done
    return tmp_path / "copy"


def test_what_was_durable_comes_back(
    store: Store, turns: Turns, copy: Path, tmp_path: Path
) -> None:
    before = state_of(store)
    with store.transaction("later") as txn:
        txn.insert(1, store.counters.next_lookup_identifier(3), b"later", arrival=0)
    turns.end()
    target = tmp_path / "new" / "data"
    assert restore_backup(copy, target) == NOTE
    assert (target / "accounts").read_text() == "alice"
    assert (target / "accounts").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in target.iterdir()) == [
        "accounts",
        "messages",
        RESTORED_NAME,
    ]
    restored = Turns(target).open()
    assert state_of(restored) == after_restart(before)
    restored.close()


def test_a_backup_can_be_restored_more_than_once(copy: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        restore_backup(copy, tmp_path / name)
        Turns(tmp_path / name).open().close()


def test_a_data_directory_in_use_is_never_overwritten(copy: Path, turns: Turns) -> None:
    with pytest.raises(StoreError, match="is not empty"):
        restore_backup(copy, turns.directory)


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]"], ids=repr)
def test_what_is_no_whole_backup_is_refused(
    copy: Path, tmp_path: Path, content: bytes | None
) -> None:
    (copy / NOTE_NAME).unlink()
    if content is not None:
        (copy / NOTE_NAME).write_bytes(content)
    with pytest.raises(StoreError, match="no whole backup"):
        restore_backup(copy, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_damaged_backup_is_refused_and_nothing_is_left(copy: Path, tmp_path: Path) -> None:
    for table in (copy / "messages").glob("*.sst"):
        data = bytearray(table.read_bytes())
        data[: len(data) // 2] = bytes(len(data) // 2)
        table.unlink()  # it is shared with the store
        table.write_bytes(data)
    with pytest.raises(StoreError):
        restore_backup(copy, tmp_path / "new")
    assert list((tmp_path / "new").iterdir()) == []


def test_a_restoration_that_was_cut_short_can_be_begun_again(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(backup, "_put_in_place", end)
    with pytest.raises(KeyboardInterrupt):
        restore_backup(copy, tmp_path / "new")
    monkeypatch.undo()
    (tmp_path / "new" / UNFINISHED).mkdir()
    (tmp_path / "new" / UNFINISHED / "half").touch()
    assert restore_backup(copy, tmp_path / "new") == NOTE


def test_an_unfinished_backup_leaves_nothing(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no more")

    monkeypatch.setattr(backup, "_write", fail)
    assert isinstance(store.backup(tmp_path / "new").error, OSError)
    assert not (tmp_path / "new").exists()
    (tmp_path / "empty").mkdir()
    assert isinstance(store.backup(tmp_path / "empty").error, OSError)
    assert list((tmp_path / "empty").iterdir()) == []


def test_only_its_owner_may_read_a_backup(copy: Path) -> None:
    assert copy.stat().st_mode & 0o777 == 0o700
    assert json.loads((copy / NOTE_NAME).read_text()) == NOTE


@pytest.mark.parametrize("root", [True, False])
def test_root_restores_for_the_owner_of_the_directory(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: bool
) -> None:
    given: list[tuple[str, int]] = []

    def give(path: Path, user: int, group: int) -> None:
        given.append((path.name, user))

    monkeypatch.setattr(os, "geteuid", lambda: 0 if root else 1000)
    monkeypatch.setattr(os, "chown", give)
    target = tmp_path / "new"
    target.mkdir()
    monkeypatch.setattr(backup, "_owner", lambda directory: (1000, 1000))
    restore_backup(copy, target)
    assert (("messages", 1000) in given) is root
    assert (("accounts", 1000) in given) is root
