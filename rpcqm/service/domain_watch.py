"""Watches whether the accounts of the domain that have anything open still stand (G772)."""

import asyncio
from contextlib import suppress

from rpcqm.adm.directory import DirectoryUnavailableError
from rpcqm.adm.people import People
from rpcqm.base.clock import Timer, Timers
from rpcqm.base.errors import DecodeError
from rpcqm.base.log import get_logger
from rpcqm.service.domain_accounts import DomainAccounts

_log = get_logger("service")


class DomainWatch:
    """Asks the directory every `round_milliseconds`, and at once about who logs on between.

    Accounts that log on are asked about once a round, all of them together, so that nobody can make
    us ask as often as he likes.
    """

    def __init__(
        self, accounts: DomainAccounts, people: People, timers: Timers, round_milliseconds: int
    ) -> None:
        self._accounts, self._people, self._timers = accounts, people, timers
        self._round = round_milliseconds
        self._asked: set[str] = set()
        self._wanted: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        self._timer: Timer | None = None
        self._is_told = False
        accounts.logon_hooks.append(self._logged_on)

    def start(self) -> None:
        """Begin with the rounds."""
        self._timer = self._timers.call_later(self._round, self._begin_round)

    async def stop(self) -> None:
        """Ask nothing more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def settled(self) -> None:
        """Wait until nobody is asked about any more."""
        if self._task is not None:
            await asyncio.shield(self._task)

    def _logged_on(self, sid: str) -> None:
        if sid not in self._asked:
            self._want({sid})

    def _begin_round(self) -> None:
        self._asked.clear()
        self._want(set(self._accounts.open_accounts()))
        self.start()

    def _want(self, sids: set[str]) -> None:
        self._asked |= sids
        self._wanted |= sids
        if self._wanted and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._ask())
            self._task.add_done_callback(self._finished)

    async def _ask(self) -> None:
        while self._wanted:
            sids, self._wanted = self._wanted, set()
            try:
                standing = await self._people.standing(sids)
            except (DirectoryUnavailableError, DecodeError) as error:
                self._tell(str(error))
            else:
                self._is_told = False
                self._accounts.take_over(standing)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled() and task.exception() is not None:
            _log.error("accounts of the domain were not looked at", exc_info=task.exception())

    def _tell(self, reason: str) -> None:
        """Tell once that the directory does not say who stands, until it does again."""
        if not self._is_told:
            self._is_told = True
            _log.warning("the directory does not say which accounts have ended", reason=reason)
