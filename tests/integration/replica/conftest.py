"""Servers of the log that a module's tests share."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.support.replica.nats_servers import NatsServer, nats_servers
from tests.support.replica.postgresql_servers import PostgresqlServer, postgresql_servers

Servers = Callable[[int], list[NatsServer]]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """One server or three, from when a test first asks for them."""
    running: dict[int, list[NatsServer]] = {}
    with ExitStack() as stack:

        def of(count: int) -> list[NatsServer]:
            if count not in running:
                place = tmp_path_factory.mktemp("nats")
                running[count] = stack.enter_context(nats_servers(place, count))
            return running[count]

        yield of


@pytest.fixture(scope="module")
def postgresql() -> Iterator[list[PostgresqlServer]]:
    """A server and its synchronous standby."""
    with postgresql_servers() as servers:
        yield servers
