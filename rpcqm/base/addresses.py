"""Whom an address stands for, wherever something is bounded or counted by address (G91)."""

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
    """The same for the text by which logs name a peer: an address, or one with a port."""
    whole = owner_of(peer)
    if whole != peer or ":" not in peer:
        return whole
    return owner_of(peer.rpartition(":")[0])
