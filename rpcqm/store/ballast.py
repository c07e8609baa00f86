"""Files that reserve room, for the time when another program fills the disk (G582).

Removing messages takes a little disk space, too, and so does a start. One file is given up for
removals; the other one only for a start, so that there is room for that whatever became of the
first one. Both are made again once there is room for them.
"""

import os
from pathlib import Path

from rpcqm.base.log import get_logger

RUNNING, STARTING = "ballast", "ballast-to-start"
_log = get_logger("store")


class Ballast:
    """The files of a data directory; both together take `size` bytes, 0 switches them off."""

    def __init__(self, directory: Path, size: int) -> None:
        self._paths = {name: directory / name for name in (RUNNING, STARTING)}
        self.size = size
        self._there = {name for name in self._paths if size and self._is_whole(name)}
        if not size:
            for path in self._paths.values():
                path.unlink(missing_ok=True)

    def _is_whole(self, name: str) -> bool:
        try:
            return self._paths[name].stat().st_size == self.size // 2
        except OSError:
            return False

    @property
    def held(self) -> bool:
        """Whether the file is there that can be given up while the queue manager runs."""
        return RUNNING in self._there

    @property
    def is_whole(self) -> bool:
        """Whether both files are there."""
        return len(self._there) == len(self._paths)

    def is_needed(self, free: int) -> bool:
        """Whether so few bytes are free that a file has to be given up."""
        return free < self.size // 4

    def hold(self) -> None:
        """Make the missing files, as far as there is room."""
        for name in self._paths.keys() - self._there:
            path = self._paths[name]
            try:
                self._allocate(path)
            except OSError as error:
                _log.warning("no ballast on the disk", error=error.strerror, size=self.size)
                path.unlink(missing_ok=True)
            else:
                self._there.add(name)

    def _allocate(self, path: Path) -> None:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(file, 0)  # there may be one of another size
            os.posix_fallocate(file, 0, self.size // 2)
        finally:
            os.close(file)

    def give_up(self, name: str = RUNNING) -> None:
        """Remove a file, which needs no disk space itself."""
        try:
            self._paths[name].unlink(missing_ok=True)
        except OSError as error:
            _log.error("the ballast cannot be removed", error=error.strerror)
        else:
            self._there.discard(name)
            _log.error("the disk is full, gave the ballast up so that messages can be removed")

    def make_room(self) -> None:
        """Give up the ballast before anything is written, if a start needs its room."""
        for name in self._paths:
            if name in self._there and self.is_needed(_free(self._paths[name].parent)):
                self.give_up(name)


def _free(directory: Path) -> int:
    status = os.statvfs(directory)
    return status.f_bavail * status.f_frsize
