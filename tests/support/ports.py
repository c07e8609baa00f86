"""Ports for what has to know its port before it listens, or keep it over a restart.

What listens at port 0 needs none of these. Each is held by a socket that is bound and does not
listen, until this process ends: no other process is given it, here or in another run, and no
outgoing connection leaves from it. Whoever listens with SO_REUSEADDR, as servers do, may take it.
"""

import os
import socket
from collections.abc import Iterable
from pathlib import Path

EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST, _HIGHEST = 20_000, 65_535
_FEWEST = 2_000

_held: list[socket.socket] = []
_next = os.getpid() * 397
"""Processes begin at different places, so that few ask for the same port."""


def reserved_port() -> int:
    """A port that nobody else is given as long as this process lives."""
    global _next
    candidates = outside(*ephemeral())
    for _ in candidates:
        _next += 1
        port = candidates[_next % len(candidates)]
        if (holder := _bound(port)) is not None:
            _held.append(holder)
            return port
    raise AssertionError(f"all ports from {candidates[0]} to {candidates[-1]} are taken")


def reserved_ports(count: int) -> list[int]:
    """Several, each another."""
    return [reserved_port() for _ in range(count)]


def ports_of(names: Iterable[str]) -> dict[str, int]:
    """One for each name."""
    return {name: reserved_port() for name in names}


def ephemeral() -> tuple[int, int]:
    """The first and the last port that the system gives to outgoing connections and for port 0."""
    first, last = EPHEMERAL.read_text("ascii").split()
    return int(first), int(last)


def outside(first: int, last: int) -> range:
    """The ports that are given here: below or above those, or any if there are too few."""
    below, above = range(_LOWEST, first), range(max(_LOWEST, last + 1), _HIGHEST + 1)
    every = range(_LOWEST, _HIGHEST + 1)
    return next(each for each in (below, above, every) if len(each) >= _FEWEST)


def _bound(port: int) -> socket.socket | None:
    """A socket that holds a port at every address; nothing if anybody has it at one of them."""
    holder = _of_both_families()
    try:
        # Without SO_REUSEADDR, which comes after it: this fails at any other socket with the port.
        holder.bind(("::" if holder.family == socket.AF_INET6 else "0.0.0.0", port))
    except OSError:
        holder.close()
        return None
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return holder


def _of_both_families() -> socket.socket:
    """A socket for IPv6 and IPv4, or for IPv4 where the system has no other."""
    try:
        holder = socket.socket(socket.AF_INET6)
    except OSError:
        return socket.socket()
    holder.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    return holder
