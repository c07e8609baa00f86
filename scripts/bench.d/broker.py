"""RabbitMQ for the benches: private brokers with their own data, ports, cookie and port mapper."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness import Load, client_cpu, compile_c, harvested, pinned, server_cpu

SCRIPTS = Path("/usr/lib/rabbitmq/bin")
PACKAGE = "rabbitmq-server"
PATIENCE = 90


def install() -> None:
    """Install the broker from Debian when it is missing; RuntimeError when that cannot be done."""
    if (SCRIPTS / "rabbitmq-server").exists():
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    quiet = ("--yes", "--quiet", "--no-install-recommends")
    for words in (["update", "--quiet"], ["install", *quiet, PACKAGE]):
        done = subprocess.run(["apt-get", *words], env=environment, capture_output=True)
        if done.returncode:
            raise RuntimeError(f"install {PACKAGE}: {done.stderr.decode().strip()}")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@dataclass(frozen=True, slots=True)
class Broker:
    """A running broker."""

    port: int
    pid: int
    environment: dict[str, str]

    def control(self, *words: str) -> None:
        """Run rabbitmqctl; RuntimeError with what it says when it fails."""
        done = subprocess.run(
            [SCRIPTS / "rabbitmqctl", *words], env=self.environment, capture_output=True
        )
        if done.returncode:
            raise RuntimeError(f"rabbitmqctl: {(done.stdout + done.stderr).decode().strip()}")

    def load(
        self,
        what: str,
        queue: str,
        connections: int,
        window: int = 1,
        size: int = 1024,
        seconds: float = 2.0,
        warm_up: float = 0.5,
    ) -> Load:
        """Send to a quorum queue that is purged before, or receive from it with a prefetch of 1.

        `window` is how many messages of a connection may be unconfirmed. RuntimeError when the
        broker refuses anything.
        """
        argv = (queue, what, connections, window, size, warm_up, seconds)
        return harvested(self._run(*argv, timeout=warm_up + seconds + PATIENCE))

    def put(self, queue: str, count: int, size: int = 1024) -> None:
        """Let so many messages be in a queue, and no others."""
        self._run(queue, "put", count, size)

    def arrived(self, queue: str, count: int) -> float:
        """Wait until so many messages are in a queue: how many came in a second."""
        first, seconds = self._run(queue, "await", count).split()
        return (count - int(first)) / float(seconds)

    def _run(self, *words: object, timeout: float = 2 * PATIENCE) -> str:
        pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
        process = pinned([compile_c("amqp"), self.port, *words], client_cpu, **pipes)
        try:
            out, err = process.communicate(timeout=timeout)
        finally:
            process.kill()
        if process.returncode:
            raise RuntimeError(f"AMQP: {err.decode(errors='replace').strip()}")
        return out.decode()


@contextmanager
def mapper(directory: Path) -> Iterator[dict[str, str]]:
    """A port mapper (epmd) of our own; yields the environment of the brokers that use it."""
    port = str(free_port())
    environment = {
        **os.environ,
        "HOME": str(directory),
        "ERL_EPMD_PORT": port,
        "ERL_EPMD_ADDRESS": "127.0.0.1",
    }
    process = subprocess.Popen(["epmd", "-address", "127.0.0.1", "-port", port])
    try:
        yield environment
    finally:
        process.terminate()
        process.wait(PATIENCE)


@contextmanager
def broker(
    directory: Path,
    mapped: dict[str, str],
    name: str = "bench",
    cpu: int = server_cpu,
    plugins: Sequence[str] = (),
) -> Iterator[Broker]:
    """Start a broker on one processor, and wait until it serves AMQP."""
    install()
    home = directory / name
    home.mkdir(parents=True)
    (home / "plugins").write_text(f"[{','.join(plugins)}].\n", "utf-8")
    (home / "rabbitmq.conf").write_text("log.file.level = warning\n", "utf-8")
    port = free_port()
    environment = {
        **mapped,
        "RABBITMQ_NODENAME": f"{name}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_MNESIA_BASE": str(home / "data"),
        "RABBITMQ_LOG_BASE": str(home / "log"),
        "RABBITMQ_PID_FILE": str(home / "pid"),
        "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "plugins"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        "RUNNING_UNDER_SYSTEMD": "true",
    }
    with (home / "out").open("wb") as out:
        process = pinned(
            [SCRIPTS / "rabbitmq-server"], cpu, env=environment, stdout=out, stderr=out
        )
        try:
            _await(process, port, home / "out")
            yield Broker(port, process.pid, environment)
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            shutil.rmtree(home, ignore_errors=True)


def _await(process: subprocess.Popen[bytes], port: int, out: Path) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"RabbitMQ did not start: {out.read_text('utf-8')}") from None
            time.sleep(0.1)
        else:
            return
