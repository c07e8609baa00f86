"""Rules of triggers as texts: what they may say, and the sentence about each mistake."""

import json
from typing import Any

import pytest

from rpcqm.base.errors import DecodeError
from rpcqm.codec.trigger_report import (
    LARGEST_REPORT,
    Answer,
    NumberedRule,
    Position,
    Report,
    RuleReport,
    encode_answer,
    encode_position,
    encode_report,
    read_answer,
    read_position,
    read_report,
)
from rpcqm.codec.trigger_rule import (
    LARGEST_RULE,
    LONGEST_TEXT,
    MOST_ARGUMENTS,
    MOST_AT_ONCE,
    TriggerRule,
    check_what_runs,
    encode_rule,
    read_rule,
    rule_of,
)

TRUE = {"program": ["/bin/true"]}


def rule(**members: Any) -> TriggerRule:
    return rule_of({"name": "t", "queue": "orders", **TRUE, **members})


def mistake(**members: Any) -> str:
    with pytest.raises(DecodeError) as error:
        rule(**members)
    return str(error.value)


def test_a_rule_is_read_as_it_is_written() -> None:
    one = rule(
        mode="peek",
        label="a*",
        priority_from=1,
        size_to=100,
        message_class="report",
        xpath="//order",
        parallelism=3,
        program=["/bin/echo", "--", "{label}"],
    )
    assert read_rule(json.dumps(encode_rule(one))) == one


def test_one_action_is_needed_and_no_more() -> None:
    assert mistake(program=[]) == "a rule has one of `program`, `url` and `send_to`"
    assert "one of" in mistake(url="https://example.org/")


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"queue": ""}, "no queue"),
        ({"queue": "a,b,;"}, "names no queue"),
        ({"name": "a/b"}, "no name of a trigger"),
        ({"name": " a"}, "no name of a trigger"),
        ({"name": "a\u202eb"}, "no name of a trigger"),
        ({"mode": "steal"}, "peek, receive, transaction"),
        ({"message_class": "odd"}, "normal, report"),
        ({"priority_from": 8}, "goes from 0 to 7"),
        ({"priority_from": True}, "wrong type"),
        ({"priority_from": 5, "priority_to": 4}, "no message matches"),
        ({"size_from": 5, "size_to": 4}, "no message matches"),
        ({"size_from": "5"}, "wrong type"),
        ({"time_limit": 0}, "goes from 1"),
        ({"time_limit": None}, "wrong type"),
        ({"back_off": 10, "longest_back_off": 5}, "below"),
        ({"label": "a\0b"}, "null character"),
        ({"program": "/bin/true"}, "list of texts"),
        ({"program": ["true"]}, "whole path"),
        ({"program": ["/bin/echo", "x\0"]}, "null character"),
        ({"colour": "red"}, "no member `colour`"),
        ({"poison_queue": ","}, "names no queue"),
        ({"poison_queue": ";a;b"}, "names no queue"),
        ({"sender": "alice"}, "no SID"),
        ({"source": "here"}, "condition is wrong"),
        ({"label": "[a"}, "without its ]"),
    ],
)
def test_each_mistake_has_its_words(members: dict[str, Any], said: str) -> None:
    assert said in mistake(**members)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (["/bin/echo", "--label={label}"], "whole argument"),
        (["/bin/echo", "{labels}"], "there is no value {labels}"),
        (["/bin/sh", "-c", "{label}"], "would be a program"),
        (["/usr/bin/python3.11", "-c", "{text}"], "would be a program"),
        (["/usr/bin/env", "-S", "{text}"], "would be a program"),
    ],
)
def test_a_value_of_a_message_is_a_whole_argument_and_no_program(
    program: list[str], said: str
) -> None:
    assert said in mistake(program=program)


@pytest.mark.parametrize(
    "program",
    [
        ["/bin/sh", "{label}"],
        ["/bin/sh", "--", "{label}"],
        ["/usr/bin/timeout", "5", "sh", "-c", "{text}"],
        ["/usr/bin/env", "A=b", "{label}"],
        ["/usr/bin/awk", "{text}"],
        ["/bin/busybox", "sh", "--", "{label}"],
    ],
)
def test_no_shell_runs_what_a_message_names(program: list[str]) -> None:
    with pytest.raises(DecodeError, match="would be a program"):
        check_what_runs(rule(program=program))


@pytest.mark.parametrize(
    "program",
    [
        ["/bin/sh", "-c", 'a=1; echo "$1"', "sh", "{label}"],
        ["/bin/sh", "-c", 'echo "$1"', "--", "{label}"],
        ["/usr/bin/python3", "/x.py", "{label}"],
        ["/usr/bin/env", "A=b", "/bin/echo", "{label}"],
        ["/bin/echo", "{label}", "sh"],
        ["/usr/bin/mail", "-s", "{label}", "root"],
    ],
)
def test_values_are_arguments_of_what_a_shell_runs(program: list[str]) -> None:
    check_what_runs(rule(program=program))


def test_arguments_with_braces_that_are_no_values_are_left_alone() -> None:
    words = ("/usr/bin/awk", "-f", "x.awk", "{ print }", "a{b}c", "--", "{label}")
    assert rule(program=list(words)).program == words


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/",
        "https:///path",
        "https://example.org/a b",
        "https://exämple.org/",
        "https://user:secret@example.org/",
        "https://[::1/",
        "javascript:alert(1)",
    ],
)
def test_an_address_is_http_without_a_password(url: str) -> None:
    assert "`url`" in mistake(program=[], url=url)


@pytest.mark.bound("triggers.largest_rule")
def test_a_rule_that_is_too_large_is_refused() -> None:
    with pytest.raises(DecodeError, match=r"10,000,000 octets, and may have 65,536"):
        read_rule(" " * 10_000_000)
    words = ["/bin/echo", *["x" * LONGEST_TEXT] * (LARGEST_RULE // LONGEST_TEXT)]
    assert "longer than" in mistake(program=words)


@pytest.mark.bound("triggers.longest_text")
def test_a_condition_that_is_too_long_is_refused() -> None:
    assert rule(xpath="/" * LONGEST_TEXT)
    assert "4,097 characters" in mistake(xpath="/" * (LONGEST_TEXT + 1))


@pytest.mark.bound("triggers.most_arguments")
def test_too_many_arguments_are_refused() -> None:
    assert rule(program=["/bin/echo"] * MOST_ARGUMENTS)
    assert "257 arguments" in mistake(program=["/bin/echo"] * (MOST_ARGUMENTS + 1))


@pytest.mark.bound("triggers.most_at_once")
def test_too_many_at_a_time_are_refused() -> None:
    assert rule(parallelism=MOST_AT_ONCE)
    assert "goes from 1 to 64" in mistake(parallelism=MOST_AT_ONCE + 1)


@pytest.mark.parametrize("text", ["", "[]", "{", "null", "[" * 60_000])
def test_what_is_no_object_is_no_rule(text: str) -> None:
    with pytest.raises(DecodeError, match="no JSON"):
        read_rule(text)


POSITION = Position(7, (1, 2, 3, 4, 5, 6, 7, 8), {9: 2})
TOLD = RuleReport(1, 2, "well", "", 3, 4, 5, 6, POSITION)


def test_reports_positions_and_answers_are_read_as_they_are_written() -> None:
    report = Report("i", "host", 3, rules={"r": TOLD})
    assert read_report(encode_report(report)) == report
    assert read_position(encode_position(POSITION)) == POSITION
    answer = Answer(4, "other", (NumberedRule("r", rule(), POSITION),))
    assert read_answer(encode_answer(answer)) == answer
    assert read_answer(encode_answer(Answer(4))) == Answer(4)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("done", -1),
        ("done", 1 << 63),
        ("done", "x"),
        ("position", {"made": 0, "seen": [0], "failures": {}}),
        ("position", {"made": 0, "seen": [0] * 8, "failures": {str(n): 1 for n in range(1001)}}),
    ],
)
def test_a_report_out_of_bounds_is_refused(name: str, value: object) -> None:
    told = json.loads(encode_report(Report("i", "host", rules={"r": TOLD})))
    told["rules"]["r"][name] = value
    with pytest.raises(DecodeError):
        read_report(json.dumps(told))


@pytest.mark.bound("triggers.largest_report")
def test_a_report_that_is_too_large_is_refused() -> None:
    with pytest.raises(DecodeError, match="too long"):
        read_report(" " * (LARGEST_REPORT + 1))
