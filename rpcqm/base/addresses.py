"""The owner of an address: connections, rates and quotas are counted by owner (G91)."""

import ipaddress
from functools import lru_cache

_IPV6_PREFIX = 64
"""Bits of an IPv6 address that its owner was given; all below are for the owner to choose."""


@lru_cache(1024)
def owner_of(host: str) -> str:
    """The IPv4 address, the /64 of an IPv6 address, or the text itself when it is no address."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:  # a name, or a path of a local socket, is its own owner
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, _IPV6_PREFIX), strict=False))


@lru_cache(1024)
def owner_of_peer(peer: str) -> str:
    """The owner of a peer as logs name it: an address, or an address with a port."""
    whole = owner_of(peer)
    if whole != peer or ":" not in peer:
        return whole
    return owner_of(peer.rpartition(":")[0])


def split_host(text: str) -> tuple[str, int | None]:
    """A host in the form in which hosts are compared, and its port if one is written.

    It is `name`, `name:8080`, `10.9.9.9`, `::1` or `[::1]:8080`. Raises ValueError if what
    follows the host is no port.
    """
    host, port = text, ""
    if text.startswith("["):
        host, _, rest = text.partition("]")
        port = rest.removeprefix(":")
        if rest and (port == rest or not port):
            raise ValueError("no port")
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
        if not port:
            raise ValueError("no port")
    number = _port(port) if port else None
    return compared_host(host), number


def compared_host(host: str) -> str:
    """In small letters, without brackets or the last dot; an IPv6 address in its shortest form."""
    plain = host.lower().removeprefix("[").removesuffix("]").removesuffix(".")
    try:
        return str(ipaddress.ip_address(plain))
    except ValueError:  # a name
        return plain


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or not 0 < int(text) < 1 << 16:
        raise ValueError("no port")
    return int(text)


def reachable(host: str) -> str:
    """The address at which this machine reaches its own listener."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
