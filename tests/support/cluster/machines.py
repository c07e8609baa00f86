"""Machines on one network, for a process that is alone on its own network.

`alone` starts such a process: its network, its mounts and its processes are its own, and end with
it, whatever happens. Each machine is a network namespace on a cable to a switch; the process itself
is at the switch. A machine's disk is a small file system in memory.
"""

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from tests.support.network.namespace import NamespaceError

LAN = "10.77.0"
NOWHERE = "02:00:00:00:00:ff"
"""An address on the cable that no machine has: what is sent there is lost without a sign."""
DISK = 192 << 20
_ALONE = ("--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
_HOLD = "ip link set lo up && echo ready && exec cat"


def alone(command: Sequence[object]) -> list[str]:
    """The command that runs a program so; takes root."""
    return ["unshare", *_ALONE, *map(str, command)]


def why_not() -> str:
    """Why this user cannot have machines; "" if he can."""
    command = alone(["ip", "link", "add", "switch", "type", "bridge"])
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except FileNotFoundError as error:
        return f"{error.filename} is not installed"
    return done.stderr.strip()


class Machine:
    """One with an address; number 1 is the switch, where this process is itself."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.address = f"{LAN}.{number}"
        self.cable = "switch"
        self._enter: tuple[str, ...] = ()

    def argv(self, command: Sequence[object]) -> list[str]:
        return [*self._enter, *map(str, command)]

    def start(self, command: Sequence[object], **options: Any) -> subprocess.Popen[bytes]:
        """Start a program there: it has the number of the process that is given."""
        return subprocess.Popen(self.argv(command), **options)

    def do(self, *command: str) -> None:
        """Run a program there to its end; raises NamespaceError when it fails."""
        done = subprocess.run(
            self.argv(command), capture_output=True, text=True, check=False, timeout=30
        )
        if done.returncode:
            raise NamespaceError(f"{self.name}: {' '.join(command)}: {done.stderr.strip()}")

    def deafen(self, other: "Machine") -> None:
        """From now on nothing that is sent here arrives at the other one."""
        words = ("neigh", "replace", other.address, "lladdr", NOWHERE, "nud", "permanent")
        self.do("ip", *words, "dev", self.cable)

    def mend(self, other: "Machine") -> None:
        """Everything arrives there again."""
        with suppress(NamespaceError):  # it has never been cut
            self.do("ip", "neigh", "del", other.address, "dev", self.cable)


class RemoteMachine(Machine):
    """One on a cable of its own, with a disk below `place`."""

    def __init__(self, name: str, number: int, place: Path, disk: int = DISK) -> None:
        super().__init__(name, number)
        self.cable = "cable"
        self.disk = place / name
        self.disk.mkdir()
        here = Machine("switch", 1)
        here.do("mount", "-t", "tmpfs", "-o", f"size={disk}", "rpcqm", str(self.disk))
        self._holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", _HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != b"ready\n":
            raise NamespaceError(f"{name} has no network")
        holder = str(self._holder.pid)
        self._enter = ("nsenter", "--net", "--target", holder)
        port = f"to-{name}"
        peer = ("peer", "name", self.cable, "netns", holder)
        here.do("ip", "link", "add", port, "type", "veth", *peer)
        here.do("ip", "link", "set", port, "master", "switch", "up")
        self.do("ip", "address", "add", f"{self.address}/24", "dev", self.cable)
        self.plug()

    def plug(self) -> None:
        self.do("ip", "link", "set", self.cable, "up")

    def unplug(self) -> None:
        """Take the machine off the network."""
        self.do("ip", "link", "set", self.cable, "down")

    def fill(self) -> None:
        """Leave no room on its disk."""
        with suppress(OSError), (self.disk / "filling").open("wb", buffering=0) as file:
            while file.write(bytes(1 << 16)):
                pass

    def empty(self) -> None:
        """Give the room back."""
        (self.disk / "filling").unlink(missing_ok=True)

    def end(self) -> None:
        """Take the machine away; nothing runs there any more."""
        Machine("switch", 1).do("umount", "--lazy", str(self.disk))
        self.disk.rmdir()
        self._holder.communicate(timeout=30)


class Lan:
    """The switch and its machines; `others` are cut and mended as pairs of machines."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.here = Machine("clients", 1)
        self.machines: list[Machine] = [self.here]
        self._cuts: set[tuple[Machine, Machine]] = set()

    def __enter__(self) -> Self:
        self.here.do("ip", "link", "set", "lo", "up")
        self.here.do("ip", "link", "add", "switch", "type", "bridge")
        self.here.do("ip", "address", "add", f"{self.here.address}/24", "dev", "switch")
        self.here.do("ip", "link", "set", "switch", "up")
        return self

    def __exit__(self, *_: object) -> None:
        for machine in self.machines:
            if isinstance(machine, RemoteMachine):
                machine.end()

    def add(self, name: str, number: int) -> RemoteMachine:
        machine = RemoteMachine(name, number, self.place)
        self.machines.append(machine)
        return machine

    def cut(self, one: Machine, other: Machine) -> None:
        """What one sends to the other is lost; the other way it goes on."""
        one.deafen(other)
        self._cuts.add((one, other))

    def part(self, some: Sequence[Machine], others: Sequence[Machine]) -> None:
        """Nothing gets from these to those, nor back."""
        for one in some:
            for other in others:
                if one is not other:
                    self.cut(one, other)
                    self.cut(other, one)

    def mend(self) -> None:
        """Everything gets everywhere."""
        while self._cuts:
            one, other = self._cuts.pop()
            one.mend(other)


class Program:
    """A program on a machine, which ends by its process alone."""

    def __init__(self, machine: RemoteMachine) -> None:
        self.machine = machine
        self.process: subprocess.Popen[bytes] | None = None
        self.wanted = False
        """Whether it is to run: what has ended by itself is started again."""
        self._environment: dict[str, str] | None = None

    @property
    def name(self) -> str:
        return self.machine.name

    @property
    def output(self) -> Path:
        """What it has said, over all its lives."""
        return self.machine.disk.parent / f"{self.name}.log"

    def command(self) -> Sequence[object]:
        raise NotImplementedError

    def start(self) -> None:
        if self.runs:
            return
        self.wanted = True
        with self.output.open("ab") as file:
            self.process = self.machine.start(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=self._environment,
            )

    @property
    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def tell(self, number: signal.Signals) -> None:
        if self.runs and self.process is not None:
            os.kill(self.process.pid, number)

    def pause(self) -> None:
        self.tell(signal.SIGSTOP)

    def go_on(self) -> None:
        self.tell(signal.SIGCONT)

    def kill(self) -> None:
        """End it as a loss of power would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it in good order, or after a while without order."""
        self.go_on()
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        self.wanted = False
        process, self.process = self.process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)
