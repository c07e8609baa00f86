"""Where what is asked comes from: an address, and by what it comes."""

import ipaddress
from contextvars import ContextVar
from typing import NamedTuple

LOCAL = "local"
RPC, COM, HTTP = "rpc", "com", "http"
"""How orders come."""


class Origin(NamedTuple):
    """Where an order comes from: an address, or LOCAL for the local socket, and by what."""

    address: str = LOCAL
    protocol: str = RPC


HERE = Origin()
ORIGIN: ContextVar[Origin] = ContextVar("origin", default=HERE)
"""Where the orders of this task come from."""


def origin_of_peer(peer: str, protocol: str) -> Origin:
    """The origin of a peer: `address:port`, or another text if it is local."""
    host = peer.rpartition(":")[0].strip("[]")
    try:
        return Origin(str(ipaddress.ip_address(host)), protocol)
    except ValueError:
        return Origin(LOCAL, protocol)
