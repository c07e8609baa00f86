"""Records the captures of tests/vectors/captures anew.

python -m tests.support.record_captures [--directory DIRECTORY] [PART…]

Wine's, impacket's and Samba's clients speak to `rpcqm serve` in a network namespace, and dumpcap
listens. Needed are what scripts/install-peers installs, and a quiet machine.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.interop.test_tshark import capturing
from tests.interop.test_wine import CONFIGURATION, LEVELS, NEGOTIATE, run_client
from tests.support.accounts import PASSWORD
from tests.support.kdc import HOST, REALM, SERVICE, Kdc
from tests.support.namespace import Namespace
from tests.support.served import ServedQueueManager
from tests.support.wine import Wine, compile_program

TARGET = Path(__file__).parents[1] / "vectors" / "captures"
EVERYONE = "D:(A;;GA;;;WD)(A;;GA;;;AN)"
BODIES = ("the first", "the second")
LARGE = 60_000
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
        server.command("send", queue, "--body", body, "--label", "to impacket")
    server.command("send", queue, "--body", "x" * LARGE, "--label", "large")
    words = ["-m", "tests.support.impacket_session", level, user, PASSWORD, queue]
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


def only_tcp(path: Path) -> None:
    """Without the datagrams by which the recorder waits, and readable like any other file."""
    octets = path.with_suffix(".tcp")
    subprocess.run(["tshark", "-r", path, "-Y", "tcp", "-w", octets], check=True)
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


PARTS = {"peers": record_peers, "kerberos": record_kerberos}


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
