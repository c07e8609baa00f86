"""Messages are moved, copied and sent again by /api/v1, in groups that are each done once."""

from collections.abc import Iterator
from typing import Any

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.api.programs import Program

TOO_MANY_AT_ONCE = 1_001
"""Messages that are two groups."""


@pytest.fixture(scope="module")
def running() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(("--console-port", "0")) as running:
        for name, *groups in (("boss", "administrators"), ("other",)):
            words = [word for group in groups for word in ("--group", group)]
            running.run("user", "add", name, *words, "--password-stdin", input="secret\n")
        yield running


@pytest.fixture
def boss(running: PrivateQueueManager) -> Iterator[Program]:
    program = Program(running.endpoint("console"), "boss")
    for name in ("orders", "archive"):
        assert program.ask("POST", "/queues", {"name": name}).status == 201
    yield program
    program.close()
    program = Program(running.endpoint("console"), "boss")
    for name in ("orders", "archive"):
        deleted = program.ask("DELETE", f"/queues/{name}")
        assert deleted.status == 204, deleted
    program.close()


def fill(boss: Program, *labels: str, queue: str = "orders", **more: Any) -> None:
    messages = [{"label": each, "body_base64": "eA==", **more} for each in labels]
    for at in range(0, len(messages), 1_000):
        batch = {"messages": messages[at : at + 1_000]}
        assert boss.ask("POST", f"/queues/{queue}/messages/batch", batch).status == 201


def labels(boss: Program, queue: str) -> list[str]:
    found = boss.ask("GET", f"/queues/{queue}/messages?limit=1000").value["messages"]
    return [each["label"] for each in found]


def test_messages_move_to_another_queue_by_choice_and_by_filter(boss: Program) -> None:
    fill(boss, "eu-1", "us-2", "eu-3", "us-4")
    first = boss.ask("GET", "/queues/orders/messages?limit=1").value["messages"][0]["lookup_id"]
    chosen = {"to": "archive", "lookup_ids": [first]}
    assert boss.ask("POST", "/queues/orders/move", chosen).value["messages"] == 1
    again = boss.ask("POST", "/queues/orders/move", chosen).value
    assert (again["messages"], again["gone"]) == (0, 1)
    found = {"to": "archive", "filter": {"label": "eu-*"}}
    assert boss.ask("POST", "/queues/orders/move", found).value["messages"] == 1
    assert labels(boss, "archive") == ["eu-1", "eu-3"]
    assert boss.ask("POST", "/queues/orders/move", {"to": "archive"}).value["messages"] == 2
    assert labels(boss, "orders") == []


def test_an_order_goes_on_in_groups_and_each_is_done_once(boss: Program) -> None:
    fill(boss, *map(str, range(TOO_MANY_AT_ONCE)))
    begun = boss.ask("POST", "/queues/orders/copy", {"to": "archive", "all": True}).value
    assert (begun["messages"], begun["left"], begun["ended"]) == (1_000, 1, False)
    fill(boss, "later")
    step = {"step": begun["step"]}
    done = [boss.ask("POST", f"/orders/{begun['order']}", step).value for _ in range(2)]
    assert [each["messages"] for each in done] == [TOO_MANY_AT_ONCE] * 2
    assert boss.ask("GET", "/queues/archive").value["messages"] == TOO_MANY_AT_ONCE
    assert "later" not in labels(boss, "archive")


def test_an_order_is_stopped_and_is_nobody_elses(
    running: PrivateQueueManager, boss: Program
) -> None:
    fill(boss, *map(str, range(TOO_MANY_AT_ONCE)))
    begun = boss.ask("POST", "/queues/orders/move", {"to": "archive"}).value
    path = f"/orders/{begun['order']}"
    other = Program(running.endpoint("console"), "other")
    for method, body in (("POST", {"step": 1}), ("DELETE", None)):
        assert other.ask(method, path, body).status == 410
    other.close()
    stopped = boss.ask("DELETE", path).value
    assert (stopped["messages"], stopped["left"], stopped["ended"]) == (1_000, 1, True)
    assert boss.ask("POST", path, {"step": begun["step"]}).value["messages"] == 1_000
    assert boss.ask("GET", "/queues/orders").value["messages"] == 1


def test_after_a_kill_an_order_is_unknown_and_nothing_is_doubled_or_lost(
    running: PrivateQueueManager, boss: Program
) -> None:
    fill(boss, *map(str, range(TOO_MANY_AT_ONCE)))
    begun = boss.ask("POST", "/queues/orders/move", {"to": "archive"}).value
    running.kill()
    running.start()
    boss = Program(running.endpoint("console"), "boss")
    gone = boss.ask("POST", f"/orders/{begun['order']}", {"step": begun["step"]})
    assert (gone.status, "choose the messages again" in gone.value["detail"]) == (410, True)
    counts = [
        boss.ask("GET", f"/queues/{name}").value["messages"] for name in ("orders", "archive")
    ]
    assert counts == [1, 1_000]


def test_a_message_is_sent_again_with_changes(boss: Program) -> None:
    fill(boss, "old", ttbr=1, dead_letter=True)
    boss.ask("DELETE", "/queues/orders/messages")
    changes = {"label": "new", "ttbr": 600, "priority": 7, "response_queue": "answers"}
    wanted = {"all": True, "changes": changes, "keep": True}
    dead = "/queues/-/resend?queue=DeadLetter%24"
    assert boss.ask("POST", dead, wanted).value["messages"] == 1
    (sent,) = boss.ask("GET", "/queues/orders/messages").value["messages"]
    assert (sent["label"], sent["ttbr"], sent["priority"]) == ("new", 600, 7)
    assert boss.ask("POST", dead, {"all": True, "changes": {"ttbr": "forever"}}).status == 200
    (_, last) = boss.ask("GET", "/queues/orders/messages").value["messages"]
    assert (last["label"], last["ttbr"]) == ("old", None)
    assert boss.ask("GET", "/dead-letters").value["messages"] == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("copy", {"to": "archive"}),
        ("copy", {"to": "archive", "all": True, "filter": {"label": "x"}}),
        ("move", {"to": "archive", "filter": {"label": "[", "regex": "("}}),
        ("move", {"to": "orders"}),
        ("resend", {"all": True, "changes": {"priority": 8}}),
        ("resend", {"all": True, "changes": {"sender": "x"}}),
        ("resend", {"all": True, "changes": {"correlation_id": "x"}}),
    ],
)
def test_what_cannot_be_meant_is_refused_and_nothing_is_done(
    boss: Program, path: str, body: dict[str, Any]
) -> None:
    fill(boss, "x")
    assert boss.ask("POST", f"/queues/orders/{path}", body).status == 400
    assert (labels(boss, "orders"), labels(boss, "archive")) == (["x"], [])
