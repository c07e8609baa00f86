"""Rules of triggers as a queue manager keeps them, and the service that holds them."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from rpcqm.base.identity import Identity
from rpcqm.codec.trigger_report import Position, Report, RuleReport
from rpcqm.codec.trigger_rule import TriggerRule
from rpcqm.qm import trigger_rules
from rpcqm.qm.trigger_rules import HELD_FOR
from tests.support.queue_manager import RunningQueueManager, refusal

BOSS = Identity("boss", "S-1-5-21-1-2-3-1000")
RULE = TriggerRule("t", "orders", program=("/bin/true",))


@pytest.fixture(params=[RunningQueueManager.restart, RunningQueueManager.crash])
def again(request: pytest.FixtureRequest) -> Callable[[RunningQueueManager], None]:
    """What rules must outlive."""
    begin: Callable[[RunningQueueManager], None] = request.param
    return begin


def add(qm: RunningQueueManager, rule: TriggerRule = RULE) -> str:
    qm.done(qm.engine.triggers.add(rule, BOSS))
    return qm.engine.triggers.find(rule.name).identifier


def rules(qm: RunningQueueManager) -> list[TriggerRule]:
    return [each.rule for each in qm.engine.triggers.list()]


def test_a_rule_outlives_the_queue_manager(
    qm: RunningQueueManager, again: Callable[[RunningQueueManager], None]
) -> None:
    add(qm)
    qm.done(qm.engine.triggers.set(replace(RULE, label="a*"), BOSS))
    again(qm)
    assert rules(qm) == [replace(RULE, label="a*")]
    (kept,) = qm.engine.triggers.list()
    assert kept.changed_by == "boss"
    qm.done(qm.engine.triggers.remove("T"))
    again(qm)
    assert rules(qm) == []


def test_a_name_is_there_once(qm: RunningQueueManager) -> None:
    add(qm)
    triggers, unknown = qm.engine.triggers, replace(RULE, name="u")
    twin = replace(RULE, name="T")
    assert refusal(triggers.add, twin, BOSS) == "STATUS_OBJECT_NAME_COLLISION"
    assert refusal(triggers.remove, "u") == "STATUS_OBJECT_NAME_NOT_FOUND"
    assert refusal(triggers.set, unknown, BOSS) == "STATUS_OBJECT_NAME_NOT_FOUND"


@pytest.mark.bound("triggers.in_all")
def test_too_many_rules_are_refused(
    qm: RunningQueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trigger_rules, "MOST_RULES", 1)
    add(qm)
    refused = refusal(qm.engine.triggers.add, replace(RULE, name="u"), BOSS)
    assert refused == "MQ_ERROR_INSUFFICIENT_RESOURCES"


def test_the_service_gets_the_rules_when_they_have_changed(qm: RunningQueueManager) -> None:
    identifier = add(qm)
    triggers = qm.engine.triggers
    first = triggers.report(Report("one", "here"), BOSS)
    assert [(each.identifier, each.rule) for each in first.rules or ()] == [(identifier, RULE)]
    report = Report("one", "here", first.generation)
    assert triggers.report(report, BOSS).rules is None
    qm.done(triggers.set(replace(RULE, enabled=False), BOSS))
    (again,) = triggers.report(report, BOSS).rules or ()
    assert (again.identifier, again.rule.enabled) == (identifier, False)


def test_one_service_holds_the_rules_until_it_stops_or_is_silent(qm: RunningQueueManager) -> None:
    triggers = qm.engine.triggers
    assert triggers.report(Report("one", "here 1"), BOSS).other == ""
    refused = triggers.report(Report("two", "here 2"), BOSS)
    assert (refused.other, refused.rules) == ("here 1 (boss)", None)
    triggers.report(Report("one", "here 1", stops=True), BOSS)
    assert triggers.report(Report("two", "here 2"), BOSS).other == ""
    qm.clock.advance(HELD_FOR - 1)
    assert triggers.report(Report("one", "here 1"), BOSS).other == "here 2 (boss)"
    qm.clock.advance(1)
    assert triggers.report(Report("one", "here 1"), BOSS).other == ""


def test_a_service_that_does_not_hold_the_rules_tells_nothing_of_them(
    qm: RunningQueueManager,
) -> None:
    identifier = add(qm)
    qm.engine.triggers.report(Report("one", "here 1"), BOSS)
    told = {identifier: RuleReport(done=5)}
    qm.engine.triggers.report(Report("two", "here 2", rules=told), BOSS)
    assert qm.engine.triggers.find("t").told.done == 0


def test_how_far_a_rule_has_come_outlives_the_queue_manager(qm: RunningQueueManager) -> None:
    identifier = add(qm)
    position = Position(5, (1,) * 8, {77: 2})
    told = {identifier: RuleReport(done=2, outcome="well", position=position)}
    qm.engine.triggers.report(Report("one", "here", rules=told), BOSS)
    qm.settle()
    qm.restart()
    (numbered,) = qm.engine.triggers.report(Report("two", "here"), BOSS).rules or ()
    assert (numbered.identifier, numbered.position) == (identifier, position)


def test_counts_add_up_and_the_last_outcome_stays(qm: RunningQueueManager) -> None:
    identifier = add(qm)
    for told in (RuleReport(done=2, outcome="well", last_run=9), RuleReport(failed=1)):
        qm.engine.triggers.report(Report("one", "here", rules={identifier: told}), BOSS)
    now = qm.engine.triggers.find("t").told
    assert (now.done, now.failed, now.outcome, now.last_run) == (2, 1, "well", 9)


def test_another_queue_is_looked_at_from_its_beginning(qm: RunningQueueManager) -> None:
    identifier = add(qm)
    told = {identifier: RuleReport(position=Position(5, (1,) * 8))}
    qm.engine.triggers.report(Report("one", "here", rules=told), BOSS)
    qm.done(qm.engine.triggers.set(replace(RULE, label="x"), BOSS))
    assert qm.engine.triggers.find("t").told.position.made == 5
    qm.done(qm.engine.triggers.set(replace(RULE, queue="other"), BOSS))
    qm.restart()
    assert qm.engine.triggers.find("t").told.position == Position()
    assert qm.engine.triggers.find("t").identifier != identifier


def test_rules_follow_a_queue_that_is_renamed(qm: RunningQueueManager) -> None:
    queue = qm.create(r"private$\orders")
    sending = TriggerRule("u", r".\private$\ORDERS", send_to="orders", poison_queue="orders;late")
    for rule in (
        RULE,
        sending,
        replace(RULE, name="v", queue="ordersx", poison_queue="dead-letter"),
    ):
        add(qm, rule)
    identifier = qm.engine.triggers.find("t").identifier
    qm.done(qm.engine.renaming.rename(queue, r".\private$\bills"))
    qm.restart()
    found = {each.name: each for each in rules(qm)}
    assert (found["t"].queue, found["t"].poison_queue) == ("bills", ";poison")
    assert qm.engine.triggers.find("t").identifier == identifier
    assert (found["u"].queue, found["u"].send_to, found["u"].poison_queue) == (
        "bills",
        "bills",
        "bills;late",
    )
    assert found["v"].queue == "ordersx"
