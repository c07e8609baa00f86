"""A queue manager as everybody gets it, with accounts, and callers that log on over TCP."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from rpcqm.client import mq
from rpcqm.client.names import format_name, path_name
from rpcqm.client.queue_settings import QueueSettings
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.security.context import PKT_PRIVACY, Credentials
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.rpc.network_caller import NetworkCaller
from tests.support.rpc.probe_server import handlers as handlers
from tests.support.rpc.probe_server import server as server

PASSWORDS = {
    "alice": "Passw0rd!",
    "bob": "b0bs pass",
    "admin": "4dmin pass",
    "victim": "v1ctims pass",
}
DEFAULTS = "[storage]\nreserve = 1\n"
"""What has to do with security is as it is without a configuration."""

_numbers = itertools.count(1)

Connect = Callable[..., NetworkCaller]


def add_accounts(queue_manager: PrivateQueueManager) -> None:
    """Alice and bob, admin, who administrates, and a victim whose password others guess."""
    for name, password in PASSWORDS.items():
        group = ("--group", "administrators") if name == "admin" else ()
        words = ("user", "add", name, *group, "--password-stdin")
        queue_manager.run(*words, input=password + "\n")


@pytest.fixture(scope="package")
def queue_manager() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(configuration=DEFAULTS) as running:
        add_accounts(running)
        yield running


@pytest.fixture(scope="package")
def supporting() -> Iterator[PrivateQueueManager]:
    """Another one, which serves dependent clients too."""
    configuration = DEFAULTS + "[security]\nsupporting_server = true\n"
    with private_queue_manager(configuration=configuration) as running:
        add_accounts(running)
        yield running


@pytest.fixture
def connect(queue_manager: PrivateQueueManager) -> Iterator[Connect]:
    """Connect to an interface, as an account or as nobody."""
    with ExitStack() as stack:

        def connect(
            *interfaces: str,
            user: str = "",
            credentials: Credentials | None = None,
            server: PrivateQueueManager = queue_manager,
            level: int = PKT_PRIVACY,
            group_id: int = 0,
            door: str = "rpc",
        ) -> NetworkCaller:
            if user:
                credentials = NtlmCredentials(user, PASSWORDS[user])
            caller = NetworkCaller(
                server.endpoint(door),
                *interfaces,
                credentials=credentials,
                level=AuthenticationLevel(level),
                group_id=group_id,
            )
            return stack.enter_context(caller)

        yield connect


@pytest.fixture
def name() -> str:
    """A queue name that no other test uses."""
    return f"target-{next(_numbers)}"


@pytest.fixture
def queue(queue_manager: PrivateQueueManager, name: str) -> str:
    """A queue with one message, `secret`, made with default permissions."""
    return filled(queue_manager, name)


@pytest.fixture
def restricted(queue_manager: PrivateQueueManager, queue: str) -> str:
    """A queue that only alice and administrators may use, with a journal, and a message in it."""
    allow(queue_manager, queue)
    return queue


def filled(queue_manager: PrivateQueueManager, name: str, **settings: Any) -> str:
    """A new queue with one message, `secret`; `settings` are those of QueueSettings."""
    with queue_manager.client() as client:
        made = client.queues.create(path_name(name), QueueSettings(**settings), None)
        client.run(made)
    fill(queue_manager, name)
    return name


def fill(queue_manager: PrivateQueueManager, name: str) -> None:
    """Send one more."""
    with mq.open(name, queue_manager) as queue:
        queue.send(b"secret")


def allow(queue_manager: PrivateQueueManager, name: str, user: str = "alice") -> None:
    """Let `user`, who becomes the owner, and administrators use a queue, and nobody else."""
    with queue_manager.client() as client:
        sid = next(each.sid for each in client.run(client.accounts.list()) if each.name == user)
        descriptor = parse_sddl(f"O:{sid}G:BAD:(A;;0xF003F;;;BA)(A;;0xF003F;;;{sid})")
        client.run(client.queues.set_security(format_name(name), descriptor))


def bodies(queue_manager: PrivateQueueManager, name: str) -> list[bytes]:
    """What is in a queue."""
    with mq.open(name, queue_manager, peek_only=True) as queue:
        return [message.body for message in queue.browse()]
