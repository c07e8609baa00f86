"""The number of hosts that a message has passed: relays must not pass it round for ever (G238).

Each relay adds itself to the header Via of RFC 9110, as proxies do; a stored request has the
entries of earlier relays.
"""

MAXIMUM_HOPS = 15
"""Hosts by which a message by HTTP has come that is for another machine.

Chains of relays are far shorter.

Bound `srmp.hops` [hosts]: the request is answered with 400.
"""
VIA = "Via"
_OURS = "1.1 msmq"
"""The protocol version, and a name that reveals nothing of us."""


def hops_of(compound: bytes) -> list[str]:
    """The hosts that a request has passed, the first one first."""
    head = compound[: compound.find(b"\r\n\r\n")].decode("utf-8", "replace")
    fields = (line.partition(":") for line in head.split("\r\n")[1:])
    values = (value for name, _, value in fields if name.strip().lower() == VIA.lower())
    return [hop for value in values for each in value.split(",") if (hop := each.strip())]


def via(compound: bytes) -> tuple[str, str]:
    """The header Via of the forwarded request."""
    return VIA, ", ".join((*hops_of(compound), _OURS))
