"""What a transaction would change, looked at instead of done."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from rpcqm.store.index import QueueIndex
from rpcqm.store.records import FLAG_EXPRESS, PositionRecord
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction

if TYPE_CHECKING:
    from rocksdict import ColumnFamily as FamilyHandle

_PUBLISH, _PUBLISH_MANY = QueueIndex.publish, QueueIndex.publish_many
_DISCARD, _DISCARD_MANY = QueueIndex.discard, QueueIndex.discard_many

Usage = dict[int, tuple[int, int]]
"""Messages and octets that quotas count, by queue identifiers."""


class Entering(NamedTuple):
    """A message that becomes visible; `packet` is that of an express one, b"" where it is on the
    disk.
    """

    queue_id: int
    key: int
    position: PositionRecord
    packet: bytes


class Rehearsed(NamedTuple):
    """What a transaction writes and deletes, shows and removes, and whether it waits for a sync.

    `leaving` are the queues and the keys of messages that go; `charged` is what quotas count more
    than before.
    """

    operations: "list[tuple[bytes, bytes | None, FamilyHandle]]"
    entering: list[Entering]
    leaving: list[tuple[int, int]]
    charged: Usage
    messages: int
    size: int
    sync: bool

    @classmethod
    def of(cls, transaction: StoreTransaction, store: Store) -> "Rehearsed":
        """What it has been told until now; `charged` is all that is counted, until `since`."""
        touched = {step[2].queue_id for step in transaction.steps if type(step[2]) is QueueIndex}
        return cls(
            list(transaction.operations),
            list(_entering(transaction, store)),
            list(_leaving(transaction)),
            usage(store, touched),
            transaction.messages,
            transaction.size,
            transaction.sync,
        )

    def since(self, before: Usage) -> "Rehearsed":
        """The same, with what is charged more than `before`."""
        charged: Usage = {}
        for queue_id, (count, size) in self.charged.items():
            counted, sized = before.get(queue_id, (0, 0))
            if (count, size) != (counted, sized):
                charged[queue_id] = count - counted, size - sized
        return self._replace(charged=charged)

    @classmethod
    def joined(cls, several: "list[Rehearsed]") -> "Rehearsed":
        """What several do together, which were undone together."""
        charged: Usage = {}
        for one in several:
            charged |= one.charged
        return cls(
            [each for one in several for each in one.operations],
            [each for one in several for each in one.entering],
            [each for one in several for each in one.leaving],
            charged,
            sum(one.messages for one in several),
            sum(one.size for one in several),
            any(one.sync for one in several),
        )

    def with_records(
        self, of: Callable[[bytes, bytes | None], Iterable[tuple[bytes, bytes | None]]]
    ) -> "Rehearsed":
        """The same with other records: those that `of` gives for each key and value."""
        changed = [
            (key, value, family)
            for before, kept, family in self.operations
            for key, value in of(before, kept)
        ]
        return self._replace(operations=changed)

    def as_written(self) -> list[tuple[bytes, bool, bytes]]:
        """The records as they are left, in the order of their keys: keys, whether there is a value,
        and values.

        Within one write the last value of a key is what counts, and no other order matters.
        """
        left = {(id(family), key): value for key, value, family in self.operations}
        found = ((key, value is not None, value or b"") for (_, key), value in left.items())
        return sorted(found)

    def as_shown(self) -> tuple[list[Entering], list[tuple[int, int]], Usage]:
        """What is visible in memory afterwards, in the order of queues and keys."""
        return sorted(self.entering), sorted(self.leaving), self.charged


@contextmanager
def rehearsing(store: Store) -> Iterator[list[Rehearsed]]:
    """Undo what is committed within at the end, and give it then; numbers are those before.

    What waits for the end of the turn is carried out before.
    """
    store.carry_out_first()
    kept: list[Rehearsed] = []
    committed: list[StoreTransaction] = []
    places = store.counters.places()
    vars(store)["commit"] = committed.append
    try:
        yield kept
    finally:
        del vars(store)["commit"]
        rehearsed = [Rehearsed.of(transaction, store) for transaction in committed]
        for transaction in reversed(committed):
            transaction.undo()
        kept += [each.since(usage(store, each.charged)) for each in rehearsed]
        store.counters.go_back(places)


def usage(store: Store, queue_ids: Iterable[int]) -> Usage:
    """What quotas count for these queues."""
    accounts = ((queue_id, store.index(queue_id).account) for queue_id in queue_ids)
    return {queue_id: (account.count, account.bytes) for queue_id, account in accounts}


def _entering(transaction: StoreTransaction, store: Store) -> Iterator[Entering]:
    for apply, _, index, *arguments in transaction.steps:
        if apply is _PUBLISH:
            yield _entry(store, index, arguments[0])
        elif apply is _PUBLISH_MANY:
            for key in arguments[0].keys:
                yield _entry(store, index, key)


def _entry(store: Store, index: QueueIndex, key: int) -> Entering:
    position = index.pending_position(key)
    assert position is not None
    is_express = position.flags & FLAG_EXPRESS
    packet = store.express.get(position.serial) if is_express else b""
    return Entering(index.queue_id, key, position, packet)


def _leaving(transaction: StoreTransaction) -> Iterator[tuple[int, int]]:
    for apply, _, index, *arguments in transaction.steps:
        if apply is _DISCARD:
            yield index.queue_id, arguments[0]
        elif apply is _DISCARD_MANY:
            for key in arguments[0].keys:
                yield index.queue_id, key
