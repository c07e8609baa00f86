"""`send --not-before` by commands and programs, over a kill (G656)."""

import json
from collections.abc import Iterator

import pytest

from rpcqm.cli.output import told_time
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.api.programs import Program

PAST = "2020-01-01T00:00:00+00:00"


@pytest.fixture(scope="module")
def machine() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(("--console-port", "0"), "[storage]\nreserve = 1\n") as machine:
        for name, group in (("boss", "administrators"), ("ann", "users")):
            words = ("user", "add", name, "--group", group, "--password-stdin")
            machine.run(*words, input="secret\n")
        machine.run("queue", "create", "orders")
        yield machine


def listed(machine: PrivateQueueManager) -> list[dict[str, object]]:
    told: list[dict[str, object]] = json.loads(machine.run("scheduled", "list", "--json").stdout)
    return told


def test_a_message_waits_over_a_kill_and_can_be_cancelled(machine: PrivateQueueManager) -> None:
    words = ("send", "orders", "--body", "later", "--label", "L", "--not-before")
    held = str(machine.run(*words, "90min").stdout).strip()
    machine.kill()
    machine.start()
    (told,) = listed(machine)
    assert (told["id"], told["label"], told["trouble"]) == (held, "L", "")
    (_, line) = str(machine.run("scheduled", "list").stdout).splitlines()
    assert line.split("  ")[:2] == [held, told_time(str(told["not_before"]))]
    assert machine.run("peek", "orders", check=False).returncode == 4
    assert f"{held} is not sent." in str(machine.run("scheduled", "cancel", held).stdout)
    gone = machine.run("scheduled", "cancel", held, check=False)
    assert (gone.returncode, "STATUS_OBJECT_NAME_NOT_FOUND" in gone.stderr) == (1, True)
    assert listed(machine) == []
    machine.run(*words, PAST)
    told_now = machine.run("receive", "orders", "--timeout", "30000", "--format", "json")
    message = json.loads(told_now.stdout)
    assert (message["label"], listed(machine)) == ("L", [])


@pytest.mark.parametrize("text", ["soon", "-1h", "11000d", "2026-13-01", ""])
def test_a_time_that_is_none_is_told(machine: PrivateQueueManager, text: str) -> None:
    done = machine.run("send", "orders", "--body", "x", f"--not-before={text}", check=False)
    assert (done.returncode, str(done.stderr).count("\n")) == (2, 1)


def test_programs_let_messages_wait(machine: PrivateQueueManager) -> None:
    boss, ann = (Program(machine.endpoint("console"), name) for name in ("boss", "ann"))
    draft = {"label": "p", "body_base64": "eA==", "not_before": "2035-01-01T00:00:00Z"}
    made = boss.ask("POST", "/queues/orders/scheduled-messages", draft)
    assert made.status == 201
    (told,) = boss.ask("GET", "/scheduled-messages").value["scheduled"]
    assert (told["id"], told["account"], told["body_size"]) == (made.value["id"], "boss", 1)
    assert told["not_before"].startswith("2035-01-01T00:00:00")
    assert ann.ask("GET", "/scheduled-messages").value == {"scheduled": []}
    path = f"/scheduled-messages/{told['id']}"
    assert ann.ask("DELETE", path).status == 404
    assert boss.ask("DELETE", path).status == 204
    wrong = boss.ask("POST", "/queues/orders/scheduled-messages", {"not_before": "tomorrow"})
    assert (wrong.status, wrong.code) == (400, "MQ_ERROR_INVALID_PARAMETER")
    now = boss.ask("POST", "/queues/orders/scheduled-messages", draft | {"not_before": PAST})
    assert now.status == 201
    got = boss.ask("POST", "/queues/orders/receive?wait=30").value["messages"]
    assert [each["label"] for each in got] == ["p"]
