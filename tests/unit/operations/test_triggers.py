"""Who may make rules of triggers and run them, and how operators learn how they do."""

import re
from dataclasses import replace
from typing import Any

import pytest

from rpcqm.base.errors import MQError
from rpcqm.base.identity import TokenScope, authenticated
from rpcqm.codec.trigger_report import Report, RuleReport, encode_report
from rpcqm.codec.trigger_rule import HIDDEN_ARGUMENTS, TriggerRule
from rpcqm.operations.exposition import Writer
from rpcqm.operations.metrics import MetricsSettings
from rpcqm.operations.operations import Operations
from rpcqm.operations.triggers import TriggerChangedError, version_of
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ADMINISTRATOR, ALICE, NOBODY

RULE = TriggerRule("shop", "orders", program=("/bin/true",))


def add(qm: RunningQueueManager, operations: Operations, rule: TriggerRule = RULE) -> str:
    qm.done(operations.triggers.add(ADMINISTRATOR, rule))
    return operations.triggers.find(ADMINISTRATOR, rule.name).identifier


def report(operations: Operations, identifier: str, told: RuleReport) -> None:
    text = encode_report(Report("one", "here", rules={identifier: told}))
    operations.triggers.report(ADMINISTRATOR, text)


def attention(qm: RunningQueueManager, operations: Operations) -> list[tuple[str, str]]:
    found = qm.done(operations.overview.overview(ADMINISTRATOR)).attention
    return [(each.code, each.text) for each in found if "trigger" in each.code]


def test_the_account_of_the_service_runs_rules_and_makes_none(
    qm: RunningQueueManager, operations: Operations
) -> None:
    add(qm, operations)
    text = encode_report(Report("one", "here"))
    for identity in (ALICE, NOBODY):
        with pytest.raises(MQError, match="ACCESS_DENIED"):
            operations.triggers.report(identity, text)
    operations.triggers.service_account = lambda: "Alice"
    (numbered,) = operations.triggers.report(ALICE, text).rules or ()
    assert numbered.rule == RULE
    for wrong in (NOBODY, ALICE.narrowed(TokenScope("t"))):
        with pytest.raises(MQError, match="ACCESS_DENIED"):
            operations.triggers.report(wrong, text)
    for refused in (
        lambda: operations.triggers.add(ALICE, replace(RULE, name="other")),
        lambda: operations.triggers.set(ALICE, RULE),
        lambda: operations.triggers.remove(ALICE, "shop"),
        lambda: operations.triggers.list(ALICE),
        lambda: operations.triggers.find(ALICE, "shop"),
    ):
        with pytest.raises(MQError, match="ACCESS_DENIED"):
            refused()


def test_a_rule_by_which_a_shell_runs_what_a_message_names_is_not_made(
    qm: RunningQueueManager, operations: Operations
) -> None:
    """One that was kept before can be disabled (G721)."""
    hostile = replace(RULE, program=("/bin/sh", "--", "{label}"))
    with pytest.raises(MQError, match="would be a program"):
        operations.triggers.add(ADMINISTRATOR, hostile)
    add(qm, operations)
    with pytest.raises(MQError, match="would be a program"):
        operations.triggers.set(ADMINISTRATOR, hostile)
    qm.done(operations.triggers.set(ADMINISTRATOR, replace(hostile, enabled=False)))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"xpath": "//["}, r"'//\[' is no XPath: Invalid expression"),
        ({"json_path": "$["}, r"'\$\[' is no JSONPath: "),
        ({"program": (), "send_to": "ORDERS"}, "is the queue of the rule, which would never"),
        (
            {"program": (), "send_to": r"workstation\private$\orders"},
            "is the queue of the rule, which would never",
        ),
    ],
)
def test_a_rule_that_could_never_work_is_refused_when_it_is_made(
    qm: RunningQueueManager, operations: Operations, wrong: dict[str, Any], sentence: str
) -> None:
    qm.create()
    hopeless = replace(RULE, **wrong)
    with pytest.raises(MQError, match="STATUS_INVALID_PARAMETER") as refused:
        operations.triggers.add(ADMINISTRATOR, hopeless)
    assert re.search(sentence, refused.value.detail)
    add(qm, operations)
    with pytest.raises(MQError, match="STATUS_INVALID_PARAMETER"):
        operations.triggers.set(ADMINISTRATOR, hopeless)
    qm.done(operations.triggers.set(ADMINISTRATOR, replace(hopeless, enabled=False)))
    assert operations.triggers.find(ADMINISTRATOR, "shop").rule.enabled is False


def test_what_is_no_report_is_refused(operations: Operations) -> None:
    with pytest.raises(MQError, match="STATUS_INVALID_PARAMETER"):
        operations.triggers.report(ADMINISTRATOR, "{}")


def test_rules_that_nobody_runs_need_attention(
    qm: RunningQueueManager, operations: Operations
) -> None:
    assert attention(qm, operations) == []
    identifier = add(qm, operations)
    text = "No service runs 1 trigger: start one with `rpcqm triggers run`."
    assert attention(qm, operations) == [("triggers_unserved", text)]
    report(operations, identifier, RuleReport())
    assert attention(qm, operations) == []
    qm.done(operations.triggers.set(ADMINISTRATOR, replace(RULE, enabled=False)))
    qm.advance(60_000)
    assert attention(qm, operations) == []


def test_a_rule_that_does_not_work_needs_attention(
    qm: RunningQueueManager, operations: Operations
) -> None:
    identifier = add(qm, operations)
    report(operations, identifier, RuleReport(trouble="/bin/true is not there"))
    told = "The trigger shop does not work: /bin/true is not there."
    assert attention(qm, operations) == [("trigger_failing", told)]
    report(operations, identifier, RuleReport())
    assert attention(qm, operations) == []


def test_metrics_count_what_rules_do(qm: RunningQueueManager, operations: Operations) -> None:
    identifier = add(qm, operations)
    report(operations, identifier, RuleReport(done=3, failed=2, poisoned=1, trouble="away"))
    pieces = qm.done(operations.metrics.told(ADMINISTRATOR, Writer(), MetricsSettings()))
    lines = "".join(pieces).splitlines()
    assert {
        "rpcqm_triggers 1",
        "rpcqm_triggers_served 1",
        "rpcqm_triggers_in_trouble 1",
        'rpcqm_trigger_done_total{trigger="shop"} 3',
        'rpcqm_trigger_failed_total{trigger="shop"} 2',
        'rpcqm_trigger_poisoned_total{trigger="shop"} 1',
    } <= set(lines)


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({}, "orders"),
        ({"queue": "here"}, ""),
        ({"queue": "here;bad"}, ""),
        ({"queue": "here", "program": (), "send_to": "gone;x"}, "gone"),
        ({"queue": "here", "poison_queue": "aside"}, "aside"),
        ({"queue": "here", "poison_queue": "dead-letter"}, ""),
        ({"queue": "here", "program": (), "send_to": r"DIRECT=OS:other\private$\x"}, ""),
    ],
)
def test_a_rule_says_at_once_that_a_queue_is_not_here(
    qm: RunningQueueManager, operations: Operations, changes: dict[str, Any], missing: str
) -> None:
    qm.create(r"private$\here")
    add(qm, operations, replace(RULE, **changes))
    told = operations.triggers.find(ADMINISTRATOR, "shop").told.trouble
    assert told == (f"there is no queue {missing} here" if missing else "")


def test_of_two_who_change_a_rule_the_second_looks_again(
    qm: RunningQueueManager, operations: Operations
) -> None:
    add(qm, operations)
    seen = version_of(operations.triggers.find(ADMINISTRATOR, "shop"))
    qm.done(operations.triggers.set(ADMINISTRATOR, replace(RULE, label="a*"), seen))
    with pytest.raises(TriggerChangedError):
        operations.triggers.set(ADMINISTRATOR, replace(RULE, label="b*"), seen)
    now = operations.triggers.find(ADMINISTRATOR, "shop")
    assert now.rule.label == "a*"
    qm.done(operations.triggers.set(ADMINISTRATOR, RULE, version_of(now)))
    qm.done(operations.triggers.set(ADMINISTRATOR, replace(RULE, label="c*")))


def test_who_may_only_look_sees_no_arguments(
    qm: RunningQueueManager, operations: Operations
) -> None:
    """Passwords and keys of other systems stand in arguments and in queries (G796)."""
    looker = authenticated("looker", ALICE.sid, "S-1-5-32-544", read_only=True)
    hook = replace(RULE, name="hook", program=(), url="https://h.example/hook?key=geheim#x")
    add(qm, operations, replace(RULE, program=("/bin/tell", "--key", "geheim")))
    add(qm, operations, hook)
    assert "geheim" not in str(operations.triggers.described(looker))
    program = operations.triggers.find(looker, "shop").rule.program
    assert program == ("/bin/tell", HIDDEN_ARGUMENTS)
    assert operations.triggers.find(looker, "hook").rule.url == "https://h.example/hook?hidden"
    events = operations.events.latest(looker, 0, None, 100)
    assert len(events) == 2
    assert "geheim" not in str(events)
    assert str(operations.triggers.described(ADMINISTRATOR)).count("geheim") == 2
