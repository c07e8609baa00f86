"""Records the captures of tests/vectors/captures anew.

python -m tests.support.record_captures [DIRECTORY]

Wine's and impacket's clients speak to `rpcqm serve` in a network namespace, and dumpcap listens.
Needed are what scripts/install-peers installs, and a quiet machine.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.interop.test_tshark import capturing
from tests.interop.test_wine import CONFIGURATION, LEVELS, NEGOTIATE, run_client
from tests.support.accounts import PASSWORD
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


def record_impacket(server: ServedQueueManager, target: Path, level: int, provider: int) -> None:
    queue = f"impacket-{level}"
    server.command("queue", "create", queue, "--sddl", EVERYONE)
    for body in BODIES:
        server.command("send", queue, "--body", body, "--label", "to impacket")
    server.command("send", queue, "--body", "x" * LARGE, "--label", "large")
    words = ["-m", "tests.support.impacket_session", level, "alice", PASSWORD, queue]
    path = target / f"impacket-{LEVELS[level, provider]}.pcapng"
    with capturing(server.namespace, path):
        done = server.namespace.run([sys.executable, *words], check=True)
        print(done.stdout, end="")
    only_tcp(path)


def only_tcp(path: Path) -> None:
    """Without the datagrams by which the recorder waits, and readable like any other file."""
    octets = path.with_suffix(".tcp")
    subprocess.run(["tshark", "-r", path, "-Y", "tcp", "-w", octets], check=True)
    path.write_bytes(octets.read_bytes())
    octets.unlink()
    path.chmod(0o644)


def main(target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, Namespace() as namespace:
        directory = Path(name)
        (directory / "client").mkdir()
        exe = compile_program(directory / "client", "client", ["remoteread"])
        wine = Wine(namespace, directory / "prefix")
        with ServedQueueManager(namespace, directory / "server", CONFIGURATION) as server:
            server.command("user", "add", "alice", *ADMINISTRATOR, stdin=PASSWORD + "\n")
            wine.start()
            for level, provider in LEVELS:
                if provider != NEGOTIATE:
                    record_wine(server, target, level, provider, wine, exe)
                    record_impacket(server, target, level, provider)
            wine.stop()
    subprocess.run(["ls", "-l", target], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET)
