"""RabbitMQ for the benches: private brokers with their own data, ports, cookie and port mapper."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from figures import UnavailableError
from harness import (
    PATIENCE as COUNTED,
)
from harness import (
    Cpus,
    Load,
    brief,
    client_cpu,
    compile_c,
    harvested,
    pinned,
    server_cpu,
)

from tests.support.ports import reserved_port

SCRIPTS = Path("/usr/lib/rabbitmq/bin")
PACKAGE, TLS_PACKAGE = "rabbitmq-server", "libssl-dev"
PATIENCE = 90
SLOWEST = 2_500
"""Messages a second that a broker takes even when the machine is busy."""
MEMORY = 0.8
"""Share of the machine's memory from which on the broker refuses to take more: RabbitMQ's own 0.4
is for machines that a broker shares."""


def install() -> None:
    """Install the broker from Debian when it is missing; UnavailableError when that fails."""
    if not (SCRIPTS / "rabbitmq-server").exists() or shutil.which("epmd") is None:
        add(PACKAGE)


def add(package: str) -> None:
    """Install a package of Debian; none of its services starts in runlevel 1."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    quiet = ("--yes", "--quiet", "--no-install-recommends")
    for words in (["update", "--quiet"], ["install", *quiet, package]):
        try:
            done = subprocess.run(["apt-get", *words], env=environment, capture_output=True)
        except FileNotFoundError:
            raise UnavailableError(f"install {package}: there is no apt-get here") from None
        if done.returncode:
            raise UnavailableError(f"install {package}: {done.stderr.decode().strip()}")


def load_program(tls: bool) -> Path:
    """The load generator; that of TLS needs the headers of OpenSSL, which are installed too."""
    if not tls:
        return compile_c("amqp")
    with TemporaryDirectory() as name:
        headers = Path(name) / "headers.c"
        headers.write_text("#include <openssl/ssl.h>\n", "utf-8")
        compiled = subprocess.run(["cc", "-fsyntax-only", str(headers)], capture_output=True)
    if compiled.returncode:
        add(TLS_PACKAGE)
    return compile_c("amqp", "-tls", ("-DWITH_TLS", "-lssl", "-lcrypto"))


def certify(directory: Path) -> str:
    """Write a key and a certificate for the bench; the settings of the broker's TLS listener."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (directory / "key.pem").write_bytes(private)
    (directory / "certificate.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    return (
        f"ssl_options.certfile = {directory}/certificate.pem\n"
        f"ssl_options.cacertfile = {directory}/certificate.pem\n"
        f"ssl_options.keyfile = {directory}/key.pem\n"
        "ssl_options.verify = verify_none\nssl_options.fail_if_no_peer_cert = false\n"
    )


@dataclass(frozen=True, slots=True)
class Broker:
    """A running broker."""

    port: int
    pid: int
    environment: dict[str, str]
    tls_port: int
    schedulers: int
    """Its schedulers, of which it starts as many as it may use processors."""

    def control(self, *words: str) -> str:
        """Run rabbitmqctl; what it says, as a RuntimeError when it fails."""
        done = subprocess.run(
            [SCRIPTS / "rabbitmqctl", *words], env=self.environment, capture_output=True
        )
        if done.returncode:
            raise RuntimeError(f"rabbitmqctl: {(done.stdout + done.stderr).decode().strip()}")
        return done.stdout.decode()

    def load(
        self,
        what: str,
        queue: str,
        connections: int,
        window: int = 1,
        size: int | str = 1024,
        seconds: float = 2.0,
        warm_up: float = 0.5,
        tls: bool = False,
        calls: int = 0,
    ) -> Load:
        """Send to a quorum queue that is purged before, or receive from it with a prefetch of 1.

        `window` is how many messages of a connection may be unconfirmed; "LOW-HIGH" as the size
        lets them differ; with `calls` the run ends after so many. RuntimeError when the broker
        refuses anything.
        """
        lasts = COUNTED if calls else brief(seconds)
        argv = (queue, what, connections, window, size, brief(warm_up), lasts)
        counted = (calls,) if calls else ()
        timeout = warm_up + lasts + PATIENCE
        return harvested(self._run(*argv, *counted, timeout=timeout, tls=tls))

    def put(self, queue: str, count: int, size: int | str = 1024) -> None:
        """Let so many messages be in a queue, and no others."""
        self._run(queue, "put", count, size, timeout=2 * PATIENCE + count / SLOWEST)

    def arrived(self, queue: str, count: int) -> float:
        """Wait until so many messages are in a queue: how many came in a second."""
        first, seconds = self._run(queue, "await", count).split()
        return (count - int(first)) / float(seconds)

    def _run(self, *words: object, timeout: float = 2 * PATIENCE, tls: bool = False) -> str:
        pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
        port = self.tls_port if tls else self.port
        process = pinned([load_program(tls), port, *words], client_cpu, **pipes)
        try:
            out, err = process.communicate(timeout=timeout)
        finally:
            process.kill()
        if process.returncode:
            raise RuntimeError(f"AMQP: {err.decode(errors='replace').strip()}")
        return out.decode()


@contextmanager
def mapper(directory: Path) -> Iterator[dict[str, str]]:
    """A port mapper (epmd) of our own; yields the environment of the brokers that use it.

    The mapper is a part of what is installed.
    """
    install()
    port = str(reserved_port())
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
    cpu: Cpus = server_cpu,
    plugins: Sequence[str] = (),
) -> Iterator[Broker]:
    """Start a broker on its processors, with as many schedulers; wait until it serves AMQP.

    It listens for TLS as well.
    """
    home = directory / name
    home.mkdir(parents=True)
    (home / "plugins").write_text(f"[{','.join(plugins)}].\n", "utf-8")
    tls_port, schedulers = reserved_port(), 1 if isinstance(cpu, int) else len(cpu)
    settings = f"log.file.level = warning\nvm_memory_high_watermark.relative = {MEMORY}\n"
    settings += f"listeners.ssl.1 = 127.0.0.1:{tls_port}\n{certify(home)}"
    (home / "rabbitmq.conf").write_text(settings, "utf-8")
    port = reserved_port()
    environment = _environment(mapped, home, name, port, schedulers)
    with (home / "out").open("wb") as out:
        process = pinned(
            [SCRIPTS / "rabbitmq-server"], cpu, env=environment, stdout=out, stderr=out
        )
        try:
            _await(process, port, home / "out")
            made = Broker(port, process.pid, environment, tls_port, schedulers)
            online = made.control("eval", "erlang:system_info(schedulers_online).").strip()
            if online != str(schedulers):
                raise RuntimeError(f"RabbitMQ has {online} schedulers, not {schedulers}")
            yield made
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            shutil.rmtree(home, ignore_errors=True)


def _environment(
    mapped: dict[str, str], home: Path, name: str, port: int, schedulers: int
) -> dict[str, str]:
    arguments = f"-kernel inet_dist_use_interface {{127,0,0,1}} +S {schedulers}:{schedulers}"
    return {
        **mapped,
        "RABBITMQ_NODENAME": f"{name}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(reserved_port()),
        "RABBITMQ_MNESIA_BASE": str(home / "data"),
        "RABBITMQ_LOG_BASE": str(home / "log"),
        "RABBITMQ_PID_FILE": str(home / "pid"),
        "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "plugins"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": arguments,
        "RUNNING_UNDER_SYSTEMD": "true",
    }


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
