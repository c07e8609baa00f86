"""Records the captures of tests/vectors/captures anew.

python -m tests.support.capture.record_captures [--directory DIRECTORY] [PART…]

Wine's, impacket's and Samba's clients speak to `rpcqm serve` in a network namespace, and dumpcap
listens. Needed are what scripts/install-peers installs, and a quiet machine.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.interop.test_tshark import capturing
from tests.interop.test_wine import CONFIGURATION, LEVELS, NEGOTIATE, run_client
from tests.support.accounts import PASSWORD
from tests.support.codec.wine import Wine, compile_program
from tests.support.network.namespace import Namespace
from tests.support.rpc.kdc import HOST, REALM, SERVICE, Kdc
from tests.support.served import ServedQueueManager

TARGET = Path(__file__).parents[2] / "vectors" / "captures"
EVERYONE = "D:(A;;GA;;;WD)(A;;GA;;;AN)"
BODIES = ("the first", "the second")
LARGE = 60_000
OVER_SECONDS = 2.0
"""So long the last acknowledgement may take."""
FREE_PORTS = tuple(f"--{listener}-port=0" for listener in ("epm", "rpc", "qm2qm", "binary"))
ADMINISTRATOR = ("--password-stdin", "--group", "administrators")


def record_wine(
    server: ServedQueueManager, target: Path, level: int, provider: int, wine: Wine, exe: Path
) -> None:
    path = target / f"wine-{LEVELS[level, provider]}.pcapng"
    with capturing(server.namespace, path):
        run_client(server, wine, exe, level, provider)
    only_tcp(path)


def record_impacket(
    server: ServedQueueManager,
    path: Path,
    level: int,
    user: str = "alice",
    environment: dict[str, str] | None = None,
) -> None:
    queue = f"impacket-{level}"
    server.command("queue", "create", queue, "--sddl", EVERYONE)
    for body in BODIES:
        server.command("send", queue, "--label", "to impacket", stdin=body)
    server.command("send", queue, "--label", "large", stdin="x" * LARGE)
    words = ["-m", "tests.support.rpc.impacket_session", level, user, PASSWORD, queue]
    with capturing(server.namespace, path):
        command = [sys.executable, *words]
        done = server.namespace.run(command, check=True, env=environment)
        print(done.stdout, end="")
    only_tcp(path)


def record_samba(server: ServedQueueManager, path: Path, environment: dict[str, str]) -> None:
    binding = f"ncacn_ip_tcp:127.0.0.1[krb5,seal,target_hostname={HOST}]"
    who = ["--configfile=/dev/null", "--use-kerberos=required", f"--user=alice@{REALM}"]
    with capturing(server.namespace, path):
        command = ["rpcclient", *who, "--command=epmlookup", binding]
        done = server.namespace.run(command, check=True, env=environment)
        print(done.stdout, end="")
    only_tcp(path)


def only_tcp(path: Path, wanted: str = "tcp") -> None:
    """Without the datagrams by which the recorder waits, and readable like any other file."""
    octets = path.with_suffix(".tcp")
    subprocess.run(["tshark", "-r", path, "-Y", wanted, "-w", octets], check=True)
    path.write_bytes(octets.read_bytes())
    octets.unlink()
    path.chmod(0o644)


def record_peers(target: Path, directory: Path, namespace: Namespace) -> None:
    """Wine's and impacket's sessions with NTLM and without."""
    (directory / "client").mkdir()
    exe = compile_program(directory / "client", "client", ["remoteread"])
    wine = Wine(namespace, directory / "prefix")
    with ServedQueueManager(namespace, directory / "server", CONFIGURATION) as server:
        server.command("user", "add", "alice", *ADMINISTRATOR, stdin=PASSWORD + "\n")
        wine.start()
        for level, provider in LEVELS:
            if provider != NEGOTIATE:
                record_wine(server, target, level, provider, wine, exe)
                path = target / f"impacket-{LEVELS[level, provider]}.pcapng"
                record_impacket(server, path, level)
        wine.stop()


def record_dependent(target: Path, directory: Path, namespace: Namespace) -> None:
    """Wine's session of a dependent client and of an older remote reader."""
    (directory / "client").mkdir()
    exe = compile_program(directory / "client", "dependent", ["qmcomm", "qmcomm2", "qm2qm"])
    wine, path = Wine(namespace, directory / "prefix"), target / "wine-dependent.pcapng"
    with ServedQueueManager(namespace, directory / "server", CONFIGURATION) as server:
        server.command("queue", "create", "dependent", "--sddl", EVERYONE)
        server.command("queue", "create", "transactional", "--transactional", "--sddl", EVERYONE)
        wine.start()
        names = [rf"TCP:127.0.0.1\private$\{name}" for name in ("dependent", "transactional")]
        with capturing(namespace, path):
            wine.steps(exe, "127.0.0.1", *names)
        wine.stop()
    only_tcp(path)


def record_kerberos(target: Path, directory: Path, namespace: Namespace) -> None:
    """impacket's and Samba's sealed sessions in the realm of a KDC, and the service's keytab."""
    with Kdc(directory / "kdc", namespace.argv) as kdc:
        configuration = f'[security]\nkeytab = "{kdc.keytab}"\nprincipal = "{SERVICE}"\n'
        with ServedQueueManager(namespace, directory / "kerberos", configuration) as server:
            server.command("user", "add", "alice", *ADMINISTRATOR, stdin=PASSWORD + "\n")
            cache = kdc.service_ticket("alice").removeprefix("FILE:")
            environment = {**os.environ, **kdc.environment, "KRB5CCNAME": cache}
            path = target / "impacket-kerberos.pcapng"
            record_impacket(server, path, 6, f"alice@{REALM}", environment)
            record_samba(server, target / "samba-kerberos.pcapng", environment)
        shutil.copyfile(kdc.keytab, target / "kerberos.keytab")


def record_binary(target: Path, directory: Path, namespace: Namespace) -> None:
    """What a queue manager sends to another one by the binary protocol."""
    there = ServedQueueManager(namespace, directory / "there")
    here = ServedQueueManager(
        namespace, directory / "here", '[binary]\npeers = "there=127.0.0.1"\n', FREE_PORTS
    )
    path = target / "binary.pcapng"
    with there, here:
        there.command("queue", "create", "orders")
        there.command("queue", "create", "stream", "--transactional")
        here.command("queue", "create", "admin")
        with capturing(namespace, path):
            send_everything(here)
            time.sleep(OVER_SECONDS)
    only_tcp(path, f"tcp.port == {there.ready['endpoints']['binary'][1]}")


def send_everything(here: ServedQueueManager) -> None:
    """Recoverable, large and refused messages; transactions that arrive and that do not."""
    to = "DIRECT=OS:there\\private$\\"
    asking = ("--ack", "full-reach-queue", "--admin-queue", "DIRECT=OS:.\\private$\\admin")
    for body in BODIES:
        here.command("send", f"{to}orders", "--label", "to there", *asking, stdin=body)
    here.command("send", f"{to}orders", "--priority", "6", stdin="x" * LARGE)
    here.command("send", f"{to}orders", "--ttrq", "600", stdin="in time")
    here.command("send", f"{to}nowhere", stdin="refused")
    for body in BODIES:
        here.command("send", f"{to}stream", "--transactional", "--count", "2", stdin=body)
    here.command("send", f"{to}nothing", "--transactional", "--dead-letter", stdin="refused")


PARTS = {
    "peers": record_peers,
    "dependent": record_dependent,
    "kerberos": record_kerberos,
    "binary": record_binary,
}


def main(target: Path, parts: list[str]) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for part in parts:
        with tempfile.TemporaryDirectory() as name, Namespace() as namespace:
            PARTS[part](target, Path(name), namespace)
    subprocess.run(["ls", "-l", target], check=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--directory", type=Path, default=TARGET)
    parser.add_argument("parts", metavar="PART", nargs="*", help=f"one of {', '.join(PARTS)}")
    options = parser.parse_args()
    main(options.directory, options.parts or list(PARTS))
