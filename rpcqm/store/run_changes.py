"""A transaction's changes of many messages of one queue, in one step.

Their effects are those of the transaction's own methods for each message; those are the definition.
"""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from operator import is_
from typing import NamedTuple

from rpcqm.adm.enums import PositionState
from rpcqm.store.changes import Backing, Changes
from rpcqm.store.errors import PositionStateError
from rpcqm.store.express import ExpressBodies
from rpcqm.store.index import QueueIndex
from rpcqm.store.records import NEVER
from rpcqm.store.runs import Run, bodies
from rpcqm.store.spans import Span, has_neighbour

FEWEST = 6
"""The shortest column that is faster than single messages, by a benchmark."""

_LOCKED = int(PositionState.LOCKED)
_publish_many, _withdraw_many = QueueIndex.publish_many, QueueIndex.withdraw_many
_discard_many, _come_back_many = QueueIndex.discard_many, QueueIndex.come_back_many
_discard_bodies = ExpressBodies.discard_many


class Batch(NamedTuple):
    """The arguments of `StoreTransaction.insert_many`."""

    queue_id: int
    keys: Sequence[int]
    packets: Sequence[bytes]
    arrival: int
    expiries: Sequence[int] | None
    flags: int | Sequence[int]
    durable: bool
    consequence: bool

    def each(self) -> Iterator[tuple[int, bytes, int, int]]:
        """Key, packet, expiry and flags of each message."""
        count = len(self.packets)
        return zip(
            self.keys,
            self.packets,
            (NEVER,) * count if self.expiries is None else self.expiries,
            (self.flags,) * count if isinstance(self.flags, int) else self.flags,
            strict=True,
        )


def are_held(index: QueueIndex, owners: Mapping[int, object], unwanted: int) -> bool:
    """Whether all messages are locked by those owners, without any of the `unwanted` flags."""
    keys, at = array("Q", owners), 0
    while at < len(keys):
        count = _locked(index, keys, at, unwanted)
        if not count:
            return False
        at += count
    return all(map(is_, map(index.owner, keys), owners.values()))


def _locked(index: QueueIndex, keys: "array[int]", at: int, unwanted: int) -> int:
    """How many neighbouring messages from there on are locked and without such flags."""
    place = index.find(keys[at])
    if place is None:
        return 0
    _, _, chunk, slot = place
    if not has_neighbour(chunk.keys, slot, keys, at):
        return chunk.states[slot] == _LOCKED and not chunk.flags[slot] & unwanted
    span = Span(place, keys, at)
    return len(span) if span.are(_LOCKED) and not span.has_any(unwanted) else 0


def insert_batch(changes: Changes, store: Backing, batch: Batch) -> None:
    """Insert messages, all of them or none."""
    sizes = list(map(len, batch.packets))
    if batch.durable and not batch.consequence:
        store.admit(sum(sizes))
    serials = store.counters.serial.take_many(len(sizes))
    run = Run(batch.keys, serials, sizes, batch.arrival, batch.expiries, batch.flags)
    if batch.durable:
        _insert_run(changes, store, batch, run, serials)
    else:
        _insert_express(changes, store, batch, run, serials)
    changes.messages += len(sizes)


def _insert_run(changes: Changes, store: Backing, batch: Batch, run: Run, serials: range) -> None:
    index = store.index(batch.queue_id)
    index.expect_many(run)
    changes.steps.append((_publish_many, _withdraw_many, index, run))
    changes.operations.extend(bodies(serials, batch.packets, store.body_handle))
    changes.operations.extend(run.records(batch.queue_id, store.position_handle))
    changes.size += run.bytes
    changes.sync = True


def _insert_express(
    changes: Changes, store: Backing, batch: Batch, run: Run, serials: range
) -> None:
    run.express()
    index = store.index(batch.queue_id)
    store.keep_express_many(serials, batch.packets, run.bytes)
    try:
        index.expect_many(run)
    except PositionStateError:
        store.express.discard_many(serials)
        raise
    changes.steps.append((None, _discard_bodies, store.express, serials))
    changes.steps.append((_publish_many, _withdraw_many, index, run))


def remove_run(
    changes: Changes,
    store: Backing,
    queue_id: int,
    keys: Sequence[int],
    sync: bool,
    unwanted: int,
) -> None:
    """Remove messages, all of them or none."""
    index = store.index(queue_id)
    departure = index.leave_many(keys)
    if any(unwanted & flags for flags in set(departure.flags)):
        index.come_back_many(departure)
        raise PositionStateError("a message is not to be removed with others")
    changes.steps.append((_discard_many, _come_back_many, index, departure))
    before = len(changes.operations)
    changes.operations.extend(departure.records(queue_id, store.body_handle, store.position_handle))
    if len(changes.operations) > before:
        changes.sync = changes.sync or sync
    if express := departure.express():
        changes.steps.append((_discard_bodies, None, store.express, express))
    changes.messages += len(keys)
