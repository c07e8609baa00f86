"""Identifiers that are never given twice, also over restarts."""

from collections.abc import Callable, Sequence

from rpcqm.codec.packet.types import SEQUENTIAL_BITS
from rpcqm.store.records import COUNTER

KEY_PREFIX = b"counter:"


class Counter:
    """A counter whose limit is on the disk before any number below it is seen.

    `reserve(key, value)` adds the new limit to what is written next, which is always before
    anything that carries the number. A restart resumes at the limit.
    """

    __slots__ = ("_block", "_reserve", "key", "limit", "name", "next")

    def __init__(
        self, name: str, block: int, first: int, reserve: Callable[[bytes, bytes], None]
    ) -> None:
        self.name = name
        self.key = KEY_PREFIX + name.encode()
        self.next = first
        self.limit = first
        self._block = block
        self._reserve = reserve

    def resume(self, limit: bytes | None) -> None:
        """Continue at the limit that was found on the disk."""
        if limit is not None:
            self.next = self.limit = COUNTER.unpack(limit)[0]

    def take(self) -> int:
        """A number that was never given before."""
        number = self.next
        if number >= self.limit:
            self.limit = number + self._block
            self._reserve(self.key, COUNTER.pack(self.limit))
        self.next = number + 1
        return number

    def take_many(self, count: int) -> range:
        """The numbers that `take` would give, called `count` times."""
        first = self.next
        self.next = end = first + count
        if end > self.limit:
            blocks = -(-(end - self.limit) // self._block)
            self.limit += blocks * self._block
            self._reserve(self.key, COUNTER.pack(self.limit))
        return range(first, end)


class Counters:
    """The counters of a queue manager.

    `lookup_identifier` runs over 56 bits (QueueManager.SequentialID), `queue_id` leaves 1 to 15 to
    the queues of the system (G17), `message_ordinal` is the Uniquifier of message identifiers,
    `transaction` numbers units of work that send.
    """

    def __init__(self, reserve: Callable[[bytes, bytes], None]) -> None:
        # A restart resumes at the limit, and so loses what is left of a step: few numbers where
        # they are scarce, many where each limit that is written costs more.
        self.serial = Counter("serial", 1 << 16, 1, reserve)
        self.lookup_identifier = Counter("lookup identifier", 1 << 16, 1, reserve)
        self.message_ordinal = Counter("message ordinal", 1 << 12, 1, reserve)
        self.queue_id = Counter("queue id", 16, 16, reserve)
        self.transaction = Counter("transaction", 1 << 12, 1, reserve)

    def all(self) -> tuple[Counter, ...]:
        return (
            self.serial,
            self.lookup_identifier,
            self.message_ordinal,
            self.queue_id,
            self.transaction,
        )

    def places(self) -> tuple[int, ...]:
        """The present value of each counter."""
        return tuple(counter.next for counter in self.all())

    def go_back(self, places: tuple[int, ...]) -> None:
        """Return numbers that have been taken since and shown to nobody."""
        for counter, place in zip(self.all(), places, strict=True):
            counter.next = place

    def next_lookup_identifier(self, priority: int) -> int:
        """The identifier of a message that goes to the end of its priority (G1)."""
        return (7 - priority) << SEQUENTIAL_BITS | self.lookup_identifier.take()

    def next_lookup_identifiers(self, priorities: Sequence[int]) -> list[int]:
        """The identifiers that `next_lookup_identifier` would give for each, in order."""
        numbers = self.lookup_identifier.take_many(len(priorities))
        if priorities and priorities.count(priorities[0]) == len(priorities):
            lane = (7 - priorities[0]) << SEQUENTIAL_BITS
            return list(range(lane + numbers.start, lane + numbers.stop))
        return [
            (7 - priority) << SEQUENTIAL_BITS | number
            for priority, number in zip(priorities, numbers, strict=True)
        ]
