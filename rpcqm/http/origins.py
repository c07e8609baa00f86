"""Where a request comes from, and by which name it calls this host."""

import ipaddress
from collections.abc import Container
from urllib.parse import urlsplit

from rpcqm.http.exchange import HttpRequest


def origin_of(request: HttpRequest, trusted_proxy: str) -> tuple[str, bool]:
    """The address that a request comes from, and whether it came by TLS.

    A proxy that is trusted tells both; nobody else is believed. Raises ValueError if it tells none.
    """
    if not trusted_proxy or request.peer != trusted_proxy:
        return request.peer, request.secure
    forwarded = _told(request, "x-forwarded-for")
    secure = _told(request, "x-forwarded-proto").lower() == "https"
    return str(ipaddress.ip_address(forwarded)), secure


def _told(request: HttpRequest, name: str) -> str:
    """What the proxy itself says: the last value, whether it goes on with a header or adds one."""
    values = [value for each, value in request.headers if each.lower() == name]
    return values[-1].rpartition(",")[2].strip() if values else ""


def host_of(authority: str) -> str:
    """The host of `host:port`, without a last dot; "" for what is none."""
    try:
        return (urlsplit(f"//{authority}").hostname or "").removesuffix(".")
    except ValueError:
        return ""


def is_local_name(authority: str, names: Container[str]) -> bool:
    """Whether an authority is an address, a name of this host, or one of `names`."""
    host = host_of(authority)
    if host == "localhost" or host.endswith(".localhost") or host in names:
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
