"""What surrounds a queue manager: its loop, its socket's place, its service manager."""

import asyncio
import os
import socket
import stat
from pathlib import Path

import pytest

from rpcqm.base.clock import SystemClock
from rpcqm.base.loop_timers import timers_on_loop
from rpcqm.service.addresses import own_addresses
from rpcqm.service.local_socket import LocalSocket
from rpcqm.service.notify import READY, notify


def test_timers_run_on_the_loop_in_the_order_in_which_they_fall_due() -> None:
    async def main() -> list[str]:
        ran: list[str] = []
        done = asyncio.Event()
        timers = timers_on_loop(SystemClock(), asyncio.get_running_loop())
        timers.call_later(30, done.set)
        timers.call_later(10, lambda: ran.append("second"))
        timers.call_later(0, lambda: ran.append("first"))
        timers.call_later(20, lambda: ran.append("never")).cancel()
        await asyncio.wait_for(done.wait(), 30)
        return ran

    assert asyncio.run(main()) == ["first", "second"]


def test_a_timer_that_starts_another_one_is_followed_by_it() -> None:
    async def main() -> None:
        done = asyncio.Event()
        timers = timers_on_loop(SystemClock(), asyncio.get_running_loop())

        def start_another() -> None:
            timers.call_later(1, done.set)

        timers.call_later(1, start_another)
        await asyncio.wait_for(done.wait(), 30)

    asyncio.run(main())


@pytest.fixture
def no_runtime_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RUNTIME_DIRECTORY", raising=False)


@pytest.mark.usefixtures("no_runtime_directory")
def test_the_socket_is_in_the_data_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert LocalSocket(Path("data")).path == Path("/data/rpcqm.sock")


def test_a_service_manager_says_where_the_socket_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTIME_DIRECTORY", "/run/rpcqm:/run/other")
    assert LocalSocket(Path("/data")).path == Path("/run/rpcqm/rpcqm.sock")


@pytest.mark.usefixtures("no_runtime_directory")
@pytest.mark.parametrize(("length", "moved"), [(107, False), (108, True)])
def test_a_path_that_does_not_fit_is_replaced(length: int, moved: bool) -> None:
    directory = Path("/" + "d" * (length - len("//rpcqm.sock")))
    place = LocalSocket(directory)
    assert (place.path.parent != directory) is moved
    if moved:
        assert stat.S_IMODE(place.path.parent.stat().st_mode) == 0o711
    place.remove()
    assert place.path.parent.exists() is False


@pytest.mark.parametrize("prefix", ["@", ""])
def test_the_service_manager_is_told_at_its_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    name = f"{tmp_path}/notify"
    monkeypatch.setenv("NOTIFY_SOCKET", prefix + name)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + name if prefix else name)
        manager.settimeout(10)
        notify(READY)
        assert manager.recv(100) == b"READY=1"


def test_without_a_service_manager_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    notify(READY)
    monkeypatch.setenv("NOTIFY_SOCKET", f"/nowhere/{os.getpid()}")
    notify(READY)


def test_loopback_is_among_our_addresses() -> None:
    assert "127.0.0.1" in own_addresses()
