r"""The names of local queues.

In memory the key of a queue is the part of its path name behind the computer, folded:
`private$\orders`, `orders`, `system$;deadletter`.
"""

import ipaddress
from collections.abc import Iterable
from functools import lru_cache

from rpcqm.base.addresses import compared_host, split_host
from rpcqm.base.text import folded
from rpcqm.codec.names.format_name import DirectName
from rpcqm.codec.names.path_name import PathName, QueueKind
from rpcqm.qm.settings import QueueManagerSettings


class LocalNames:
    """The names of this machine (G10): NetBIOS, qualified, `localhost`, `.` and its addresses.

    Further names are those that routers and clusters give it (G500): only this class has them all.
    """

    def __init__(self, settings: QueueManagerSettings) -> None:
        self.http_ports = {"HTTP": settings.http_port, "HTTPS": settings.https_port}
        """The ports of messages over HTTP, by the protocol of their names; -1 without one."""
        self.computer_name = settings.computer_name
        self.qualified_computer_name = settings.qualified_computer_name or settings.computer_name
        names = {".", "localhost", self.computer_name, self.qualified_computer_name}
        self._own_names = frozenset(name.lower() for name in names)
        self._own_addresses = frozenset(map(_without_scope, settings.addresses))
        self.use_aliases(settings.aliases)

    def use_aliases(self, aliases: Iterable[str]) -> None:
        """Replace the further names (G500).

        `HOST` is a name like the machine's own ones, `HOST:PORT` one in URLs with that port only.
        Raises ValueError for an invalid port.
        """
        places = [split_host(each) for each in aliases]
        hosts = [host for host, port in places if port is None]
        self._names = self._own_names.union(hosts)
        self._addresses = self._own_addresses.union(filter(None, map(_address_or_none, hosts)))
        self._mapped = frozenset(place for place in places if place[1] is not None)

    def is_local(self, host: str) -> bool:
        """Whether a computer name or an address means this machine."""
        host = host.lower()
        if host in self._names:
            return True
        if len(host) > _LONGEST_ADDRESS:
            return False
        try:
            address = _address(host.removeprefix("[").removesuffix("]"))
        except ValueError:  # a name of another machine
            return False
        return address in self._addresses or address.is_loopback

    def is_local_direct(self, name: DirectName) -> bool:
        """Whether a direct name is about this machine: a URL must have one of its ports, too.

        Another port is another program's (G231), unless it is mapped to here.
        """
        here = not name.is_url or name.port == self.http_ports[name.protocol]
        return (here and self.is_local(name.host)) or self.is_mapped(name)

    def is_mapped(self, name: DirectName) -> bool:
        """Whether the host and the port of a URL are a further name of this machine."""
        return bool(self._mapped) and (compared_host(name.host), name.port) in self._mapped

    def path(self, kind: QueueKind, queue: str, suffix: str = "") -> PathName:
        """The path name of a local queue."""
        return PathName(self.computer_name, queue, kind, suffix)


_address = lru_cache(maxsize=256)(ipaddress.ip_address)
_LONGEST_ADDRESS = 64
"""Characters of the longest IPv6 address with a scope; longer texts are not cached."""


def _address_or_none(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:  # a name
        return None


def _without_scope(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """An address without its scope, which has a meaning on this machine only."""
    return ipaddress.ip_address(address.partition("%")[0])


def local_key(kind: QueueKind, queue: str) -> str:
    """The key of a queue in memory."""
    return kind.value + folded(queue)


def plain_address(address: str) -> str:
    """An address without its scope, which is meaningless to others."""
    return address.partition("%")[0]


def next_hop_text(address: str) -> str:
    """A next hop for administrators ([MS-MQMQ] 2.3.12.12)."""
    plain = plain_address(address)
    return f"IPv6={plain}" if ":" in plain else f"IP={plain}"
