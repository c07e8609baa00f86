"""The queue in memory: how its messages come, are locked, and go."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import repeat

from rpcqm.adm.enums import PositionState
from rpcqm.base.each import run_all
from rpcqm.codec.packet.types import SEQUENTIAL_BITS
from rpcqm.store.chunk import DELETED, LIVE
from rpcqm.store.columns import Columns
from rpcqm.store.errors import PositionStateError, StoreError
from rpcqm.store.expiry import ExpiryHeap
from rpcqm.store.places import PRIORITIES, Places
from rpcqm.store.priority_index import Place
from rpcqm.store.put_off import PutOff
from rpcqm.store.queue_usage import QueueUsage
from rpcqm.store.records import Moves, PositionRecord
from rpcqm.store.runs import Departure, Run
from rpcqm.store.spans import ONLY_AVAILABLE, PRESENT, Span, has_neighbour

_AVAILABLE = int(PositionState.AVAILABLE)
_LOCKED = int(PositionState.LOCKED)
_PURGE_PENDING = int(PositionState.PURGE_PENDING)
_LEAVING = int(PositionState.LEAVING)


class QueueIndex(Places):
    """The messages of one queue: arrivals, locks, removals.

    Inserted messages are `pending` until their commit is durable, alone or as part of a run.
    `bytes` is of all visible messages, `leaving` counts those in that state. `account` is what
    quotas count (G56); a subqueue shares its parent's.
    """

    __slots__ = ("_doomed", "_owners", "account", "bytes", "dropped", "leaving", "total")

    def __init__(
        self, queue_id: int, heap: ExpiryHeap, total: QueueUsage, put_off: PutOff | None = None
    ) -> None:
        super().__init__(queue_id, heap, PutOff() if put_off is None else put_off)
        self._owners: dict[int, object] = {}
        self._doomed: set[int] = set()
        self.leaving = 0
        self.bytes = 0
        self.dropped = False
        self.account = QueueUsage()
        self.total = total

    # Locking: in memory only, because a restart gives back what was not removed

    def owner(self, key: int) -> object | None:
        """The holder of the message's lock (also while it is purge pending or leaving), or None."""
        return self._owners.get(key)

    def lock(self, key: int, owner: object) -> bool:
        """Lock an available message for `owner`; False when it is not available."""
        place = self.find(key)
        if place is None or place[2].states[place[3]] != _AVAILABLE:
            return False
        self.lock_at(place, owner)
        return True

    def lock_at(self, place: Place, owner: object) -> None:
        """Lock the message at a place, which has to be available."""
        self._turn(place, _LOCKED)
        self._owners[place[2].keys[place[3]]] = owner

    def unlock(self, key: int) -> bool:
        """Make a locked message available; False when it is not locked.

        A message that is leaving stays so (G61), one that is purge pending is its owner's to
        remove.
        """
        if self._put_off.waits:
            self._put_off.carry_out()
        place = self.find(key)
        if place is None or place[2].states[place[3]] != _LOCKED:
            return False
        del self._owners[key]
        self._turn(place, _AVAILABLE)
        return True

    def lock_many(self, keys: Sequence[int], owner: object) -> bool:
        """Lock available messages for `owner`; False, and nothing done, when one is not."""
        wanted, at = array("Q", keys), 0
        while at < len(wanted):
            if not (count := self._lock_some(wanted, at, owner)):
                self.unlock_many(wanted[:at])
                return False
            at += count
        return True

    def _lock_some(self, keys: "array[int]", at: int, owner: object) -> int:
        """Lock the next neighbouring messages, or the next one; returns how many."""
        span = self._span(keys, at)
        if span is None:
            return self.lock(keys[at], owner)
        states = span.keep(ONLY_AVAILABLE)
        self.available -= span.turn(_LOCKED, states)
        self._owners.update(dict.fromkeys(span.keys, owner))
        return len(states)

    def unlock_many(self, keys: Iterable[int]) -> None:
        """Make messages available, as `unlock` each."""
        for key in keys:
            self.unlock(key)

    def _turn(self, place: Place, state: int) -> None:
        """Change the state of an entry, and the counts by state."""
        priority, at, chunk, slot = place
        before = chunk.states[slot]
        chunk.states[slot] = state
        if before == _AVAILABLE:
            chunk.available -= 1
            self.available -= 1
            if not chunk.available:
                priority.open[at] = 0
        elif before == _LEAVING:
            self.leaving -= 1
        if state == _LEAVING:
            self.leaving += 1
        elif state == _AVAILABLE:
            chunk.available += 1
            self.available += 1
            priority.open[at] = 1
            if chunk.expiries[slot] < chunk.earliest:
                priority.heap.push(chunk, chunk.expiries[slot])

    # Called by transactions of the store, which undo or complete what they begin

    def expect(self, key: int, position: PositionRecord) -> None:
        """Reserve a place for a message whose commit is on its way."""
        if key in self.pending or self.dropped or not self._is_free(key):
            raise PositionStateError(f"the identifier {key:#x} cannot be used")
        self.pending[key] = position
        account, total, size = self.account, self.total, position[1]
        account.count += 1
        account.bytes += size
        total.count += 1
        total.bytes += size

    def withdraw(self, key: int) -> None:
        """Undo `expect`."""
        position = self.pending.pop(key)
        assert isinstance(position, PositionRecord)
        self.account.release(position.size)
        self.total.release(position.size)

    def publish(self, key: int) -> None:
        """Make a pending message visible; it is leaving if its removal has been ordered already."""
        position = self.pending.pop(key)
        assert isinstance(position, PositionRecord)
        serial, size, arrival, expiry, flags = position
        state = _AVAILABLE
        if self._doomed and key in self._doomed:
            self._doomed.remove(key)
            state = _LEAVING
        self.insert(key, serial, size, arrival, expiry, flags, state)

    def insert(
        self, key: int, serial: int, size: int, arrival: int, expiry: int, flags: int, state: int
    ) -> None:
        """Insert an entry that has been charged already."""
        priority = self._to_fill(key >> SEQUENTIAL_BITS)
        priority.insert(key, serial, size, arrival, expiry, flags, state)
        self.count += 1
        self.entered += 1
        self.bytes += size
        self.available += state == _AVAILABLE
        self.leaving += state == _LEAVING

    def expect_many(self, run: Run) -> None:
        """Reserve places for a run of messages whose commit is on its way, as `expect` each."""
        pending, keys = self.pending, run.keys
        added: dict[int, PositionRecord | Run] = dict.fromkeys(keys, run)
        if self.dropped or len(added) < len(keys) or not self._are_free(run):
            raise PositionStateError(
                f"the identifiers {keys[0]:#x} to {keys[-1]:#x} cannot be used"
            )
        pending.update(added)
        self.account.charge_many(len(keys), run.bytes)
        self.total.charge_many(len(keys), run.bytes)

    def _are_free(self, run: Run) -> bool:
        return self.pending.keys().isdisjoint(run.keys) and all(
            number < PRIORITIES
            and (
                self._priorities[number].ends_before(run.keys[start])
                or not self._is_any_here(run, start, end)
            )
            for number, start, end in run.by_priority()
        )

    def _is_any_here(self, run: Run, start: int, end: int) -> bool:
        return any(self.find(key) is not None for key in run.keys[start:end])

    def withdraw_many(self, run: Run) -> None:
        """Undo `expect_many`."""
        self._forget_pending(run)
        self.account.charge_many(-len(run.keys), -run.bytes)
        self.total.charge_many(-len(run.keys), -run.bytes)

    def _forget_pending(self, run: Run) -> None:
        if len(self.pending) == len(run.keys):
            self.pending.clear()
            return
        run_all(map(self.pending.__delitem__, run.keys))

    def publish_many(self, run: Run) -> None:
        """Make a run of pending messages visible, as `publish` each."""
        self._forget_pending(run)
        leaving = self._leave_doomed(run) if self._doomed else 0
        for number, start, end in run.by_priority():
            priority = self._to_fill(number)
            if priority.ends_before(run.keys[start]):
                priority.extend(run, start, end)
            else:
                for entry in run.entries(start, end):
                    priority.insert(*entry)
        count = len(run.keys)
        self.count += count
        self.entered += count
        self.bytes += run.bytes
        self.available += count - leaving
        self.leaving += leaving

    def _leave_doomed(self, run: Run) -> int:
        """Begin the ordered removals of messages of a run; returns how many."""
        doomed = self._doomed.intersection(run.keys)
        if doomed:
            self._doomed -= doomed
            run.leave(doomed)
        return len(doomed)

    def removable(self, key: int) -> PositionRecord:
        """The entry that `leave` would remove; raises PositionStateError as that does."""
        position = self.pending_position(key)
        if position is None:
            return self.expected(key)
        if key in self._doomed:
            raise PositionStateError(f"the message {key:#x} is leaving already")
        return position

    def leave(self, key: int) -> tuple[PositionRecord, int]:
        """Begin a removal; returns the entry, and the state that `come_back` restores.

        Raises PositionStateError if the message is not here or leaving already.
        """
        place = self.find(key)
        if place is None:
            return self._doom(key), _LEAVING
        chunk, slot = place[2], place[3]
        state = chunk.states[slot]
        if state == _LEAVING:
            raise PositionStateError(f"the message {key:#x} is leaving already")
        self._turn(place, _LEAVING)
        return chunk.position(slot), state

    def _doom(self, key: int) -> PositionRecord:
        position = self.pending_position(key)
        if position is None or key in self._doomed:
            raise PositionStateError(f"there is no message {key:#x}")
        self._doomed.add(key)
        return position

    def come_back(self, key: int, state: int) -> None:
        """Undo `leave`."""
        if state == _LEAVING:
            self._doomed.remove(key)
        elif (place := self.find(key)) is not None:
            self._turn(place, state)

    def leave_many(self, keys: Sequence[int]) -> Departure:
        """Begin the removal of messages, as `leave` does with each; all of them or none."""
        departure = Departure(keys)
        try:
            while (at := len(departure.states)) < len(keys):
                self._leave_some(departure, at)
        except PositionStateError:
            self.come_back_many(departure)
            raise
        return departure

    def _leave_some(self, departure: Departure, at: int) -> None:
        """Begin the removal of the next neighbouring messages."""
        span = self._span(departure.keys, at)
        if span is None:
            departure.add(*self.leave(departure.keys[at]))
            return
        states = span.keep(PRESENT)
        if not states:
            raise PositionStateError(f"the message {departure.keys[at]:#x} is leaving already")
        self.available -= span.turn(_LEAVING, states)
        self.leaving += len(states)
        departure.add_span(span, states)

    def _span(self, keys: "array[int]", at: int) -> Span | None:
        """The messages that are neighbours like their keys, from place `at` on; None if the first
        one has no such neighbour."""
        place = self.find(keys[at])
        if place is None or not has_neighbour(place[2].keys, place[3], keys, at):
            return None
        return Span(place, keys, at)

    def come_back_many(self, departure: Departure) -> None:
        """Undo `leave_many`."""
        for key, state in zip(departure.keys, departure.states, strict=False):
            self.come_back(key, state)

    def discard_many(self, departure: Departure) -> None:
        """Drop leaving messages, whose removal is durable now, as `discard` each."""
        keys, at = departure.keys, 0
        while at < len(keys):
            span = self._span(keys, at)
            if span is None:
                self.discard(keys[at])
                at += 1
            else:
                at += self._discard_span(span)

    def _discard_span(self, span: Span) -> int:
        """Drop neighbours; returns how many."""
        span.keep(LIVE)
        count, size, keys = len(span), span.size, span.keys
        self.count -= count
        self.leaving -= count
        self.bytes -= size
        self.account.charge_many(-count, -size)
        self.total.charge_many(-count, -size)
        if self._owners:
            run_all(map(self._owners.pop, keys, repeat(None)))
        for key in keys if self.moved else ():
            self.moved.forget(key)
        span.delete()
        return count

    def discard(self, key: int) -> None:
        """Drop a leaving message, whose removal is durable now."""
        place = self.find(key)
        if place is None:
            raise PositionStateError(f"there is no message {key:#x}")
        priority, at, chunk, slot = place
        size = chunk.sizes[slot]
        chunk.states[slot] = DELETED
        chunk.live -= 1
        self.count -= 1
        self.leaving -= 1
        self.bytes -= size
        self.account.release(size)
        self.total.release(size)
        if self._owners:
            self._owners.pop(key, None)
        if self.moved:
            self.moved.forget(key)
        priority.shrink(at)

    def purge(self, key: int) -> None:
        """Mark a locked message for removal when its owner lets go of it."""
        place = self.find(key)
        if place is None or place[2].states[place[3]] != _LOCKED:
            raise PositionStateError(f"the message {key:#x} is not locked")
        self._turn(place, _PURGE_PENDING)

    def restore_lock(self, key: int) -> None:
        """Undo `purge`."""
        if (place := self.find(key)) is not None:
            self._turn(place, _LOCKED)

    def amend(self, key: int, flags: int, moves: Moves) -> None:
        """Set the flags and the counts of a message."""
        if (place := self.find(key)) is not None:
            place[2].flags[place[3]] = flags
        self.count_moves(key, moves)

    def count_moves(self, key: int, moves: Moves) -> None:
        """Set the counts of a message, which may be pending."""
        if any(moves):
            self.moved.keep(key, moves)
        else:
            self.moved.forget(key)

    def drop(self) -> None:
        """Accept no more messages; raises PositionStateError unless all here are leaving."""
        if self.leaving < self.count or len(self._doomed) < len(self.pending):
            raise PositionStateError(f"the queue {self.queue_id} still holds messages")
        self.dropped = True

    def undrop(self) -> None:
        """Undo `drop`."""
        self.dropped = False

    def load(self, columns: Columns, start: int, end: int) -> None:
        """Append and charge a run of position records of this queue, when starting."""
        if columns.keys[end - 1] >> SEQUENTIAL_BITS >= PRIORITIES:
            raise StoreError(f"The queue {self.queue_id} holds an impossible identifier.")
        size = sum(columns.sizes[start:end])
        available = columns.states.count(_AVAILABLE, start, end)
        while start < end:
            number = columns.keys[start] >> SEQUENTIAL_BITS
            stop = bisect_left(columns.keys, (number + 1) << SEQUENTIAL_BITS, start, end)
            self._to_fill(number).extend(columns, start, stop)
            self.count += stop - start
            self._loaded += stop - start
            self.account.count += stop - start
            self.total.count += stop - start
            start = stop
        self.available += available
        self.bytes += size
        self.account.bytes += size
        self.total.bytes += size

    def charge_to(self, account: QueueUsage) -> None:
        """Count the messages of this queue in another queue's account: that of a subqueue's parent
        (G56)."""
        account.count += self.account.count
        account.bytes += self.account.bytes
        self.account = account
