"""Who may do what with the queue manager itself: by command, over the network, kept."""

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.integration.cli.conftest import CONFIGURATION

Command = Callable[..., Any]
SUPPORTING = f"{CONFIGURATION}[security]\nsupporting_server = true\n"


@pytest.fixture(scope="module")
def queue_manager() -> Iterator[PrivateQueueManager]:
    """In place of the one of the other tests: it is restarted, and its permissions change."""
    with private_queue_manager(configuration=SUPPORTING) as queue_manager:
        yield queue_manager


@pytest.fixture
def as_alice(
    run: Command, queue_manager: PrivateQueueManager, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], tuple[str, ...]]:
    """Options to come over the network as an account that administrates nothing."""
    if "alice" not in run("user", "list").text:
        monkeypatch.setattr("sys.stdin", io.StringIO("secret\n"))
        run("user", "add", "alice", "--password-stdin")
    monkeypatch.setenv("RPCQM_PASSWORD", "secret")

    def options() -> tuple[str, ...]:
        host, port = queue_manager.endpoint("epm")
        return ("--server", f"{host}:{port}", "--user", "alice")

    return options


def entries(run: Command) -> dict[str, Any]:
    shown = json.loads(run("machine", "acl", "show", "--json").output)
    return {entry["name"]: entry for entry in shown["entries"]}


def test_the_permissions_of_the_queue_manager_are_shown(run: Command) -> None:
    assert entries(run)["administrators"]["allowed"] == ["full"]
    assert entries(run)["everyone"]["allowed"] == ["get-properties", "get-permissions"]
    assert "Owner: administrators" in run("machine", "acl", "show").text


def test_who_lacks_the_right_creates_no_queue_also_after_a_restart(
    run: Command,
    attempt: Command,
    as_alice: Callable[[], tuple[str, ...]],
    queue_manager: PrivateQueueManager,
) -> None:
    run("queue", "create", "before", *as_alice())
    said = run("machine", "acl", "revoke", "authenticated", "create-queue").text
    assert said == "authenticated may now: get-properties, get-permissions.\n"
    assert attempt("queue", "create", "after", *as_alice()).status == 1
    queue_manager.restart()
    assert attempt("queue", "create", "after", *as_alice()).status == 1
    run("machine", "acl", "grant", "alice", "create-queue")
    queue_manager.restart()
    run("queue", "create", "after", *as_alice())
    run("machine", "acl", "deny", "alice", "create-queue")
    assert entries(run)["alice"]["denied"] == ["create-queue"]
    assert attempt("queue", "create", "again", *as_alice()).status == 1


def test_dead_letters_are_read_by_whom_the_queue_manager_lets(
    run: Command, attempt: Command, as_alice: Callable[[], tuple[str, ...]]
) -> None:
    words = ("dead-letter", "list")
    assert attempt(*words, *as_alice()).status == 1
    run("machine", "acl", "grant", "alice", "receive-dead-letter")
    run(*words, *as_alice())
    run("machine", "acl", "revoke", "alice", "receive-dead-letter")
    assert attempt(*words, *as_alice()).status == 1


def test_somebody_can_always_change_the_permissions(run: Command, refused: Command) -> None:
    errors = refused("machine", "acl", "deny", "administrators", "change-permissions").errors
    assert "rpcqm machine acl grant administrators full" in errors
    assert run("machine", "acl", "owner", "administrators").text == (
        "The owner of the queue manager is administrators now.\n"
    )
