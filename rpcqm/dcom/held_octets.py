"""The memory that objects take for their callers, who choose their contents."""

from collections import Counter

from rpcqm.base.errors import HResult, MQError

MOST_HELD = 1 << 28
"""Octets that the objects of one caller may take by default."""


class HeldOctets:
    """The octets in objects, by the SIDs of the callers who have put them there."""

    def __init__(self, most: int = MOST_HELD) -> None:
        self.most = most
        self._held: Counter[str] = Counter()

    def __getitem__(self, owner: str) -> int:
        return self._held[owner]

    def check(self, owner: str, more: int = 0) -> None:
        """Raise MQ_ERROR_INSUFFICIENT_RESOURCES if a caller holds too much, with `more` besides."""
        if self._held[owner] + more > self.most:
            raise MQError(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, "too much in objects")

    def change(self, owner: str, octets: int) -> None:
        """Add octets to a caller's count; negative ones are subtracted."""
        self._held[owner] += octets
        if not self._held[owner]:
            del self._held[owner]


class Holding:
    """The octets of one object, by the names of its parts; they all count for the first caller."""

    __slots__ = ("_held", "_sizes", "owner")

    def __init__(self, held: HeldOctets, owner: str) -> None:
        self._held = held
        self._sizes: dict[str, int] = {}
        self.owner = owner

    def set(self, part: str, octets: int, *, always: bool = False) -> None:
        """Set the octets of a part; MQ_ERROR_INSUFFICIENT_RESOURCES for too many.

        `always` is for parts that cannot be refused any more.
        """
        more = octets - self._sizes.get(part, 0)
        if more > 0 and not always:
            self._held.check(self.owner, more)
        self._held.change(self.owner, more)
        self._sizes[part] = octets

    def give_back(self) -> None:
        """Stop counting: the object is gone."""
        self._held.change(self.owner, -sum(self._sizes.values()))
        self._sizes.clear()
