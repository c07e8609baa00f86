"""Machines on loopback on which the commands of a page are run.

Every machine that a page names is a real `rpcqm serve` with that name, on free ports, that knows
where the others are. `rpcqm serve` in a story starts one that was stopped, `^C` stops it.
"""

import os
import re
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from rpcqm.testing import PrivateQueueManager
from rpcqm.testing.private import KEPT
from tests.support.cli.documents import Step, agrees, difference, translated, translations
from tests.support.ports import reserved_ports
from tests.support.waiting import PATIENCE

DEFAULT = "mailhost"
"""The machine of the prompt without a name."""
PASSWORD = "correct horse battery"
_PAUSE = 0.05
_ONLY_LOOKING = re.compile(
    r"rpcqm (queue (list|show|acl show)|peek|explain|trace|status|dead-letter (list|inspect))\b"
)
_SERVER = re.compile(r"(?<=--server )[a-z]+\b")


class StoryFailedError(AssertionError):
    """A command did not print what the page shows."""


class Story:
    """The machines of one page; ending the block ends them."""

    def __init__(
        self, directory: Path, tools: Path, machines: list[str], *, over_http: bool = False
    ) -> None:
        self._directory = directory
        self._tools = tools
        ports = reserved_ports(3 * len(machines))
        self._doors = {name: tuple(ports[3 * n : 3 * n + 3]) for n, name in enumerate(machines)}
        self._over_http = over_http
        self._running: dict[str, PrivateQueueManager] = {}
        self._words: dict[str, str] = {}
        self._status = 0
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        for name in self._doors:
            self._running[name] = self._machine(name)
            self._stack.callback(self._running[name].stop)
            self._running[name].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _machine(self, name: str) -> PrivateQueueManager:
        mapper, binary, http = self._doors[name]
        peers = ", ".join(
            f"{other}=127.0.0.1:{doors[1]}" for other, doors in self._doors.items() if other != name
        )
        configuration = (
            f'name = "{name}"\n[storage]\nreserve = 1\n'
            f'[logging]\nformat = "text"\n[binary]\nretry_milliseconds = 100\n'
        ) + (f'peers = "{peers}"\n' if peers else "")
        if self._over_http:
            configuration += self._srmp()
        home = self._directory / name
        home.mkdir(parents=True)
        ports = ["--epm-port", mapper, "--binary-port", binary, "--rpc-port", 0, "--qm2qm-port", 0]
        if self._over_http:
            ports += ["--http-port", http]
        return PrivateQueueManager(
            home / "data",
            configuration=configuration,
            environment={"NO_COLOR": "1"},
            ports=[str(each) for each in ports],
        )

    def _srmp(self) -> str:
        """The names of the machines are in no DNS: each is sent to where it listens."""
        names = ", ".join(f'"{name}"' for name in (*self._doors, "127.0.0.1"))
        maps = "".join(
            f'[[srmp.outbound]]\nfrom = "http://{name}{port}/*"\nto = "http://127.0.0.1:{http}/"\n'
            for name, (_, _, http) in self._doors.items()
            for port in ("", f":{http}")
        )
        return f"[srmp]\nretry_milliseconds = 1000\nreceipts_to = [{names}]\n{maps}"

    def play(self, step: Step, patience: float = PATIENCE) -> list[str]:
        """Run one command; returns what it printed, StoryFailedError if the page has it wrong.

        A command that only looks is repeated until it shows what the page does, as a person would
        when something is still on its way.
        """
        give_up = time.monotonic() + patience
        while True:
            printed = self._run(step)
            if agrees(step.expected, printed):
                self._words |= translations(step.expected, printed)
                return printed
            if not _ONLY_LOOKING.search(step.command) or time.monotonic() > give_up:
                raise StoryFailedError(
                    f"line {step.line}: {step.command}\n{difference(step.expected, printed)}"
                )
            time.sleep(_PAUSE)

    def accept(self, step: Step) -> list[str]:
        """Run one command for a page that is being written."""
        try:
            return self.play(step, 2)
        except StoryFailedError:
            printed = self._run(step) if _ONLY_LOOKING.search(step.command) else self._last
            self._words |= translations(printed, printed)
            return printed

    def _run(self, step: Step) -> list[str]:
        name = step.machine or DEFAULT
        machine = self._running[name]
        if step.stops:
            machine.stop()
            return []
        if step.command.startswith("rpcqm serve"):
            self._last = _start(machine)
            return self._last
        command = translated(step.command, self._words)
        command = _SERVER.sub(lambda match: f"127.0.0.1:{self._doors[match[0]][0]}", command)
        done = subprocess.run(
            ["bash", "-c", f"(exit {self._status})\n{command}"],
            cwd=self._directory / name,
            env=self._environment(machine),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=60,
            check=False,
        )
        self._status = done.returncode
        self._last = done.stdout.decode("utf-8").splitlines()
        return self._last

    def _environment(self, machine: PrivateQueueManager) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if name in KEPT or not name.startswith("RPCQM_")
        }
        return kept | {
            "PATH": f"{self._tools}:{os.environ['PATH']}",
            "COLUMNS": "200",
            "LC_ALL": "C.UTF-8",
            "RPCQM_DATA_DIR": str(machine.data_dir),
            "RPCQM_PASSWORD": PASSWORD,
        }


def _start(machine: PrivateQueueManager) -> list[str]:
    """Start a machine; returns the line that says so."""
    before = len(machine.log)
    machine.start()
    while True:
        lines = machine.log[before:].split("\n")[:-1]
        if ready := [line for line in lines if "ready" in line]:
            return ready
        time.sleep(_PAUSE)


def is_over_http(story: list[Step]) -> bool:
    """Whether a page sends over HTTP."""
    return any("HTTP://" in step.command for step in story)


def machines_of(story: list[Step]) -> list[str]:
    """The names of the machines of a page."""
    return sorted({step.machine or DEFAULT for step in story})
