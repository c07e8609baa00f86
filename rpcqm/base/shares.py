"""Who has how many entries of a bounded table; whoever has most gives way first.

Entries that strangers can cause would else push out everybody's: a flood of one address costs that
address its own oldest entries, and nobody else anything (G184).
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
        """Owners by how many keys they have: strangers with many addresses cost no search."""
        self._most = 0

    def __len__(self) -> int:
        return len(self._owners)

    def use(self, key: K, owner: str) -> None:
        """An owner uses a key, which is its own from now on."""
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
        """Others like these."""
        made: Shares[K] = Shares()
        made._owners = dict(self._owners)
        made._keys = {owner: keys.copy() for owner, keys in self._keys.items()}
        made._having = {count: owners.copy() for count, owners in self._having.items()}
        made._most = self._most
        return made

    def take_oldest(self, count: int, owner: str) -> list[K]:
        """Remove so many keys of an owner, those first that were used longest ago."""
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
        """Whoever has a key uses it."""
        owner = self._owners.get(key)
        if owner is None:
            self.use(key, "")
        else:
            self._keys[owner].move_to_end(key)

    def remove(self, key: K) -> None:
        """Nobody has that key."""
        owner = self._owners.pop(key, None)
        if owner is None:
            return
        keys = self._keys[owner]
        del keys[key]
        self._recount(owner, len(keys) + 1, len(keys))
        if not keys:
            del self._keys[owner]

    def take_surplus(self) -> K:
        """Remove the key that was used longest ago, of an owner who has most.

        KeyError if nobody has any.
        """
        if not self._keys:
            raise KeyError("no shares")
        owner = next(iter(self._having[self._most]))
        key = next(iter(self._keys[owner]))
        self.remove(key)
        return key


class RankedShares(Generic[K]):
    """Shares of which some are worth nothing: those give way before all others, whoever has them.

    Among those of one rank, whoever has most gives way first.
    """

    def __init__(self) -> None:
        self._worthless: Shares[K] = Shares()
        self._others: Shares[K] = Shares()

    def __len__(self) -> int:
        return len(self._worthless) + len(self._others)

    def __contains__(self, key: object) -> bool:
        return key in self._worthless or key in self._others

    def use(self, key: K, owner: str, *, worthless: bool) -> None:
        """An owner uses a key, which has that rank from now on."""
        ranks = (self._worthless, self._others)
        into, out = ranks if worthless else reversed(ranks)
        out.remove(key)
        into.use(key, owner)

    def remove(self, key: K) -> None:
        """Nobody has that key."""
        self._worthless.remove(key)
        self._others.remove(key)

    def take_surplus(self) -> K:
        """Remove the key that gives way first. KeyError if there is none."""
        return (self._worthless if len(self._worthless) else self._others).take_surplus()

    def copied(self) -> "RankedShares[K]":
        """Others like these."""
        made: RankedShares[K] = RankedShares()
        made._worthless, made._others = self._worthless.copied(), self._others.copied()
        return made
