"""The table [replica]: a log on several machines, from which a standby takes over."""

import ipaddress
import re
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from rpcqm.config.about import About

NATS = ("nats", "tls")
POSTGRESQL = ("postgresql",)
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?|[0-9A-Fa-f:.]+:[0-9A-Fa-f:.]*")
_WORD = 4_096


def check_log(text: str) -> None:
    """The address of a server of the log; raises ValueError."""
    if not text.isprintable() or " " in text:
        raise ValueError("which has characters that a URL cannot have")
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname or ""
    except ValueError:
        raise ValueError("which is no URL: its host or its port is wrong") from None
    if parts.scheme not in NATS + POSTGRESQL:
        raise ValueError("which is no URL that begins with tls://, nats:// or postgresql://")
    if "@" in parts.netloc:
        raise ValueError("which has a user name: that belongs in `credentials_file`")
    if port == 0 or not _HOST.fullmatch(host):
        raise ValueError("which is no URL: its host or its port is wrong")
    _check_path(parts)


def _check_path(parts: SplitResult) -> None:
    """What may follow the host: the name of a database."""
    if parts.query or parts.fragment:
        raise ValueError("which has options: leave out what follows `?` or `#`")
    if parts.scheme in NATS and parts.path not in ("", "/"):
        raise ValueError("which names more than a host and a port")
    if parts.scheme in POSTGRESQL and not re.fullmatch(r"/[^/]+", parts.path):
        raise ValueError("which names no database: postgresql://HOST:PORT/DATABASE")


def check_word(text: str) -> None:
    """One word of a program's command; raises ValueError."""
    if "\0" in text or len(text) > _WORD:
        raise ValueError("which no program can be given")


def is_loopback(address: str) -> bool:
    """Whether a server of the log is on this machine."""
    host = urlsplit(address).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True, slots=True)
class ReplicaSection:
    """A log on several machines that has each write first, so that a standby can take over
    (docs/failover.md); off without one. It needs the extra `replica`.
    """

    log: Annotated[
        tuple[str, ...],
        About(
            "Servers of the log, all of one kind: `tls://HOST:PORT` of NATS, or "
            "`postgresql://HOST:PORT/DATABASE`. `nats://` without TLS is for this machine only; "
            "a single server on it is for trying out, and keeps one copy.",
            default="none",
            check=check_log,
        ),
    ] = ()
    name: Annotated[
        str,
        About(
            "The log's name on its servers, the same on every node of a cluster.",
            form="[a-z][a-z0-9_-]{0,50}",
        ),
    ] = "rpcqm"
    node: Annotated[
        str,
        About(
            "This node's own name, by which operators tell nodes apart.",
            default="the host's name",
            form=r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9_])?",
        ),
    ] = field(default_factory=socket.gethostname)
    credentials_file: Annotated[
        Path | None,
        About(
            "File (mode 0600) with `user` and `password` at the log's servers, or a `.creds` file "
            "of NATS.",
            default="none",
        ),
    ] = None
    ca_file: Annotated[
        Path | None,
        About(
            "Authorities (PEM file) that the certificates of the log's servers are from.",
            default="the system's",
        ),
    ] = None
    lease_milliseconds: Annotated[
        int,
        About(
            "How long a primary answers reads after its last write that the log has; a standby "
            "takes over half a second, and a hundredth of it, later. The same on every node.",
            (500, 600_000),
            unit="ms",
        ),
    ] = 3000
    takeover: Annotated[
        str,
        About(
            "Whether a standby takes over by itself when it hears nothing, or waits for "
            "`rpcqm cluster promote`.",
            choices=("automatic", "manual"),
        ),
    ] = "automatic"
    keep_bytes: Annotated[
        int,
        About("What the log keeps for a standby that was away, at least.", (0, 1 << 50), unit="B"),
    ] = 1 << 30
    maximum_bytes: Annotated[
        int,
        About(
            "The size of the log; when it is full, nothing is written until there is room.",
            (1 << 24, 1 << 50),
            unit="B",
        ),
    ] = 8 << 30
    refuse_after_milliseconds: Annotated[
        int,
        About(
            "How long a write may wait for the log until changes are refused.",
            (100, 600_000),
            unit="ms",
        ),
    ] = 5000
    on_promote: Annotated[
        tuple[str, ...],
        About(
            "Program and its arguments, run before the doors open of a node that takes over; it "
            "may give this machine the address that clients use. If it fails, nothing is served.",
            default="none",
            check=check_word,
        ),
    ] = ()
    on_demote: Annotated[
        tuple[str, ...],
        About(
            "Program and its arguments, run at each start, before a node follows the log: it may "
            "take the address back that clients use. If it fails, the node does not start.",
            default="none",
            check=check_word,
        ),
    ] = ()

    @property
    def tries_out(self) -> bool:
        """Whether the log is one server on this machine, which has one copy."""
        return len(self.log) == 1 and is_loopback(self.log[0])
