"""The common part of all templates: they are remembered within bounds, and forgotten.

A client that never repeats must not pay for those that do. So the number of templates is bounded
(`Learned`), learning is bounded in time (`Budget`), and after many new requests few of them are
examined (`Patience`).
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from rpcqm.base.buckets import TokenBuckets
from rpcqm.base.clock import Clock

Key = TypeVar("Key", bound=Hashable)
NearKey = TypeVar("NearKey", bound=Hashable)
Template = TypeVar("Template")


class Budget:
    """An allowance of lessons: so many at once, then so many a second."""

    __slots__ = ("_bucket", "_clock")

    def __init__(self, clock: Clock, at_once: int, per_second: int) -> None:
        self._clock = clock
        self._bucket = TokenBuckets(at_once, per_second, 1)

    def take(self) -> bool:
        """Whether one more lesson is allowed now."""
        return self._bucket.take(None, self._clock.monotonic()) is not None


class Patience:
    """After `misses` requests in a row without a template, one of `one_of` is examined."""

    __slots__ = ("_in_vain", "_misses", "_one_of")

    def __init__(self, misses: int, one_of: int) -> None:
        self._misses, self._one_of = misses, one_of
        self._in_vain = 0

    def looks(self) -> bool:
        """Whether to examine the next request; it counts as a miss until `found` is called."""
        self._in_vain += 1
        return self._in_vain <= self._misses or not self._in_vain % self._one_of

    def found(self) -> None:
        """Note that a template fits the examined request."""
        self._in_vain = 0


class Learned(Generic[Key, Template]):
    """Templates by key, at most `most`; those used longest ago are forgotten first.

    None in the place of a template records that a lesson found that there is none.
    """

    __slots__ = ("_by_key", "_most")

    def __init__(self, most: int) -> None:
        self._most = most
        self._by_key: OrderedDict[Key, Template | None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_key)

    def __contains__(self, key: Key) -> bool:
        return key in self._by_key

    def find(self, key: Key) -> Template | None:
        """The template of a key, which counts as used now."""
        template = self._by_key.get(key)
        if template is not None:
            self._by_key.move_to_end(key)
        return template

    def keep(self, key: Key, template: Template | None) -> None:
        """Keep the result of a lesson; the least recently used key may be forgotten for it."""
        self._by_key[key] = template
        self._by_key.move_to_end(key)
        if len(self._by_key) > self._most:
            self._by_key.popitem(last=False)

    def forget(self, key: Key) -> None:
        """Forget a key that is remembered."""
        del self._by_key[key]

    def find_or_learn(
        self, key: Key, budget: Budget, learn: Callable[[], Template | None]
    ) -> Template | None:
        """The template of a key, learned now if nothing is remembered and the budget allows it."""
        if key not in self._by_key and budget.take():
            self.keep(key, learn())
        return self.find(key)


class Near(Generic[NearKey, Template]):
    """The templates of one owner: an open queue, a program's request.

    They are found without the longer key that all owners share. An owner with more than `most`
    begins anew.
    """

    __slots__ = ("_by_key", "_most")

    def __init__(self, most: int) -> None:
        self._most = most
        self._by_key: dict[NearKey, Template | None] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def __contains__(self, key: NearKey) -> bool:
        return key in self._by_key

    def find(self, key: NearKey) -> Template | None:
        """The template of a key; None if there is none, or it was forgotten."""
        return self._by_key.get(key)

    def __getitem__(self, key: NearKey) -> Template | None:
        return self._by_key[key]

    def keep(self, key: NearKey, template: Template | None) -> Template | None:
        """Remember a template for this owner; returns it."""
        if len(self._by_key) >= self._most:
            self._by_key.clear()
        self._by_key[key] = template
        return template
