"""Names of the accounts and groups of a domain, beside those of this machine.

Pages are made without waiting: what is not known yet is asked for behind them, and stands there at
the next look. Commands wait.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Collection, Iterable, Mapping
from contextlib import suppress
from itertools import islice

from rpcqm.adm.directory import DirectoryUnavailableError
from rpcqm.adm.people import People
from rpcqm.base.clock import Clock
from rpcqm.base.completion import Completion
from rpcqm.base.errors import DecodeError
from rpcqm.base.identity import folded_name
from rpcqm.base.log import get_logger
from rpcqm.service.domain_accounts import DomainAccounts

NAME_LIFETIME = 86_400_000
"""How long the name of an account or group of the domain is not asked for again.

Bound `domain.name_lifetime` [milliseconds]: it is asked for again.
"""
MOST_NAMES = 10_000
"""Names of accounts and groups of the domain that are known.

Bound `domain.names` [names]: the one that was asked for first is forgotten.
"""
MOST_WANTED = 256
"""Names of accounts and groups of the domain that are asked for together.

Bound `domain.wanted_names` [names]: the others stay as they are until they are asked for again.
"""

_log = get_logger("service")


class DomainNames:
    """Asks for names once a day; whoever has logged on is known by that.

    Without `people` nobody else is.
    """

    def __init__(self, accounts: DomainAccounts, people: People | None, clock: Clock) -> None:
        self._accounts, self._people, self._clock = accounts, people, clock
        self._known: OrderedDict[str, tuple[int, str]] = OrderedDict()
        """By SID: when it was asked for, and the name; "" is none."""
        self._wanted: dict[str, None] = {}
        self._task: asyncio.Task[None] | None = None
        self._lookups: set[asyncio.Task[Mapping[str, str]]] = set()

    def name_of(self, sid: str) -> str:
        """A name, "" while it is not known; then it is asked for."""
        if not self._accounts.is_of(sid):
            return ""
        name = self._accounts.name_of(sid) or self._kept(sid)
        if name is None and self._people is not None and len(self._wanted) < MOST_WANTED:
            self._wanted[sid] = None
            if self._task is None:
                self._task = asyncio.get_running_loop().create_task(self._ask())
        return name or ""

    def sid_of(self, name: str) -> str:
        """The SID of a name that was shown, "" of any other."""
        word = folded_name(name)
        known = ((sid, each) for sid, (_, each) in self._known.items())
        named = (*self._accounts.names(), *known)
        return next((sid for sid, each in named if folded_name(each) == word), "")

    def look_up(self, who: Collection[str]) -> Completion[Mapping[str, str]]:
        r"""Names by SIDs, of SIDs and of names such as `CORP\alice`; others are left out.

        Fails with DirectoryUnavailableError if the directory has to be asked, and cannot be.
        """
        outcome: Completion[Mapping[str, str]] = Completion()

        def finish(task: asyncio.Task[Mapping[str, str]]) -> None:
            self._lookups.discard(task)
            error = None if task.cancelled() else task.exception()
            if error is not None or task.cancelled():
                outcome.fail(error or DirectoryUnavailableError("the queue manager stops"))
            else:
                outcome.succeed(task.result())

        task = asyncio.get_running_loop().create_task(self._look_up(who))
        self._lookups.add(task)
        task.add_done_callback(finish)
        return outcome

    async def _look_up(self, who: Collection[str]) -> Mapping[str, str]:
        some = list(islice(who, MOST_WANTED))
        names = [each for each in some if "\\" in each]
        of_domain = [each for each in some if self._accounts.is_of(each)]
        await self._read([each for each in of_domain if self._kept(each) is None])
        found = {each: sid for each in names if (sid := self.sid_of(each))}
        asked = [each for each in names if each not in found]
        if asked and self._people is not None:
            told = await _readable(self._people.identifiers(asked))
            self._keep({sid: name for name, sid in told.items()}, told.values())
            found |= told
        return {sid: name for sid in (*of_domain, *found.values()) if (name := self.name_of(sid))}

    async def stop(self) -> None:
        """Ask for nothing more."""
        for task in (self._task, *self._lookups):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError, DirectoryUnavailableError):
                    await task

    def _kept(self, sid: str) -> str | None:
        """What is known of a name; None if it has to be asked for."""
        asked, name = self._known.get(sid, (0, ""))
        return name if asked and self._clock.now() < asked + NAME_LIFETIME else None

    async def _ask(self) -> None:
        try:
            while self._wanted:
                await self._read(self._wanted)
                self._wanted.clear()
        except DirectoryUnavailableError as error:
            _log.debug("names of the domain are not known", reason=str(error))
        finally:
            self._wanted.clear()
            self._task = None

    async def _read(self, sids: Collection[str]) -> None:
        some = [each for each in sids if not self._accounts.name_of(each)]
        if not some or self._people is None:
            return
        self._keep(await _readable(self._people.names(some)), some)

    def _keep(self, found: Mapping[str, str], sids: Iterable[str]) -> None:
        now = self._clock.now()
        for sid in sids:
            self._known[sid] = now, found.get(sid, "")
            self._known.move_to_end(sid)
        while len(self._known) > MOST_NAMES:
            self._known.popitem(last=False)


async def _readable(answer: Awaitable[Mapping[str, str]]) -> Mapping[str, str]:
    """An answer of the directory; DirectoryUnavailableError for a damaged one."""
    try:
        return await answer
    except DecodeError as error:
        raise DirectoryUnavailableError(str(error)) from error
