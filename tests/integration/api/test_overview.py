"""The overview of a queue manager that runs: by /api/v1, and as a command in another process."""

import json
from collections.abc import Iterator

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.api.programs import Program


@pytest.fixture(scope="module")
def running() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(("--console-port", "0")) as queue_manager:
        for name, *groups in (("boss", "administrators"), ("peeker",)):
            words = [word for group in groups for word in ("--group", group)]
            queue_manager.run("user", "add", name, *words, "--password-stdin", input="secret\n")
        queue_manager.run("queue", "create", "orders")
        queue_manager.run("send", "orders", "--body", "a", "--count", "3")
        yield queue_manager


def test_a_program_and_a_command_see_the_same(running: PrivateQueueManager) -> None:
    told = Program(running.endpoint("console"), "boss").ask("GET", "/overview")
    assert told.status == 200
    printed = json.loads(running.run("status", "--overview", "--json").stdout)
    assert list(printed) == list(told.value)
    assert (printed["messages"], printed["queues"], printed["attention"]) == (3, 1, [])
    assert printed["oldest_queue"] == told.value["oldest_queue"]
    assert told.value["connections"] >= 1


def test_the_command_tells_people_the_same(running: PrivateQueueManager) -> None:
    printed = running.run("status", "--overview").stdout
    assert "3 in 1 queue" in printed
    assert "Dead letters     none" in printed


def test_only_administrators_see_it(running: PrivateQueueManager) -> None:
    assert Program(running.endpoint("console"), "peeker").ask("GET", "/overview").status == 403


def test_wrong_passwords_are_counted_and_need_attention(running: PrivateQueueManager) -> None:
    guesses = Program(running.endpoint("console"), "peeker", "wrong")
    statuses = [guesses.ask("GET", "/queues").status for _ in range(5)]
    assert set(statuses) <= {401, 429}
    overview = Program(running.endpoint("console"), "boss").ask("GET", "/overview").value
    assert overview["failed_logons"] == 5
    assert [each["code"] for each in overview["attention"]] == ["failed_logons"]
    running.restart()
    printed = json.loads(running.run("status", "--overview", "--json").stdout)
    assert (printed["failed_logons"], printed["messages"]) == (0, 3)


def test_who_has_no_room_is_told_which_quota_is_used_and_by_what() -> None:
    """Journals count against the quota of all messages, and nobody looks at them."""
    with private_queue_manager((), "[storage]\nquota = 40\n") as queue_manager:
        queue_manager.run("queue", "create", "orders", "--journal", "--quota", "unlimited")
        queue_manager.run("queue", "create", "tiny", "--quota", "1")
        said = queue_manager.run("send", "tiny", "--body", "x" * 1_000, check=False)
        assert said.returncode == 1
        assert "the quota of `tiny` is 1 KB (MQ_ERROR_INSUFFICIENT_RESOURCES)" in said.stderr
        for _ in range(2):
            queue_manager.run("send", "orders", "--body", "x" * 9_700)
            queue_manager.run("receive", "orders")
        said = queue_manager.run("send", "orders", "--body", "x" * 9_700, check=False)
        full = "most is in the journal of orders (38 KB) (MQ_ERROR_INSUFFICIENT_RESOURCES)"
        assert (said.returncode, full in said.stderr) == (1, True), said
        assert "all messages together take 38 KB of the quota of 40 KB" in said.stderr
        doctor = queue_manager.run("doctor", "--json", check=False)
    (found,) = (each for each in json.loads(doctor.stdout) if each["subject"] == "attention")
    assert found["level"] == "problem"
    assert "most is in the journal of orders (38 KB)." in found["text"]
    assert doctor.returncode == 1
