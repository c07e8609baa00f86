"""Further names of this computer, and whether they are another computer's (G500)."""

import ipaddress
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rpcqm.base.addresses import compared_host, split_host
from rpcqm.config.urls import check_host

if TYPE_CHECKING:
    from rpcqm.adm.queue_manager import QueueManager

BINARY_PORT, ENDPOINT_MAPPER_PORT = 1801, 135
"""Where a peer is by its address alone; another port may be that of a router, which is ours too."""


def check_alias(text: str) -> None:
    """A host, or a host and the port of its URLs; raises ValueError."""
    try:
        host, port = split_host(text)
        check_host(host)
    except ValueError:
        raise ValueError("which is neither HOST nor HOST:PORT") from None
    if port is None:
        _check_meaning(host)


def _check_meaning(host: str) -> None:
    """A host that is one computer, and not anyway this one; raises ValueError."""
    if host == "localhost":
        raise ValueError("which is this computer already")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:  # a name
        return
    if address.is_loopback:
        raise ValueError("which is this computer already")
    if address.is_unspecified or address.is_multicast or host == "255.255.255.255":
        raise ValueError("which is no address of one computer")


def aliases_of_peers(
    aliases: Iterable[str], peers: str, usual_port: int
) -> Iterator[tuple[str, str]]:
    """The aliases that peers (NAME=HOST[:PORT], …) have, each with the name of the peer."""
    names = {compared_host(name): name for name, _ in _entries(peers)}
    yield from _taken(aliases, names | addresses_of_peers(peers, usual_port))


def addresses_of_peers(peers: str, usual_port: int) -> dict[str, str]:
    """The names of peers by their hosts, without those that are at another port."""
    found: dict[str, str] = {}
    for name, place in _entries(peers):
        try:
            host, port = split_host(place)
        except ValueError:  # another check says so
            continue
        if port in (None, usual_port):
            found[host] = name
    return found


def _entries(peers: str) -> Iterator[tuple[str, str]]:
    for entry in filter(None, (part.strip() for part in peers.split(","))):
        name, _, place = entry.partition("=")
        yield name, place


def aliases_in_directory(
    aliases: Iterable[str], own_name: str, machines: "Iterable[QueueManager]"
) -> Iterator[tuple[str, str]]:
    """The aliases that other queue managers of a directory have, each with that one's name."""
    others = {
        compared_host(each): machine.computer_name
        for machine in machines
        if machine.computer_name.casefold() != own_name.casefold()
        for each in (
            machine.computer_name,
            machine.qualified_computer_name,
            *machine.addresses,
        )
    }
    yield from _taken(aliases, others)


def _taken(aliases: Iterable[str], others: dict[str, str]) -> Iterator[tuple[str, str]]:
    for alias in aliases:
        host, port = split_host(alias)
        if port is None and host in others:
            yield alias, others[host]
