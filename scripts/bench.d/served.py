"""`rpcqm serve` for the benches: pinned, with an account and queues."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from authenticated import ACCOUNT
from harness import Cpus, pinned, resident, sampled_environment, server_cpu

RPCQM = (sys.executable, "-m", "rpcqm")
EVERYONE = "D:(A;;GA;;;WD)(A;;GA;;;AN)"
PORTS = ("--epm-port", "-1", "--qm2qm-port", "-1", "--binary-port", "-1", "--rpc-port", "0")
PATIENCE = 60


@dataclass(frozen=True, slots=True)
class Served:
    """A running queue manager."""

    data: Path
    pid: int
    endpoints: dict[str, Any]

    @property
    def port(self) -> int:
        """The TCP port of its RPC door."""
        return int(self.endpoints["rpc"][1])

    @property
    def socket(self) -> Path:
        return next(self.data.glob("*.sock"))

    def command(self, *words: str, stdin: str = "") -> bytes:
        """Run a command of `rpcqm`; what it prints."""
        argv = [*RPCQM, *words, "--data-dir", str(self.data)]
        done = subprocess.run(argv, check=True, capture_output=True, input=stdin.encode())
        return done.stdout

    def waiting(self, queue: str) -> int:
        """Messages in a queue."""
        return int(json.loads(self.command("queue", "show", queue, "--json"))["messages"])

    @property
    def resident(self) -> int:
        """Octets of memory that it has now."""
        return resident(self.pid)


@contextmanager
def serving(
    directory: Path,
    configuration: str = "",
    command: Sequence[object] = RPCQM,
    options: Sequence[str] = (),
    cpu: Cpus = server_cpu,
) -> Iterator[Served]:
    """Start one with the account of the benches; `configuration` is its TOML."""
    directory.mkdir(exist_ok=True)
    config, ready = directory / "rpcqm.toml", directory / "ready.json"
    config.write_text(configuration, "utf-8")
    places = ("--config", config, "--data-dir", directory / "data", "--ready-file", ready)
    with (directory / "log").open("w") as log:
        argv = [*command, "serve", *places, *PORTS, *options]
        server = pinned(argv, cpu, stderr=log, env=os.environ | sampled_environment())
        try:
            _await(server, ready)
            served = Served(
                directory / "data", server.pid, json.loads(ready.read_text("utf-8"))["endpoints"]
            )
            password = f"{ACCOUNT.password}\n"
            served.command("user", "add", ACCOUNT.username, "--password-stdin", stdin=password)
            yield served
        finally:
            server.terminate()
            server.wait(PATIENCE)


def _await(server: subprocess.Popen[bytes], ready: Path) -> None:
    end = time.monotonic() + PATIENCE
    while not ready.exists():
        if server.poll() is not None or time.monotonic() > end:
            raise RuntimeError("rpcqm serve did not start")
        time.sleep(0.05)
