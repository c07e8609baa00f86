"""When the directory is asked about accounts, and what follows."""

import asyncio
import contextlib
from collections.abc import Collection, Mapping

import pytest

from rpcqm.adm.directory import DirectoryUnavailableError
from rpcqm.codec.security.identifier import Sid
from rpcqm.codec.security.logon_information import LogonInformation
from rpcqm.service.domain_accounts import DomainAccounts
from rpcqm.service.domain_watch import DomainWatch
from tests.support.clock import SimulatedClock

ROUND = 60_000
ALICE, BOB = "S-1-5-21-1-2-3-1103", "S-1-5-21-1-2-3-1104"


class People:
    """A directory of which a test says who has ended in it."""

    def __init__(self) -> None:
        self.ended: set[str] = set()
        self.asked: list[list[str]] = []
        self.error: Exception | None = None

    async def standing(self, sids: Collection[str]) -> Mapping[str, bool]:
        self.asked.append(sorted(sids))
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return {sid: sid not in self.ended for sid in sids}

    async def names(self, sids: Collection[str]) -> Mapping[str, str]:
        raise NotImplementedError

    async def identifiers(self, names: Collection[str]) -> Mapping[str, str]:
        raise NotImplementedError

    async def groups(self, sid: str) -> frozenset[str]:
        raise NotImplementedError


class World:
    """Accounts, a directory, and what has ended."""

    def __init__(self) -> None:
        self.clock = SimulatedClock()
        self.people, self.accounts = People(), DomainAccounts("S-1-5-21-9-9-9")
        self.watch = DomainWatch(self.accounts, self.people, self.clock.timers, ROUND)
        self.watch.start()
        self.ended: list[str] = []
        self.accounts.ended_hooks.append(self.ended.append)

    async def log_on(self, *sids: str) -> bool:
        """Whether all of them may, before the directory is asked about them."""
        found = [self._one(sid) for sid in sids]
        await self.watch.settled()
        return all(found)

    def _one(self, sid: str) -> bool:
        made = LogonInformation("somebody", "CORP", Sid.parse(sid), frozenset())
        return self.accounts.log_on(made) is not None

    async def round(self) -> None:
        self.clock.advance(ROUND)
        await self.watch.settled()


def test_who_logs_on_is_asked_about_at_once_and_with_others() -> None:
    async def main() -> None:
        world = World()
        world.people.ended = {BOB}
        assert await world.log_on(ALICE, BOB, ALICE)
        assert [each for some in world.people.asked for each in some] == [ALICE, BOB]
        assert world.ended == [BOB]
        assert not await world.log_on(BOB)
        await world.watch.stop()

    asyncio.run(main())


def test_each_round_asks_about_all_that_may_be_open() -> None:
    async def main() -> None:
        world = World()
        await world.log_on(ALICE, BOB)
        world.people.ended = {ALICE}
        await world.round()
        assert world.people.asked[-1] == [ALICE, BOB]
        assert world.ended == [ALICE]
        world.people.ended = set()
        await world.round()
        assert world.people.asked[-1] == [ALICE, BOB]
        assert await world.log_on(ALICE)
        await world.watch.stop()

    asyncio.run(main())


def test_logons_ask_once_a_round() -> None:
    async def main() -> None:
        world = World()
        for _ in range(5):
            await world.log_on(ALICE)
        assert world.people.asked == [[ALICE]]
        await world.watch.stop()

    asyncio.run(main())


@pytest.mark.parametrize("error", [DirectoryUnavailableError("offline"), ValueError("a mistake")])
def test_a_directory_that_cannot_be_asked_ends_nobody(error: Exception) -> None:
    """And is asked again at the next round."""

    async def main() -> None:
        world = World()
        world.people.error, world.people.ended = error, {ALICE}
        with contextlib.suppress(ValueError):
            assert await world.log_on(ALICE)
        assert world.ended == []
        world.people.error = None
        await world.round()
        assert world.ended == [ALICE]
        await world.watch.stop()

    asyncio.run(main())


def test_nothing_is_asked_after_the_end() -> None:
    async def main() -> None:
        world = World()
        await world.log_on(ALICE)
        await world.watch.stop()
        world.clock.advance(10 * ROUND)
        assert world.people.asked == [[ALICE]]

    asyncio.run(main())
