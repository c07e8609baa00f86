"""Acknowledgements do not make a queue manager knock at the door of somebody else (G99, G100)."""

import json
import socket
import threading
from collections.abc import Iterator

import pytest

from rpcqm.config import Configuration
from rpcqm.qm.acknowledgement_queues import QUEUES_OF_ONE_SOURCE
from rpcqm.testing import private_queue_manager
from tests.support.binary.stranger import ALL_ACKNOWLEDGEMENTS, Stranger, Victim

MESSAGES = 300
QUEUES_TO_KNOWN_HOSTS = Configuration().limits.outgoing_queues_per_source
TARGET = "target"
WATCHED_SECONDS = 6.0
FEW = 6
RETRY = "retry_milliseconds = 1000\n"


class Target:
    """A host that takes connections and closes them; it counts them."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        self.connections = 0
        self.too_many = threading.Event()
        self._thread = threading.Thread(target=self._count)
        self._thread.start()

    def _count(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            if self.connections > FEW:
                self.too_many.set()
            connection.close()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


@pytest.fixture
def target() -> Iterator[Target]:
    target = Target()
    yield target
    target.close()


def reflecting(peers: str) -> Iterator[Victim]:
    with private_queue_manager(configuration=f"[binary]\n{RETRY}{peers}") as queue_manager:
        yield Victim(queue_manager)


def attack(victim: Victim, host: str) -> None:
    """Small messages, each with an administration queue of its own at one host."""
    orders = victim.create("orders")
    with Stranger(victim.address) as stranger:
        for number in range(MESSAGES):
            stranger.send(
                orders,
                administration_queue_format_name=f"DIRECT=OS:{host}\\private$\\q{number}",
                acknowledgements_requested=ALL_ACKNOWLEDGEMENTS,
            )
        victim.await_all(stranger)


def outgoing(victim: Victim) -> int:
    said = victim.queue_manager.run("queue", "list", "--outgoing", "--json").stdout
    return len(json.loads(said))


def test_a_host_that_does_not_answer_is_asked_ever_more_seldom(target: Target) -> None:
    for victim in reflecting(f'peers = "{TARGET}=127.0.0.1:{target.port}"\n'):
        attack(victim, TARGET)
        assert outgoing(victim) == QUEUES_TO_KNOWN_HOSTS, "one source makes no more queues"
        assert not target.too_many.wait(WATCHED_SECONDS)
        assert target.connections


def test_one_stranger_gets_only_so_many_outgoing_queues() -> None:
    for victim in reflecting(""):
        attack(victim, "nobody.invalid")
        assert outgoing(victim) == QUEUES_OF_ONE_SOURCE
        assert victim.queue_manager.log.count("too many outgoing queues") == 1
