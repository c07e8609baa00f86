"""Files that only their owner may read: bodies of messages, captures, keys."""

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

OTHERS = stat.S_IRWXG | stat.S_IRWXO
"""The bits of a mode that let anybody but the owner do something."""

_PIECE = 65_536


@contextmanager
def private_draft(path: Path) -> Iterator[BinaryIO]:
    """A file of mode 0600 that takes its place when the block ends, whole and on the disk.

    An ordinary file that was there is replaced. Raises OSError, also for a link, which is not
    followed, and for a device or a pipe; nothing is left then.
    """
    with _draft(path) as (descriptor, draft), os.fdopen(descriptor, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
        os.replace(draft, path)


def replace_private(path: Path) -> BinaryIO:
    """Open an empty file of mode 0600, unbuffered, in the place of an ordinary file if there is
    one.

    Raises OSError as `private_draft` does.
    """
    with _draft(path) as (descriptor, draft):
        os.replace(draft, path)
    return os.fdopen(descriptor, "wb", buffering=0)


@contextmanager
def _draft(path: Path) -> Iterator[tuple[int, str]]:
    """A new file beside another one: its descriptor and its name, which goes with an error."""
    _check_ordinary(path)
    descriptor, draft = tempfile.mkstemp(prefix=".rpcqm-", dir=path.parent)
    try:
        yield descriptor, draft
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def _check_ordinary(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:  # nothing remains under the new file's name
        return
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, "it is a link, and links are not followed", str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is no ordinary file", str(path))


def read_at_most(file: BinaryIO, most: int) -> bytes:
    """Read the beginning of a file; takes no memory for octets that the file does not have."""
    pieces = []
    while most > 0 and (piece := file.read(min(most, _PIECE))):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)


def read_private(path: Path, most: int = -1) -> bytes:
    """Read a file that only its owner can read and write, at most so many octets.

    Raises OSError, and PermissionsTooWide for a file with another mode.
    """
    with path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if mode & OTHERS:
            raise PermissionsTooWide(path, stat.S_IMODE(mode))
        return file.read() if most < 0 else read_at_most(file, most)


class PermissionsTooWide(ValueError):
    """Other users may read or write a private file; the text ends a sentence."""

    def __init__(self, path: Path, mode: int) -> None:
        super().__init__(f"others may read it (mode {mode:04o}): `chmod 600 {path}`")


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
