"""A private network namespace: port 135 is free, only loopback is there, root is not needed."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

_HOLD = "ip link set lo up && echo ready && exec cat"
_ROOT = ("unshare", "--net"), ("nsenter", "--net")
_FILES = ("--uts", "--mount")
_USER = (
    ("unshare", "--net", "--user", "--map-root-user"),
    ("nsenter", "--net", "--user", "--preserve-credentials"),
)


class NamespaceError(Exception):
    """The system does not let this user make a network namespace; says why."""


class Namespace:
    """A network namespace with loopback up, as long as the ``with`` block lasts.

    With `own_files` it has a host name and mounts of its own, too: what is mounted inside is seen
    inside only. Raises NamespaceError on entry when neither root nor a user namespace can make one.
    """

    def __init__(self, own_files: bool = False) -> None:
        self._more = _FILES if own_files else ()

    def __enter__(self) -> Self:
        make, enter = _ROOT if os.geteuid() == 0 else _USER
        make, enter = (*make, *self._more), (*enter, *self._more)
        try:
            self._holder = subprocess.Popen(
                [*make, "sh", "-c", _HOLD],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except FileNotFoundError as error:
            raise NamespaceError(f"{error.filename} is not installed") from error
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != b"ready\n":
            _, why = self._holder.communicate()
            raise NamespaceError(why.decode().strip())
        self._enter = (*enter, "--target", str(self._holder.pid))
        return self

    def __exit__(self, *_: object) -> None:
        self._holder.communicate()

    @property
    def network(self) -> Path:
        """Where the kernel shows the network of what is inside."""
        return Path(f"/proc/{self._holder.pid}/ns/net")

    def argv(self, command: Sequence[object]) -> list[str]:
        """The command that runs ``command`` inside."""
        return [*self._enter, *map(str, command)]

    def run(
        self, command: Sequence[object], timeout: float = 60, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run a program inside to its end; its output is captured as text."""
        options = {"capture_output": True, "text": True, "check": False, **options}
        return subprocess.run(self.argv(command), timeout=timeout, **options)

    def start(self, command: Sequence[object], **options: Any) -> subprocess.Popen[str]:
        """Start a program inside."""
        return subprocess.Popen(self.argv(command), text=True, **options)


def join(one: Namespace, other: Namespace, first: str, second: str) -> None:
    """Lay a cable between two namespaces, of which each gets an address; takes root.

    Raises NamespaceError when the system does not let this user do that.
    """
    holder = str(other._holder.pid)
    cable = ("ip", "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", holder)
    steps: list[tuple[Namespace, tuple[str, ...]]] = [(one, cable)]
    for end, address in ((one, first), (other, second)):
        steps.append((end, ("ip", "address", "add", f"{address}/24", "dev", "cable")))
        steps.append((end, ("ip", "link", "set", "cable", "up")))
    for end, command in steps:
        done = end.run(command)
        if done.returncode:
            raise NamespaceError(done.stderr.strip())
