"""The origin of an order: an address, and the protocol that brought it."""

import ipaddress
from contextvars import ContextVar
from typing import NamedTuple

LOCAL = "local"
RPC, COM, HTTP = "rpc", "com", "http"
"""The protocols by which orders come."""


class Origin(NamedTuple):
    """The origin of an order: an address, or LOCAL for the local socket, and a protocol."""

    address: str = LOCAL
    protocol: str = RPC


HERE = Origin()
ORIGIN: ContextVar[Origin] = ContextVar("origin", default=HERE)
"""The origin of the orders of this task."""


def origin_of_peer(peer: str, protocol: str) -> Origin:
    """The origin for a peer given as `address:port`; any other text is a local peer."""
    host = peer.rpartition(":")[0].strip("[]")
    try:
        return Origin(str(ipaddress.ip_address(host)), protocol)
    except ValueError:
        return Origin(LOCAL, protocol)
