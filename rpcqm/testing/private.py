"""A queue manager of its own for a test: a process on free ports of loopback.

with private_queue_manager() as queue_manager:
    queue_manager.run("queue", "create", "orders")
    host, port = queue_manager.endpoint("rpc")
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rpcqm.client.ready import ReadyFile

if TYPE_CHECKING:
    from rpcqm.client.blocking import BlockingClient
    from rpcqm.client.target import LocalServer

START_SECONDS = 60.0
STOP_SECONDS = 30.0
_POLL_SECONDS = 0.01
KEPT = ("RPCQM_OBSERVER", "RPCQM_LIMITS_REQUEST_TEMPLATES")
"""Variables that queue managers of tests get from their test: how requests are carried out, on
which nothing else depends."""
_DOORS = ("epm", "rpc", "qm2qm", "binary", "dcom")
FREE_PORTS = (
    *(part for door in _DOORS for part in (f"--{door}-port", "0")),
    *("--console-port", "-1"),
)
_COMMAND = (sys.executable, "-m", "rpcqm")


class StartFailedError(Exception):
    """The queue manager did not start; the text is what it logged."""


class PrivateQueueManager:
    """One queue manager with a data directory that outlives its processes.

    `options` are further ones of `rpcqm serve`, `ports` those for its doors; `configuration` is
    the text of its TOML file.
    """

    def __init__(
        self,
        data_dir: Path,
        options: Sequence[str] = (),
        configuration: str = "",
        environment: Mapping[str, str] | None = None,
        ports: Sequence[str] = FREE_PORTS,
    ) -> None:
        self.data_dir = data_dir
        self._ports = ports
        self._options = options
        self._configuration = configuration
        self._environment = _clean_environment() | dict(environment or {})
        self._files = data_dir.with_name(data_dir.name + ".files")
        self._files.mkdir(parents=True, exist_ok=True)
        self.ready_path = self._files / "ready.json"
        self.log_path = self._files / "log"
        self._configuration_path = self._files / "rpcqm.toml"
        self.process: subprocess.Popen[bytes] | None = None
        self._ready: ReadyFile | None = None

    @property
    def ready(self) -> ReadyFile:
        """Where it can be reached."""
        if self._ready is None:
            raise StartFailedError("it does not run")
        return self._ready

    @property
    def socket(self) -> Path:
        """Where local callers connect."""
        return self.ready.socket

    @property
    def target(self) -> "LocalServer":
        """The target by which clients connect as the user of this process."""
        # Only now, because not everybody has a client.
        from rpcqm.client.target import LocalServer

        return LocalServer(self.socket)

    def endpoint(self, door: str) -> tuple[str, int]:
        """Address and port of a door: epm, rpc, qm2qm or binary."""
        return self.ready.endpoints[door]

    def client(self) -> "BlockingClient":
        """A client of it, as the user of this process; close it, or use it with `with`."""
        # Only now, because the interfaces take time to load.
        from rpcqm.client.blocking import BlockingClient

        return BlockingClient(self.target)

    @property
    def log(self) -> str:
        """The text that it has logged."""
        return self.log_path.read_text("utf-8") if self.log_path.exists() else ""

    def start(self) -> Self:
        """Start the process and wait until every port listens; raises StartFailedError."""
        self.ready_path.unlink(missing_ok=True)
        self._configuration_path.write_text(self._configuration, "utf-8")
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(*_COMMAND, "serve", "--config", str(self._configuration_path)),
                    *("--data-dir", str(self.data_dir), "--ready-file", str(self.ready_path)),
                    *self._ports,
                    *self._options,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
            )
        self._await_ready()
        return self

    def _await_ready(self) -> None:
        assert self.process is not None
        give_up = time.monotonic() + START_SECONDS
        while not self.ready_path.exists():
            if self.process.poll() is not None:
                raise StartFailedError(f"exit status {self.process.returncode}: {self.log}")
            if time.monotonic() > give_up:
                self.kill()
                raise StartFailedError(f"not ready after {START_SECONDS:.0f} s: {self.log}")
            time.sleep(_POLL_SECONDS)
        self._ready = ReadyFile.read(self.ready_path)

    def stop(self) -> int:
        """Stop the process cleanly and return its exit status; a process that does not stop is
        killed."""
        return self._end(signal.SIGTERM)

    def kill(self) -> int:
        """Kill the process, as a power failure would."""
        return self._end(signal.SIGKILL)

    def restart(self) -> Self:
        """Stop the process cleanly and start it again on the same data."""
        self.stop()
        return self.start()

    def reload(self, configuration: str) -> str:
        """Give it another configuration while it runs; returns what it logs about that."""
        assert self.process is not None
        self._configuration = configuration
        self._configuration_path.write_text(configuration, "utf-8")
        before = len(self.log)
        self.process.send_signal(signal.SIGHUP)
        give_up = time.monotonic() + STOP_SECONDS
        while "reloaded" not in (said := self.log[before:]) or not said.endswith("\n"):
            if time.monotonic() > give_up:
                raise TimeoutError(f"not reloaded after {STOP_SECONDS:.0f} s: {said}")
            time.sleep(_POLL_SECONDS)
        return said

    def _end(self, number: signal.Signals) -> int:
        process, self.process, self._ready = self.process, None, None
        if process is None:
            return 0
        process.send_signal(number)
        try:
            return process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    def run(
        self, *words: str, check: bool = True, **settings: Any
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command of `rpcqm`; raises CalledProcessError if `check` and the command fails."""
        outcome = subprocess.run(
            [*_COMMAND, *words],
            check=False,
            text=True,
            **{
                "capture_output": True,
                "timeout": START_SECONDS,
                "env": self._environment | {"RPCQM_DATA_DIR": str(self.data_dir)},
                **settings,
            },
        )
        if check and outcome.returncode:
            error = subprocess.CalledProcessError(outcome.returncode, outcome.args)
            error.add_note(f"It said: {outcome.stderr}")
            raise error
        return outcome


@contextlib.contextmanager
def private_queue_manager(
    options: Sequence[str] = (),
    configuration: str = "",
    environment: Mapping[str, str] | None = None,
    data_dir: Path | None = None,
) -> Iterator[PrivateQueueManager]:
    """A queue manager that runs until the block ends.

    Without `data_dir`, its data is temporary. An error that leaves the block gets a note with what
    the queue manager has logged.
    """
    directory = Path(tempfile.mkdtemp(prefix="rpcqm-test-"))
    queue_manager = PrivateQueueManager(
        data_dir or directory / "data", options, configuration, environment
    )
    try:
        yield queue_manager.start()
    except BaseException as error:
        error.add_note(f"The queue manager said:\n{queue_manager.log[-4000:]}")
        raise
    finally:
        queue_manager.stop()
        shutil.rmtree(directory, ignore_errors=True)


def _clean_environment() -> dict[str, str]:
    """The environment without variables that would configure the queue manager."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in KEPT
        or (not name.startswith("RPCQM_") and name not in ("NOTIFY_SOCKET", "RUNTIME_DIRECTORY"))
    }
