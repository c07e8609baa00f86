"""Names of the domain: asked for behind the pages, kept for a day, and bounded."""

import asyncio
from collections.abc import Collection, Mapping

import pytest

from rpcqm.adm.directory import DirectoryUnavailableError
from rpcqm.base.errors import DecodeError
from rpcqm.base.settling import settled
from rpcqm.codec.security.identifier import Sid
from rpcqm.codec.security.logon_information import LogonInformation
from rpcqm.service import domain_names
from rpcqm.service.domain_accounts import DomainAccounts
from rpcqm.service.domain_names import NAME_LIFETIME, DomainNames
from tests.support.clock import SimulatedClock

MACHINE, DOMAIN = "S-1-5-21-9-9-9", "S-1-5-21-1-2-3"
ALICE, BOB, CLERKS = (f"{DOMAIN}-{number}" for number in (1103, 1104, 1105))


class People:
    """A directory with two names."""

    def __init__(self) -> None:
        self.known = {ALICE: "CORP\\alice", CLERKS: "CORP\\clerks"}
        self.asked: list[list[str]] = []
        self.error: Exception | None = None

    async def names(self, sids: Collection[str]) -> Mapping[str, str]:
        self.asked.append(sorted(sids))
        if self.error is not None:
            raise self.error
        return {sid: self.known[sid] for sid in sids if sid in self.known}

    async def identifiers(self, names: Collection[str]) -> Mapping[str, str]:
        self.asked.append(list(names))
        return {name: sid for sid, name in self.known.items() if name in names}

    async def standing(self, sids: Collection[str]) -> Mapping[str, bool]:
        raise NotImplementedError

    async def groups(self, sid: str) -> frozenset[str]:
        raise NotImplementedError


class World:
    def __init__(self, people: People | None = None) -> None:
        self.clock, self.people = SimulatedClock(), people or People()
        self.accounts = DomainAccounts(MACHINE)
        self.names = DomainNames(self.accounts, self.people, self.clock)

    async def later(self, *sids: str) -> list[str]:
        """What is shown at the second look."""
        for sid in sids:
            self.names.name_of(sid)
        for _ in range(5):
            await asyncio.sleep(0)
        return [self.names.name_of(sid) for sid in sids]


def test_a_name_is_there_at_the_second_look_and_asked_for_once_a_day() -> None:
    async def main() -> None:
        world = World()
        assert world.names.name_of(ALICE) == ""
        assert await world.later(ALICE, BOB, ALICE) == ["CORP\\alice", "", "CORP\\alice"]
        assert await world.later(ALICE, BOB) == ["CORP\\alice", ""]
        assert world.people.asked == [[ALICE, BOB]]
        world.people.known[ALICE] = "CORP\\alicia"
        world.clock.set_ahead(NAME_LIFETIME)
        assert await world.later(ALICE) == ["CORP\\alicia"]

    asyncio.run(main())


def test_who_has_logged_on_is_known_by_that() -> None:
    async def main() -> None:
        world = World()
        world.accounts.log_on(LogonInformation("robert", "CORP", Sid.parse(BOB), frozenset()))
        assert world.names.name_of(BOB) == "CORP\\robert"
        assert world.names.sid_of("corp\\Robert") == BOB
        assert await settled(world.names.look_up([BOB, "CORP\\robert"])) == {BOB: "CORP\\robert"}
        assert world.people.asked == []

    asyncio.run(main())


def test_the_directory_is_not_asked_about_others() -> None:
    async def main() -> None:
        world = World()
        assert await world.later(f"{MACHINE}-1000", "S-1-1-0", "S-1-5-32-544", "no SID") == [""] * 4
        assert await settled(world.names.look_up([f"{MACHINE}-1000", "S-1-1-0"])) == {}
        assert world.people.asked == []

    asyncio.run(main())


def test_commands_wait_for_names_and_for_identifiers() -> None:
    async def main() -> None:
        world = World()
        found = await settled(world.names.look_up([ALICE, BOB, "CORP\\clerks", "CORP\\nobody"]))
        assert found == {ALICE: "CORP\\alice", CLERKS: "CORP\\clerks"}
        world.people.error = DecodeError("damaged")
        assert await settled(world.names.look_up([ALICE, CLERKS])) == found
        with pytest.raises(DirectoryUnavailableError, match="damaged"):
            await settled(world.names.look_up([f"{DOMAIN}-7"]))

    asyncio.run(main())


def test_a_directory_that_cannot_be_asked_is_asked_again_at_the_next_look() -> None:
    async def main() -> None:
        world = World()
        world.people.error = DirectoryUnavailableError("offline")
        assert await world.later(ALICE) == [""]
        world.people.error = None
        assert await world.later(ALICE) == ["CORP\\alice"]
        await world.names.stop()

    asyncio.run(main())


@pytest.mark.bound("domain.wanted_names", "domain.names", "domain.name_lifetime")
def test_names_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domain_names, "MOST_WANTED", 2)
    monkeypatch.setattr(domain_names, "MOST_NAMES", 3)

    async def main() -> None:
        world = World()
        sids = [f"{DOMAIN}-{number}" for number in range(2000, 2010)]
        await world.later(*sids)
        assert max(map(len, world.people.asked)) == 2
        found = await settled(world.names.look_up([ALICE, CLERKS, BOB]))
        assert len(found) == 2
        assert len(world.names._known) <= 3

    asyncio.run(main())


def test_without_a_directory_who_has_logged_on_has_a_name() -> None:
    async def main() -> None:
        accounts = DomainAccounts(MACHINE)
        names = DomainNames(accounts, None, SimulatedClock())
        accounts.log_on(LogonInformation("bob", "CORP", Sid.parse(BOB), frozenset()))
        assert await settled(names.look_up([BOB, ALICE, "CORP\\alice"])) == {BOB: "CORP\\bob"}
        assert names.name_of(ALICE) == ""

    asyncio.run(main())
