"""NATS servers on loopback: one, or three that keep each stream together."""

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.ports import reserved_ports
from tests.support.waiting import until

SERVER = shutil.which("nats-server")
CLUSTER = "rpcqm"


@dataclass
class NatsServer:
    """One server and its files; it is ended by its process."""

    directory: Path
    name: str
    port: int
    route: int = 0
    others: list[int] = field(default_factory=list)
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def configuration(self) -> str:
        lines = [
            f"server_name: {self.name}",
            f'listen: "127.0.0.1:{self.port}"',
            f'jetstream {{ store_dir: "{self.directory}", sync_interval: always }}',
        ]
        if self.others:
            routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in self.others)
            listen = f'listen: "127.0.0.1:{self.route}"'
            lines.append(f"cluster {{ name: {CLUSTER}, {listen}, routes: [{routes}] }}")
        return "\n".join(lines)

    def start(self) -> None:
        self.spawn()
        self.wait()

    def spawn(self) -> None:
        assert SERVER is not None
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / "server.conf"
        path.write_text(self.configuration(), "utf-8")
        with (self.directory / "output").open("wb") as file:
            self.process = subprocess.Popen(
                [SERVER, "--config", str(path)], stdout=file, stderr=file
            )

    def wait(self) -> None:
        """Until it says that it serves; streams may still have no leader."""
        output = self.directory / "output"
        until(lambda: b"Server is ready" in output.read_bytes())

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """End it as a loss of power ends it."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(10)
            self.process = None


@contextmanager
def nats_servers(directory: Path, count: int) -> Iterator[list[NatsServer]]:
    """So many servers that are one cluster, until the end of the block."""
    if SERVER is None:
        pytest.skip("nats-server is not installed")
    ports = reserved_ports(2 * count)
    servers = [
        NatsServer(
            directory / f"n{number}",
            f"n{number}",
            ports[number],
            ports[count + number],
            ports[count:] if count > 1 else [],
        )
        for number in range(count)
    ]
    try:
        for server in servers:
            server.spawn()
        for server in servers:
            server.wait()
        yield servers
    finally:
        for server in servers:
            server.kill()
