"""What waits for a queue manager in maintenance, each a process of its own (G631, G632)."""

import json
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from rpcqm.testing import PrivateQueueManager
from tests.support.network.neighbours import neighbours
from tests.support.waiting import until

HERE, THERE = "here", "there"
KINDS = {"orders": (), "quick": ("--express",), "stream": ("--transactional",)}


@pytest.fixture(scope="module")
def machines() -> Iterator[list[PrivateQueueManager]]:
    with ExitStack() as stack:
        found = neighbours(stack, HERE, THERE)
        for name in KINDS:
            transactional = ("--transactional",) if name == "stream" else ()
            found[1].run("queue", "create", name, *transactional)
        yield found


def bodies(machine: PrivateQueueManager, queue: str) -> list[str]:
    lines = machine.run("peek", queue, "--all", "--json", check=False).stdout.splitlines()
    return [str(json.loads(line)["body"]) for line in lines]


def contents(machine: PrivateQueueManager) -> dict[str, list[str]]:
    return {queue: bodies(machine, queue) for queue in KINDS}


def send(machine: PrivateQueueManager, *texts: str) -> None:
    for queue, options in KINDS.items():
        for text in texts:
            name = f"DIRECT=OS:{THERE}\\private$\\{queue}"
            machine.run("send", name, "--body", text, *options)


def test_all_arrives_once_and_in_order_behind_maintenance_and_a_restart(
    machines: list[PrivateQueueManager],
) -> None:
    """What waits is sent, too, while its own queue manager is in maintenance."""
    here, there = machines
    send(here, "before")
    until(lambda: contents(there) == {queue: ["before"] for queue in KINDS})
    there.run("maintenance", "on", "--reason", "a new disk")
    send(here, "one", "two")
    assert contents(there) == {queue: ["before"] for queue in KINDS}
    there.restart()
    assert "still in maintenance" in there.log
    here.run("maintenance", "on")
    name = f"DIRECT=OS:{THERE}\\private$\\orders"
    assert here.run("send", name, "--body", "too late", check=False).returncode == 1
    there.run("maintenance", "off")
    wanted = ["before", "one", "two"]
    until(lambda: bodies(there, "stream") == bodies(there, "orders") == wanted)
    until(lambda: bodies(there, "quick")[-2:] == wanted[1:])  # the restart has lost the first one
