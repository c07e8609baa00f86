"""What a transaction does with many messages of one queue in one step.

Whatever is done here is what the transaction's own methods do for each message; those are the
definition.
"""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from operator import is_
from typing import TYPE_CHECKING, NamedTuple

from rpcqm.adm.enums import PositionState
from rpcqm.store.errors import PositionStateError
from rpcqm.store.express import ExpressBodies
from rpcqm.store.index import QueueIndex
from rpcqm.store.records import NEVER
from rpcqm.store.runs import Run, bodies
from rpcqm.store.spans import Span, has_neighbour

if TYPE_CHECKING:
    from rpcqm.store.store import Store
    from rpcqm.store.transaction import StoreTransaction

FEWEST = 6
"""Columns of fewer messages cost more than these do one by one, by a benchmark."""

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
    """Whether all messages are locked by those owners, and none has one of the `unwanted` flags."""
    keys, at = array("Q", owners), 0
    while at < len(keys):
        count = _locked(index, keys, at, unwanted)
        if not count:
            return False
        at += count
    return all(map(is_, map(index.owner, keys), owners.values()))


def _locked(index: QueueIndex, keys: "array[int]", at: int, unwanted: int) -> int:
    """How many messages from there on are side by side, if all are locked without such flags."""
    place = index.find(keys[at])
    if place is None:
        return 0
    _, _, chunk, slot = place
    if not has_neighbour(chunk.keys, slot, keys, at):
        return chunk.states[slot] == _LOCKED and not chunk.flags[slot] & unwanted
    span = Span(place, keys, at)
    return len(span) if span.are(_LOCKED) and not span.has_any(unwanted) else 0


def insert_batch(transaction: "StoreTransaction", store: "Store", batch: Batch) -> None:
    """Insert messages, all of them or none."""
    sizes = list(map(len, batch.packets))
    if batch.durable and not batch.consequence:
        store.admit(sum(sizes))
    if (count := len(sizes)) < FEWEST:
        _insert_few(transaction, batch)
        return
    serials = store.counters.serial.take_many(count)
    run = Run(batch.keys, serials, sizes, batch.arrival, batch.expiries, batch.flags)
    if batch.durable:
        _insert_run(transaction, store, batch, run, serials)
    else:
        _insert_express(transaction, store, batch, run, serials)
    transaction.messages += count


def _insert_few(transaction: "StoreTransaction", batch: Batch) -> None:
    """Insert messages, which are admitted already, one by one; all of them or none."""
    steps, operations = len(transaction.steps), len(transaction.operations)
    before = transaction.size, transaction.messages, transaction.sync
    try:
        for key, packet, expiry, flags in batch.each():
            transaction.insert(
                batch.queue_id,
                key,
                packet,
                arrival=batch.arrival,
                expiry=expiry,
                flags=flags,
                durable=batch.durable,
                consequence=True,
            )
    except BaseException:
        transaction.undo_until(steps)
        del transaction.operations[operations:]
        transaction.size, transaction.messages, transaction.sync = before
        raise


def _insert_run(
    transaction: "StoreTransaction", store: "Store", batch: Batch, run: Run, serials: range
) -> None:
    index = store.index(batch.queue_id)
    index.expect_many(run)
    transaction.steps.append((_publish_many, _withdraw_many, index, run))
    transaction.operations.extend(bodies(serials, batch.packets, store.body_handle))
    transaction.operations.extend(run.records(batch.queue_id, store.position_handle))
    transaction.size += run.bytes
    transaction.sync = True


def _insert_express(
    transaction: "StoreTransaction", store: "Store", batch: Batch, run: Run, serials: range
) -> None:
    run.express()
    index = store.index(batch.queue_id)
    store.keep_express_many(serials, batch.packets, run.bytes)
    try:
        index.expect_many(run)
    except PositionStateError:
        store.express.discard_many(serials)
        raise
    transaction.steps.append((None, _discard_bodies, store.express, serials))
    transaction.steps.append((_publish_many, _withdraw_many, index, run))


def remove_run(
    transaction: "StoreTransaction",
    store: "Store",
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
    transaction.steps.append((_discard_many, _come_back_many, index, departure))
    before = len(transaction.operations)
    transaction.operations.extend(
        departure.records(queue_id, store.body_handle, store.position_handle)
    )
    if len(transaction.operations) > before:
        transaction.sync = transaction.sync or sync
    if express := departure.express():
        transaction.steps.append((_discard_bodies, None, store.express, express))
    transaction.messages += len(keys)
