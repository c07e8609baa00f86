"""Copies a data directory while it is in use, and restores such a copy to an empty place."""

import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from rpcqm.base.files import sync_directory
from rpcqm.store.database import DATABASE_NAME, Database, make_durable_directory
from rpcqm.store.directory_mark import owned_draft
from rpcqm.store.errors import StoreError
from rpcqm.store.fsck import check
from rpcqm.store.migration import is_of_cluster, place_of_database
from rpcqm.store.replication import Place
from rpcqm.store.restored import RESTORED_NAME, new_mark
from rpcqm.store.settings import StoreSettings

NOTE_NAME = "backup.json"
"""Written last: a copy without it is not whole."""

CONFIGURATION_NAME = "configuration"
"""The directory of a backup with the configuration, and the files that it names."""
CONFIGURATION_FILE = "rpcqm.toml"

ACCOUNTS_NAME = "accounts"
"""The file of accounts, of a data directory and of a backup."""

_FILES = frozenset({NOTE_NAME, ACCOUNTS_NAME})
_DIRECTORIES = frozenset({DATABASE_NAME, CONFIGURATION_NAME})

MAXIMUM_NOTE = 65_536
"""Size of the note of a backup.

A note has some hundred octets; the file may be no note at all.

Bound `backup.note_octets` [octets]: the backup is refused as damaged.
"""
DEEPEST = 2
"""Directories of a backup within each other, itself among them.

Bound `backup.levels` [levels]: the backup is refused before anything is made.
"""
MAXIMUM_FILES = 1_000_000
"""Files of a backup.

A database of many terabytes has fewer: a larger directory is no backup.

Bound `backup.files` [files]: the backup is refused before anything is made.
"""

UNFINISHED = ".restoring"
"""The directory in which a restore is put together; the next restore deletes an unfinished one."""


def write_backup(
    database: Database,
    directory: Path,
    files: Sequence[Path],
    note: Mapping[str, object],
    configuration: Mapping[str, bytes] | None = None,
) -> None:
    """Copy a database that is in use, and some files beside it; then write a note about it.

    The `configuration` goes to a directory of its own, which `restore_backup` leaves where it is.

    Raises StoreError if the directory is not empty, another error if it cannot be written; the
    unfinished copy is removed.
    """
    existed = directory.is_dir()
    if existed and any(directory.iterdir()):
        raise StoreError(f"{directory} is not empty: name a new directory.")
    try:
        database.checkpoint(directory)
        directory.chmod(0o700)
        for path in files:
            with suppress(FileNotFoundError):  # not every data directory has all of the files
                _copy(path, directory / path.name)
        if configuration:
            _write_configuration(directory / CONFIGURATION_NAME, configuration)
        _write(directory / NOTE_NAME, json.dumps(note, indent=2).encode() + b"\n")
        sync_directory(directory)
    except Exception:
        _remove(directory, itself=not existed)
        raise


def _write_configuration(directory: Path, files: Mapping[str, bytes]) -> None:
    directory.mkdir(mode=0o700)
    for name, content in files.items():
        _write(directory / name, content)
    sync_directory(directory)


def backed_up_configuration(backup: Path) -> str:
    """The text of the configuration in a backup; "" if it has no readable one."""
    try:
        with os.fdopen(_open(backup / CONFIGURATION_NAME / CONFIGURATION_FILE), "rb") as file:
            return file.read(MAXIMUM_NOTE).decode("utf-8", "replace")
    except (OSError, StoreError):  # a backup without a configuration is whole all the same
        return ""


def _remove(directory: Path, itself: bool) -> None:
    """Remove an unfinished copy, as far as that is possible."""
    if itself:
        shutil.rmtree(directory, ignore_errors=True)
    elif directory.is_dir():
        for path in directory.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def read_note(backup: Path) -> dict[str, object]:
    """The note of a backup; raises StoreError if the directory is not a whole backup."""
    try:
        with os.fdopen(_open(backup / NOTE_NAME), "rb") as file:
            octets = file.read(MAXIMUM_NOTE + 1)
        note = json.loads(octets) if len(octets) <= MAXIMUM_NOTE else None
    except (FileNotFoundError, NotADirectoryError):
        raise StoreError(f"{backup} is no whole backup: it has no file {NOTE_NAME}.") from None
    except (ValueError, RecursionError):  # other octets are refused like any wrong note
        note = None
    if not isinstance(note, dict) or not _is_plausible(note):
        raise StoreError(f"{backup} is no whole backup: {NOTE_NAME} is damaged.")
    return note


def _is_plausible(note: Mapping[str, object]) -> bool:
    """Whether the shown fields of a note have the right types."""
    texts = (note.get("queue_manager", ""), note.get("made", ""))
    count = note.get("messages", 0)
    return all(isinstance(text, str) and text.isprintable() for text in texts) and (
        type(count) is int and 0 <= count < 1 << 64
    )


def _open(path: Path) -> int:
    """Open an ordinary file for reading; raises StoreError for a link, a device or a pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            raise
        if path.is_symlink():
            raise StoreError(f"{path} is a link, and links are not followed.") from None
        raise StoreError(f"{path} cannot be read: {error.strerror}.") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StoreError(f"{path} is no ordinary file.")
    return descriptor


def restore_backup(
    backup: Path, directory: Path, progress: Callable[[str, int], None] | None = None
) -> dict[str, object]:
    """Make a data directory from a backup, checked before it is put in place; returns the note.

    Raises StoreError, with a sentence for the operator, if it cannot be restored; nothing has
    changed then. A crash leaves either nothing that a queue manager would take for its data, or
    everything.
    """
    note = read_note(backup)

    def mark(unfinished: Path) -> None:
        _write(unfinished / RESTORED_NAME, new_mark(note.get("made")))

    _bring(backup, directory, progress, mark)
    return note


def join_backup(
    backup: Path, directory: Path, progress: Callable[[str, int], None] | None = None
) -> Place:
    """Make a data directory of a cluster from a backup of one of its nodes; gives its place there.

    It goes on with what the log has behind that, so that no number begins anew. Raises StoreError
    as `restore_backup`, and for a backup of no cluster.
    """
    read_note(backup)
    places: list[Place] = []

    def look(unfinished: Path) -> None:
        places.append(_place_in_cluster(unfinished, backup))

    _bring(backup, directory, progress, look)
    return places[0]


def _place_in_cluster(unfinished: Path, backup: Path) -> Place:
    database = Database(unfinished, StoreSettings(), read_only=True)
    try:
        if not is_of_cluster(database):
            raise StoreError(f"{backup} is a backup of a queue manager that is in no cluster.")
        return place_of_database(database)
    finally:
        database.close()


def _bring(
    backup: Path,
    directory: Path,
    progress: Callable[[str, int], None] | None,
    finish: Callable[[Path], None],
) -> None:
    """Put a whole backup in place; `finish` gets it before that, and may refuse it."""
    _refuse_used(directory)
    _check_members(backup, directory)
    make_durable_directory(directory)
    unfinished = directory / UNFINISHED
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        _copy_tree(backup, unfinished)
        if findings := check(unfinished, progress):
            raise StoreError(
                f"The backup {backup} is damaged: {findings[0]}"
                + (f", and {len(findings) - 1} more." if len(findings) > 1 else ".")
            )
        finish(unfinished)
        _give_to_owner(unfinished, directory)
        _put_in_place(unfinished, directory)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def mark_as_restored(directory: Path) -> None:
    """Let numbers begin anew at the next start: the data are of an unknown time."""
    with owned_draft(directory / RESTORED_NAME) as file:
        file.write(new_mark(None))


def _refuse_used(directory: Path) -> None:
    if directory.exists() and not directory.is_dir():
        raise StoreError(f"{directory} is no directory.")
    if directory.is_dir() and any(path.name != UNFINISHED for path in directory.iterdir()):
        raise StoreError(
            f"{directory} is not empty: restore to a new directory, or move away what is there."
        )


def _check_members(backup: Path, directory: Path) -> None:
    """Refuse foreign files, and a backup that has no room, before anything is written."""
    _refuse_foreign(backup)
    needed = 0
    for number, status in enumerate(_members(backup, 1), 1):
        needed += status.st_size
        if number > MAXIMUM_FILES:
            raise StoreError(f"{backup} has more than {MAXIMUM_FILES:,} files.")
    room = next(above for above in (directory, *directory.absolute().parents) if above.is_dir())
    if needed > (free := shutil.disk_usage(room).free):
        raise StoreError(f"{backup} takes {needed:,} bytes, but only {free:,} are free.")


def _refuse_foreign(backup: Path) -> None:
    """Refuse files that no backup has: names have a meaning in a data directory (G521)."""
    for path in backup.iterdir():
        known = _DIRECTORIES if path.is_dir() else _FILES
        if path.name not in known:
            raise StoreError(f"{path} is no part of a backup: move it away.")


def _members(directory: Path, depth: int) -> Iterator[os.stat_result]:
    if depth > DEEPEST:
        raise StoreError(f"{directory} is no part of a backup.")
    for path in directory.iterdir():
        status = path.lstat()
        if stat.S_ISDIR(status.st_mode):
            yield from _members(path, depth + 1)
        elif stat.S_ISLNK(status.st_mode):
            raise StoreError(f"{path} is a link, and links are not followed.")
        elif not stat.S_ISREG(status.st_mode):
            raise StoreError(f"{path} is no ordinary file.")
        else:
            yield status


def _copy_tree(source: Path, target: Path) -> None:
    target.mkdir(mode=0o700)
    for path in sorted(source.iterdir()):
        if path.name == CONFIGURATION_NAME:
            continue
        if stat.S_ISDIR(path.lstat().st_mode):
            _copy_tree(path, target / path.name)
        elif path.name != NOTE_NAME:
            _copy(path, target / path.name)
    sync_directory(target)


def _copy(source: Path, target: Path) -> None:
    """Copy a file durably, for its owner alone."""
    with os.fdopen(_open(source), "rb") as given, _new(target) as file:
        shutil.copyfileobj(given, file)
        file.flush()
        os.fsync(file.fileno())


def _new(path: Path) -> BinaryIO:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def _write(path: Path, content: bytes) -> None:
    with _new(path) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _give_to_owner(tree: Path, directory: Path) -> None:
    """Give the files of `tree` to the owner of `directory`, if root restores."""
    user, group = _owner(directory)
    if os.geteuid() == 0 and user != 0:
        for path in (tree, *tree.rglob("*")):
            os.chown(path, user, group)


def _owner(directory: Path) -> tuple[int, int]:
    status = directory.stat()
    return status.st_uid, status.st_gid


def _put_in_place(unfinished: Path, directory: Path) -> None:
    """Move everything, the database last; a directory with files of others stays open to them."""
    others = [path for path in unfinished.iterdir() if path.name != DATABASE_NAME]
    for path in (*others, unfinished / DATABASE_NAME):
        sync_directory(directory)
        path.rename(directory / path.name)
    directory.chmod(0o711)
    sync_directory(directory)
