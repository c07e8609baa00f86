"""Conditions of rules, and expressions over bodies."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from rpcqm.codec.packet.enums import MessageClass, SenderIdentifierType
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.security.identifier import Sid
from rpcqm.codec.trigger_expressions import WrongExpressionError
from rpcqm.codec.trigger_rule import TriggerRule
from rpcqm.triggers.conditions import Conditions
from rpcqm.triggers.evaluating import evaluate
from rpcqm.triggers.evaluator import LARGEST_EVALUATED, EvaluationError, Evaluator
from rpcqm.triggers.questions import JSON_PATH, XPATH
from tests.support.triggers.fake_queue import FakeEvaluator, received

ALICE = "S-1-5-21-1-2-3-1001"
ORDER = b'<order total="5"><line>apple</line></order>'


def holds(members: dict[str, Any], **attributes: Any) -> bool:
    rule = TriggerRule("t", "orders", program=("/bin/true",), **members)
    return asyncio.run(Conditions(rule, FakeEvaluator()).hold(received(**attributes)))


@pytest.mark.parametrize(
    ("members", "right", "wrong"),
    [
        ({"label": "a*c"}, {"label": "abc"}, {"label": "abcd"}),
        ({"priority_from": 4}, {"priority": 4}, {"priority": 3}),
        ({"priority_to": 3}, {"priority": 3}, {"priority": 4}),
        (
            {"message_class": "normal"},
            {},
            {"message_class": MessageClass.MQMSG_CLASS_REPORT},
        ),
        (
            {"message_class": "acknowledgement"},
            {"message_class": MessageClass.MQMSG_CLASS_ACK_RECEIVE},
            {"message_class": MessageClass.MQMSG_CLASS_NACK_Q_DELETED},
        ),
        (
            {"message_class": "refusal"},
            {"message_class": MessageClass.MQMSG_CLASS_NACK_Q_DELETED},
            {"message_class": MessageClass.MQMSG_CLASS_ACK_RECEIVE},
        ),
        ({"text": "two"}, {"body": b"forty-two"}, {"body": b"forty"}),
        ({"size_from": 3}, {"body": b"abc"}, {"body": b"ab"}),
        ({"size_to": 3}, {"body": b"abc"}, {"body": b"abcd"}),
        ({"application_tag": 7}, {"application_tag": 7}, {"application_tag": 8}),
        (
            {"sender": ALICE},
            {
                "sender_identifier_type": SenderIdentifierType.SID,
                "sender_identifier": Sid.parse(ALICE).encode(),
            },
            {},
        ),
        (
            {"source": str(UUID(int=7))},
            {},
            {"identifier": MessageIdentifier(UUID(int=8), 1)},
        ),
        ({"xpath": "two"}, {"body": b"two"}, {"body": b"one"}),
        ({"json_path": "two"}, {"body": b"two"}, {"body": b"one"}),
    ],
)
def test_each_condition_holds_for_what_it_says(
    members: dict[str, Any], right: dict[str, Any], wrong: dict[str, Any]
) -> None:
    assert holds(members, **right)
    assert not holds(members, **wrong)


def test_all_conditions_have_to_hold() -> None:
    both = {"label": "a", "text": "two"}
    assert holds(both, label="a", body=b"two")
    assert not holds(both, label="b", body=b"two")
    assert not holds(both, label="a", body=b"one")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("//line", True),
        ("//lines", False),
        ("/order/@total = 5", True),
        ("/order/@total > 5", False),
        ("count(//line)", True),
        ("number('x')", False),
        ("string(//lines)", False),
    ],
)
def test_an_xpath_holds_as_boolean_says(expression: str, expected: bool) -> None:
    assert evaluate(XPATH, expression, ORDER) is expected


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no XML",
        b"<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/hostname'>]><a>&x;</a>",
        b"<!DOCTYPE a [<!ENTITY x 'abc'>]><a>&x;</a>",
        b'<!DOCTYPE a SYSTEM "http://127.0.0.1:1/x.dtd"><a/>',
        b"<a>" * 100_000,
    ],
)
def test_no_xpath_holds_for_what_is_no_document_without_a_type(body: bytes) -> None:
    assert evaluate(XPATH, "true()", body) is False


@pytest.mark.parametrize(
    "expression", ["//[", "document('/etc/hostname')", "x:y", "re:test(., 'a')"]
)
def test_an_expression_that_is_no_xpath_is_told(expression: str) -> None:
    with pytest.raises(WrongExpressionError):
        evaluate(XPATH, expression, ORDER)


@pytest.mark.parametrize(
    ("expression", "body", "expected"),
    [
        ("$.total", b'{"total": 5}', True),
        ("$.total", b'{"sum": 5}', False),
        ("$[?@.total > 1000]", b'[{"total": 5}, {"total": 2000}]', True),
        ("$[?@.total > 1000]", b'[{"total": 5}]', False),
        ("$", b"no JSON", False),
        ("$..x", b"[" * 100_000, False),
    ],
)
def test_a_json_path_holds_if_it_finds_something(
    expression: str, body: bytes, expected: bool
) -> None:
    assert evaluate(JSON_PATH, expression, body) is expected


def test_an_expression_that_is_no_json_path_is_told() -> None:
    with pytest.raises(WrongExpressionError, match="is no JSONPath"):
        evaluate(JSON_PATH, "$[", b"{}")


def test_expressions_are_evaluated_in_a_process_that_is_ended_when_one_takes_long() -> None:
    nested = b"<a>" * 200 + b"</a>" * 200
    slow = "//a" + "[count(//a[count(//a) > 0]) > 0]" * 40 + "[count(//a//a//a//a//a) = 0]"

    async def ask() -> list[object]:
        evaluator = Evaluator(seconds=10.0)
        found: list[object] = [await evaluator.holds(XPATH, "//line", ORDER)]
        quick = Evaluator(seconds=0.001)
        for each, expression, body in ((evaluator, "//[", ORDER), (quick, slow, nested)):
            try:
                found.append(await each.holds(XPATH, expression, body))
            except EvaluationError as error:
                found.append(error.is_wrong)
        found.append(await evaluator.holds(JSON_PATH, "$.a", b'{"a": 1}'))
        await evaluator.stop()
        await quick.stop()
        return found

    assert asyncio.run(ask()) == [True, True, False, True]


@pytest.mark.bound("triggers.largest_evaluated")
def test_no_expression_is_looked_for_in_a_body_that_is_too_large() -> None:
    body = b"<a>" + b" " * LARGEST_EVALUATED + b"</a>"
    evaluator = Evaluator()
    assert asyncio.run(evaluator.holds(XPATH, "true()", body)) is False
