"""Caches of keys and certificates, whose entries grow old ([MS-MQQB] 3.1.1.3, 3.1.6.10 to .13).

They are SendSymmetricKeyCache, SendBaseSymmetricKeyCache, ReceiveSymmetricKeyCache and
UserCertCache; each has its Cleanup Timer.
"""

from collections.abc import Hashable
from typing import Generic, TypeVar

from rpcqm.base.clock import Clock, Timer, Timers

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_MINUTE = 60_000

RECEIVE_SYMMETRIC_KEY_CACHE_SIZE = 127
SEND_SYMMETRIC_KEY_CACHE_SIZE = 53
USER_CERT_CACHE_SIZE = 53
SYMMETRIC_KEY_SHORT_LIFETIME = 600_000
USER_CERT_LIFETIME = 1_200_000


class AgingCache(Generic[K, V]):
    """At most `size` entries, each for `lifetime` milliseconds and up to a minute longer.

    When it is full the older half goes. One timer removes entries that are too old: first a
    lifetime after the first entry, then a minute after the oldest one's time.
    """

    def __init__(self, clock: Clock, timers: Timers, size: int, lifetime: int) -> None:
        self._clock = clock
        self._timers = timers
        self._size = size
        self._lifetime = lifetime
        self._entries: dict[K, tuple[int, V]] = {}
        self._timer: Timer | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """The value of a present entry, or None."""
        entry = self._entries.get(key)
        return None if entry is None else entry[1]

    def values(self) -> list[V]:
        """The entries, the oldest first."""
        return [value for _, value in self._entries.values()]

    def add(self, key: K, value: V) -> None:
        """Add an entry."""
        if len(self._entries) >= self._size:
            for old in list(self._entries)[: max(self._size // 2, 1)]:
                del self._entries[old]
        self._entries.pop(key, None)
        self._entries[key] = (self._clock.monotonic(), value)
        if self._timer is None:
            self._timer = self._timers.call_later(self._lifetime, self._cleanup)

    def _cleanup(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        self._entries = {
            key: entry for key, entry in self._entries.items() if entry[0] >= now - self._lifetime
        }
        if self._entries:
            oldest = next(iter(self._entries.values()))[0]
            delay = self._lifetime + _MINUTE - (now - oldest)
            self._timer = self._timers.call_later(delay, self._cleanup)

    def stop(self) -> None:
        """Forget everything."""
        self._entries.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
