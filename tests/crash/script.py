"""A long story of changes, and what must be there after any beginning of it."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any

from rpcqm.adm.enums import PositionState
from rpcqm.store.counters import KEY_PREFIX
from rpcqm.store.migration import FORMAT_KEY
from rpcqm.store.records import NEVER, NO_MOVES, Family, Moves
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction

MARKER = b"changes so far"
EXPRESS_QUEUE = 9
QUEUES = (1, 2, 3)

Operation = tuple[Any, ...]


@dataclass(frozen=True)
class StoredMessage:
    """What a recoverable message must look like after a restart."""

    packet: bytes
    arrival: int
    expiry: int
    flags: int
    moves: Moves = NO_MOVES
    purge_pending: bool = False


@dataclass
class Model:
    """A naive store: what is durable after some changes."""

    queues: dict[int, dict[int, StoredMessage]] = field(default_factory=dict)
    records: dict[bytes, bytes] = field(default_factory=dict)


class Script:
    """The same changes for the same seed; each is a list of operations of one transaction.

    `states[n]` is the model after the first n changes.
    """

    def __init__(self, seed: int, length: int) -> None:
        self._random = Random(seed)
        self._key = 0
        self._touched: set[int] = set()
        self._names: set[bytes] = set()
        self._open: dict[bytes, list[bytes]] = {}
        self.model = Model(queues={queue: {} for queue in QUEUES})
        self.changes: list[list[Operation]] = []
        self.states = [deepcopy(self.model)]
        for _ in range(length):
            self._add_change()

    def _add_change(self) -> None:
        choices = (
            [self._insert] * 4
            + [self._insert_run] * 2
            + [self._remove] * 4
            + [self._move] * 2
            + [self._update, self._purge, self._put, self._delete, self._stage, self._decide]
            + [self._empty]
        )
        change: list[Operation] = []
        self._touched.clear()
        self._names.clear()
        for _ in range(self._random.choice([1, 1, 1, 2, 3])):
            change += self._random.choice(choices)()
        self.changes.append(change)
        self.states.append(deepcopy(self.model))

    def _insert(self) -> list[Operation]:
        queue = self._random.choice(QUEUES)
        self._key += 1
        key = self._random.choice([0, 4]) << 56 | self._key
        self._touched.add(key)
        size = self._random.choice([20, 200, 1_000, 1_000, 6_000])
        message = StoredMessage(
            self._random.randbytes(size),
            self._random.randrange(1 << 40),
            self._random.choice([NEVER, self._random.randrange(1 << 41)]),
            self._random.randrange(64),
        )
        self.model.queues[queue][key] = message
        return [("insert", queue, key, message)]

    def _insert_run(self) -> list[Operation]:
        queue, arrival = self._random.choice(QUEUES), self._random.randrange(1 << 40)
        priorities = self._random.choices([0, 4], k=self._random.randrange(2, 12))
        self._key += len(priorities)
        run = {
            priority << 56 | self._key - at: StoredMessage(
                self._random.randbytes(self._random.choice([20, 200, 6_000])),
                arrival,
                self._random.choice([NEVER, self._random.randrange(1 << 41)]),
                self._random.randrange(64),
            )
            for at, priority in enumerate(priorities)
        }
        self._touched.update(run)
        self.model.queues[queue].update(run)
        return [("insert many", queue, run)]

    def _some_message(self) -> tuple[int, int, StoredMessage] | None:
        messages = [
            (queue, key, message)
            for queue, held in self.model.queues.items()
            for key, message in held.items()
            if key not in self._touched
        ]
        if not messages:
            return None
        found = self._random.choice(messages)
        self._touched.add(found[1])
        return found

    def _remove(self) -> list[Operation]:
        if (found := self._some_message()) is None:
            return []
        queue, key, _ = found
        del self.model.queues[queue][key]
        return [("remove", queue, key)]

    def _move(self) -> list[Operation]:
        if (found := self._some_message()) is None or found[2].purge_pending:
            return []
        queue, key, message = found
        target = self._random.choice([other for other in QUEUES if other != queue])
        moves = Moves(0, message.moves.move_count + 1, self._random.randrange(1 << 41))
        del self.model.queues[queue][key]
        changes = {**message.__dict__, "moves": moves}
        self.model.queues[target][key] = StoredMessage(**changes)
        return [("rehome", queue, key, target, moves)]

    def _update(self) -> list[Operation]:
        if (found := self._some_message()) is None or found[2].purge_pending:
            return []
        queue, key, message = found
        moves = Moves(message.moves.abort_count + 1, *message.moves[1:])
        self.model.queues[queue][key] = StoredMessage(**{**message.__dict__, "moves": moves})
        return [("update", queue, key, moves)]

    def _purge(self) -> list[Operation]:
        if (found := self._some_message()) is None or found[2].purge_pending:
            return []
        queue, key, message = found
        self.model.queues[queue][key] = StoredMessage(**{**message.__dict__, "purge_pending": True})
        return [("purge", queue, key)]

    def _put(self) -> list[Operation]:
        name, value = self._random.randbytes(1), self._random.randbytes(50)
        self.model.records[name] = value
        return [("put", name, value)]

    def _delete(self) -> list[Operation]:
        if not self.model.records:
            return []
        name = self._random.choice(sorted(self.model.records))
        del self.model.records[name]
        return [("delete", name)]

    def _stage(self) -> list[Operation]:
        name = self._random.randbytes(16)
        self._names.add(name)
        packets = [self._random.randbytes(700) for _ in range(2)]
        self._open[name] = packets
        return [("stage", name, packets)]

    def _decide(self) -> list[Operation]:
        if not self._open:
            return []
        name = self._random.choice(sorted(self._open))
        if name in self._names:
            return []
        packets = self._open.pop(name)
        if self._random.random() < 0.5:
            return [("abort", name)]
        self._key += 1
        self._touched.add(self._key)
        self.model.queues[QUEUES[0]][self._key] = StoredMessage(packets[0], 5, NEVER, 1)
        return [("commit", name, packets, self._key)]

    def _empty(self) -> list[Operation]:
        """Remove everything from a queue in one change, now and then."""
        if self._random.random() < 0.7:
            return []
        queue = self._random.choice(QUEUES)
        keys = sorted(self.model.queues[queue].keys() - self._touched)
        self._touched.update(keys)
        for key in keys:
            del self.model.queues[queue][key]
        return [("remove many", queue, keys)]


def perform(store: Store, txn: StoreTransaction, operation: Operation) -> None:
    """Do one operation of a change."""
    OPERATIONS[operation[0]](store, txn, *operation[1:])


def _insert(
    store: Store, txn: StoreTransaction, queue: int, key: int, message: StoredMessage
) -> None:
    store.counters.lookup_identifier.take()
    txn.insert(
        queue,
        key,
        message.packet,
        arrival=message.arrival,
        expiry=message.expiry,
        flags=message.flags,
    )


def _insert_many(
    store: Store, txn: StoreTransaction, queue: int, run: dict[int, StoredMessage]
) -> None:
    store.counters.lookup_identifier.take_many(len(run))
    txn.insert_many(
        queue,
        list(run),
        [message.packet for message in run.values()],
        arrival=next(iter(run.values())).arrival,
        expiries=[message.expiry for message in run.values()],
        flags=[message.flags for message in run.values()],
    )


def _rehome(
    store: Store, txn: StoreTransaction, queue: int, key: int, target: int, moves: Moves
) -> None:
    txn.rehome(queue, key, target, key, moves=moves)


def _update(store: Store, txn: StoreTransaction, queue: int, key: int, moves: Moves) -> None:
    txn.update_position(queue, key, moves=moves)


def _purge(store: Store, txn: StoreTransaction, queue: int, key: int) -> None:
    txn.lock(queue, key, "reader")
    txn.purge(queue, key)


def _stage(store: Store, txn: StoreTransaction, name: bytes, packets: list[bytes]) -> None:
    for packet in packets:
        txn.stage_message(name, QUEUES[0], packet, b"a message")


def _commit(
    store: Store, txn: StoreTransaction, name: bytes, packets: list[bytes], key: int
) -> None:
    if name not in store.uncommitted:  # the process that has staged them was killed
        _stage(store, txn, name, packets)
    txn.insert_staged(name, 1, key, arrival=5, flags=1)
    txn.unstage(name)


OPERATIONS: dict[str, Callable[..., None]] = {
    "insert": _insert,
    "insert many": _insert_many,
    "remove": lambda store, txn, queue, key: txn.remove(queue, key),
    "remove many": lambda store, txn, queue, keys: txn.remove_many(queue, keys),
    "rehome": _rehome,
    "update": _update,
    "purge": _purge,
    "put": lambda store, txn, name, value: txn.put(Family.STREAM, name, value),
    "delete": lambda store, txn, name: txn.delete(Family.STREAM, name),
    "stage": _stage,
    "commit": _commit,
    "abort": lambda store, txn, name: txn.unstage(name),
}


def marker_of(store: Store) -> int:
    """How many changes of the script are in a store that was just opened."""
    value = store.get(Family.META, MARKER)
    return 0 if value is None else int(value)


def model_of(store: Store) -> Model:
    """What a store that was just opened holds."""
    model = Model()
    for queue in QUEUES:
        index = store.index(queue)
        keys = list(index.keys())
        model.queues[queue] = {key: _stored(store, queue, key) for key in keys}
    model.records = dict(store.records(Family.STREAM))
    return model


def _stored(store: Store, queue: int, key: int) -> StoredMessage:
    index = store.index(queue)
    position = index.expected(key)
    return StoredMessage(
        store.read_packet(position.serial),
        position.arrival,
        position.expiry,
        position.flags,
        index.moves(key),
        index.state(key) is PositionState.PURGE_PENDING,
    )


def other_records(store: Store) -> set[bytes]:
    """Names of records in META that neither the store nor the script has put there."""
    names = {name for name, _ in store.records(Family.META)}
    return {name for name in names if not name.startswith(KEY_PREFIX)} - {MARKER, FORMAT_KEY}
