"""`rpcqm user`, and who may do what over the network."""

import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager

Command = Callable[..., Any]
SID = re.compile(r"S-1-5-21-\d+-\d+-\d+-\d+")


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Put a text on standard input."""
    return lambda text: monkeypatch.setattr(sys, "stdin", io.StringIO(text))


@pytest.fixture
def account(run: Command, typed: Callable[[str], None], name: str) -> Iterator[str]:
    """An account whose password is `secret`."""
    typed("secret\n")
    run("user", "add", name, "--password-stdin")
    yield name
    run("user", "remove", name)


def test_accounts_are_added_listed_and_removed(
    run: Command, refused: Command, typed: Callable[[str], None]
) -> None:
    typed("secret\n")
    sid = run("user", "add", "alice", "--group", "administrators", "--password-stdin").text.strip()
    assert SID.fullmatch(sid)
    typed("secret\n")
    run("user", "add", "bob", "--password-stdin")
    listed = json.loads(run("user", "list", "--json").output)
    assert {"name": "alice", "sid": sid, "groups": ["administrators", "users"]} in listed
    assert run("user", "list").lines[0].split() == ["NAME", "GROUPS", "SID"]
    typed("other\n")
    assert "(STATUS_USER_EXISTS)" in refused("user", "add", "ALICE", "--password-stdin").errors
    for account in ("alice", "bob"):
        run("user", "remove", account)
    assert "(STATUS_NO_SUCH_USER)" in refused("user", "remove", "alice").errors


def test_a_wrong_name_is_refused(refused: Command, typed: Callable[[str], None]) -> None:
    typed("secret\n")
    outcome = refused("user", "add", "a:b", "--password-stdin")
    assert "(STATUS_INVALID_ACCOUNT_NAME)" in outcome.errors


def test_an_empty_password_is_wrong_usage(
    attempt: Command, typed: Callable[[str], None], name: str
) -> None:
    typed("\n")
    outcome = attempt("user", "add", name, "--password-stdin")
    assert (outcome.status, outcome.errors) == (2, "rpcqm: The password is empty.\n")
    typed("")
    assert attempt("user", "add", name, "--password-stdin").status == 2


@pytest.fixture
def remotely(
    attempt: Command,
    queue_manager: PrivateQueueManager,
    monkeypatch: pytest.MonkeyPatch,
) -> Command:
    """Run a command over TCP, as `user` with `password`."""

    def remotely(*words: str, user: str = "", password: str = "") -> Any:
        monkeypatch.delenv("RPCQM_DATA_DIR", raising=False)
        host, port = queue_manager.endpoint("epm")
        options = ["--server", f"{host}:{port}"]
        if user:
            options += ["--user", user]
            monkeypatch.setenv("RPCQM_PASSWORD", password)
        outcome = attempt(*words, *options)
        monkeypatch.setenv("RPCQM_DATA_DIR", str(queue_manager.data_dir))
        return outcome

    return remotely


def test_messages_are_read_moved_and_purged_over_the_network(
    run: Command, remotely: Command, queue: str, account: str
) -> None:
    run("send", queue, "--body", "x", "--count", "5")
    who = {"user": account, "password": "secret"}
    assert len(remotely("peek", queue, "--all", "--format", "json", **who).lines) == 5
    assert remotely("receive", queue, "--format", "body", **who).output == b"x"
    assert remotely("move", queue, f"{queue};late", **who).text == "Moved 1 message.\n"
    outcome = remotely("purge", queue, **who)
    assert (outcome.status, outcome.errors, outcome.text) == (0, "", "Purged.\n")
    assert json.loads(run("queue", "show", queue, "--json").output)["messages"] == 0
    assert remotely("receive", f"{queue};late", "--format", "body", **who).output == b"x"


def test_what_only_administrators_see_is_said(remotely: Command, queue: str, account: str) -> None:
    for words in (["queue", "list"], ["queue", "show", queue]):
        outcome = remotely(*words, user=account, password="secret")
        assert outcome.status == 1
        assert ": only administrators may (MQ_ERROR_ACCESS_DENIED); run the" in outcome.errors


@pytest.mark.conformance("MQMR-rule-2.1")
def test_administrators_list_and_show_over_the_network(
    run: Command, remotely: Command, typed: Callable[[str], None], queue: str
) -> None:
    typed("secret\n")
    run("user", "add", "operator", "--group", "administrators", "--password-stdin")
    who = {"user": r"ANYWHERE\operator", "password": "secret"}
    listed = remotely("queue", "list", "--json", **who)
    assert listed.errors == ""
    assert any(entry["path_name"].endswith(f"\\{queue}") for entry in json.loads(listed.output))
    shown = json.loads(remotely("queue", "show", queue, "--json", **who).output)
    assert shown["messages"] == 0
    run("user", "remove", "operator")


def test_without_an_account_nothing_is_read(run: Command, remotely: Command, queue: str) -> None:
    run("send", queue, "--body", "x")
    outcome = remotely("receive", queue)
    assert outcome.status == 1
    assert "(RPC_S_ACCESS_DENIED); give --user NAME" in outcome.errors
    assert run("receive", queue, "--format", "body").output == b"x"


@pytest.mark.parametrize(("user", "password"), [("", "wrong"), ("nobody", "secret")])
def test_a_wrong_name_or_password_is_one_sentence(
    remotely: Command, queue: str, account: str, user: str, password: str
) -> None:
    outcome = remotely("peek", queue, user=user or account, password=password)
    assert outcome.status == 1
    assert outcome.errors.count("\n") == 1
    assert "check the name and the password" in outcome.errors or "--user" in outcome.errors


def test_a_new_password_takes_the_place_of_the_old_one(
    run: Command, remotely: Command, typed: Callable[[str], None], queue: str, account: str
) -> None:
    typed("changed\n")
    run("user", "password", account, "--password-stdin")
    assert remotely("peek", queue, "--all", user=account, password="secret").status == 1
    assert remotely("peek", queue, "--all", user=account, password="changed").status == 4


@pytest.mark.parametrize(
    "words",
    [["queue", "create", "{}"], ["queue", "delete", "{}"], ["send", "{}", "--body", "x"]],
    ids=lambda words: " ".join(words[:2]),
)
def test_what_needs_a_supporting_server_is_refused_in_one_sentence(
    remotely: Command, queue: str, account: str, words: list[str]
) -> None:
    outcome = remotely(*(word.format(queue) for word in words), user=account, password="secret")
    assert outcome.status == 1
    assert outcome.errors.count("\n") == 1
    assert "(MQ_ERROR_WKS_CANT_SERVE_CLIENT)" in outcome.errors


def test_a_supporting_server_lets_dependent_clients_do_it() -> None:
    configuration = "[security]\nsupporting_server = true\n[storage]\nreserve = 1\n"
    with private_queue_manager(configuration=configuration) as server:
        server.run(
            "user",
            "add",
            "alice",
            "--group",
            "administrators",
            "--password-stdin",
            input="secret\n",
        )
        host, port = server.endpoint("epm")
        remote = ("--server", f"{host}:{port}", "--user", "alice", "--password-stdin")
        server.run("queue", "create", "orders", *remote, input="secret\n")
        server.run("send", "orders", "--body", "x", *remote, input="secret\n")
        received = server.run("receive", "orders", "--format", "body")
        assert received.stdout == "x"


def test_a_server_that_is_not_there_is_exit_status_3(attempt: Command, queue: str) -> None:
    outcome = attempt("peek", queue, "--server", "127.0.0.1:1")
    assert outcome.status == 3
    assert outcome.errors.startswith("rpcqm: No queue manager can be reached at 127.0.0.1:1: ")
    assert outcome.errors.count("\n") == 1


def test_who_may_only_look_is_told_so(
    attempt: Command, run: Command, remotely: Command, typed: Callable[[str], None], name: str
) -> None:
    """G654."""
    typed("secret\n")
    run("user", "add", name, "--read-only", "--password-stdin")
    run("queue", "create", f"{name}-q")
    run("send", f"{name}-q", "--body", "x")
    queue = f"{name}-q"
    for words in ("queue list", f"queue show {queue}", f"peek {queue}", "peek DeadLetter$ --all"):
        assert remotely(*words.split(), user=name, password="secret").status in (0, 4), words
    for words in (f"receive {queue}", f"purge {queue}"):
        outcome = remotely(*words.split(), user=name, password="secret")
        assert outcome.status == 1, words
        assert "ACCESS_DENIED" in outcome.errors, words
    new = remotely("peek", f"{name}-q;late", user=name, password="secret")
    assert "MQ_ERROR_QUEUE_NOT_FOUND" in new.errors
    assert "late" not in run("queue", "show", f"{name}-q").text
    typed("secret\n")
    both = attempt("user", "add", "x", "--read-only", "--group", "users", "--password-stdin")
    assert (both.status, "no other group" in both.errors) == (2, True)
    run("user", "remove", name)
