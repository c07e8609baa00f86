"""Groups of those who sign: read behind the messages, again and again, and bounded."""

import asyncio
from collections.abc import Collection, Mapping

import pytest

from rpcqm.adm.directory import DirectoryUnavailableError
from rpcqm.service import domain_groups
from rpcqm.service.domain_groups import GROUPS_LIFETIME, DomainGroups
from tests.support.clock import SimulatedClock

ALICE, BOB, CLERKS = (f"S-1-5-21-1-2-3-{number}" for number in (1103, 1104, 1105))


class People:
    """A directory in which everybody is a clerk, as long as it says so."""

    def __init__(self) -> None:
        self.found = frozenset({CLERKS})
        self.asked: list[str] = []
        self.is_there = True

    async def groups(self, sid: str) -> frozenset[str]:
        self.asked.append(sid)
        if not self.is_there:
            raise DirectoryUnavailableError("offline")
        return self.found

    async def standing(self, sids: Collection[str]) -> Mapping[str, bool]:
        raise NotImplementedError

    async def names(self, sids: Collection[str]) -> Mapping[str, str]:
        raise NotImplementedError

    async def identifiers(self, names: Collection[str]) -> Mapping[str, str]:
        raise NotImplementedError


class World:
    def __init__(self, *signers: str) -> None:
        self.clock, self.people, self.signers = SimulatedClock(), People(), list(signers)
        self.groups = DomainGroups(self.people, self.clock.timers, lambda: self.signers)


def test_groups_of_signers_are_read_and_read_again() -> None:
    async def main() -> None:
        world = World(ALICE)
        world.groups.start()
        await world.groups.settled()
        assert (world.groups.of(ALICE), world.groups.of(BOB)) == (frozenset({CLERKS}), frozenset())
        world.people.found = frozenset()
        world.clock.advance(GROUPS_LIFETIME)
        await world.groups.settled()
        assert world.groups.of(ALICE) == frozenset()
        await world.groups.stop()
        world.clock.advance(2 * GROUPS_LIFETIME)
        assert world.people.asked == [ALICE, ALICE]

    asyncio.run(main())


def test_who_gets_a_certificate_is_read_at_once_and_who_has_none_is_forgotten() -> None:
    async def main() -> None:
        world = World(ALICE)
        world.groups.start()
        await world.groups.settled()
        world.signers = [BOB]
        world.groups.directory_changed()
        await world.groups.settled()
        assert (world.groups.of(ALICE), world.groups.of(BOB)) == (frozenset(), frozenset({CLERKS}))
        assert world.people.asked == [ALICE, BOB]
        await world.groups.stop()

    asyncio.run(main())


@pytest.mark.bound("domain.groups_lifetime")
def test_what_was_read_stays_while_the_directory_cannot_be_asked() -> None:
    async def main() -> None:
        world = World(ALICE)
        world.groups.start()
        await world.groups.settled()
        world.people.is_there = False
        world.clock.advance(GROUPS_LIFETIME)
        await world.groups.settled()
        assert world.groups.of(ALICE) == {CLERKS}
        await world.groups.stop()

    asyncio.run(main())


@pytest.mark.bound("domain.signers")
def test_signers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domain_groups, "MOST_SIGNERS", 1)

    async def main() -> None:
        world = World(ALICE, BOB)
        world.groups.start()
        await world.groups.settled()
        assert world.people.asked == [ALICE]
        await world.groups.stop()

    asyncio.run(main())
