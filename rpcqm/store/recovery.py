"""Rebuilds the state in memory from the disk."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from rocksdict import WriteBatch

from rpcqm.store.columns import Columns
from rpcqm.store.counters import Counters
from rpcqm.store.database import Database
from rpcqm.store.index import QueueIndex
from rpcqm.store.records import SERIAL, STAGED, Family

if TYPE_CHECKING:
    from rocksdict import ColumnFamily as FamilyHandle

RUN = 4096
"""Positions that are decoded at once."""


def recover(database: Database, counters: Counters, index: Callable[[int], QueueIndex]) -> None:
    """Load counters and indexes."""
    for counter in counters.all():
        counter.resume(database.get(Family.META, counter.key))
    _load_positions(database, index)


def _load_positions(database: Database, index: Callable[[int], QueueIndex]) -> None:
    records = database.items(Family.POSITION)
    while run := list(islice(records, RUN)):
        columns = Columns(run)
        start = 0
        while start < len(columns):
            queue_id = columns.queue_ids[start]
            end = bisect_right(columns.queue_ids, queue_id, start)
            index(queue_id).load(columns, start, end)
            start = end
        for at, moves in columns.moved():
            index(columns.queue_ids[at]).count_moves(columns.keys[at], moves)


def drop_staged(database: Database) -> None:
    """Delete the staged operations of open transactions: they do not survive a restart (G65)."""
    batch = WriteBatch(raw_mode=True)
    for key, _, handle in staged(database):
        batch.delete(key, handle)
    if not batch.is_empty():
        database.write(batch, sync=True)


def staged(database: Database) -> "Iterator[tuple[bytes, None, FamilyHandle]]":
    """The removals of staged operations, and of their packets."""
    for key, value in database.items(Family.STAGED):
        yield key, None, database.handles[Family.STAGED]
        _, _, serial, _ = STAGED.unpack_from(value)
        if serial:
            yield SERIAL.pack(serial), None, database.handles[Family.BODY]
