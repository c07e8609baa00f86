"""A PostgreSQL server on loopback and its synchronous standby."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.ports import reserved_ports
from tests.support.waiting import PATIENCE, until

BINARIES = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)
USER = "postgres"
"""The servers refuse to run as root."""


class PostgresqlServer:
    """One server and its data directory; it is ended by its process."""

    def __init__(self, directory: Path, port: int) -> None:
        self.directory = directory
        self.port = port
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        program = _program("postgres")
        options = [
            *("-D", str(self.directory), "-p", str(self.port), "-h", "127.0.0.1", "-k", ""),
            *("-c", "shared_buffers=16MB", "-c", "max_connections=20"),
            *("-c", "fsync=off"),
        ]
        with (self.directory / "output").open("wb") as file:
            self.process = subprocess.Popen(
                [program, *options], stdout=file, stderr=file, **_as_user()
            )
        until(lambda: b"ready to accept" in (self.directory / "output").read_bytes())

    def configure(self, lines: str) -> None:
        with (self.directory / "postgresql.auto.conf").open("a") as file:
            file.write(lines)
        if self.process is not None:
            self.process.send_signal(signal.SIGHUP)

    def pause(self) -> None:
        """Let it stand still: what receives and writes is a process of its own."""
        self._signal_all(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: signal.Signals) -> None:
        assert self.process is not None
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
        for each in (pid, *map(int, children)):
            os.kill(each, number)

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(PATIENCE)
            self.process = None


def _program(name: str) -> str:
    if BINARIES is None:
        pytest.skip("postgresql is not installed")
    return str(BINARIES / name)


def _as_user() -> dict[str, Any]:
    return {"user": USER, "group": USER, "cwd": "/"} if os.geteuid() == 0 else {"cwd": "/"}


def _run(name: str, *words: str) -> None:
    subprocess.run(
        [_program(name), *words], check=True, capture_output=True, timeout=PATIENCE, **_as_user()
    )


@contextmanager
def postgresql_servers() -> Iterator[list[PostgresqlServer]]:
    """A server, and the standby without which it answers no commit."""
    _program("postgres")
    place = Path(tempfile.mkdtemp(prefix="rpcqm-postgresql-"))
    if os.geteuid() == 0:
        shutil.chown(place, USER, USER)
    first, second = reserved_ports(2)
    servers = [PostgresqlServer(place / "a", first), PostgresqlServer(place / "b", second)]
    try:
        _run("initdb", "-D", str(place / "a"), "-A", "trust", "-U", USER, "--no-sync")
        servers[0].start()
        _run(
            "pg_basebackup", "-D", str(place / "b"), "-R", "-N", "-c", "fast", "-d", servers[0].url
        )
        servers[1].start()
        servers[0].configure("synchronous_standby_names = 'ANY 1 (*)'\n")
        yield servers
    finally:
        for server in reversed(servers):
            server.stop()
        shutil.rmtree(place)
