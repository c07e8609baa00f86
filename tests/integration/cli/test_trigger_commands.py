"""`rpcqm trigger`: rules that say what is to be done for the messages of a queue."""

import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rpcqm.testing import PrivateQueueManager

Command = Callable[..., Any]


@pytest.fixture
def rule(run: Command) -> Iterator[str]:
    words = ["--label", "a*", "--priority-from", "3", "--run", "/bin/echo", "--", "{label}"]
    run("trigger", "add", "shop", "orders", *words)
    yield "shop"
    run("trigger", "remove", "shop")


def listed(run: Command) -> dict[str, Any]:
    told = json.loads(run("trigger", "list", "--json").output)
    return {each["name"]: each for each in told["triggers"]}


def test_a_rule_is_made_shown_and_removed(run: Command, rule: str) -> None:
    found = json.loads(run("trigger", "show", rule.upper(), "--json").output)
    assert found["program"] == ["/bin/echo", "--", "{label}"]
    assert (found["label"], found["priority_from"], found["mode"]) == ("a*", 3, "transaction")
    shown = run("trigger", "show", rule).text
    assert "/bin/echo -- '{label}'" in shown
    table = run("trigger", "list").text
    assert "run /bin/echo" in table
    assert "no service runs it" in table


def test_a_rule_is_changed_and_what_is_not_given_stays(run: Command, rule: str) -> None:
    run("trigger", "set", rule, "--label", "", "--parallelism", "4", "--time-limit", "5min")
    found = listed(run)[rule]
    assert (found["label"], found["parallelism"], found["time_limit"]) == ("", 4, 300)
    assert (found["priority_from"], found["program"][0]) == (3, "/bin/echo")
    run("trigger", "set", rule, "--post", "https://example.org/x")
    found = listed(run)[rule]
    assert (found["program"], found["url"]) == ([], "https://example.org/x")


def test_a_rule_rests_and_works_again(run: Command, rule: str) -> None:
    run("trigger", "disable", rule)
    assert listed(run)[rule]["enabled"] is False
    assert "disabled" in run("trigger", "list").text
    run("trigger", "enable", rule)
    assert listed(run)[rule]["enabled"] is True


def test_a_rule_is_made_of_what_show_prints(
    run: Command, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = run("trigger", "show", rule, "--json").text
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    run("trigger", "add", "twin", "orders", "--json", "-")
    twin = listed(run).pop("twin")
    assert twin["program"] == ["/bin/echo", "--", "{label}"]
    run("trigger", "remove", "twin")


def test_each_change_leaves_one_line(run: Command, queue_manager: PrivateQueueManager) -> None:
    at = len(queue_manager.log)
    run("trigger", "add", "noted", "orders", "--run", "/bin/true")
    run("trigger", "set", "noted", "--label", "a*")
    run("trigger", "disable", "noted")
    run("trigger", "show", "noted")
    run("trigger", "remove", "noted")
    lines = map(json.loads, queue_manager.log[at:].splitlines())
    told = [line for line in lines if line["event"] == "an operator acts"]
    assert [(line["action"], line["object"]) for line in told] == [
        ("add trigger", "noted"),
        ("set trigger", "noted"),
        ("set trigger", "noted"),
        ("remove trigger", "noted"),
    ]
    assert told[0]["does"] == "run /bin/true"
    assert [line["changed"] for line in told[1:3]] == ["label", "enabled"]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["add", "x", "orders"], 2, "one of `program`, `url` and `send_to`"),
        (["add", "x", "orders", "--run", "echo"], 2, "whole path"),
        (["add", "x", "orders", "--run", "/bin/sh", "-c", "{label}"], 2, "would be a program"),
        (["add", "x", "orders", "--post", "ftp://x"], 2, "http"),
        (["add", "x", "orders", "--send-to", "y", "--run", "/bin/true"], 2, "Give one of"),
        (["add", "x"], 2, "QUEUE is missing"),
        (["add", "shop", "orders", "--run", "/bin/true"], 1, "STATUS_OBJECT_NAME_COLLISION"),
        (["set", "shop"], 2, "Say what to change"),
        (["set", "none", "--label", "x"], 1, "no trigger `none`"),
        (["remove", "none"], 1, "STATUS_OBJECT_NAME_NOT_FOUND"),
        (["enable", "none"], 1, "no trigger `none`"),
    ],
)
def test_each_mistake_is_one_sentence(
    attempt: Command, rule: str, words: list[str], status: int, said: str
) -> None:
    outcome = attempt("trigger", *words)
    assert outcome.status == status
    assert said in outcome.errors
    assert outcome.errors.count("\n") == 1


def test_a_rule_is_tried_without_doing_anything(run: Command, attempt: Command, queue: str) -> None:
    for label in ("a;b", "-rf", "c"):
        run("send", queue, f"--label={label}", "--body", '{"total": 5}')
    words = ["--json-path", "$.total", "--label", "[a-]*", "--run", "/bin/echo", "{label}"]
    run("trigger", "add", "tried", queue, *words)
    lines = run("trigger", "test", "tried").lines
    assert [line.split()[2] for line in lines[1:]] == ["yes", "yes", "no"]
    assert lines[1].endswith("/bin/echo 'a;b'")
    assert "fail: {label} begins with `-`" in lines[2]
    (first, *_) = json.loads(run("trigger", "test", "tried", "--json").text)
    assert (first["holds"], first["label"]) == (True, "a;b")
    one = ["trigger", "test", "tried", "--lookup-id", first["lookup_id"], "--json"]
    assert json.loads(run(*one).text) == [first]
    assert len(run("peek", queue, "--all", "--json").lines) == 3
    assert "is no JSONPath" in attempt("trigger", "set", "tried", "--json-path", "$[").errors
    assert "is no XPath" in attempt("trigger", "set", "tried", "--xpath", "//[").errors
    run("trigger", "remove", "tried")
    assert "no trigger `tried`" in attempt("trigger", "test", "tried").errors


def test_a_file_of_ten_megabytes_is_refused(attempt: Command, tmp_path: Path) -> None:
    path = tmp_path / "rule.json"
    path.write_text(json.dumps({"name": "x", "queue": "q", "xpath": "/" * 10_000_000}))
    assert "may have 65,536" in attempt("trigger", "add", "x", "q", "--json", str(path)).errors
