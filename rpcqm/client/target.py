"""The queue managers that a client can talk to, and the errors if they cannot be reached."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rpcqm.base.resolver import LookUp, look_up

if TYPE_CHECKING:
    from rpcqm.rpc.security.context import Credentials

ENDPOINT_MAPPER_PORT = 135


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A queue manager of this machine, by its socket; the caller is the user of this process."""

    socket: Path

    def __str__(self) -> str:
        return str(self.socket)

    def at(self, machine: str) -> "RemoteServer":
        """Another machine, at the usual port and without credentials."""
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
    find: LookUp = field(default=look_up, repr=False, compare=False)
    """Tells the addresses of the host."""
    others: tuple["RemoteServer", ...] = ()
    """Further nodes of the same queue manager, of which one at a time answers; they are asked in
    this order when the one before does not."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.endpoint_mapper_port}"

    def at(self, machine: str) -> "RemoteServer":
        """Another machine, at the same port and with the same credentials."""
        return RemoteServer(machine, self.endpoint_mapper_port, self.credentials, self.find)

    @property
    def following(self) -> "RemoteServer":
        """The next one of the nodes, behind which this one is the last."""
        first, *rest = self.others
        return replace(first, others=(*rest, replace(self, others=())))


Target = LocalServer | RemoteServer


def any_of(servers: Sequence[RemoteServer]) -> RemoteServer:
    """The nodes of one queue manager as one server, of which whichever answers is used."""
    return replace(servers[0], others=tuple(servers[1:]))


def host_and_port(text: str) -> tuple[str, int]:
    """Read `HOST`, `HOST:PORT`, `[V6]:PORT` or a plain IPv6 address; raises ValueError.

    The default port is 135, that of the endpoint mapper on Windows.
    """
    host, port = text, str(ENDPOINT_MAPPER_PORT)
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":") or port
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"`{text}` is not HOST or HOST:PORT")
    if ":" in host:
        try:
            ipaddress.IPv6Address(host)
        except ValueError:
            raise ValueError(f"`{text}` is not HOST or HOST:PORT") from None
    return host, int(port)


class ServerUnreachableError(Exception):
    """No queue manager answers at a target; the text is one sentence."""


class HandleLostError(ServerUnreachableError):
    """The connection broke, and closed the handle that a call needs; the call was not done."""


class OutcomeUnknownError(ServerUnreachableError):
    """The connection broke before the answer came; the call may have been done or not.

    The client never repeats such a call.
    """
