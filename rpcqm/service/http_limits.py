"""The bounds of listeners of HTTP, from those of all listeners."""

from rpcqm.config import LimitsSection
from rpcqm.http.limits import HttpLimits


def http_limits(limits: LimitsSection) -> HttpLimits:
    """No connection logs on for good: the shorter of the two times for idle ones holds."""
    idle = [each for each in (limits.idle_seconds, limits.unauthenticated_seconds) if each]
    return HttpLimits(
        body_bytes=limits.call_bytes,
        held_bytes_in_all=limits.held_bytes,
        unfinished_milliseconds=limits.unfinished_seconds * 1000,
        unread_milliseconds=limits.unread_seconds * 1000,
        idle_milliseconds=min(idle, default=0) * 1000,
        stop_milliseconds=limits.stop_seconds * 1000,
    )
