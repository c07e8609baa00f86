"""Bounds of files that were made elsewhere: each is reached, and exceeded by one."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rpcqm.cli import windows_export
from rpcqm.cli.errors import CommandError
from rpcqm.cli.windows_export import LARGEST_FILE
from rpcqm.config import ConfigurationError
from rpcqm.config.directory import MAXIMUM_DIRECTORY, load_directory
from rpcqm.config.directory_objects import MOST_MISTAKES
from rpcqm.config.load import (
    MAXIMUM_CONFIGURATION,
    MAXIMUM_DEPTH,
    MAXIMUM_LINES,
    check,
    parse_toml,
)
from rpcqm.store import backup, directory_mark
from rpcqm.store.backup import (
    DEEPEST,
    MAXIMUM_FILES,
    MAXIMUM_NOTE,
    NOTE_NAME,
    read_note,
    restore_backup,
)
from rpcqm.store.database import DATABASE_NAME
from rpcqm.store.errors import StoreError
from rpcqm.store.restored import MAXIMUM_MARK, RESTORED_NAME, Records
from tests.support.store.stores import Turns


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.toml"


@pytest.mark.bound("file.configuration_octets")
def test_a_configuration_file_has_a_greatest_size(path: Path) -> None:
    path.write_bytes(b"#" * MAXIMUM_CONFIGURATION)
    check(path)
    path.write_bytes(b"#" * (MAXIMUM_CONFIGURATION + 1))
    with pytest.raises(ConfigurationError, match="is larger than 65,536 octets"):
        check(path)


@pytest.mark.bound("file.windows_export_octets")
def test_what_windows_has_printed_has_a_greatest_size(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b"[]")
        for _ in range(LARGEST_FILE >> 20):
            file.write(b" " * (1 << 20))
        file.truncate(LARGEST_FILE)
    assert list(windows_export._parsed(path)) == []
    with path.open("ab") as file:
        file.write(b" ")
    with pytest.raises(CommandError, match="is larger than 64 MiB"):
        windows_export._parsed(path)


@pytest.mark.bound("file.configuration_lines")
def test_a_configuration_file_has_a_greatest_number_of_lines(path: Path) -> None:
    path.write_text("#\n" * MAXIMUM_LINES, "utf-8")
    check(path)
    path.write_text("#\n" * (MAXIMUM_LINES + 1), "utf-8")
    with pytest.raises(ConfigurationError, match="has more than 2,000 lines"):
        check(path)


def lists(levels: int) -> str:
    return "a = " + "[" * (levels - 1) + "]" * (levels - 1)


def tables(levels: int) -> str:
    return "a = " + "{a = " * (levels - 1) + "1" + "}" * (levels - 1)


def dotted(levels: int) -> str:
    return ".".join("a" * levels) + " = 1"


def header(levels: int) -> str:
    return "[" + ".".join("a" * (levels - 1)) + "]"


@pytest.mark.bound("file.depth")
@pytest.mark.parametrize("make", [lists, tables, dotted, header])
def test_values_have_a_greatest_depth(path: Path, make: Callable[[int], str]) -> None:
    assert "a" in parse_toml(path, make(MAXIMUM_DEPTH))
    with pytest.raises(ConfigurationError, match="nested too deeply"):
        parse_toml(path, make(MAXIMUM_DEPTH + 1))


@pytest.mark.bound("file.directory_octets")
def test_a_directory_file_has_a_greatest_size(path: Path) -> None:
    path.write_bytes(b"#" * MAXIMUM_DIRECTORY)
    load_directory(path)
    path.write_bytes(b"#" * (MAXIMUM_DIRECTORY + 1))
    with pytest.raises(ConfigurationError, match="is larger than 16,777,216 octets"):
        load_directory(path)


@pytest.mark.bound("file.directory_mistakes")
@pytest.mark.parametrize("beyond", [0, 1, 50])
def test_so_many_mistakes_of_a_directory_file_are_told(path: Path, beyond: int) -> None:
    """Each of the names is there already."""

    def told(mistakes: int) -> list[str]:
        path.write_text("[[site]]\nname = 'a'\n" * (mistakes + 1), "utf-8")
        with pytest.raises(ConfigurationError) as refused:
            load_directory(path)
        return [str(mistake) for mistake in refused.value.mistakes]

    few = told(MOST_MISTAKES - 1)
    assert len(few) == MOST_MISTAKES - 1
    assert "more" not in "".join(few)
    many = told(MOST_MISTAKES + beyond)
    assert len(many) == MOST_MISTAKES + 1
    assert many[-1] == f"{path}: has more mistakes, perhaps."


# Backups.


@pytest.mark.bound("backup.note_octets")
def test_the_note_of_a_backup_has_a_greatest_size(tmp_path: Path) -> None:
    note = b'{"made": "today"}'
    (tmp_path / NOTE_NAME).write_bytes(note.ljust(MAXIMUM_NOTE))
    assert read_note(tmp_path) == {"made": "today"}
    (tmp_path / NOTE_NAME).write_bytes(note.ljust(MAXIMUM_NOTE + 1))
    with pytest.raises(StoreError, match="is damaged"):
        read_note(tmp_path)


@pytest.mark.bound("backup.mark_octets")
def test_of_the_mark_of_restored_data_only_so_much_tells_it_from_others(tmp_path: Path) -> None:
    begun = []

    def begin_anew(records: Records, now: int) -> dict[bytes, bytes | None]:
        begun.append(now)
        return {}

    turns = Turns(tmp_path)
    turns.open().close()
    for content, count in ((b"b", 1), (b"c", 1), (b"", 2)):
        (tmp_path / RESTORED_NAME).write_bytes(b"a" * (MAXIMUM_MARK - (not content)) + content)
        turns.open(begin_anew=begin_anew).close()
        assert len(begun) == count


@pytest.mark.bound("identity.mark_octets")
def test_the_mark_of_a_data_directory_is_read_so_far(tmp_path: Path) -> None:
    mark, path = b'{"file_system": "", "inode": 1}', tmp_path / directory_mark.MARK_NAME
    path.write_bytes(mark.ljust(directory_mark.MAXIMUM_MARK) + b"x")
    assert directory_mark.look_at(tmp_path).standing is directory_mark.Standing.UNKNOWN
    path.write_bytes(mark.ljust(directory_mark.MAXIMUM_MARK - 1) + b"x")
    with pytest.raises(StoreError, match="is damaged"):
        directory_mark.look_at(tmp_path)


@pytest.mark.bound("backup.levels")
def test_directories_of_a_backup_have_a_greatest_depth(tmp_path: Path) -> None:
    deepest = tmp_path.joinpath("backup", *[DATABASE_NAME] * (DEEPEST - 1))
    deepest.mkdir(parents=True)
    (tmp_path / "backup" / NOTE_NAME).write_text("{}", "utf-8")
    with pytest.raises(StoreError) as refused:
        restore_backup(tmp_path / "backup", tmp_path / "data")
    assert "no part of a backup" not in str(refused.value)
    (deepest / "one-more").mkdir()
    with pytest.raises(StoreError, match="one-more is no part of a backup"):
        restore_backup(tmp_path / "backup", tmp_path / "data")


@pytest.mark.bound("backup.files")
@pytest.mark.parametrize("beyond", [0, 1])
def test_a_backup_has_a_greatest_number_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beyond: int
) -> None:
    """A directory that has them is not made here."""
    (tmp_path / "backup").mkdir()
    (tmp_path / "backup" / NOTE_NAME).write_text("{}", "utf-8")

    def members(directory: Path, depth: int) -> Iterator[object]:
        return itertools.repeat(type("Empty", (), {"st_size": 0})(), MAXIMUM_FILES + beyond)

    monkeypatch.setattr(backup, "_members", members)
    with pytest.raises(StoreError) as refused:
        restore_backup(tmp_path / "backup", tmp_path / "data")
    assert ("has more than 1,000,000 files" in str(refused.value)) == bool(beyond)
