"""The addresses by which this machine may be called."""

import ifaddr


def own_addresses() -> tuple[str, ...]:
    """Every address of every network adapter, IPv4 and IPv6, the latter with its scope if any."""
    return tuple(_text(ip.ip) for adapter in ifaddr.get_adapters() for ip in adapter.ips)


def _text(address: str | tuple[str, int, int]) -> str:
    if isinstance(address, str):
        return address
    host, _, scope = address
    return f"{host}%{scope}" if scope else host
