"""The progress of a rule in its queue, and the failures of its messages."""

from rpcqm.codec.packet.types import SEQUENTIAL_BITS
from rpcqm.codec.trigger_report import LANES, MOST_COUNTED, Position


def lane_of(lookup_identifier: int) -> int:
    """The lane of a priority in a queue, in which messages are ordered by lookup identifier."""
    return lookup_identifier >> SEQUENTIAL_BITS


class Progress:
    """The messages that were looked at, by priority; `outstanding` ones are unfinished.

    A rule that leaves messages in their queue (`keeps`) continues after them when it is restarted.
    It looks again at unfinished ones and at those behind them (G645).
    """

    def __init__(self, position: Position, keeps: bool) -> None:
        self._keeps = keeps
        self.made = position.made
        self.seen = list(position.seen) if keeps else [0] * LANES
        self.failures = dict(position.failures)
        self.outstanding: set[int] = set()

    def begin(self, made: int) -> bool:
        """Begin with a queue created at `made`; False if it differs from the queue before.

        A new queue is looked at from its beginning.
        """
        known = made == self.made
        if not known:
            self.made = made
            self.failures.clear()
            self.outstanding.clear()
        if not (known and self._keeps):
            self.look_again()
        return known

    def look_again(self) -> None:
        """Look at all messages of the queue once more."""
        self.seen = [0] * LANES

    def saw(self, lookup_identifier: int) -> None:
        """Note that a message was looked at."""
        self.seen[lane_of(lookup_identifier)] = lookup_identifier

    def seen_in_lane_of(self, lookup_identifier: int) -> int:
        """The last message of its priority that was looked at."""
        return self.seen[lane_of(lookup_identifier)]

    def has_seen(self, lookup_identifier: int) -> bool:
        """Whether a message, or one behind it of its priority, was looked at."""
        return lookup_identifier <= self.seen[lane_of(lookup_identifier)]

    def count_failure(self, lookup_identifier: int) -> int:
        """Count a failure of a message, and return its failures."""
        count = self.failures.get(lookup_identifier, 0) + 1
        if lookup_identifier in self.failures or len(self.failures) < MOST_COUNTED:
            self.failures[lookup_identifier] = count
        return count

    def finish(self, lookup_identifier: int) -> None:
        """Note that a message is finished."""
        self.outstanding.discard(lookup_identifier)
        self.failures.pop(lookup_identifier, None)

    def position(self) -> Position:
        """The position that the queue manager keeps."""
        if not self._keeps:
            return Position(self.made, failures=dict(self.failures))
        seen = list(self.seen)
        for each in self.outstanding:
            seen[lane_of(each)] = min(seen[lane_of(each)], each - 1)
        return Position(self.made, tuple(seen), dict(self.failures))
