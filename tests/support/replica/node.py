"""A node of a cluster as `rpcqm serve` runs it; it is ended by its process."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from rpcqm.client.ready import ENDPOINT_FILE, ReadyFile
from rpcqm.codec.interface import TransferSyntax, load
from rpcqm.codec.types.rpcqm_cluster import (
    R_GetClusterStatusRequest,
    R_PromoteRequest,
    R_SwitchOverRequest,
)
from rpcqm.rpc.client import RpcClient
from tests.support.cli.forked_commands import started_from_nothing
from tests.support.waiting import PATIENCE, until

RPCQM = (sys.executable, "-m", "rpcqm")
Order = R_GetClusterStatusRequest | R_PromoteRequest | R_SwitchOverRequest


class NodeProcess:
    """One node, whose doors are on ports that the system chooses."""

    def __init__(self, directory: Path, url: str, log: str, name: str, more: str = "") -> None:
        self.directory = directory
        self.name = name
        self.data = directory / "data"
        self._ready = directory / "ready.json"
        self.process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True)
        self.configure(f'log = ["{url}"]\nname = "{log}"\nnode = "{name}"\n{more}')

    def configure(self, replica: str) -> None:
        (self.directory / "rpcqm.toml").write_text(
            f'name = "queues"\ndata_dir = "{self.data}"\nready_file = "{self._ready}"\n'
            "epm_port = -1\nrpc_port = 0\nqm2qm_port = -1\nbinary_port = -1\nconsole_port = 0\n"
            f"[replica]\n{replica}",
            "utf-8",
        )

    def spawn(self) -> None:
        """Run it; it is a standby, or the primary, when it comes to that."""
        self._ready.unlink(missing_ok=True)
        command = [*RPCQM, "serve", "--config", str(self.directory / "rpcqm.toml")]
        # It executes itself again when another node has taken over: it has to be no fork.
        with started_from_nothing(), (self.directory / "output").open("ab") as file:
            self.process = subprocess.Popen(command, stdout=file, stderr=file)

    @property
    def output(self) -> str:
        return (self.directory / "output").read_text("utf-8")

    @property
    def is_active(self) -> bool:
        """Whether its doors have been opened since `spawn` or `forget`."""
        self._check()
        return self._ready.exists()

    def _check(self) -> None:
        assert self.process is not None
        assert self.process.poll() is None, self.output

    def forget(self) -> None:
        """What was active before does not count any more."""
        self._ready.unlink(missing_ok=True)

    def until_active(self) -> None:
        until(lambda: self.is_active)

    def until_standby(self) -> None:
        until(lambda: self.status_or_nothing().get("role") == "standby")

    def status_or_nothing(self) -> dict[str, Any]:
        """Its status, as soon as anybody answers at the local socket."""
        self._check()
        try:
            return self.status()
        except (OSError, ValueError):
            return {}

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.order(R_GetClusterStatusRequest()).ppwszStatus)
        return found

    def order(self, order: Order) -> Any:
        """The answer at the local socket."""

        async def call() -> Any:
            socket = ReadyFile.read(self.data / ENDPOINT_FILE).socket
            async with await RpcClient.connect_unix(socket) as client:
                binding = await client.bind(load("rpcqm_cluster"), TransferSyntax.NDR)
                return await binding.call(order.operation.name, order)

        return asyncio.run(asyncio.wait_for(call(), PATIENCE))

    def endpoint(self, door: str) -> tuple[str, int]:
        host, port = json.loads((self.data / ENDPOINT_FILE).read_text())["endpoints"][door]
        return host, port

    def run(self, *arguments: str) -> str:
        """The output of a command on this node."""
        command = [*RPCQM, *arguments, "--data-dir", str(self.data)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, f"{' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def wait(self) -> int:
        """The status that it ends with."""
        assert self.process is not None
        status = self.process.wait(PATIENCE)
        self.process = None
        return status

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.wait()
