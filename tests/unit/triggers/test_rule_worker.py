"""The work of one rule: which messages, in which order, how often, and what becomes of them."""

import asyncio
from typing import Any

import pytest

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.trigger_rule import Mode, TriggerRule
from rpcqm.triggers.evaluator import EvaluationError
from rpcqm.triggers.rule_worker import LOOK_AGAIN
from tests.support.triggers.fake_queue import World

MODES = list(Mode)


def world(**members: Any) -> World:
    rule = {"name": "t", "queue": "orders", "program": ("/bin/true",), **members}
    return World(TriggerRule(**rule))


def labels(world: World) -> list[str]:
    return [message.label for message in world.queue.messages.values()]


@pytest.mark.parametrize("mode", MODES)
def test_each_message_is_acted_for_once_in_the_order_of_the_queue(mode: Mode) -> None:
    one = world(mode=mode)
    for label in ("a", "b", "c"):
        one.queue.put(label)
    one.run()
    assert one.actions.labels == ["a", "b", "c"]
    assert labels(one) == (["a", "b", "c"] if mode is Mode.PEEK else [])
    assert one.worker.report().done == 3


@pytest.mark.parametrize("mode", MODES)
def test_a_message_of_a_higher_priority_that_comes_later_is_not_passed_over(mode: Mode) -> None:
    one = world(mode=mode)
    one.queue.put("plain")
    one.run()
    one.queue.put("urgent", 2, priority=7)
    one.queue.put("slow", 3, priority=0)
    one.run()
    assert one.actions.labels == ["plain", "urgent", "slow"]


@pytest.mark.parametrize("mode", MODES)
def test_messages_that_do_not_meet_the_conditions_stay(mode: Mode) -> None:
    one = world(mode=mode, label="b*")
    for label in ("a", "b", "c"):
        one.queue.put(label)
    one.run()
    assert one.actions.labels == ["b"]
    assert labels(one) == (["a", "b", "c"] if mode is Mode.PEEK else ["a", "c"])
    assert one.queue.given_back == 0


@pytest.mark.parametrize("mode", MODES)
def test_a_condition_of_the_body_is_looked_at_before_a_message_is_taken(mode: Mode) -> None:
    one = world(mode=mode, xpath="forty")
    one.queue.put("a", body=b"forty-one")
    one.queue.put("b", body=b"thirty")
    one.run()
    assert one.actions.labels == ["a"]
    assert one.queue.given_back == 0


def test_a_failure_gives_the_message_back_and_holds_up_those_behind_it() -> None:
    one = world()
    for label in ("a", "b"):
        one.queue.put(label)
    one.fails("a", times=2)
    one.run()
    assert one.actions.labels == ["a", "a", "a", "b"]
    assert (one.queue.given_back, labels(one)) == (2, [])
    assert one.slept[:2] == [1, 2]


def test_with_more_at_a_time_others_go_on_meanwhile() -> None:
    one = world(parallelism=2)
    for label in ("a", "b", "c"):
        one.queue.put(label)
    one.fails("a", times=1)
    one.run()
    assert sorted(one.actions.labels[:2]) == ["a", "b"]
    assert one.actions.labels[-1] == "a"


def test_no_more_run_at_a_time_than_a_rule_says() -> None:
    async def run() -> int:
        one = world(parallelism=3)
        one.actions.hold = asyncio.Event()
        for label in "abcdef":
            one.queue.put(label)
        running = asyncio.ensure_future(one._run(1))
        while one.actions.at_once < 3:
            await asyncio.sleep(0)
        for _ in range(50):
            await asyncio.sleep(0)
        assert one.actions.at_once == 3
        one.actions.hold.set()
        await running
        assert len(one.actions.labels) == 6
        return one.actions.most_at_once

    assert asyncio.run(run()) == 3


def test_the_wait_doubles_up_to_its_bound() -> None:
    one = world(back_off=10, longest_back_off=60, poison_after=0)
    one.queue.put("a")
    one.fails("a", times=6)
    one.run()
    assert one.slept[:6] == [10, 20, 40, 60, 60, 60]


@pytest.mark.parametrize("parallelism", [1, 4])
def test_a_message_that_fails_again_and_again_is_put_aside(parallelism: int) -> None:
    one = world(poison_after=3, poison_queue="letters", parallelism=parallelism)
    for label in ("a", "b"):
        one.queue.put(label)
    one.fails("a")
    one.run()
    assert one.actions.labels.count("a") == 3
    assert (one.queue.aside, labels(one)) == ([("letters", "a")], [])
    told = one.worker.report()
    assert (told.done, told.failed, told.poisoned) == (1, 3, 1)
    assert told.position.failures == {}


def test_a_message_that_cannot_be_put_aside_stays_and_the_rule_says_so() -> None:
    one = world(poison_after=1, poison_queue="gone")
    one.queue.put("a")
    one.fails("a", times=1)
    one.run()
    assert labels(one) == []
    assert one.actions.labels == ["a", "a"]
    assert one.worker.report().poisoned == 0


def test_a_message_without_a_place_for_poison_is_passed_over_where_it_is() -> None:
    one = world(poison_after=2, poison_queue="")
    for label in ("a", "b"):
        one.queue.put(label)
    one.fails("a")
    one.run()
    one.clock.advance(2 * LOOK_AGAIN)
    one.restart()
    one.run(idle=3)
    assert one.actions.labels == ["a", "a", "b"]
    assert labels(one) == ["a"]


def test_what_fails_while_it_is_looked_at_only_is_passed_over_in_the_end() -> None:
    one = world(mode="peek", poison_after=2)
    for label in ("a", "b"):
        one.queue.put(label)
    one.fails("a")
    one.run()
    one.restart()
    one.run()
    assert one.actions.labels == ["a", "a", "b"]
    assert (one.queue.aside, labels(one)) == ([], ["a", "b"])


def test_what_is_received_leaves_the_queue_even_if_it_fails() -> None:
    one = world(mode="receive")
    one.queue.put("a")
    one.fails("a")
    one.run()
    assert (one.actions.labels, labels(one)) == (["a"], [])
    assert one.worker.report().failed == 1


@pytest.mark.parametrize("mode", MODES)
def test_what_is_not_there_for_any_message_counts_for_none_and_is_tried_again(mode: Mode) -> None:
    one = world(mode=mode, poison_after=1)
    one.queue.put("a")
    one.is_in_trouble(3)
    one.run()
    told = one.worker.report()
    assert (told.done, told.failed, told.poisoned, told.trouble) == (1, 0, 0, "")
    assert one.slept[:3] == [1, 2, 4]
    assert one.queue.aside == []


@pytest.mark.parametrize("mode", [Mode.RECEIVE, Mode.TRANSACTION])
def test_no_message_is_taken_while_the_program_is_missing(mode: Mode) -> None:
    one = world(mode=mode)
    one.queue.put("a")
    one.actions.absent = "/bin/none is not there"

    async def run() -> str:
        task = asyncio.ensure_future(one._run(1))
        while len(one.slept) < 3:
            await asyncio.sleep(0)
        told = one.worker.report().trouble
        one.actions.absent = ""
        await task
        return told

    assert asyncio.run(run()) == "/bin/none is not there"
    assert one.queue.given_back == 0
    assert one.actions.labels == ["a"]


def test_a_queue_that_is_gone_is_waited_for() -> None:
    one = world()
    one.queue.put("a")
    one.unusable = [MQError(HResult.MQ_ERROR_QUEUE_NOT_FOUND)] * 2
    one.run()
    assert one.slept[:2] == [1, 2]
    assert one.actions.labels == ["a"]
    assert one.worker.report().trouble == ""


def test_a_rule_that_leaves_messages_goes_on_behind_them_after_a_restart() -> None:
    one = world(mode="peek")
    one.queue.put("a")
    one.queue.put("b", priority=5)
    one.run()
    one.restart()
    one.queue.put("c")
    one.run()
    assert sorted(one.actions.labels) == ["a", "b", "c"]


def test_a_queue_that_was_made_anew_is_looked_at_from_its_beginning() -> None:
    one = world(mode="peek")
    one.queue.put("a", 5)
    one.run()
    one.restart()
    one.queue.messages.clear()
    one.queue.made += 1
    one.queue.put("b", 1)
    one.run()
    assert one.actions.labels == ["a", "b"]


def test_what_was_under_way_runs_again_after_a_restart() -> None:
    async def run() -> World:
        one = world(mode="peek", parallelism=2)
        one.queue.put("a")
        one.queue.put("b")
        one.actions.hold = asyncio.Event()
        task = asyncio.ensure_future(one._run(1))
        while one.actions.at_once < 2:
            await asyncio.sleep(0)
        one.restart()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        one.actions.hold = None
        await one._run(1)
        return one

    assert sorted(asyncio.run(run()).actions.labels) == ["a", "a", "b", "b"]


def test_a_rule_that_is_ended_gives_back_what_is_under_way() -> None:
    async def run() -> World:
        one = world()
        one.queue.put("a")
        one.actions.hold = asyncio.Event()
        task = asyncio.ensure_future(one._run(1))
        while not one.actions.at_once:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return one

    one = asyncio.run(run())
    assert (one.queue.given_back, one.queue.locked, labels(one)) == (1, set(), ["a"])


def test_what_others_have_given_back_is_found_later() -> None:
    one = world()
    key = one.queue.put("a")
    one.queue.locked.add(key)
    one.queue.put("b")
    one.run()
    one.queue.locked.discard(key)
    one.clock.advance(2 * LOOK_AGAIN)
    one.run(idle=2)
    assert one.actions.labels == ["b", "a"]


def test_a_wrong_expression_keeps_the_rule_from_working_and_no_message_from_its_queue() -> None:
    one = world(xpath="//[")
    one.queue.put("a")
    one.evaluator.error = EvaluationError("no XPath", is_wrong=True)

    async def run() -> str:
        task = asyncio.ensure_future(one._run(1))
        while len(one.slept) < 3:
            await asyncio.sleep(0)
        told = one.worker.report().trouble
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return told

    assert asyncio.run(run()) == "a condition cannot be used: no XPath"
    assert (one.actions.labels, labels(one)) == ([], ["a"])


def test_a_body_that_takes_too_long_is_passed_over() -> None:
    one = world(xpath="x")
    one.queue.put("a")
    one.evaluator.error = EvaluationError("it took longer than 5 s")
    one.run()
    assert (one.actions.labels, labels(one)) == ([], ["a"])


def test_counts_are_told_once() -> None:
    one = world()
    one.queue.put("a")
    one.run()
    told = one.worker.report()
    one.worker.reported(told)
    assert (told.done, one.worker.report().done) == (1, 0)
