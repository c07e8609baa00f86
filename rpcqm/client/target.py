"""Which queue manager a client talks to."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rpcqm.rpc.security import Credentials

ENDPOINT_MAPPER_PORT = 135


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A queue manager of this machine, by its socket; who calls is known from the process."""

    socket: Path

    def __str__(self) -> str:
        return str(self.socket)

    def at(self, machine: str) -> "RemoteServer":
        """Another machine, as we reach machines."""
        return RemoteServer(machine)


@dataclass(frozen=True, slots=True)
class RemoteServer:
    """A queue manager across the network, by its endpoint mapper.

    Without credentials calls are not authenticated; with them (NtlmCredentials,
    KerberosCredentials or SpnegoCredentials of rpcqm.rpc) they are encrypted.
    """

    host: str
    endpoint_mapper_port: int = ENDPOINT_MAPPER_PORT
    credentials: "Credentials | None" = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.endpoint_mapper_port}"

    def at(self, machine: str) -> "RemoteServer":
        """Another machine, as we reach this one."""
        return RemoteServer(machine, self.endpoint_mapper_port, self.credentials)


Target = LocalServer | RemoteServer


class ServerUnreachableError(Exception):
    """Nobody answers there; the text is one sentence."""


class HandleLostError(ServerUnreachableError):
    """The connection broke, and with it what was open: nothing of the call has happened."""


class OutcomeUnknownError(ServerUnreachableError):
    """The connection broke before the answer came: the call may have been done, or not.

    It is never repeated by itself.
    """
