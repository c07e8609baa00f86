"""The history of messages: returns, moves, and the reasons of dead letters."""

from collections import Counter
from collections.abc import Collection

from rpcqm.codec.packet.types import SEQUENTIAL_BITS
from rpcqm.store.records import Moves

_NUMBER = (1 << SEQUENTIAL_BITS) - 1


class MovesOfMessages(dict[int, Moves]):
    """The moves of the messages of one queue, by key; `classes` counts dead letters by class.

    `unread` counts those that nobody has looked at: their number is above `looked_at`, or they were
    `late`, that is on their way during the look. `keep` and `forget` are the only ways to change
    it.
    """

    __slots__ = ("classes", "late", "looked_at", "unread")

    def __init__(self) -> None:
        super().__init__()
        self.classes: dict[int, int] = {}
        self.unread: dict[int, int] = {}
        self.looked_at = _NUMBER
        self.late: Collection[int] = ()

    def keep(self, key: int, moves: Moves) -> None:
        """Set the moves of a message."""
        self.forget(key)
        self[key] = moves
        if moves.message_class:
            self._count(key, moves.message_class, 1)

    def forget(self, key: int) -> None:
        """Drop the moves of a message, if there are any."""
        moves = self.pop(key, None)
        if moves is not None and moves.message_class:
            self._count(key, moves.message_class, -1)

    def _count(self, key: int, reason: int, more: int) -> None:
        self.classes[reason] = self.classes.get(reason, 0) + more
        if self._is_unread(key):
            self.unread[reason] = self.unread.get(reason, 0) + more

    def _is_unread(self, key: int) -> bool:
        return key & _NUMBER > self.looked_at or key in self.late

    def look(self, number: int, late: Collection[int]) -> None:
        """Note a look at all messages up to the last number given, except `late` keys."""
        self.looked_at, self.late = number, frozenset(late)
        self._recount(late)

    def restore_look(self, number: int) -> None:
        """Restore an earlier look at all messages up to a number."""
        self.looked_at = number
        self._recount(self)

    def _recount(self, keys: Collection[int]) -> None:
        unread = (self[key].message_class for key in keys if key in self and self._is_unread(key))
        self.unread = Counter(filter(None, unread))
