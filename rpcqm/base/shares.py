"""Counts the entries that each owner has in a bounded table; the largest owner gives way first.

Otherwise entries that strangers can cause would push out everybody's: a flood from one address now
costs that address its own oldest entries, and nobody else any (G184).
"""

from collections import OrderedDict
from itertools import islice
from typing import Generic, TypeVar

K = TypeVar("K")


class Shares(Generic[K]):
    """The keys of a table by their owners, each owner's in the order of their last use."""

    def __init__(self) -> None:
        self._owners: dict[K, str] = {}
        self._keys: dict[str, OrderedDict[K, None]] = {}
        self._having: dict[int, OrderedDict[str, None]] = {}
        """Owners by their number of keys, so that strangers with many addresses cost no search."""
        self._most = 0

    def __len__(self) -> int:
        return len(self._owners)

    def use(self, key: K, owner: str) -> None:
        """Note that an owner uses a key, and owns it from now on."""
        before = self._owners.get(key)
        if before == owner:
            self._keys[owner].move_to_end(key)
            return
        if before is not None:
            self.remove(key)
        self._owners[key] = owner
        keys = self._keys.setdefault(owner, OrderedDict())
        keys[key] = None
        self._recount(owner, len(keys) - 1, len(keys))

    def _recount(self, owner: str, before: int, now: int) -> None:
        """Note that an owner has another number of keys."""
        if before:
            others = self._having[before]
            del others[owner]
            if not others:
                del self._having[before]
        if now:
            self._having.setdefault(now, OrderedDict())[owner] = None
        self._most = max(self._most, now)
        while self._most and self._most not in self._having:
            self._most -= 1

    def __contains__(self, key: object) -> bool:
        return key in self._owners

    def count(self, owner: str) -> int:
        """How many keys an owner has."""
        return len(self._keys.get(owner, ()))

    def copied(self) -> "Shares[K]":
        """A copy."""
        made: Shares[K] = Shares()
        made._owners = dict(self._owners)
        made._keys = {owner: keys.copy() for owner, keys in self._keys.items()}
        made._having = {count: owners.copy() for count, owners in self._having.items()}
        made._most = self._most
        return made

    def take_oldest(self, count: int, owner: str) -> list[K]:
        """Remove and return `count` keys of an owner, the least recently used first."""
        keys = self._keys.get(owner)
        if not keys or count <= 0:
            return []
        taken = list(islice(keys, count))
        owners = self._owners
        for key in taken:
            del keys[key], owners[key]
        self._recount(owner, len(keys) + len(taken), len(keys))
        if not keys:
            del self._keys[owner]
        return taken

    def touch(self, key: K) -> None:
        """Note that the key was used by its owner."""
        owner = self._owners.get(key)
        if owner is None:
            self.use(key, "")
        else:
            self._keys[owner].move_to_end(key)

    def remove(self, key: K) -> None:
        """Remove a key."""
        owner = self._owners.pop(key, None)
        if owner is None:
            return
        keys = self._keys[owner]
        del keys[key]
        self._recount(owner, len(keys) + 1, len(keys))
        if not keys:
            del self._keys[owner]

    def take_surplus(self) -> K:
        """Remove the least recently used key of an owner with most keys. Raises KeyError."""
        if not self._keys:
            raise KeyError("no shares")
        owner = next(iter(self._having[self._most]))
        key = next(iter(self._keys[owner]))
        self.remove(key)
        return key


class RankedShares(Generic[K]):
    """Shares in which worthless keys give way before all others, whoever owns them.

    Within one rank the largest owner gives way first.
    """

    def __init__(self) -> None:
        self._worthless: Shares[K] = Shares()
        self._others: Shares[K] = Shares()

    def __len__(self) -> int:
        return len(self._worthless) + len(self._others)

    def __contains__(self, key: object) -> bool:
        return key in self._worthless or key in self._others

    def use(self, key: K, owner: str, *, worthless: bool) -> None:
        """Note that an owner uses a key, which has that rank from now on."""
        ranks = (self._worthless, self._others)
        into, out = ranks if worthless else reversed(ranks)
        out.remove(key)
        into.use(key, owner)

    def remove(self, key: K) -> None:
        """Remove a key."""
        self._worthless.remove(key)
        self._others.remove(key)

    def take_surplus(self) -> K:
        """Remove the key that gives way first. Raises KeyError if there is no key."""
        return (self._worthless if len(self._worthless) else self._others).take_surplus()

    def copied(self) -> "RankedShares[K]":
        """A copy."""
        made: RankedShares[K] = RankedShares()
        made._worthless, made._others = self._worthless.copied(), self._others.copied()
        return made
