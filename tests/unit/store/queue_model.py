"""A queue index beside a naive model of it; every operation is done to both."""

from dataclasses import dataclass
from unittest import mock

from rpcqm.adm.enums import PositionState
from rpcqm.store import priority_index
from rpcqm.store.expiry import ExpiryHeap
from rpcqm.store.index import QueueIndex
from rpcqm.store.queue_usage import QueueUsage
from rpcqm.store.records import NEVER, NO_MOVES, Moves, PositionRecord

AVAILABLE, LOCKED, PURGE_PENDING, LEAVING, DELETED = PositionState
QUEUE_ID = 7

small_chunks = mock.patch.multiple(priority_index, FULL=4, SPLIT=8, SMALL=2)
"""Makes a few messages enough to split, compact, merge and drop chunks."""


@dataclass
class Entry:
    position: PositionRecord
    state: PositionState
    owner: object = None
    moves: Moves = NO_MOVES
    before: int = LEAVING


class QueuePair:
    """The index and the model. Operations that the rules forbid are skipped."""

    def __init__(self) -> None:
        self.heap = ExpiryHeap()
        self.total = QueueUsage()
        self.index = QueueIndex(QUEUE_ID, self.heap, self.total)
        self.model: dict[int, Entry] = {}
        self.expected: dict[int, PositionRecord] = {}
        self.doomed: set[int] = set()
        self.serial = 0

    def among(self, *states: PositionState) -> list[int]:
        """Keys in one of the states, in order."""
        return sorted(key for key, entry in self.model.items() if entry.state in states)

    def expect(self, key: int, expiry: int, size: int = 5, flags: int = 1) -> None:
        if key not in self.model and key not in self.expected:
            self.serial += 1
            position = PositionRecord(self.serial, size, 100 + self.serial, expiry, flags)
            self.index.expect(key, position)
            self.expected[key] = position

    def publish(self, key: int) -> None:
        if key in self.expected:
            state = LEAVING if key in self.doomed else AVAILABLE
            self.doomed.discard(key)
            self.index.publish(key)
            self.model[key] = Entry(self.expected.pop(key), state)

    def withdraw(self, key: int) -> None:
        if key in self.expected and key not in self.doomed:
            self.index.withdraw(key)
            del self.expected[key]

    def leave(self, key: int) -> None:
        if key in self.expected and key not in self.doomed:
            assert self.index.leave(key) == (self.expected[key], LEAVING)
            self.doomed.add(key)
        elif key in self.model and self.model[key].state is not LEAVING:
            entry = self.model[key]
            assert self.index.leave(key) == (entry.position, entry.state)
            entry.before, entry.state = entry.state, LEAVING

    def come_back(self, key: int) -> None:
        if key in self.doomed:
            self.index.come_back(key, LEAVING)
            self.doomed.remove(key)
        elif key in self.among(LEAVING) and self.model[key].before is not LEAVING:
            entry = self.model[key]
            self.index.come_back(key, entry.before)
            entry.state = PositionState(entry.before)

    def discard(self, key: int) -> None:
        if key in self.among(LEAVING):
            self.index.discard(key)
            del self.model[key]

    def lock(self, key: int, owner: object) -> None:
        entry = self.model.get(key)
        allowed = entry is not None and entry.state is AVAILABLE
        assert self.index.lock(key, owner) == allowed
        if entry is not None and allowed:
            entry.state, entry.owner = LOCKED, owner

    def unlock(self, key: int) -> None:
        entry = self.model.get(key)
        allowed = entry is not None and entry.state is LOCKED
        assert self.index.unlock(key) == allowed
        if entry is not None and allowed:
            entry.state, entry.owner = AVAILABLE, None

    def purge(self, key: int, undone: bool) -> None:
        if key in self.among(LOCKED):
            self.index.purge(key)
            if undone:
                self.index.restore_lock(key)
            else:
                self.model[key].state = PURGE_PENDING

    def amend(self, key: int, flags: int, moves: Moves) -> None:
        if key in self.model:
            self.index.amend(key, flags, moves)
            entry = self.model[key]
            entry.position, entry.moves = entry.position._replace(flags=flags), moves

    # What must hold whatever happened

    def check(self) -> None:
        """Totals, and the first and the last available message."""
        entries = self.model.values()
        states = [entry.state for entry in entries]
        sizes = [entry.position.size for entry in entries]
        assert self.index.count == len(states)
        assert self.index.available == states.count(AVAILABLE)
        assert self.index.leaving == states.count(LEAVING)
        assert self.index.bytes == sum(sizes)
        sizes += [position.size for position in self.expected.values()]
        for account in (self.index.account, self.total):
            assert (account.count, account.bytes) == (len(sizes), sum(sizes))
        available = self.among(AVAILABLE)
        assert self.index.first_available() == (available[0] if available else None)
        assert self.index.last() == (available[-1] if available else None)

    def check_entries(self) -> None:
        """Every entry, one by one and in order."""
        assert list(self.index.keys()) == sorted(self.model)
        for key, entry in self.model.items():
            assert self.index.position(key) == entry.position
            assert self.index.state(key) is entry.state
            assert self.index.owner(key) is entry.owner
            assert self.index.moves(key) == entry.moves
        assert self.index.pending == self.expected

    def check_neighbours(self, key: int) -> None:
        """What comes before and after a key, which need not be there."""
        for available, keys in ((False, sorted(self.model)), (True, self.among(AVAILABLE))):
            after = [other for other in keys if other > key]
            before = [other for other in keys if other < key]
            assert self.index.first(available) == (keys[0] if keys else None)
            assert self.index.last(available) == (keys[-1] if keys else None)
            assert self.index.next(key, available) == (after[0] if after else None)
            assert self.index.previous(key, available) == (before[-1] if before else None)
            assert self.index.page(key, 3, available) == after[:3]
        assert (key in self.index) == (key in self.model)

    def check_expired(self, now: int) -> None:
        """What the heap promises and names; naming changes nothing."""
        expiries = {key: self.model[key].position.expiry for key in self.among(AVAILABLE)}
        due = sorted((QUEUE_ID, key) for key, expiry in expiries.items() if expiry <= now)
        if min(expiries.values(), default=NEVER) < NEVER:
            promised = self.heap.next_expiry()
            assert promised is not None
            assert promised <= min(expiries.values())
        assert sorted(self.heap.take_due(now, 1_000)) == due
        assert sorted(self.heap.take_due(now, 1_000)) == due
