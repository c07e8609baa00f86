"""The mark by which a data directory is distinguished from its copies (G490).

The mark is a file with the identifier of its file system and its own inode number. Both stay when a
volume moves as a whole: to another device number, host, container or path. The mark of a copy is
another inode, or is on another file system.

It does not distinguish a volume from its own copy block by block (a snapshot, the disk of a cloned
machine): those have one identifier, and the same inodes.
"""

import enum
import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from rpcqm.base.files import private_draft, read_at_most, sync_directory
from rpcqm.base.log import get_logger
from rpcqm.store.errors import StoreError

MARK_NAME = "identity"
MAXIMUM_MARK = 4096
"""What is read of the mark of a data directory.

`write_mark` writes about a hundred.

Bound `identity.mark_octets` [octets]: what is behind them is not read.
"""

FS_IOC_GETFSUUID = 0x8011_1500
"""The ioctl for the UUID of any file system (Linux 6.9): a size, which is 16, and the UUID."""
XFS_IOC_FSGEOMETRY_V1 = 0x8070_5864
"""The ioctl for the geometry of XFS in older kernels, too. The UUID is at octet 64."""
UUID_SIZE = 16

_log = get_logger("store")


class Standing(enum.Enum):
    """The result of comparing a directory with its mark."""

    NEW = enum.auto()
    """There is no mark yet."""
    OWN = enum.auto()
    """The directory is the one that was marked."""
    UNKNOWN = enum.auto()
    """The file system has no identifier that stays, now or when the mark was written."""
    COPY = enum.auto()
    """The mark was written elsewhere: on another file system, or as another file."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The contents of a mark; `order` is "" or the name of one order for another identity."""

    file_system: str
    inode: int
    order: str = ""

    @classmethod
    def decode(cls, octets: bytes, path: Path) -> "Mark":
        """Raises StoreError for a malformed mark; members of later versions are ignored."""
        try:
            told = json.loads(octets)
            mark = cls(told["file_system"], told["inode"], told.get("order", ""))
            if [type(each) for each in asdict(mark).values()] != [str, int, str]:
                raise TypeError(told)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise StoreError(f"{path} is damaged; {_remedy(path.parent)}") from error
        return mark

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class Marked:
    """The result for a data directory, and the order in its mark."""

    standing: Standing
    order: str = ""


def look_at(directory: Path) -> Marked:
    """Compare a data directory with its mark; raises StoreError for a damaged one, or OSError."""
    path = directory / MARK_NAME
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:  # a new directory, one of an earlier version, or a restored one
        return Marked(Standing.NEW)
    with os.fdopen(descriptor, "rb") as file:
        mark = Mark.decode(read_at_most(file, MAXIMUM_MARK), path)
        now = Mark(file_system_of(descriptor), os.fstat(descriptor).st_ino)
    return Marked(_standing(mark, now), mark.order)


def _standing(mark: Mark, now: Mark) -> Standing:
    if not mark.file_system or not now.file_system or _kind(mark) != _kind(now):
        return Standing.UNKNOWN
    same = (mark.file_system, mark.inode) == (now.file_system, now.inode)
    return Standing.OWN if same else Standing.COPY


def _kind(mark: Mark) -> str:
    """The kind of identifier of the file system: a newer kernel may offer a better one."""
    return mark.file_system.partition(":")[0]


@contextmanager
def marked(directory: Path) -> Iterator[str]:
    """Use a data directory within the block, which opens it; gives the order in its mark.

    A directory without a mark gets one at the end. Raises StoreError, with a sentence for the
    operator and before anything is opened, for a directory that was copied.
    """
    found = look_at(directory)
    if found.standing is Standing.COPY:
        raise StoreError(
            f"The data directory {directory} was copied, or moved to another file system, and no "
            f"two queue managers may have one identity: {_remedy(directory)}"
        )
    yield found.order
    if found.standing is not Standing.OWN:
        mark = write_mark(directory, found.order)
        if not mark.file_system:
            _log.warning("a copy of the data directory would not be noticed", data=str(directory))


def _remedy(directory: Path) -> str:
    return (
        f"say what it is by `rpcqm identity moved --data-dir {directory}` (the only one, as it was "
        "left), or with `restored` (the only one, from an earlier time) or `new` (another queue "
        "manager) in the place of `moved`."
    )


def write_mark(directory: Path, order: str = "") -> Mark:
    """Mark a data directory as the one that it is now, durably; gives the mark. Raises OSError."""
    with owned_draft(directory / MARK_NAME) as file:
        descriptor = file.fileno()
        mark = Mark(file_system_of(descriptor), os.fstat(descriptor).st_ino, order)
        file.write(mark.encode())
    return mark


@contextmanager
def owned_draft(path: Path) -> Iterator[BinaryIO]:
    """A file of a data directory, as `private_draft` makes it, and durable with its name.

    If root makes it, it belongs to the owner of the directory, who has to read it.
    """
    with private_draft(path) as file:
        yield file
        owner = path.parent.stat()
        if os.geteuid() == 0 and owner.st_uid != 0:
            os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
    sync_directory(path.parent)


def new_order() -> str:
    """A new, unique name of an order."""
    return secrets.token_hex(16)


def file_system_of(descriptor: int) -> str:
    """The identifier of an open file's file system, wherever it is mounted; "" without one.

    The identifier of statfs is made of the UUID (ext4), of that and the subvolume (btrfs), or is a
    random one (ZFS, overlayfs, tmpfs). XFS and others give the number of the device instead, which
    has 32 bits, and network file systems 0. Some of those offer their UUID otherwise, as XFS does.
    """
    number = os.fstatvfs(descriptor).f_fsid
    if number >> 32:
        return f"id:{number:016x}"
    generic = _answer(descriptor, FS_IOC_GETFSUUID, 1 + UUID_SIZE)
    if generic[:1] == bytes((UUID_SIZE,)):  # a shorter one is a serial number, as of FAT
        return f"uuid:{generic[1:].hex()}"
    of_xfs = _answer(descriptor, XFS_IOC_FSGEOMETRY_V1, 112)[64 : 64 + UUID_SIZE]
    return f"uuid:{of_xfs.hex()}" if any(of_xfs) else ""


def _answer(descriptor: int, request: int, size: int) -> bytes:
    """The answer of a file system to an ioctl that only reads; b"" if it does not support it."""
    answer = bytearray(size)
    try:
        fcntl.ioctl(descriptor, request, answer)
    except OSError:  # another file system, or an older kernel
        return b""
    return bytes(answer)
