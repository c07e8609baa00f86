"""What became of messages before: how often they came back or were moved, and why they died."""

from rpcqm.store.records import Moves


class MovesOfMessages(dict[int, Moves]):
    """The moves of the messages of one queue, by key; `classes` counts dead letters by class.

    `keep` and `forget` are the only ways to change it.
    """

    __slots__ = ("classes",)

    def __init__(self) -> None:
        super().__init__()
        self.classes: dict[int, int] = {}

    def keep(self, key: int, moves: Moves) -> None:
        """Set the moves of a message."""
        self.forget(key)
        self[key] = moves
        if moves.message_class:
            self.classes[moves.message_class] = self.classes.get(moves.message_class, 0) + 1

    def forget(self, key: int) -> None:
        """Drop those of a message, which may have none."""
        moves = self.pop(key, None)
        if moves is not None and moves.message_class:
            self.classes[moves.message_class] -= 1
