"""A queue manager as `rpcqm serve` runs it, for clients that only speak to a network."""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from tests.support.network.namespace import Namespace
from tests.support.waiting import PATIENCE

RPCQM = (sys.executable, "-m", "rpcqm")


class ServedQueueManager:
    """`rpcqm serve` in a network namespace, with its endpoint mapper on port 135.

    ``ready`` holds what its ready file says. Leaving the block stops it by SIGTERM, and raises
    AssertionError when it does not end with exit code 0.
    """

    def __init__(
        self,
        namespace: Namespace,
        directory: Path,
        configuration: str = "",
        options: Sequence[str] = (),
    ) -> None:
        self.namespace = namespace
        self.directory = directory
        self._configuration = configuration
        self._options = options
        self.ready: dict[str, Any] = {}

    def __enter__(self) -> Self:
        self.directory.mkdir(parents=True, exist_ok=True)
        config = self.directory / "rpcqm.toml"
        config.write_text(self._configuration)
        ready_file = self.directory / "ready.json"
        self._log = (self.directory / "log").open("w")
        self._process = self.namespace.start(
            [
                *(*RPCQM, "serve", "--config", config, "--data-dir", self.directory / "data"),
                *("--epm-port", 135, "--ready-file", ready_file, *self._options),
            ],
            stderr=self._log,
        )
        self._await(ready_file)
        self.ready = json.loads(ready_file.read_text())
        return self

    def _await(self, ready_file: Path) -> None:
        end = time.monotonic() + PATIENCE
        while not ready_file.exists():
            if self._process.poll() is not None or time.monotonic() > end:
                self._process.kill()
                raise AssertionError(f"rpcqm serve did not start:\n{self.log}")
            time.sleep(0.02)

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            code = self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._log.close()
        assert code == 0, f"rpcqm serve ended with {code}:\n{self.log}"

    @property
    def log(self) -> str:
        """What the server has written to standard error."""
        return (self.directory / "log").read_text()

    @property
    def rpc_port(self) -> int:
        """The port of the RPC interfaces."""
        return int(self.ready["endpoints"]["rpc"][1])

    def command(self, *arguments: str, stdin: str = "") -> str:
        """The output of an rpcqm command on this queue manager's local socket."""
        command = [*RPCQM, *arguments, "--data-dir", str(self.directory / "data")]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(arguments)}: {done.stderr}"
        return done.stdout
