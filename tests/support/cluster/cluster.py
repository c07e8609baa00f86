"""A bank of two nodes with three servers of a log, and another queue manager that sends to it."""

import asyncio
import ipaddress
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from cryptography import x509

from tests.support.certificates import write_tls_files
from tests.support.cluster.log_servers import Access, LogServer
from tests.support.cluster.machines import LAN, Lan, Program
from tests.support.cluster.nodes import (
    ACCOUNT,
    BANK,
    CAROL,
    EVERYONE,
    PASSWORD,
    Gate,
    Keys,
    QueueManager,
    node_settings,
    other_settings,
)
from tests.support.preloading import compile_library
from tests.support.waiting import until

SERVERS = {"n1": 11, "n2": 12, "n3": 13}
NODES = {"alice": 21, "bob": 22}
SENDER = 31
RESTART = 1.0
"""Seconds after which a program that has ended by itself is started again, as by systemd."""
QUEUES = {
    "orders": False,
    "stock": False,
    "letters": False,
    "keys": False,
    "tasks": False,
    "pairs": True,
    "stream": True,
}
"""Whether each is transactional."""


def keys_in(place: Path) -> Keys:
    """New certificates, and the account at the log."""
    addresses = [f"{LAN}.{number}" for number in (1, *SERVERS.values(), *NODES.values())]
    names = [x509.IPAddress(ipaddress.ip_address(each)) for each in addresses]
    log = write_tls_files(place, "log", names=names)
    bank = write_tls_files(place, "bank", names=names)
    access = Access(*log, place / "log.toml")
    access.credentials.write_text(f'user = "{access.user}"\npassword = "{access.password}"\n')
    access.credentials.chmod(0o600)
    return Keys(*bank, access)


class Cluster:
    """All machines and their programs; what ends by itself is started again."""

    def __init__(self, lan: Lan, keys: Keys) -> None:
        self.lan = lan
        self.keys = keys
        place = lan.place
        shifted = compile_library("shifted_clock", place)
        addresses = [f"{LAN}.{number}" for number in SERVERS.values()]
        self.servers = [
            LogServer(lan.add(name, number), addresses, keys.log)
            for name, number in SERVERS.items()
        ]
        self.nodes = [
            QueueManager(lan.add(name, number), BANK, node_settings(name, keys, addresses), shifted)
            for name, number in NODES.items()
        ]
        self.carol = QueueManager(lan.add(CAROL, SENDER), CAROL, other_settings(), None)
        self.gate = Gate(self.nodes, keys)
        self.ends: Counter[str] = Counter()
        """How often a program has ended by itself, with which status."""

    @property
    def programs(self) -> list[Program]:
        return [*self.servers, *self.nodes, self.carol]

    def start(self) -> None:
        """Start all, and make queues and the account once there is a primary."""
        for server in self.servers:
            server.start()
        self.carol.start()
        self.nodes[0].start()
        until(lambda: self.nodes[0].ready_path.exists())
        primary = self.nodes[0]
        for queue, transactional in QUEUES.items():
            words = ["--transactional"] if transactional else []
            primary.run("queue", "create", queue, "--sddl", EVERYONE, *words)
        words = ["--group", "administrators", "--password-stdin"]
        primary.run("user", "add", ACCOUNT, *words, given=f"{PASSWORD}\n")
        self.nodes[1].start()
        until(lambda: self.carol.ready_path.exists())

    async def keep_running(self) -> None:
        """Start again what has ended by itself, until this is cancelled."""
        while True:
            await asyncio.sleep(0.2)
            for program in self.programs:
                process = program.process
                if program.wanted and process is not None and process.poll() is not None:
                    self.ends[f"{program.name} ended with {process.returncode}"] += 1
                    await asyncio.sleep(RESTART)
                    if program.wanted:
                        program.start()

    def primary(self) -> QueueManager | None:
        """The node that is ready, as the gate sees it."""
        return self.gate.active

    def leader(self) -> LogServer:
        """The server that leads the log, or the first one if none says so."""
        for server in self.servers:
            if server.runs and (name := server.leader()):
                return next(each for each in self.servers if each.name == name)
        return self.servers[0]

    def stop(self) -> None:
        for program in (self.carol, *self.nodes, *self.servers):
            program.stop()

    def kill(self) -> None:
        for program in self.programs:
            program.kill()


@contextmanager
def running_cluster(place: Path) -> Iterator[Cluster]:
    """A cluster that runs; in the end nothing of it is left but what is in `place`."""
    with ExitStack() as stack:
        lan = stack.enter_context(Lan(place))
        cluster = Cluster(lan, keys_in(place))
        stack.callback(cluster.kill)
        try:
            cluster.start()
            yield cluster
        except BaseException as error:
            for program in cluster.programs:
                error.add_note(f"{program.name} said:\n{tail(program.output)}")
            raise


def tail(path: Path, size: int = 3000) -> str:
    return path.read_text("utf-8", "replace")[-size:] if path.exists() else "nothing"
