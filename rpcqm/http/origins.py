"""The origin of a request, and the name by which it calls this host."""

import functools
import ipaddress
import re
from collections.abc import Container

from rpcqm.http.exchange import HttpRequest

_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]@:/?#\\\s]+)(?::[0-9]*)?")
REMEMBERED, LONGEST_REMEMBERED = 256, 300
"""The number of texts whose reading is cached, and their greatest length: programs repeat them."""


def origin_of(request: HttpRequest, trusted_proxy: str) -> tuple[str, bool]:
    """The address that a request comes from, and whether it came by TLS.

    A trusted proxy gives both in headers; other peers' headers are ignored. Raises ValueError if
    the proxy gives no address.
    """
    if not trusted_proxy or request.peer != trusted_proxy:
        return request.peer, request.secure
    forwarded = _told(request, "x-forwarded-for")
    secure = _told(request, "x-forwarded-proto").lower() == "https"
    return str(ipaddress.ip_address(forwarded)), secure


def _told(request: HttpRequest, name: str) -> str:
    """The proxy's own value of a header: the last one, which it has written or appended."""
    values = [value for each, value in request.headers if each.lower() == name]
    return values[-1].rpartition(",")[2].strip() if values else ""


def host_of(authority: str) -> str:
    """The host of `host:port`, without a last dot; "" if the text has another form."""
    found = _AUTHORITY.fullmatch(authority)
    return "" if found is None else found[1].strip("[]").lower().removesuffix(".")


def is_local_name(authority: str, names: Container[str]) -> bool:
    """Whether an authority is an address, a name of this host, or one of `names`."""
    short = len(authority) <= LONGEST_REMEMBERED
    host, local = (_remembered_host if short else _read_host)(authority)
    return local or host in names


def is_loopback(address: str) -> bool:
    """Whether an address is one of this machine; raises ValueError unless it is an IP address."""
    short = len(address) <= LONGEST_REMEMBERED
    return (_remembered_loopback if short else _is_loopback)(address)


def _read_host(authority: str) -> tuple[str, bool]:
    """The host of an authority, and whether it is an address or `localhost`."""
    host = host_of(authority)
    if host == "localhost" or host.endswith(".localhost"):
        return host, True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host, False
    return host, True


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address).is_loopback


_remembered_host = functools.lru_cache(REMEMBERED)(_read_host)
_remembered_loopback = functools.lru_cache(REMEMBERED)(_is_loopback)
