"""Permissions in words over the interface for programs, as two operators use them."""

import itertools
from collections.abc import Iterator

import pytest

from rpcqm.api.permissions import MOST_CHANGES
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.api.programs import Program

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def running() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(("--console-port", "0")) as queue_manager:
        for name, *groups in (("boss", "administrators"), ("alice",)):
            words = [word for group in groups for word in ("--group", group)]
            queue_manager.run("user", "add", name, *words, "--password-stdin", input="secret\n")
        yield queue_manager


@pytest.fixture
def boss(running: PrivateQueueManager) -> Iterator[Program]:
    program = Program(running.endpoint("console"), "boss")
    yield program
    program.close()


@pytest.fixture
def queue(boss: Program) -> str:
    name = f"orders{next(_numbers)}"
    assert boss.ask("POST", "/queues", {"name": name}).status == 201
    return f"/queues/{name}"


@pytest.fixture
def entries(queue: str) -> str:
    return f"{queue}/permission-entries"


def change(action: str, who: str, *rights: str) -> dict[str, object]:
    return {"changes": [{"action": action, "who": who, "rights": list(rights)}]}


def test_an_account_is_let_in_and_the_reason_is_told(
    boss: Program, queue: str, entries: str
) -> None:
    changed = boss.ask("PATCH", entries, change("allow", "alice", "peek"))
    assert changed.status == 200
    entry = next(each for each in changed.value["entries"] if each["name"] == "alice")
    assert (entry["allowed"], entry["denied"], entry["removed"]) == (["peek"], [], False)
    told = boss.ask("GET", f"{queue}/permissions/alice").value
    rights = {each["right"]: each for each in told["rights"]}
    assert rights["peek"]["granted"]
    assert rights["send"]["why"].endswith("allows it to everyone")
    assert not rights["delete"]["granted"]
    assert boss.ask("GET", "/queue-manager/permissions/alice").status == 200


def test_the_second_of_two_operators_looks_again(boss: Program, queue: str, entries: str) -> None:
    version = boss.ask("GET", entries).value["version"]
    first = change("allow", "alice", "send") | {"version": version}
    assert boss.ask("PATCH", entries, first).status == 200
    second = boss.ask("PATCH", entries, change("deny", "alice") | {"version": version})
    assert (second.status, second.value["code"]) == (409, "MQ_ERROR_SHARING_VIOLATION")
    whole = boss.ask("GET", f"{queue}/permissions").value
    assert boss.ask("PUT", f"{queue}/permissions", whole).status == 204
    stale = whole | {"version": version}
    assert boss.ask("PUT", f"{queue}/permissions", stale).status == 409


def test_nobody_is_locked_out_unasked(boss: Program, queue: str, entries: str) -> None:
    boss.ask("PATCH", entries, change("allow", "alice", "change-permissions"))
    taken = change("revoke", "boss") | {"owner": "alice"}
    refused = boss.ask("PATCH", entries, taken)
    assert (refused.status, refused.value["code"]) == (409, "MQ_ERROR_UNSUPPORTED_OPERATION")
    assert boss.ask("PATCH", entries, taken | {"lock_out": True}).status == 204
    assert boss.ask("GET", entries).status == 403
    assert boss.ask("GET", f"{queue}/permissions/boss").status == 403


def test_who_owns_nothing_is_told_of_nobody(
    boss: Program, queue: str, entries: str, running: PrivateQueueManager
) -> None:
    alice = Program(running.endpoint("console"), "alice")
    assert alice.ask("GET", f"{queue}/permissions/alice").status == 403
    boss.ask("PATCH", entries, change("allow", "alice", "get-permissions"))
    assert alice.ask("GET", f"{queue}/permissions/alice").status == 200
    for other in ("boss", "nobody"):
        assert alice.ask("GET", f"{queue}/permissions/{other}").status == 404
    assert alice.ask("PATCH", entries, change("allow", "alice")).status == 403


@pytest.mark.bound("program.permission_changes")
@pytest.mark.parametrize(
    "wrong",
    [
        {"changes": [{"action": "give", "who": "alice"}]},
        {"changes": [{"action": "allow", "who": "alice", "rights": ["fly"]}]},
        {"changes": [{"action": "allow", "who": "alice"}] * (MOST_CHANGES + 1)},
        {"changes": [], "owner": ""},
        {},
    ],
    ids=["action", "right", "too many", "no owner", "nothing"],
)
def test_what_is_no_change_is_refused(
    boss: Program, entries: str, wrong: dict[str, object]
) -> None:
    assert boss.ask("PATCH", entries, wrong).status == 400


def test_somebody_who_is_not_there_is_told_so(boss: Program, entries: str) -> None:
    refused = boss.ask("PATCH", entries, change("allow", "nobody", "send"))
    assert (refused.status, refused.value["code"]) == (404, "STATUS_NO_SUCH_USER")


@pytest.mark.parametrize(
    ("method", "path", "body", "says"),
    [
        ("GET", "/queues/{}/messages?label=x", None, "alice lacks peek on "),
        ("POST", "/queues/{}/messages", b"x", "alice lacks send on "),
        ("DELETE", "/queues/{}", None, "alice lacks delete on "),
        (
            "PATCH",
            "/queues/{}",
            {"label": "x"},
            "alice lacks set-properties on ",
        ),
        ("GET", "/dead-letters", None, "alice lacks peek-dead-letter on the queue manager"),
        ("GET", "/accounts", None, "only administrators"),
        ("PATCH", "/queue-manager", {"maintenance": True}, "only administrators may do this"),
    ],
)
def test_a_refusal_says_which_right_is_missing(
    running: PrivateQueueManager,
    boss: Program,
    queue: str,
    method: str,
    path: str,
    body: object,
    says: str,
) -> None:
    entries, name = f"{queue}/permission-entries", queue.rpartition("/")[2]
    assert boss.ask("PATCH", entries, change("deny", "alice", "peek", "send")).status == 200
    assert boss.ask("PATCH", entries, change("allow", "alice", "get-properties")).status == 200
    alice = Program(running.endpoint("console"), "alice")
    told = alice.ask(method, path.format(name), body)
    alice.close()
    assert (told.status, told.code) == (403, "MQ_ERROR_ACCESS_DENIED")
    assert told.value["detail"].startswith(says)


def test_a_refusal_says_what_keeps_a_right_from_its_account(
    running: PrivateQueueManager, queue: str
) -> None:
    scope = ("--account", "boss", "--rights", "peek")
    made = running.run("token", "create", queue.rpartition("/")[2], *scope)
    bearer = Program(running.endpoint("console"))
    bearer.headers["Authorization"] = f"Bearer {made.stdout.split()[-1]}"
    told = bearer.ask("POST", f"{queue}/messages", b"x")
    bearer.close()
    assert told.value["detail"].startswith("boss lacks send on ")
    assert " leaves only peek" in told.value["detail"]
