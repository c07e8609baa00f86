"""A dependent client names the host at which its server logs on: it gets nobody's account there."""

import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.integration.security.conftest import DEFAULTS, Connect, add_accounts
from tests.support.qm.directories import write_directory
from tests.support.rpc.dependent_client import Client
from tests.support.rpc.remote_reader import RECEIVE_ACCESS, status_name

REFUSED = "MQ_ERROR_ACCESS_DENIED"
CALLED = "MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE"

STRANGERS = ["127.0.0.66", "SERVE", "SERVERS", "server.evil.example", "known.", "KNOWN-"]
"""The first would answer that it is not there, if it were asked."""


class Trap:
    """A host that takes connections, and hangs up."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.called = 0
        Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.called += 1
            connection.close()


@pytest.fixture(scope="module")
def trap() -> Iterator[Trap]:
    trap = Trap()
    yield trap
    trap.listener.close()


@pytest.fixture(scope="module")
def settings(trap: Trap, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A server of the directory's machines with a default account, and one more peer."""
    files = tmp_path_factory.mktemp("remote")
    credentials = files / "remote.toml"
    credentials.touch(0o600)
    credentials.write_text("user = 'reader'\npassword = 'secret of the server'\n")
    directory: Path = write_directory(files)
    return (
        f'name = "WORKSTATION"\ndirectory_file = "{directory}"\n{DEFAULTS}'
        f"[security]\nsupporting_server = true\n[remote]\n"
        f'peers = "known=127.0.0.1:{trap.port}"\ncredentials_file = "{credentials}"\n'
    )


@pytest.fixture
def server(settings: str) -> Iterator[PrivateQueueManager]:
    with private_queue_manager(configuration=settings) as running:
        add_accounts(running)
        yield running


def named(connect: Connect, server: PrivateQueueManager, host: str) -> str:
    """What comes of a queue at a host that alice names."""
    caller = connect("qmcomm", user="alice", server=server)
    name = rf"DIRECT=OS:{host}\private$\orders"
    fields = {"hRemoteQueue": 1, "dwpQueue": 1, "dwpRemoteContext": 1}
    return status_name(Client(caller.caller).send_open(name, RECEIVE_ACCESS, **fields).result)


def test_the_default_account_goes_to_listed_hosts_and_peers_only(
    connect: Connect, server: PrivateQueueManager, trap: Trap, settings: str
) -> None:
    assert {host: named(connect, server, host) for host in STRANGERS} == dict.fromkeys(
        STRANGERS, REFUSED
    )
    assert trap.called == 0
    for number, host in enumerate(("known", "KNOWN"), start=1):
        assert named(connect, server, host) == CALLED
        assert trap.called >= number
    assert named(connect, server, "server") == named(connect, server, "SERVER") == CALLED
    server.reload(f"{settings}default_account = true\n")
    assert named(connect, server, STRANGERS[0]) == CALLED
