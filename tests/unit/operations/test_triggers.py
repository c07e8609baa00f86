"""Who may make rules of triggers and run them, and how operators learn how they do."""

import re
from dataclasses import replace
from typing import Any

import pytest

from rpcqm.base.errors import MQError
from rpcqm.base.identity import TokenScope
from rpcqm.codec.trigger_report import Report, RuleReport, encode_report
from rpcqm.codec.trigger_rule import TriggerRule
from rpcqm.operations.exposition import Writer
from rpcqm.operations.metrics import MetricsSettings
from rpcqm.operations.operations import Operations
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
