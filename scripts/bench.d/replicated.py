"""Nodes of a cluster for the benches, and the servers of its log."""

import asyncio
import json
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from durable_calls import CONFIGURATION
from harness import all_cpus, pinned
from served import PORTS, RPCQM

from rpcqm.replica.nats import NatsSettings, open_log
from tests.support.replica.nats_servers import NatsServer

PATIENCE = 120.0


def settings(node: str, log: Sequence[NatsServer], name: str) -> str:
    """Of a node of the cluster whose log has the name."""
    servers = ", ".join(f'"{each.url}"' for each in log)
    return (
        f'name = "bank"\n{CONFIGURATION}reserve = 1\n'
        f'[replica]\nlog = [{servers}]\nname = "{name}"\nnode = "{node}"\n'
    )


def leader_of(log: Sequence[NatsServer], name: str) -> NatsServer:
    """The server that leads the log of that name."""
    running = tuple(each.url for each in log if each.process is not None)

    async def ask() -> str:
        opened = await open_log(NatsSettings(running, name))
        try:
            cluster = (await opened.context.stream_info(name)).cluster
            return str(cluster.leader if cluster else "")
        finally:
            await opened.close()

    leader = asyncio.run(ask())
    return next(each for each in log if each.name == leader)


class Node:
    """A node that runs as long as a `with` block lasts, and ends by its process."""

    def __init__(self, directory: Path, configuration: str) -> None:
        self.directory = directory
        directory.mkdir(parents=True)
        (directory / "rpcqm.toml").write_text(configuration, "utf-8")
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def socket(self) -> Path:
        """Where local callers connect, whichever life made it."""
        return next(self.data.glob("*.sock"), self.data / "none")

    def start(self) -> None:
        if self._process is not None:
            return
        places = ("--config", self.directory / "rpcqm.toml", "--data-dir", self.data)
        ready = ("--ready-file", self.directory / "ready.json")
        with (self.directory / "log").open("ab") as log:
            argv = [*RPCQM, "serve", *places, *ready, *PORTS]
            self._process = pinned(argv, all_cpus, stderr=log)

    def kill(self) -> None:
        """End it as a loss of power would."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(PATIENCE)

    def command(self, *words: str) -> str:
        """A command of the program on this node; RuntimeError if it fails."""
        argv = [*RPCQM, *words, "--data-dir", str(self.data)]
        done = subprocess.run(argv, check=False, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"rpcqm {' '.join(words)}: {done.stderr.strip()[-300:]}")
        return done.stdout

    @property
    def role(self) -> str:
        """What it is by its own words, and " behind" if it has not read all; "" without any."""
        with suppress(RuntimeError, ValueError, LookupError):
            told = json.loads(self.command("cluster", "status", "--json"))
            return f"{told['role']}{' behind' if told.get('lag') else ''}"
        return ""

    @property
    def follows(self) -> bool:
        """Whether it has all that the log has."""
        return self.role in ("primary", "standby")


def primary_of(nodes: Sequence[Node]) -> Node:
    """The one that is primary, once one is."""
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up:
        for node in nodes:
            if node.role.startswith("primary"):
                return node
        time.sleep(0.2)
    raise RuntimeError("no node has become primary")
