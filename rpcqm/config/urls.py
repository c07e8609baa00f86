"""What texts have to be that name places of HTTP; each check raises ValueError with a reason.

A reason goes on after the name and the value of a setting, as in "`srmp.proxy` is 'x', which …".
"""

import ipaddress
import re
from urllib.parse import urlsplit

_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?\.?")
_SCHEMES = ("http", "https")


def check_url(text: str) -> None:
    """A URL of one place."""
    if "*" in text:
        raise ValueError("which may not have a `*`")
    _check_parts(text, _SCHEMES)


def check_pattern(text: str) -> None:
    """A URL, or the beginning of some with a `*` at its end."""
    before, star, after = text.partition("*")
    if star and after:
        raise ValueError("which has a `*` before its end")
    _check_parts(before, _SCHEMES)


def check_proxy(text: str) -> None:
    """A proxy, which is spoken to without TLS."""
    _check_parts(text, ("http",))
    if urlsplit(text).path not in ("", "/"):
        raise ValueError("which names more than a host and a port")


def check_host(text: str) -> None:
    """A host alone; IPv6 addresses are in brackets or not."""
    if not _is_host(text.removeprefix("[").removesuffix("]")):
        raise ValueError("which is no host: leave out scheme, port and path")


def _check_parts(text: str, schemes: tuple[str, ...]) -> None:
    wanted = " or ".join(f"{scheme}://" for scheme in schemes)
    if not text.isprintable() or " " in text:
        raise ValueError("which has characters that a URL cannot have")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError("which is no URL: its host or its port is wrong") from None
    if parts.scheme not in schemes:
        raise ValueError(f"which is no URL that begins with {wanted}")
    if parts.username is not None:
        raise ValueError("which has a user name; none is sent")
    if port == 0 or not _is_host(parts.hostname or ""):
        raise ValueError("which is no URL: its host or its port is wrong")


def _is_host(text: str) -> bool:
    if ":" not in text:
        return _HOST.fullmatch(text) is not None
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True
