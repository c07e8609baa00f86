"""The table [console]: the interface for programs, and the operator's pages."""

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rpcqm.config.about import About
from rpcqm.config.urls import check_host


def check_address(text: str) -> None:
    """An address; raises ValueError."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        raise ValueError("which is no IP address") from None


@dataclass(frozen=True, slots=True)
class ConsoleSection:
    """The interface for programs and the operator's pages, on `console_port`."""

    host: Annotated[
        str, About("Address to listen on, whatever `host` is; from elsewhere it needs TLS.")
    ] = "127.0.0.1"
    certificate: Annotated[
        Path | None, About("Certificate with its chain (PEM file), for TLS.", default="none")
    ] = None
    key: Annotated[
        Path | None,
        About(
            "Key of that certificate (PEM file; keep it from others).",
            default="none",
        ),
    ] = None
    allow_hosts: Annotated[
        tuple[str, ...],
        About(
            "Names by which programs and pages may call this host, besides its addresses, "
            "`localhost`, `name` and `aliases`.",
            default="none",
            check=check_host,
        ),
    ] = ()
    trusted_proxy: Annotated[
        str,
        About(
            "Address of the proxy whose `X-Forwarded-For` and `X-Forwarded-Proto` count.",
            default="none",
            check=check_address,
            opens="That proxy says from where callers log on, and whether they came by TLS.",
        ),
    ] = ""
    channel_bindings: Annotated[
        str,
        About(
            "Whether a ticket of Kerberos must be bound to the connection when it comes over TLS.",
            choices=("require", "allow"),
            opens="A ticket that is not bound to its connection of TLS is taken, from clients that "
            "cannot bind it, and from behind a proxy.",
        ),
    ] = "require"
    longest_wait: Annotated[
        int, About("How long a receive waits at most.", (0, 86_400), unit="s")
    ] = 60
    session_hours: Annotated[
        int, About("How long one stays logged on at the pages.", (1, 720), unit="h")
    ] = 12
