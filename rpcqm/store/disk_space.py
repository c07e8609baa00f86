"""Watches whether the disk has room for new messages."""

import os
from collections.abc import Callable
from pathlib import Path

from rpcqm.base.clock import Clock
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.log import get_logger
from rpcqm.store.ballast import Ballast
from rpcqm.store.settings import MIB, StoreSettings

AMPLE = 4 << 30
"""More free bytes than another program writes between two looks."""
_log = get_logger("store")


def free_space(directory: Path) -> int:
    """Bytes that an unprivileged process may still write there."""
    status = os.statvfs(directory)
    return status.f_bavail * status.f_frsize


class DiskSpaceMonitor:
    """Refuses new messages while the disk is nearly full; resumes by itself.

    `free` gives the free bytes. It is asked again after some time or some bytes, for every message
    while messages are refused, and for every write while another program could fill the disk
    before that time is over. When hardly anything is free, the ballast is given up.
    """

    def __init__(
        self, clock: Clock, settings: StoreSettings, free: Callable[[], int], ballast: Ballast
    ) -> None:
        self._clock = clock
        self._ballast = ballast
        self._reserve = settings.reserve
        self._interval = settings.space_check_interval
        self._step = settings.space_check_bytes
        self._free = free
        self._pending = 0
        self._margin = 0
        self._next_look = 0
        self._ample = False
        self.refusing = False
        self._told: Callable[[bool], None] | None = None
        self._look()

    def watch(self, told: Callable[[bool], None]) -> None:
        """Call a function with whether messages are refused: now, and at each change."""
        self._told = told
        told(self.refusing)

    def look_again(self) -> None:
        """See whether there is room again, if messages are refused."""
        if self.refusing:
            self._look()

    def keep_free(self, reserve: int) -> None:
        """Refuse new messages below another number of free bytes."""
        self._reserve = reserve
        self._look()

    @property
    def reserve(self) -> int:
        """Free bytes below which no new message is taken."""
        return self._reserve

    @property
    def free(self) -> int:
        """Free bytes, as of now."""
        return self._known_free()

    def admit(self, size: int) -> None:
        """Let a new message of `size` bytes in, or raise MQ_ERROR_INSUFFICIENT_RESOURCES."""
        self._pending += size
        self._margin -= size
        if self._margin < 0:
            self._look()
            if self.refusing:
                self._pending -= size
                raise MQError(
                    HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
                    f"less than {self._reserve // MIB} MiB are free on the disk of the store",
                )

    def before_write(self) -> bool:
        """Clear the admitted bytes, which are about to be written; returns whether it was time to
        look."""
        self._pending = 0
        due = self._clock.monotonic() >= self._next_look
        if due or not self._ample:
            self._look()
        return due

    def _known_free(self) -> int:
        """Free bytes; 0 if the system gives no answer."""
        try:
            return self._free()
        except OSError as error:  # a disk that fails takes no more messages
            _log.error("cannot tell how much room the disk has", error=str(error))
            return 0

    def _look(self) -> None:
        """Find out how much may be admitted before looking again."""
        self._next_look = self._clock.monotonic() + self._interval
        free = self._balanced(self._known_free())
        self._ample = free > AMPLE or not self._ballast.size
        room = free - self._kept_free() - self._pending
        self._margin = min(room, self._step)
        if self.refusing != (room < 0):
            self.refusing = room < 0
            if self.refusing:
                _log.error("disk nearly full, refusing new messages", reserve=self._reserve)
            else:
                _log.info("disk has room again, accepting new messages")
            if self._told is not None:
                self._told(self.refusing)

    def _kept_free(self) -> int:
        """The bytes kept free for removals: those of the ballast, once that is given up."""
        return self._reserve if self._ballast.held else max(self._reserve, self._ballast.size)

    def _balanced(self, free: int) -> int:
        """The free bytes after the ballast was given up, or made again, if it is time for that.

        Making it again takes much more free space than giving it up, so that one does not follow
        from the other.
        """
        ballast = self._ballast
        if not ballast.size:
            return free
        if ballast.is_needed(free) and ballast.held:
            ballast.give_up()
        elif free >= max(self._reserve, ballast.size) + ballast.size and not ballast.is_whole:
            ballast.hold()
        else:
            return free
        return self._known_free()
