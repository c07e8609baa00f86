"""What scripts/windows-check asks about messages over HTTP, between two queue managers of ours."""

import json
from collections.abc import Iterator

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.project.windows_check import answers_here, module
from tests.support.waiting import until

SERVED = "http_port = 0\n"


@pytest.fixture(scope="module")
def machine() -> Iterator[PrivateQueueManager]:
    with private_queue_manager((), SERVED) as served:
        yield served


@pytest.fixture(scope="module")
def other(machine: PrivateQueueManager) -> Iterator[PrivateQueueManager]:
    """In the place of Windows."""
    with private_queue_manager((), SERVED) as served:
        served.run("queue", "create", "wcheck-web")
        yield served


def test_messages_over_http_go_both_ways(
    machine: PrivateQueueManager, other: PrivateQueueManager
) -> None:
    station = module("serving").Station(str(machine.data_dir), patience=20.0)
    machine.run("queue", "create", "wcheck-web")
    _, port = machine.endpoint("http")
    to = f"DIRECT=HTTP://127.0.0.1:{port}/msmq/private$/wcheck-web"
    other.run("send", to, "--label", "web", "--body", "two apples")
    _, back = other.endpoint("http")
    lines = station.orders["web"](f"DIRECT=TCP:127.0.0.1:{back}\\private$\\wcheck-")
    found = {name: answer for name, _, answer in (line.split(" ", 2) for line in lines)}
    assert found == answers_here("D", "D01", "D02")
    until(lambda: other.run("peek", "wcheck-web", check=False).returncode == 0)
    read = json.loads(other.run("receive", "wcheck-web", "--json").stdout)
    assert (read["label"], read["body"]) == ("web", "two apples")
