"""The addresses and names by which this machine may be called."""

import socket

import ifaddr


def own_addresses() -> tuple[str, ...]:
    """Every address of every network adapter, IPv4 and IPv6, the latter with its scope if any."""
    return tuple(_text(ip.ip) for adapter in ifaddr.get_adapters() for ip in adapter.ips)


def qualified_name(name: str) -> str:
    """The computer's full name, as far as the machine itself knows it: asking takes time."""
    host = socket.gethostname()
    return host if host.casefold().startswith(f"{name.casefold()}.") else name


def _text(address: str | tuple[str, int, int]) -> str:
    if isinstance(address, str):
        return address
    host, _, scope = address
    return f"{host}%{scope}" if scope else host
