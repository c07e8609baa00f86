"""A stranger on another machine of the network, against `rpcqm serve --host 0.0.0.0`.

Two network namespaces and a cable between them stand for the two machines. The queue manager has
its default settings, and a queue with default permissions.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.network.namespace import Namespace, NamespaceError, join
from tests.support.served import ServedQueueManager

HERE, THERE = "192.0.2.1", "192.0.2.66"
REFUSED = {"RPC_S_ACCESS_DENIED", "MQ_ERROR_ACCESS_DENIED", "MQ_ERROR_WKS_CANT_SERVE_CLIENT"}
HARMLESS = {
    "port of remoteread": "MQ_OK",
    "version at rpc": "MQ_OK",
    "version at qm2qm": "MQ_OK",
    "send by the binary protocol": "MQ_OK",
}
CLOSED = {
    "administrate at rpc",
    "administrate at qm2qm",
    "administrate at epm",
    "ping",
    "stop at rpc",
    "stop at qm2qm",
    "stop at epm",
}
CALLS = [
    *("read", "read exclusively", "peek", "peek exclusively", "move"),
    *(
        f"{what} at {door}"
        for door in ("rpc", "qm2qm")
        for what in ("open to read", "open to peek", "lock", "purge")
    ),
    *("create", "change", "show", "delete", "own"),
    *("receive as a dependent client", "send as a dependent client"),
    *("list", "DISCONNECT", "TIDY"),
]


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[ServedQueueManager, Namespace]]:
    """The queue manager, and the machine of the stranger."""
    directory = tmp_path_factory.mktemp("served")
    try:
        with Namespace() as here, Namespace() as there:
            join(here, there, HERE, THERE)
            options = ("--host", "0.0.0.0")
            with ServedQueueManager(here, directory, options=options) as running:
                running.command("queue", "create", "orders")
                running.command("send", "orders", "--body", "secret")
                yield running, there
    except NamespaceError as error:
        pytest.skip(f"no private network namespaces can be joined here: {error}")


@pytest.fixture(scope="module")
def outcomes(served: tuple[ServedQueueManager, Namespace]) -> dict[str, str]:
    """What came of each attempt, from the other machine."""
    running, there = served
    ready: Path = running.directory / "ready.json"
    words = [sys.executable, "-m", "tests.support.network.network_stranger", HERE, ready, "orders"]
    done = there.run(words, timeout=120)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("attempt", CALLS)
def test_a_stranger_does_nothing_with_queues(outcomes: dict[str, str], attempt: str) -> None:
    assert outcomes[attempt] in REFUSED


@pytest.mark.parametrize("attempt", sorted(CLOSED))
def test_what_is_not_for_the_network_is_closed(outcomes: dict[str, str], attempt: str) -> None:
    said = outcomes[attempt]
    assert said in ("not offered", "no answer") or "rpc_s_access_denied" in said


@pytest.mark.parametrize("attempt", HARMLESS)
def test_what_a_stranger_may_do(outcomes: dict[str, str], attempt: str) -> None:
    assert outcomes[attempt] == HARMLESS[attempt]


def test_everything_that_is_tried_is_judged(outcomes: dict[str, str]) -> None:
    assert set(outcomes) == {*CALLS, *CLOSED, *HARMLESS}


def test_afterwards_everything_is_as_it_was(
    served: tuple[ServedQueueManager, Namespace], outcomes: dict[str, str]
) -> None:
    """But for the message, which came as from nobody."""
    running, _ = served
    lines = running.command("peek", "orders", "--all", "--format", "json").splitlines()
    found = [json.loads(line) for line in lines]
    assert [each["body"] for each in found] == ["secret", "from nobody"]
    listed = json.loads(running.command("queue", "list", "--json"))
    assert len(listed) == 1
