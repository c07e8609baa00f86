"""The cookie of a session.

`__Host-` makes browsers keep it to this very name and to TLS; without TLS the port is in its name,
so that two queue managers of one name do not end each other's sessions.
"""

from rpcqm.console.sessions import Place
from rpcqm.http.exchange import HttpRequest


def cookie(secret: str, place: Place) -> tuple[str, str]:
    """The header that keeps a secret, or forgets it if there is none."""
    parts = [f"{_name(place)}={secret}", "Path=/", "HttpOnly", "SameSite=Strict"]
    if place.secure:
        parts.append("Secure")
    if not secret:
        parts.append("Max-Age=0")
    return "Set-Cookie", "; ".join(parts)


def secret_of(request: HttpRequest, place: Place) -> str | None:
    """The secret that a browser shows, None if it shows none, or several."""
    wanted = _name(place)
    shown = [
        value.strip()
        for header, values in request.headers
        if header.lower() == "cookie"
        for name, _, value in (each.partition("=") for each in values.split(";"))
        if name.strip() == wanted
    ]
    return shown[0] if len(shown) == 1 else None


def _name(place: Place) -> str:
    return f"{'__Host-' if place.secure else ''}rpcqm-{place.port}"
