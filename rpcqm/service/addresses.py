"""The addresses by which this machine may be called."""

import ifaddr


def own_addresses() -> tuple[str, ...]:
    """Every address of every network adapter, IPv4 and IPv6."""
    return tuple(
        ip.ip if isinstance(ip.ip, str) else ip.ip[0]
        for adapter in ifaddr.get_adapters()
        for ip in adapter.ips
    )
