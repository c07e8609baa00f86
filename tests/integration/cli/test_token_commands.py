"""`rpcqm token`: what programs show instead of a password."""

import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from rpcqm.testing import PrivateQueueManager

Command = Callable[..., Any]
TOKEN = re.compile(r"rpcqm_[0-9a-f]{16}_[A-Za-z0-9_-]{43}\n")


@pytest.fixture
def account(run: Command, name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(sys, "stdin", io.StringIO("secret\n"))
    run("user", "add", name, "--password-stdin")
    yield name
    run("user", "remove", name)


def listed(run: Command) -> dict[str, Any]:
    return {token["name"]: token for token in json.loads(run("token", "list", "--json").output)}


def test_a_token_is_printed_alone_and_never_again(run: Command, account: str) -> None:
    created = run("token", "create", "shop", "--account", account)
    assert TOKEN.fullmatch(created.text)
    assert created.errors == ""
    for words in (["token", "list"], ["token", "list", "--json"]):
        output = run(*words).text
        assert "shop" in output
        assert created.text.strip()[-43:] not in output
    run("token", "delete", "shop")
    assert "shop" not in listed(run)


def test_tokens_are_listed_with_what_they_may_do(run: Command, account: str) -> None:
    words = ["--rights", "send,peek", "--queues", r"orders,.\private$\returns", "--expires", "30d"]
    run("token", "create", "meter", "--account", account.upper(), *words)
    run("token", "create", "whole", "--account", account)
    meter, whole = listed(run)["meter"], listed(run)["whole"]
    assert meter["account"] == account
    assert meter["rights"] == ["peek", "send"]
    assert meter["queues"] == ["orders", r".\private$\returns"]
    life = datetime.fromisoformat(meter["expires"]) - datetime.fromisoformat(meter["created"])
    assert abs(life - timedelta(days=30)) <= timedelta(seconds=1)
    assert whole["rights"] == ["peek", "send", "receive", "manage"]
    assert (whole["queues"], whole["expires"]) == (None, None)
    lines = run("token", "list").lines
    assert lines[0].split() == ["NAME", "ACCOUNT", "RIGHTS", "QUEUES", "EXPIRES"]
    rights = ["peek,", "send,", "receive,", "manage"]
    assert lines[2].split() == ["whole", account, *rights, "all", "never"]


def test_tokens_outlive_a_restart_and_go_with_their_account(
    run: Command, queue_manager: PrivateQueueManager, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("secret\n"))
    run("user", "add", name, "--password-stdin")
    run("token", "create", "shop", "--account", name, "--rights", "send")
    before = listed(run)
    queue_manager.kill()
    queue_manager.start()
    assert listed(run) == before
    run("user", "remove", name)
    assert listed(run) == {}


def test_what_is_refused_says_why(refused: Command, run: Command, account: str) -> None:
    run("token", "create", "shop", "--account", account)
    again = refused("token", "create", "SHOP", "--account", account)
    assert "(STATUS_OBJECT_NAME_COLLISION); choose another name" in again.errors
    nobody = refused("token", "create", "other", "--account", "nobody")
    assert "(STATUS_NO_SUCH_USER); check the name with `rpcqm user list`" in nobody.errors
    wrong = refused("token", "create", "other", "--account", account, "--queues", "a;b;c")
    assert "(MQ_ERROR_ILLEGAL_QUEUE_PATHNAME)" in wrong.errors
    unknown = refused("token", "delete", "other")
    assert "(STATUS_OBJECT_NAME_NOT_FOUND)" in unknown.errors


@pytest.mark.parametrize("words", [
    ["--rights", "look"],
    ["--rights", ""],
    ["--queues", "orders,,returns"],
    ["--expires", "30"],
    ["--expires", "0d"],
])  # fmt: skip
def test_wrong_options_are_wrong_usage(attempt: Command, account: str, words: list[str]) -> None:
    outcome = attempt("token", "create", "shop", "--account", account, *words)
    assert (outcome.status, outcome.text) == (2, "")
