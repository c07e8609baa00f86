"""The mark by which a data directory knows itself from its copies (G490)."""

import errno
import fcntl
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from rpcqm.store import directory_mark
from rpcqm.store.directory_mark import (
    FS_IOC_GETFSUUID,
    MARK_NAME,
    XFS_IOC_FSGEOMETRY_V1,
    Standing,
    file_system_of,
    look_at,
    marked,
)
from rpcqm.store.errors import StoreError

UUID = bytes(range(1, 17))
DEVICE = os.makedev(259, 3)
WELL = {FS_IOC_GETFSUUID: bytes((16,)) + UUID}
OLD_XFS = {XFS_IOC_FSGEOMETRY_V1: bytes(64) + UUID + bytes(32)}
FAT = {FS_IOC_GETFSUUID: bytes((4, 1, 2, 3, 4)) + bytes(12)}


@pytest.mark.parametrize(
    ("number", "answers", "identifier"),
    [
        pytest.param(0xEC39FFAC9EE35F3C, {}, "id:ec39ffac9ee35f3c", id="ext4, btrfs, ZFS"),
        pytest.param(0x1_0000_0000, WELL, "id:0000000100000000", id="the smallest identifier"),
        pytest.param(0xFFFF_FFFF, {}, "", id="the largest device"),
        pytest.param(DEVICE, WELL, f"uuid:{UUID.hex()}", id="XFS, F2FS"),
        pytest.param(DEVICE, OLD_XFS, f"uuid:{UUID.hex()}", id="XFS before Linux 6.9"),
        pytest.param(DEVICE, FAT, "", id="FAT, whose inodes change"),
        pytest.param(0, {}, "", id="NFS, FUSE"),
        pytest.param(0, {XFS_IOC_FSGEOMETRY_V1: bytes(112)}, "", id="no UUID"),
    ],
)
def test_a_file_system_is_identified_by_what_stays(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    answers: dict[int, bytes],
    identifier: str,
) -> None:
    def ioctl(descriptor: int, request: int, answer: bytearray) -> int:
        if request not in answers:
            raise OSError(errno.ENOTTY, "Inappropriate ioctl for device")
        answer[:] = answers[request]
        return 0

    monkeypatch.setattr(os, "fstatvfs", lambda _: SimpleNamespace(f_fsid=number))
    monkeypatch.setattr(fcntl, "ioctl", ioctl)
    with (tmp_path / "file").open("wb") as file:
        assert file_system_of(file.fileno()) == identifier


class Disk:
    """The file system that directories of a test are on."""

    identifier = "id:0000000100000000"


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk()
    monkeypatch.setattr(directory_mark, "file_system_of", lambda _: disk.identifier)
    return disk


@pytest.fixture
def data(tmp_path: Path, disk: Disk) -> Path:
    path = tmp_path / "data"
    path.mkdir()
    with marked(path):
        assert not (path / MARK_NAME).exists()
    assert look_at(path).standing is Standing.OWN
    return path


def test_a_directory_keeps_its_mark(data: Path) -> None:
    before = (data / MARK_NAME).stat().st_ino
    with marked(data):
        pass
    assert (data / MARK_NAME).stat().st_ino == before


def test_another_inode_or_another_file_system_is_a_copy(
    data: Path, disk: Disk, tmp_path: Path
) -> None:
    shutil.copytree(data, tmp_path / "copy")
    assert look_at(tmp_path / "copy").standing is Standing.COPY
    disk.identifier = "id:0000000200000000"
    assert look_at(data).standing is Standing.COPY
    with pytest.raises(StoreError, match="was copied"), marked(data):
        raise AssertionError("the directory was opened")


def test_what_could_not_be_opened_is_not_marked(tmp_path: Path, disk: Disk) -> None:
    with pytest.raises(RuntimeError), marked(tmp_path):
        raise RuntimeError("another process has it open")
    assert not (tmp_path / MARK_NAME).exists()


@pytest.mark.parametrize("before", ["", "id:0000000100000000"])
def test_a_file_system_without_an_identifier_is_a_warning_only(
    tmp_path: Path, disk: Disk, before: str
) -> None:
    disk.identifier = before
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    with marked(first):
        pass
    shutil.copytree(first, second)
    disk.identifier = ""
    with capture_logs() as lines:
        for path in (first, second):
            with marked(path):
                pass
    event = "a copy of the data directory would not be noticed"
    assert [line["data"] for line in lines if line["event"] == event] == [str(first), str(second)]


def test_what_a_newer_kernel_tells_is_noted_and_no_reason_to_ask(
    tmp_path: Path, disk: Disk, data: Path
) -> None:
    disk.identifier = "uuid:01"
    assert look_at(data).standing is Standing.UNKNOWN
    with marked(data):
        pass
    assert look_at(data).standing is Standing.OWN
    shutil.copytree(data, tmp_path / "copy")
    assert look_at(tmp_path / "copy").standing is Standing.COPY
