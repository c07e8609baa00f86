"""Groups of those who sign messages: their certificates are in the directory, and no ticket comes.

Nothing on the way of a message waits for the directory. Whoever may sign is known from what was
read of it, so their groups are read behind that, and again every ten minutes.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import islice

from rpcqm.adm.directory import DirectoryUnavailableError
from rpcqm.adm.people import People
from rpcqm.base.clock import Timer, Timers
from rpcqm.base.errors import DecodeError
from rpcqm.base.log import get_logger

GROUPS_LIFETIME = 600_000
"""How old the groups of an account of the domain that signs messages can be.

Bound `domain.groups_lifetime` [milliseconds]: they are read again.
"""
MOST_SIGNERS = 10_000
"""Accounts of the domain with certificates whose groups are read.

Bound `domain.signers` [accounts]: the others sign without groups.
"""

_log = get_logger("service")


class DomainGroups:
    """Reads the groups of `signers`, the SIDs of accounts with certificates."""

    def __init__(
        self, people: People, timers: Timers, signers: Callable[[], Iterable[str]]
    ) -> None:
        self._people, self._timers, self._signers = people, timers, signers
        self._groups: dict[str, frozenset[str]] = {}
        self._task: asyncio.Task[None] | None = None
        self._timer: Timer | None = None

    def of(self, sid: str) -> frozenset[str]:
        """The groups of an account; none while they are not known."""
        return self._groups.get(sid, frozenset())

    def start(self) -> None:
        """Read them, now and from time to time."""
        self._timer = self._timers.call_later(GROUPS_LIFETIME, self.start)
        self._begin(True)

    def directory_changed(self) -> None:
        """Read those of accounts that were not there before."""
        self._begin(False)

    async def stop(self) -> None:
        """Read nothing more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def settled(self) -> None:
        """Wait until what was begun is read."""
        if self._task is not None:
            await self._task

    def _begin(self, again: bool) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._read(again))

    async def _read(self, again: bool) -> None:
        try:
            signers = list(islice(self._signers(), MOST_SIGNERS))
            for gone in self._groups.keys() - set(signers):
                del self._groups[gone]
            for sid in signers:
                if again or sid not in self._groups:
                    self._groups[sid] = await self._people.groups(sid)
        except (DirectoryUnavailableError, DecodeError) as error:
            _log.debug("groups of the domain are not read", reason=str(error))
