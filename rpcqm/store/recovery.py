"""From what lies on disk back to what is kept in memory."""

from typing import TYPE_CHECKING

from rocksdict import WriteBatch

from rpcqm.adm.enums import PositionState
from rpcqm.store.database import Database
from rpcqm.store.records import (
    FLAG_PURGE_PENDING,
    POSITION,
    POSITION_KEY,
    SERIAL,
    STAGED,
    STAGED_KEY,
    Family,
    Moves,
)
from rpcqm.store.staged import PREPARED, StagedOperation, StagedTransaction

if TYPE_CHECKING:
    from rpcqm.store.store import Store


def recover(store: "Store", database: Database) -> None:
    """Load counters, index and prepared transactions; drop what open transactions staged."""
    for counter in store.counters.all():
        counter.resume(database.get(Family.META, counter.key))
    _load_positions(store, database)
    _load_staged(store, database)


def _load_positions(store: "Store", database: Database) -> None:
    for key, value in database.items(Family.POSITION):
        queue_id, lookup_identifier = POSITION_KEY.unpack(key)
        serial, arrival, expiry, size, flags, *moves = POSITION.unpack(value)
        index = store.index(queue_id)
        purged = flags & FLAG_PURGE_PENDING
        state = PositionState.PURGE_PENDING if purged else PositionState.AVAILABLE
        index.account.charge(size)
        index.total.charge(size)
        flags &= ~FLAG_PURGE_PENDING
        index.insert(lookup_identifier, serial, size, arrival, expiry, flags, state)
        if any(moves):
            index.amend(lookup_identifier, flags, Moves(*moves))


def _load_staged(store: "Store", database: Database) -> None:
    for key, value in database.items(Family.STAGED):
        transaction_id, number = STAGED_KEY.unpack(key)
        staged = store.staged.setdefault(transaction_id, StagedTransaction(transaction_id))
        if number == PREPARED:
            staged.record = value
        else:
            staged.operations[number] = _staged_operation(number, value)
            staged.next_number = number + 1
    for staged in list(store.staged.values()):
        if staged.record is None:
            del store.staged[staged.transaction_id]
            _drop(staged, database)
        else:
            for operation in staged.operations.values():
                if operation.serial is not None:
                    store.charge_staged(operation)


def _staged_operation(number: int, value: bytes) -> StagedOperation:
    _, queue_id, serial, size = STAGED.unpack_from(value)
    return StagedOperation(number, value[STAGED.size :], queue_id, serial or None, size)


def _drop(staged: StagedTransaction, database: Database) -> None:
    batch = WriteBatch(raw_mode=True)
    for operation in staged.operations.values():
        key = STAGED_KEY.pack(staged.transaction_id, operation.number)
        batch.delete(key, database.handles[Family.STAGED])
        if operation.serial is not None:
            batch.delete(SERIAL.pack(operation.serial), database.handles[Family.BODY])
    database.write(batch, sync=True)
