"""Fixtures for pytest: a queue manager for the tests of programs that use MSMQ.

def test_an_order_is_stored(rpcqm_server, rpcqm_queue):
    my_program.send_order(rpcqm_server.endpoint("rpc"), rpcqm_queue, "two apples")
    with mq.open(rpcqm_queue, rpcqm_server) as queue:
        assert queue.receive_one(timeout=1).value == "two apples"
"""

import contextlib
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    # Only there, because a test run that needs no queue manager should not load one.
    from rpcqm.testing.private import PrivateQueueManager

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def rpcqm_configuration() -> str:
    """The text of its configuration file; a fixture of the same name in conftest.py replaces it."""
    return "[storage]\nreserve = 1\n"


@pytest.fixture(scope="session")
def rpcqm_server(rpcqm_configuration: str) -> "Iterator[PrivateQueueManager]":
    """A queue manager on free ports of loopback that lives as long as the test run."""
    from rpcqm.testing.private import private_queue_manager

    with private_queue_manager(configuration=rpcqm_configuration) as queue_manager:
        yield queue_manager


@pytest.fixture
def rpcqm_queue(rpcqm_server: "PrivateQueueManager") -> Iterator[str]:
    """The path name of an empty queue of the test's own, which is deleted after it."""
    from rpcqm.base.errors import MQError
    from rpcqm.client.names import HERE, format_name, path_name
    from rpcqm.client.queue_settings import QueueSettings

    path = f".\\private$\\test-{next(_numbers)}"
    name = format_name(path)
    with rpcqm_server.client() as client:
        client.run(client.queues.create(path_name(path, HERE), QueueSettings(), None))
        yield path
        with contextlib.suppress(MQError):  # the test may have deleted it
            client.run(client.queues.delete(name))
