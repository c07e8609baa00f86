"""URLs that strangers have written into messages, and the hosts that these may name (G217).

A host is used only if it is the stranger's own, in the directory, or listed in `srmp.receipts_to`:
that is checked when the URL is seen, and again for each address of its name.
"""

import ipaddress
from collections import OrderedDict
from collections.abc import Callable

from rpcqm.adm.directory import equals
from rpcqm.adm.queue import OutgoingQueue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.codec.names.format_name import FormatName
from rpcqm.qm.acknowledgement_queues import AcknowledgementQueues
from rpcqm.qm.directory import Directory
from rpcqm.qm.names import LocalNames
from rpcqm.srmp.connection.network import MayConnect
from rpcqm.srmp.settings import SrmpSettings

HOSTS = 1024
"""Hosts of URLs in strangers' messages whose addresses are remembered.

Of others the first address counts again.

Bound `srmp.hosts_of_strangers` [hosts]: the addresses of the host that was used longest ago are
forgotten.
"""
_ADDRESSES = 16

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class StrangerUrls:
    """Decides by the present settings; `adopted` queues are those to which somebody here sends,
    too."""

    def __init__(
        self,
        settings: Callable[[], SrmpSettings],
        directory: Directory,
        queues: AcknowledgementQueues,
        names: LocalNames,
    ) -> None:
        self._settings = settings
        self._directory = directory
        self._queues = queues
        self._names = names
        self._seen: OrderedDict[str, set[Address]] = OrderedDict()

    def is_listed(self, host: str) -> bool:
        """Whether an administrator allows strangers to name that host."""
        return plain_host(host) in {plain_host(each) for each in self._settings().receipts_to}

    def may_name(self, name: FormatName, source: str, queue: OutgoingQueue | None) -> bool:
        """Whether a message from `source` may have receipts sent to a URL.

        `queue` is the outgoing queue of the URL, if there is one. A name may lead to somebody else:
        that shows when it has been resolved, see `may_connect`.
        """
        host = plain_host(name.direct_name.host)
        if self.is_listed(host) or self._is_in_directory(host):
            return True
        peer, address = address_of(source), address_of(host)
        if peer is None or is_inward(peer):
            return False
        if address is not None:
            return address == peer
        if host in self._seen:
            return peer in self._seen[host]
        return queue is None or self._queues.source_of(queue) == source

    def may_name_other(self, name: FormatName, source: str) -> bool:
        """The same for a name that is no URL, whose addresses are not checked again (G166).

        A name that is not direct belongs to a queue manager of the directory.
        """
        if not isinstance(name.value, str):
            return True
        host = plain_host(name.direct_name.host)
        if self._names.is_local(host) or self.is_listed(host) or self._is_in_directory(host):
            return True
        address = address_of(host)
        return address is not None and not is_inward(address) and address == address_of(source)

    def may_connect(self, queue: OutgoingQueue) -> MayConnect | None:
        """Decides about the addresses of a queue's host; None where all are allowed."""
        source = self._queues.source_of(queue)
        if source is None or address_of(source) is None:  # somebody here has named the host
            return None
        host = plain_host(FormatName.parse(queue.destination_format_name).direct_name.host)
        if self.is_listed(host) and (self._names.is_local(host) or address_of(host) is not None):
            return None  # only an administrator's entry leads inward
        return lambda text: self._may_connect(host, source, text)

    def _may_connect(self, host: str, source: str, text: str) -> bool:
        address = address_of(text)
        if address is None:
            return False
        if self.is_listed(host):
            return not is_inward(address) or self.is_listed(str(address))
        if is_inward(address):
            return False
        self.note(host, address)
        return address == address_of(source) or self._is_in_directory(host)

    def note(self, host: str, address: Address) -> None:
        """Remember an address of a host."""
        known = self._seen.setdefault(host, set())
        self._seen.move_to_end(host)
        if len(known) < _ADDRESSES:
            known.add(address)
        if len(self._seen) > HOSTS:
            self._seen.popitem(last=False)

    def _is_in_directory(self, host: str) -> bool:
        directory = self._directory
        if not directory.is_there:
            return False
        return any(
            directory.read_directory(QueueManager, [equals(attribute, host)])[1] is not None
            for attribute in ("computer_name", "qualified_computer_name")
        )


def plain_host(host: str) -> str:
    """A host in the form for comparison: in small letters, without brackets or the last dot."""
    return host.lower().removeprefix("[").removesuffix("]").removesuffix(".")


def address_of(text: str) -> Address | None:
    """The IP address that a text writes, or None; an IPv4 address mapped into IPv6 becomes IPv4."""
    try:
        address = ipaddress.ip_address(plain_host(text).partition("%")[0])
    except ValueError:  # a name
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address


def is_inward(address: Address) -> bool:
    """Whether an address leads to this machine, its link, a group or nowhere."""
    return (
        address.is_loopback
        or address.is_link_local
        or address.is_unspecified
        or address.is_multicast
        or address == _BROADCAST
    )


_BROADCAST = ipaddress.ip_address("255.255.255.255")
