"""How much memory the messages of clients take while objects hold them."""

from collections import Counter

from rpcqm.base.errors import HResult, MQError

MOST_HELD = 1 << 28
"""Octets that the messages of one caller take: 64 of the largest, and a service has few callers."""


class HeldOctets:
    """The octets in messages, by the SIDs of the callers whose objects hold them."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()

    def __getitem__(self, owner: str) -> int:
        return self._held[owner]

    def check(self, owner: str, more: int = 0) -> None:
        """Raise MQ_ERROR_INSUFFICIENT_RESOURCES if a caller holds too much, with `more` besides."""
        if self._held[owner] + more > MOST_HELD:
            raise MQError(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, "too much in messages")

    def change(self, owner: str, octets: int) -> None:
        """Count octets that come, or go where they are negative."""
        self._held[owner] += octets
        if not self._held[owner]:
            del self._held[owner]
