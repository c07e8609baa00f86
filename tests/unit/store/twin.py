"""Two stores: what is done to one message by message is done to the other in runs."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from rpcqm.base.metrics import Metrics
from rpcqm.store import transaction
from rpcqm.store.index import QueueIndex
from rpcqm.store.records import NEVER, POSITION, POSITION_KEY, SERIAL, Family
from rpcqm.store.settings import StoreSettings
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction
from tests.support.store.stores import Turns

any_number_in_columns = mock.patch.object(transaction, "FEWEST", 1)
"""Makes columns of the shortest runs too."""

QUEUES = A, B = 1, 2

Change = Callable[["Half", StoreTransaction], object]


class Refused(Exception):
    """Ends a block, all of which is undone."""


class NewMessage(NamedTuple):
    """A message of a run that is about to be inserted."""

    key: int
    packet: bytes
    expiry: int
    flags: int


class Half:
    """One of the stores; it writes in the loop or in a thread."""

    def __init__(self, directory: Path, in_runs: bool, thread: bool) -> None:
        self.in_runs = in_runs
        self._turns = Turns(directory)
        self._work: list[Callable[[], None]] = []
        self._back: list[Callable[[], None]] = []
        self.metrics = Metrics()
        self._options: dict[str, Any] = {
            # Every sync is slow, so that all but the first are made in the thread, if there is one.
            "settings": StoreSettings(reserve=0, slow_sync=0, express_memory=64),
            "executor": self._work.append if thread else None,
            "call_from_thread": self._back.append if thread else None,
            "metrics": self.metrics,
        }
        self.store = self._turns.open(**self._options)

    def insert(
        self, txn: StoreTransaction, queue_id: int, new: Sequence[NewMessage], durable: bool
    ) -> None:
        if not self.in_runs:
            for key, packet, expiry, flags in new:
                txn.insert(
                    queue_id, key, packet, arrival=7, expiry=expiry, flags=flags, durable=durable
                )
            return
        expiries = [each.expiry for each in new]
        flags_of_each = [each.flags for each in new]
        txn.insert_many(
            queue_id,
            [each.key for each in new],
            [each.packet for each in new],
            arrival=7,
            expiries=None if set(expiries) == {NEVER} else expiries,
            flags=flags_of_each[0] if len(set(flags_of_each)) == 1 else flags_of_each,
            durable=durable,
        )

    def remove(self, txn: StoreTransaction, queue_id: int, keys: Sequence[int]) -> None:
        if self.in_runs:
            txn.remove_many(queue_id, keys)
            return
        for key in keys:
            txn.remove(queue_id, key)

    def lock(self, queue_id: int, keys: Sequence[int]) -> None:
        """Lock those that are available."""
        index = self.store.index(queue_id)
        if not self.in_runs or not index.lock_many(keys, "reader"):
            for key in keys:
                index.lock(key, "reader")

    def unlock(self, queue_id: int, keys: Sequence[int]) -> None:
        index = self.store.index(queue_id)
        if self.in_runs:
            index.unlock_many(keys)
            return
        for key in keys:
            index.unlock(key)

    def change(self, change: Change, fails: bool) -> str:
        """Do something in a block of its own; the name of what it raised, or what it writes."""
        try:
            with self.store.transaction("change") as txn:
                change(self, txn)
                if fails:
                    raise Refused
        except Exception as error:
            return type(error).__name__
        kinds = sorted((len(key), value is None) for key, value, _ in txn.operations)
        return f"{kinds} {txn.size} {txn.messages} {txn.sync}"

    def end_turn(self) -> None:
        """End the turn; what a thread is to write it does not write yet."""
        self._turns.end()

    def write(self) -> None:
        """Let the thread write once, and end the turn in which it tells."""
        if self._work:
            self._work.pop(0)()
            self._back.pop(0)()
        self._turns.end()

    def settle(self) -> None:
        """Write all that is pending."""
        self._turns.end()
        while self._work:
            self.write()

    def reopen(self) -> None:
        self.settle()
        self.store = self._turns.reopen(self.store, **self._options)

    def close(self) -> None:
        self.settle()
        self.store.close()

    def keys(self, queue_id: int) -> list[int]:
        """Identifiers of what is visible or pending."""
        index = self.store.index(queue_id)
        return sorted({*index.keys(), *index.pending})

    def state(self, now: int) -> dict[str, Any]:
        """All that can be seen, without the serials, which a refusal may take or not."""
        store = self.store
        return {
            "queues": [self._queue(store.index(number)) for number in QUEUES],
            "total": (store.total.count, store.total.bytes),
            "express": (store.express.memory, store.express.spilled),
            "due": sorted(store.expire(now)),
            "expiry": store.next_expiry(),
            "messages": self.metrics.snapshot().get("store_messages"),
        }

    def _queue(self, index: QueueIndex) -> dict[str, Any]:
        keys = list(index.keys())
        return {
            "messages": [(key, self._message(index, key)) for key in keys],
            "available": index.page(None, 1 << 20),
            "pending": {key: self._pending(index, key) for key in index.pending},
            "counts": (index.count, index.available, index.leaving, index.entered, index.left),
            "bytes": index.bytes,
            "account": (index.account.count, index.account.bytes),
            "ends": (index.first_available(), index.last(), index.last(available=False)),
            "oldest": index.oldest(),
        }

    def _message(self, index: QueueIndex, key: int) -> tuple[Any, ...]:
        position = index.position(key)
        assert position is not None
        packet = self.store.read_packet(position.serial)
        found = index.keys_of(position.serial)
        return (position[1:], packet, index.state(key), index.moves(key), index.owner(key), found)

    def _pending(self, index: QueueIndex, key: int) -> tuple[int, ...]:
        position = index.pending_position(key)
        assert position is not None
        with suppress(Exception):
            assert index.removable(key) == position
        return position[1:]

    def disk(self) -> dict[str, Any]:
        """Every record, with the packet in place of the serial."""
        store = self.store
        bodies = dict(store.records(Family.BODY))
        positions = []
        for key, value in store.records(Family.POSITION):
            serial, *rest = POSITION.unpack(value)
            positions.append((POSITION_KEY.unpack(key), bodies.pop(SERIAL.pack(serial)), rest))
        assert not bodies
        others = (Family.QUEUE, Family.STAGED, Family.STREAM, Family.HISTORY)
        return {
            "positions": positions,
            "others": {family: list(store.records(family)) for family in others},
        }


class Twin:
    """Both stores; whatever is done is done to both, and they are equal afterwards."""

    def __init__(self, directory: Path, thread: bool) -> None:
        self.single = Half(directory / "single", in_runs=False, thread=thread)
        self.runs = Half(directory / "runs", in_runs=True, thread=thread)
        self.halves = (self.single, self.runs)

    @property
    def store(self) -> Store:
        return self.single.store

    def new_keys(self, priorities: Sequence[int]) -> list[int]:
        """Identifiers for new messages; the same in both."""
        keys = [self.store.counters.next_lookup_identifier(each) for each in priorities]
        assert self.runs.store.counters.next_lookup_identifiers(priorities) == keys
        return keys

    def change(self, change: Change, fails: bool = False) -> None:
        ends = [half.change(change, fails) for half in self.halves]
        assert ends[0] == ends[1]

    def all(self, step: Callable[[Half], object]) -> None:
        """Do something to both."""
        for half in self.halves:
            step(half)

    def check(self, now: int = 0) -> None:
        assert self.single.state(now) == self.runs.state(now)

    def check_disk(self) -> None:
        self.all(Half.reopen)
        self.check(now=50)
        assert self.single.disk() == self.runs.disk()

    def close(self) -> None:
        self.all(Half.close)
