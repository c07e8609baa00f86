"""What root does with a queue that somebody else has created (G83)."""

import json

import pytest

from rpcqm.client.names import format_name
from rpcqm.codec.security.descriptor import SecurityDescriptor
from rpcqm.codec.security.identifier import Sid
from rpcqm.qm.default_security import default_access_list
from rpcqm.testing import PrivateQueueManager
from tests.integration.cli.conftest import Command

ALICE = Sid.parse("S-1-5-21-7-7-7-1001")


@pytest.fixture
def others(queue_manager: PrivateQueueManager, queue: str) -> str:
    """A queue with the permissions that it would have if alice had created it."""
    descriptor = SecurityDescriptor(owner=ALICE, dacl=default_access_list(ALICE))
    with queue_manager.client() as client:
        client.run(client.queues.set_security(format_name(queue), descriptor))
    return queue


@pytest.mark.parametrize(
    ("words", "purpose"),
    [
        (("queue", "delete", "{}"), "delete `{}`"),
        (("queue", "set", "{}", "--label", "mine"), "change `{}`"),
        (("queue", "acl", "show", "{}"), "show the permissions of `{}`"),
        (
            ("queue", "acl", "grant", "{}", "administrators", "full"),
            "change the permissions of `{}`",
        ),
        (("purge", "{};JOURNAL"), "purge `{};JOURNAL`"),
    ],
    ids=["delete", "set", "acl show", "acl grant", "purge the journal"],
)
def test_the_refusal_says_how_administrators_take_it_over(
    refused: Command, others: str, words: tuple[str, ...], purpose: str
) -> None:
    said = refused(*(word.format(others) for word in words)).errors
    assert said == (
        f"rpcqm: Cannot {purpose.format(others)}: the caller lacks the right that the operation "
        "needs (MQ_ERROR_ACCESS_DENIED); ask the queue's owner for the right; administrators take "
        f"the queue over first, with `rpcqm queue acl owner {others} administrators` and "
        f"`rpcqm queue acl grant {others} administrators full`; `rpcqm queue acl show {others}` "
        "then names a denial if one wins.\n"
    )


def test_what_the_refusal_says_works(run: Command, others: str) -> None:
    run("queue", "acl", "owner", others, "administrators")
    run("queue", "acl", "grant", others, "administrators", "full")
    shown = json.loads(run("queue", "acl", "show", others, "--json").output)
    assert shown["owner"] == "S-1-5-32-544"
    run("queue", "set", others, "--label", "mine")
    run("queue", "delete", others)


def test_administrators_see_it_in_the_list_and_what_is_in_it(run: Command, others: str) -> None:
    run("send", others, "--body", "x")
    assert json.loads(run("queue", "show", others, "--json").output)["messages"] == 1
    assert others in run("queue", "list").text


def test_what_may_not_be_seen_of_a_queue_is_said(run: Command, others: str) -> None:
    said = run("queue", "show", others).text
    assert "Not shown" in said
    assert "properties such as label and quotas and permissions: your account may not see" in said
    run("queue", "acl", "owner", others, "administrators")
    run("queue", "acl", "grant", others, "administrators", "full")
    assert "Not shown" not in run("queue", "show", others).text


def test_programs_are_told_what_may_not_be_seen_of_a_queue(run: Command, others: str) -> None:
    told = json.loads(run("queue", "show", others, "--json").output)
    assert told["not_shown"] == ["properties", "permissions"]
    assert "label" not in told
    run("queue", "acl", "owner", others, "administrators")
    run("queue", "acl", "grant", others, "administrators", "full")
    assert json.loads(run("queue", "show", others, "--json").output)["not_shown"] == []


def test_the_denial_that_decides_is_named_with_the_command_that_takes_it_back(
    run: Command, refused: Command, queue: str
) -> None:
    """Taking the queue over would change nothing: a denial wins over what is granted."""
    run("queue", "acl", "deny", queue, "everyone", "send")
    errors = refused("send", queue, "--body", "x").errors
    command = f"rpcqm queue acl revoke {queue} everyone send --denied"
    assert f"(MQ_ERROR_ACCESS_DENIED); everyone is denied: send; `{command}` takes that" in errors
    run(*command.split()[1:])
    run("send", queue, "--body", "x")
    run("queue", "acl", "deny", queue, "guests", "full")
    run("receive", queue)
    run("queue", "acl", "deny", queue, "administrators", "full")
    errors = refused("purge", queue).errors
    assert "administrators is denied: full" in errors
    run("queue", "acl", "revoke", queue, "administrators", "full")
    run("purge", queue)


def test_an_entry_of_an_account_that_was_removed_says_so(
    run: Command, queue_manager: PrivateQueueManager, queue: str
) -> None:
    for account in ("stays", "leaves"):
        queue_manager.run("user", "add", account, "--password-stdin", input="secret\n")
    run("queue", "acl", "grant", queue, "leaves", "send")
    run("queue", "acl", "grant", queue, "stays", "send")
    assert "removed" not in run("queue", "acl", "show", queue).text
    run("user", "remove", "leaves")
    shown = run("queue", "acl", "show", queue).text
    (line,) = (each for each in shown.splitlines() if each.startswith("removed account S-1-5-21-"))
    assert "send" in line
    assert "stays " in shown
    (command,) = (each for each in shown.splitlines() if "acl revoke" in each)
    run(*command.split("`")[1].split()[1:])
    assert "removed" not in run("queue", "acl", "show", queue).text
    run("user", "remove", "stays")
