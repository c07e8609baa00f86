"""What listens without a configuration: doors on loopback, and nothing else."""

import os
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

from rpcqm.testing import private_queue_manager

LISTENS = "0A"
"""The state of a socket in the kernel's table that takes connections."""


def sockets(pid: int) -> set[str]:
    """The numbers of the sockets that a process has open."""
    places = Path(f"/proc/{pid}/fd")
    names = (os.readlink(places / name) for name in os.listdir(places))
    return {name[len("socket:[") : -1] for name in names if name.startswith("socket:[")}


def rows(pid: int, protocol: str) -> Iterator[tuple[str, str, str]]:
    """Address, state and number of each socket of a protocol."""
    for line in Path(f"/proc/{pid}/net/{protocol}").read_text().splitlines()[1:]:
        cells = line.split()
        yield cells[1].partition(":")[0], cells[3], cells[9]


def address(text: str) -> IPv4Address | IPv6Address:
    """An address as the kernel prints it: words of 32 bits in the machine's order of octets."""
    words = [bytes.fromhex(text[at : at + 8])[::-1] for at in range(0, len(text), 8)]
    octets = b"".join(words)
    return IPv4Address(octets) if len(octets) == 4 else IPv6Address(octets)


def test_nothing_listens_but_on_loopback() -> None:
    """Not even the interface for programs, which is on by itself; and nothing by UDP."""
    with private_queue_manager(("--console-port", "0")) as running:
        assert running.process is not None
        pid = running.process.pid
        own = sockets(pid)
        listening = [
            address(text)
            for protocol in ("tcp", "tcp6")
            for text, state, number in rows(pid, protocol)
            if state == LISTENS and number in own
        ]
        assert len(listening) >= len(running.ready.endpoints)
        assert all(each.is_loopback for each in listening), listening
        assert not [row for kind in ("udp", "udp6") for row in rows(pid, kind) if row[2] in own]
