"""Strangers who hold every connection they can get leave the store and the local socket alone."""

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rpcqm.rpc import pdu
from rpcqm.testing import PrivateQueueManager
from tests.support.modules import modules_of
from tests.support.rpc.probe import bind
from tests.support.rpc.rpc_sockets import read_pdu
from tests.support.waiting import PATIENCE

FILES = 256
ROOM = 32
"""Connections that so few open files leave room for."""
DOORS = ("rpc", "epm", "qm2qm", "binary")


CONFIGURATION = "[storage]\nreserve = 1\n[limits]\nunfinished_seconds = 0\n"
FEW_FILES = f"import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, ({FILES}, {FILES}))\n"


@pytest.fixture
def queue_manager(tmp_path: Path) -> Iterator[PrivateQueueManager]:
    """One that may not have more open files, with strangers who need not hurry."""
    (tmp_path / "few").mkdir()
    (tmp_path / "few" / "sitecustomize.py").write_text(FEW_FILES)
    made = PrivateQueueManager(
        tmp_path / "data",
        configuration=CONFIGURATION,
        environment=modules_of(tmp_path / "few"),
    )
    made.start()
    yield made
    assert made.stop() == 0


def descriptors(queue_manager: PrivateQueueManager) -> int:
    assert queue_manager.process is not None
    return len(os.listdir(f"/proc/{queue_manager.process.pid}/fd"))


def crowd(queue_manager: PrivateQueueManager, stack: ExitStack) -> int:
    """Connect to every door, often, and say nothing; how many connections were kept."""
    made = []
    for number in range(2 * FILES):
        address = queue_manager.endpoint(DOORS[number % len(DOORS)])
        with contextlib.suppress(OSError):
            made.append(stack.enter_context(socket.create_connection(address, timeout=20)))
    end = time.monotonic() + PATIENCE
    while (kept := sum(is_open(each) for each in made)) > ROOM and time.monotonic() < end:
        """Until those that are too many have been closed."""
    return kept


def is_open(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return client.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def is_served(queue_manager: PrivateQueueManager) -> bool:
    """Whether a stranger who comes now gets an answer to a bind."""
    with socket.create_connection(queue_manager.endpoint("rpc"), timeout=20) as client:
        try:
            client.sendall(bind())
            return isinstance(read_pdu(client), pdu.BindAck | pdu.BindNak)
        except (AssertionError, OSError):
            return False


def test_descriptors_never_run_out(queue_manager: PrivateQueueManager, tmp_path: Path) -> None:
    queue_manager.run("queue", "create", "orders")
    body = tmp_path / "body"
    body.write_bytes(os.urandom(3 << 20))
    with ExitStack() as stack:
        assert crowd(queue_manager, stack) == ROOM
        assert not is_served(queue_manager)
        assert descriptors(queue_manager) < FILES - 64
        # Enough for several rotations of the store's log.
        queue_manager.run("send", "orders", "--file", str(body), "--count", "60")
        queue_manager.run("backup", str(tmp_path / "copy"))
        assert "orders" in queue_manager.run("queue", "list").stdout
        assert descriptors(queue_manager) < FILES - 64
    end = time.monotonic() + PATIENCE
    while not is_served(queue_manager):
        assert time.monotonic() < end
    assert "leave room for fewer connections" in queue_manager.log


def test_the_limit_of_the_running_process_is_what_the_doctor_looks_at(
    queue_manager: PrivateQueueManager,
) -> None:
    told = queue_manager.run("doctor", check=False).stdout
    assert f"{FILES} open files are allowed" in told
    assert "are open now" in told
