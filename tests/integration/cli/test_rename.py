"""A queue gets another name while it is in use, and who asks for the old one is told."""

from collections.abc import Iterator

import pytest

from rpcqm.client import mq
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.api.programs import Program


@pytest.fixture(scope="module")
def machine() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(("--console-port", "0"), "[storage]\nreserve = 1\n") as machine:
        add(machine, "boss", "--group", "administrators")
        add(machine, "mallory")
        yield machine


def add(machine: PrivateQueueManager, name: str, *words: str) -> None:
    machine.run("user", "add", name, "--password-stdin", *words, input="secret\n")


def failed(machine: PrivateQueueManager, *words: str, **settings: str) -> str:
    done = machine.run(*words, check=False, **settings)
    assert done.returncode == 1
    return str(done.stderr).strip()


def test_a_queue_is_renamed_while_it_is_in_use(machine: PrivateQueueManager) -> None:
    machine.run("queue", "create", "orders", "--journal")
    with mq.open("orders", machine) as held:
        held.send("before")
        assert held.peek(timeout=5) is not None
        done = machine.run("queue", "rename", "orders", "bills")
        assert str(done.stdout).strip() == r".\private$\bills"
        held.send("through a handle")
        first = held.receive_one(timeout=5)
        assert first is not None
        assert first.value == "before"
        first.acknowledge()
    machine.restart()
    shown = str(machine.run("queue", "show", "bills").stdout)
    assert r"\private$\bills" in shown
    assert "through a handle" in str(machine.run("peek", "bills").stdout)
    assert "before" in str(machine.run("peek", "bills;JOURNAL").stdout)
    told = failed(machine, "peek", "orders")
    assert told.endswith("`orders` was renamed to `bills` (MQ_ERROR_QUEUE_NOT_FOUND).")
    assert "was renamed to `bills`" in failed(machine, "send", "orders", "--body", "x")
    taken = failed(machine, "queue", "rename", "bills", "bills;x")
    assert "(MQ_ERROR_ILLEGAL_QUEUE_PATHNAME)" in taken
    machine.run("queue", "create", "orders")
    assert "MQ_ERROR_QUEUE_EXISTS" in failed(machine, "queue", "rename", "bills", "orders")


def test_programs_rename_queues_and_are_told_of_it(machine: PrivateQueueManager) -> None:
    boss, mallory = (Program(machine.endpoint("console"), name) for name in ("boss", "mallory"))
    sddl = "O:BAG:BAD:(A;;0xf003f;;;BA)"
    assert boss.ask("POST", "/queues", {"name": "secret", "sddl": sddl}).status == 201
    token = {"name": "t", "account": "boss", "queues": ["secret"]}
    shown = boss.ask("POST", "/tokens", token).value["token"]
    renamed = boss.ask("POST", "/queues/secret/rename", {"name": "plan"})
    assert (renamed.status, renamed.value["name"]) == (200, "plan")
    bearer = Program(machine.endpoint("console"))
    bearer.headers["Authorization"] = f"Bearer {shown}"
    assert bearer.ask("POST", "/queues/plan/messages", b"x").status == 201
    assert boss.ask("POST", "/queues", {"name": "secret", "sddl": sddl}).status == 201
    assert bearer.ask("POST", "/queues/secret/messages", b"x").status == 403
    assert boss.ask("DELETE", "/queues/secret").status == 204
    for who, detail in ((boss, "secret was renamed to plan"), (mallory, "")):
        for _ in range(3):  # requests like one before go a way of their own
            gone = who.ask("POST", "/queues/secret/messages", b"x")
            assert (gone.status, gone.code) == (404, "MQ_ERROR_QUEUE_NOT_FOUND")
            assert ("renamed" in gone.value["detail"]) is bool(detail)
            assert detail in gone.value["detail"]
    denied = mallory.ask("POST", "/queues/plan/rename", {"name": "mine"})
    assert (denied.status, denied.code) == (403, "MQ_ERROR_ACCESS_DENIED")
    over = failed(
        machine,
        *("peek", "secret", "--server", "{}:{}".format(*machine.endpoint("epm"))),
        *("--user", "boss", "--password-stdin"),
        input="secret\n",
    )
    assert "MQ_ERROR_QUEUE_NOT_FOUND" in over
    assert "renamed" not in over
