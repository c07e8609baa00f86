"""A data directory and a configuration of an older version start under this one."""

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.api.programs import Program

OLDER = (
    Path(__file__).parents[2] / "vectors" / "upgrade" / "before-the-interface-for-programs.tar.xz"
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with tarfile.open(OLDER) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


@pytest.fixture
def running(place: Path) -> Iterator[PrivateQueueManager]:
    configuration = (place / "rpcqm.toml").read_text("utf-8")
    options = ("--console-port", "0")
    with private_queue_manager(options, configuration, data_dir=place / "data") as served:
        yield served


def messages(running: PrivateQueueManager, queue: str) -> list[dict[str, Any]]:
    printed = running.run("peek", queue, "--all", "--json").stdout
    return [json.loads(line) for line in printed.splitlines()]


def test_messages_of_an_older_version_are_there(running: PrivateQueueManager) -> None:
    told = [
        (each["label"], each["value"], each["priority"]) for each in messages(running, "orders")
    ]
    assert told == [("fruit", "two apples", 5), ("bicycle", "one bicycle", 3)]
    assert [each["value"] for each in messages(running, "steps")] == ["first", "second"]
    assert "lost" in running.run("dead-letter", "list").stdout


def test_accounts_and_permissions_of_an_older_version_hold(running: PrivateQueueManager) -> None:
    program = Program(running.endpoint("console"), "ada")
    try:
        taken = program.ask("POST", "/queues/orders/receive?lease=0").value["messages"]
    finally:
        program.close()
    assert [each["label"] for each in taken] == ["fruit"]
    assert [each["label"] for each in messages(running, "orders")] == ["bicycle"]


def test_what_is_sent_after_the_upgrade_follows_what_was_there(
    running: PrivateQueueManager,
) -> None:
    running.run("send", "steps", "--transactional", "--body", "third")
    running.kill()
    running.start()
    assert [each["value"] for each in messages(running, "steps")] == ["first", "second", "third"]
    numbers = [each["id"] for each in messages(running, "steps")]
    assert len(set(numbers)) == 3
