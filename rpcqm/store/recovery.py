"""Builds the state in memory from the data on the disk."""

from bisect import bisect_right
from itertools import islice
from typing import TYPE_CHECKING

from rocksdict import WriteBatch

from rpcqm.store.columns import Columns
from rpcqm.store.database import Database
from rpcqm.store.records import SERIAL, STAGED, STAGED_KEY, Family
from rpcqm.store.uncommitted import PREPARED, UncommittedOperation, UncommittedTransaction

if TYPE_CHECKING:
    from rpcqm.store.store import Store

RUN = 4096
"""How many positions are taken apart at once."""


def recover(store: "Store", database: Database) -> None:
    """Load counters, index and prepared transactions; drop what open transactions staged."""
    for counter in store.counters.all():
        counter.resume(database.get(Family.META, counter.key))
    _load_positions(store, database)
    _load_staged(store, database)


def _load_positions(store: "Store", database: Database) -> None:
    records = database.items(Family.POSITION)
    while run := list(islice(records, RUN)):
        columns = Columns(run)
        start = 0
        while start < len(columns):
            queue_id = columns.queue_ids[start]
            end = bisect_right(columns.queue_ids, queue_id, start)
            store.index(queue_id).load(columns, start, end)
            start = end
        for at, moves in columns.moved():
            store.index(columns.queue_ids[at]).count_moves(columns.keys[at], moves)


def _load_staged(store: "Store", database: Database) -> None:
    for key, value in database.items(Family.STAGED):
        transaction_id, number = STAGED_KEY.unpack(key)
        staged = store.uncommitted.setdefault(
            transaction_id, UncommittedTransaction(transaction_id)
        )
        if number == PREPARED:
            staged.record = value
        else:
            staged.operations[number] = _staged_operation(number, value)
            staged.next_number = number + 1
    for staged in list(store.uncommitted.values()):
        if staged.record is None:
            del store.uncommitted[staged.transaction_id]
            _drop(staged, database)
        else:
            _charge(staged, store)


def _staged_operation(number: int, value: bytes) -> UncommittedOperation:
    _, queue_id, serial, size = STAGED.unpack_from(value)
    return UncommittedOperation(number, value[STAGED.size :], queue_id, serial or None, size)


def _charge(staged: UncommittedTransaction, store: "Store") -> None:
    for operation in staged.operations.values():
        if operation.serial is not None:
            store.charge_staged(operation)


def _drop(staged: UncommittedTransaction, database: Database) -> None:
    batch = WriteBatch(raw_mode=True)
    for operation in staged.operations.values():
        key = STAGED_KEY.pack(staged.transaction_id, operation.number)
        batch.delete(key, database.handles[Family.STAGED])
        if operation.serial is not None:
            batch.delete(SERIAL.pack(operation.serial), database.handles[Family.BODY])
    database.write(batch, sync=True)
