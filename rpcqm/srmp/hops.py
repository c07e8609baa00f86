"""By how many hosts a message has come: relays that name each other must not pass it round (G238).

Each relay adds itself to the header Via of RFC 9110, as proxies do; the request that is kept of a
message has those of before.
"""

MAXIMUM_HOPS = 15
"""Hosts by which a message by HTTP has come that is for another machine.

Chains of relays are far shorter.

Bound `srmp.hops` [hosts]: the request is answered with 400.
"""
VIA = "Via"
_OURS = "1.1 msmq"
"""The version that was spoken, and a name that tells nothing of us."""


def hops_of(compound: bytes) -> list[str]:
    """The hosts that a request, as it came, has passed, the first one first."""
    head = compound[: compound.find(b"\r\n\r\n")].decode("utf-8", "replace")
    fields = (line.partition(":") for line in head.split("\r\n")[1:])
    values = (value for name, _, value in fields if name.strip().lower() == VIA.lower())
    return [hop for value in values for each in value.split(",") if (hop := each.strip())]


def via(compound: bytes) -> tuple[str, str]:
    """The header with which a request goes on."""
    return VIA, ", ".join((*hops_of(compound), _OURS))
