"""The service of triggers: which rules are at work, and what ends them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast

import pytest

from rpcqm.base.errors import HResult, MQError
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.target import ServerUnreachableError
from rpcqm.codec.trigger_report import Answer, NumberedRule, Report
from rpcqm.codec.trigger_rule import TriggerRule
from rpcqm.triggers.queue_access import TriggerQueue
from rpcqm.triggers.trigger_service import HELD_WITHOUT_ANSWER, TriggerService
from tests.support.clock import SimulatedClock
from tests.support.triggers.fake_queue import FakeActions, FakeEvaluator, FakeQueue

RULE = TriggerRule("t", "orders", program=("/bin/true",))


class FakeMachine:
    """A queue manager, as the service sees it: its rules, and what it answers."""

    def __init__(self) -> None:
        self.rules: dict[str, TriggerRule] = {"r": RULE}
        self.generation = 1
        self.other = ""
        self.error: Exception | None = None
        self.reports: list[Report] = []
        self.closed = 0
        self.triggers = self

    async def report(self, report: Report) -> Answer:
        self.reports.append(report)
        if self.error is not None:
            raise self.error
        if self.other:
            return Answer(self.generation, self.other)
        if report.generation == self.generation:
            return Answer(self.generation)
        rules = tuple(NumberedRule(key, rule) for key, rule in self.rules.items())
        return Answer(self.generation, rules=rules)

    async def close(self) -> None:
        self.closed += 1

    def change(self, **rules: TriggerRule) -> None:
        self.rules = rules
        self.generation += 1


class World:
    """A service that works on one queue."""

    def __init__(self) -> None:
        self.machine, self.queue, self.clock = FakeMachine(), FakeQueue(), SimulatedClock()
        self.actions = FakeActions(hold=asyncio.Event())
        self.service = TriggerService(
            lambda: cast("QueueManagerClient", self.machine),
            self.actions,
            FakeEvaluator(),
            self.clock,
            self._sleep,
            self._open,
        )

    @asynccontextmanager
    async def _open(
        self, client: QueueManagerClient, rule: TriggerRule
    ) -> AsyncIterator[TriggerQueue]:
        yield self.queue

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)

    async def until(self, seen: Callable[[], object]) -> None:
        for _ in range(10_000):
            if seen():
                return
            await asyncio.sleep(0)
        raise AssertionError("it did not happen")

    async def begun(self) -> None:
        """Let the service begin to act for one message."""
        self.queue.put("a")
        await self.service.synchronize()
        await self.until(lambda: self.actions.at_once)


def story(told: Callable[[World], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """A test that is told of a service, which is ended behind it."""

    def run() -> None:
        async def whole() -> None:
            world = World()
            await told(world)
            await world.service._end_all()

        asyncio.run(whole())

    return run


@story
async def test_rules_that_are_to_work_are_at_work(world: World) -> None:
    await world.begun()
    world.machine.change(r=replace(RULE, enabled=False))
    await world.service.synchronize()
    assert world.actions.at_once == 1, "what is under way goes on to its end"
    world.queue.put("b")
    assert world.actions.hold is not None
    world.actions.hold.set()
    await world.until(lambda: not world.actions.at_once)
    await world.service.synchronize()
    assert world.actions.labels == ["a"]
    assert world.machine.reports[-1].rules["r"].done == 1


@story
async def test_a_rule_that_has_changed_waits_for_what_its_earlier_form_does(world: World) -> None:
    await world.begun()
    world.machine.change(r=replace(RULE, label="*"))
    await world.service.synchronize()
    world.queue.put("b")
    for _ in range(100):
        await asyncio.sleep(0)
    assert world.actions.labels == ["a"]
    assert world.actions.hold is not None
    world.actions.hold.set()
    await world.until(lambda: world.actions.labels == ["a", "b"])


@story
async def test_while_another_service_works_nothing_is_done_here(world: World) -> None:
    await world.begun()
    world.machine.other = "elsewhere"
    await world.service.synchronize()
    assert (world.actions.at_once, world.queue.given_back) == (0, 1)
    world.machine.other = ""
    await world.service.synchronize()
    await world.until(lambda: world.actions.at_once)
    assert world.actions.labels == ["a", "a"]


@story
async def test_what_is_under_way_ends_when_the_queue_manager_is_silent_for_long(
    world: World,
) -> None:
    await world.begun()
    world.machine.error = ServerUnreachableError("it is not there")
    world.clock.advance(HELD_WITHOUT_ANSWER - 1)
    await world.service.synchronize()
    assert (world.actions.at_once, world.machine.closed) == (1, 1)
    world.clock.advance(1)
    await world.service.synchronize()
    assert (world.actions.at_once, world.queue.given_back) == (0, 1)
    world.machine.error = None
    await world.service.synchronize()
    await world.until(lambda: world.actions.at_once)


@story
async def test_counts_of_a_report_that_got_lost_are_told_again(world: World) -> None:
    world.actions.hold = None
    world.queue.put("a")
    await world.service.synchronize()
    await world.until(lambda: world.actions.labels)
    await world.until(lambda: not world.queue.messages)
    world.machine.error = ServerUnreachableError("lost")
    await world.service.synchronize()
    world.machine.error = None
    await world.service.synchronize()
    await world.service.synchronize()
    told = [report.rules["r"].done for report in world.machine.reports[-3:]]
    assert told == [1, 1, 0]


@story
async def test_an_account_that_may_not_run_triggers_any_more_ends_the_service(
    world: World,
) -> None:
    await world.begun()
    world.machine.error = MQError(HResult.MQ_ERROR_ACCESS_DENIED)
    with pytest.raises(MQError, match="ACCESS_DENIED"):
        await world.service.run()
    assert (world.actions.at_once, world.queue.given_back) == (0, 1)


@story
async def test_a_service_that_stops_says_so_and_finishes_what_is_under_way(world: World) -> None:
    running = asyncio.ensure_future(world.service.run())
    world.queue.put("a")
    await world.until(lambda: world.actions.at_once)
    world.service.stop()
    assert world.actions.hold is not None
    world.actions.hold.set()
    await running
    last = world.machine.reports[-1]
    assert (last.stops, last.rules["r"].done) == (True, 1)
    assert world.queue.messages == {}
