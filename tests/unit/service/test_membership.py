"""What nodes tell each other: lag, clocks, and how far a primary trims the log."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from rpcqm.base.settling import settled
from rpcqm.replica.members import Member
from rpcqm.service.cluster.membership import Keeping, Membership
from tests.support.replica.memory_log import MemoryEngine, MemoryLog

OWN = Member("a", "00" * 16, "primary", "ff" * 16, 3, 100, 100, 0, 50_000, "0.1.0", "digest", 10)
RECORD = bytes(10)


class Node:
    """A member over a log in memory, whose clocks the test sets."""

    def __init__(self, log: MemoryLog, member: Member, keep: int = 1 << 30) -> None:
        self.engine, self.member, self.now = MemoryEngine(log), member, 0
        self.membership = Membership(
            self.engine,
            lambda: self.member,
            lambda: self.member.role == "primary",
            Keeping(keep, 1 << 40),
            lambda: self.now,
        )

    async def look(self) -> None:
        await self.membership.look()

    async def told(self) -> dict[str, Any]:
        bounds = await settled(self.engine.bounds())
        return {each.node: each for each in self.membership.told(bounds)}


def running(work: Callable[[MemoryLog], Coroutine[Any, Any, None]]) -> None:
    """Run a check with a log of a hundred records."""

    async def main() -> None:
        log = MemoryLog(asyncio.get_running_loop().call_soon)
        log.records = [RECORD] * 100
        await work(log)

    asyncio.run(main())


def test_each_node_hears_how_far_the_others_are() -> None:
    async def work(log: MemoryLog) -> None:
        first = Node(log, OWN)
        second = Node(log, replace(OWN, node="b", role="standby", place=90, synced=80, behind=10))
        await second.look()
        await first.look()
        told = await first.told()
        assert (told["b"].lag, told["b"].synced, told["b"].lost) == (10, 80, False)
        assert (told["a"].lag, told["a"].lag_milliseconds) == (0, 0)
        log.records += [RECORD] * 5  # since then, and b is silent
        first.now = 14_000
        assert (await first.told())["b"].lag == 10
        first.now = 16_000
        assert (await first.told())["b"].lag == 15

    running(work)


def test_the_time_of_a_lag_is_counted_from_when_the_log_had_more() -> None:
    async def work(log: MemoryLog) -> None:
        first = Node(log, OWN)
        second = Node(log, replace(OWN, node="b", role="standby"))
        for now in (0, 5_000, 10_000):
            first.now = now
            second.member = replace(second.member, time=50_000 + now, behind=now // 500)
            await second.look()
            await first.look()
            if now == 0:
                log.records += [RECORD] * 10
                first.member = replace(OWN, place=110)
        first.now = 12_000
        told = await first.told()
        assert (told["b"].lag, told["b"].lag_milliseconds) == (20, 7_000)
        assert told["b"].age == 2_000
        second.member = replace(second.member, place=110, behind=0)
        await second.look()
        await first.look()
        told = await first.told()
        assert (told["b"].lag, told["b"].lag_milliseconds, told["b"].age) == (0, 0, 0)

    running(work)


@pytest.mark.parametrize(
    ("time", "ahead"), [(58_000, 8_000), (50_000, 0), (46_000, 0), (40_000, -5_000)]
)
def test_a_clock_that_differs_is_told(time: int, ahead: int) -> None:
    async def work(log: MemoryLog) -> None:
        first, second = Node(log, OWN), Node(log, replace(OWN, node="b", time=1_000))
        await second.look()
        await first.look()
        second.member = replace(second.member, time=time)
        await second.look()
        await first.look()
        assert (await first.told())["b"].ahead == ahead

    running(work)


def test_what_a_member_said_before_we_listened_says_nothing_of_its_clock() -> None:
    async def work(log: MemoryLog) -> None:
        first, second = Node(log, OWN), Node(log, replace(OWN, node="b", time=1_000))
        await second.look()
        await first.look()
        assert (await first.told())["b"].ahead == 0

    running(work)


def test_the_primary_alone_trims_behind_the_slowest_of_its_own_log() -> None:
    async def work(log: MemoryLog) -> None:
        first = Node(log, OWN, keep=100)
        second = Node(log, replace(OWN, node="b", role="standby", synced=60), keep=0)
        stranger = Node(
            log, replace(OWN, node="c", incarnation="ee" * 16, role="standby", synced=1)
        )
        for each in (stranger, second):
            await each.look()
        assert log.first == 1
        await first.look()
        assert log.first == 61
        assert "c" not in await first.told()
        second.member = replace(second.member, synced=100)
        await second.look()
        await first.look()
        assert log.first == 61 + 30
        second.member = replace(second.member, place=50)
        await second.look()
        await first.look()
        assert (await first.told())["b"].lost

    running(work)


def test_a_member_that_was_removed_is_waited_for_no_more() -> None:
    async def work(log: MemoryLog) -> None:
        first = Node(log, OWN, keep=100)
        second = Node(log, replace(OWN, node="b", role="standby", synced=1))
        await second.look()
        await first.look()
        assert log.first == 2
        assert await first.membership.remove("b")
        assert not await first.membership.remove("b")
        assert "b" not in await first.told()
        await first.look()
        assert log.first > 80

    running(work)
