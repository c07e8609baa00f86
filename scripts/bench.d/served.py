"""`rpcqm serve` for the benches: pinned, with an account and queues."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
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
    environment: Mapping[str, str]
    """Of its commands too, so that they are of the same program."""

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
        done = subprocess.run(
            argv, check=False, capture_output=True, input=stdin.encode(), env=self.environment
        )
        if done.returncode:
            raise RuntimeError(f"rpcqm {' '.join(words)}: {done.stderr.decode().strip()[-300:]}")
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
    environment: Mapping[str, str] | None = None,
) -> Iterator[Served]:
    """Start one with the account of the benches; `configuration` is its TOML.

    Without an `environment` it is that of this process, and the server can be sampled.
    """
    directory.mkdir(exist_ok=True)
    given = os.environ | sampled_environment() if environment is None else environment
    config, ready = directory / "rpcqm.toml", directory / "ready.json"
    config.write_text(configuration, "utf-8")
    places = ("--config", config, "--data-dir", directory / "data", "--ready-file", ready)
    with (directory / "log").open("w") as log:
        argv = [*command, "serve", *places, *PORTS, *options]
        server = pinned(argv, cpu, stderr=log, env=given)
        try:
            _await(server, ready)
            endpoints = json.loads(ready.read_text("utf-8"))["endpoints"]
            commands = os.environ if environment is None else environment
            served = Served(directory / "data", server.pid, endpoints, commands)
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
