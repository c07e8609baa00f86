"""Checks that the log continues a node's data: otherwise the node does not start.

The first node gives the log its identifier, with data or without. A node without data may come
later as long as the log still begins with an empty database. Every other one joins by a copy of a
node's data.
"""

import asyncio
import secrets
from dataclasses import dataclass

from rpcqm.base.settling import settled
from rpcqm.store.database import Database
from rpcqm.store.errors import LogSilentError, ReplicationError
from rpcqm.store.migration import (
    check_of_cluster,
    enter_cluster,
    is_of_cluster,
    place_of_database,
    read_format,
)
from rpcqm.store.replication import (
    DIGEST_SIZE,
    INCARNATION_SIZE,
    Absent,
    LogBounds,
    LogRecord,
    Place,
    ReplicatedLog,
    Trimmed,
    place_of,
)

LOOKS = 20
"""Looks at a log that seems to end too early, as a server that is cut off shows it."""
AGAIN_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Entered:
    """The log's bounds, and the latest time in it (ms since 1970)."""

    bounds: LogBounds
    latest: int


async def enter(engine: ReplicatedLog, database: Database, log: str) -> Entered:
    """Let a database go on from the log named `log`; ReplicationError if it cannot.

    Raises LogSilentError if the log does not answer now.
    """
    bounds = await settled(engine.bounds())
    if not is_of_cluster(database) or has_nothing(database):
        await _enter_first(engine, database, bounds, log)
    check_of_cluster(database)
    place = place_of_database(database)
    for _ in range(LOOKS):
        if place.number <= bounds.last:
            return await _checked(engine, place, bounds, log)
        await asyncio.sleep(AGAIN_SECONDS)
        bounds = await settled(engine.bounds())
    raise ReplicationError(
        f"The log {log} ends with record {bounds.last:,}, but record {place.number:,} is written "
        "here: the log was lost, or is another one."
    )


def has_nothing(database: Database) -> bool:
    """Whether a database of a cluster has never got a record of a log."""
    place = place_of_database(database)
    return place.number == 0 and place.digest == bytes(DIGEST_SIZE)


async def _enter_first(
    engine: ReplicatedLog, database: Database, bounds: LogBounds, log: str
) -> None:
    """Enter an empty log, or one that began with an empty database like this one."""
    is_empty = read_format(database) is None or (is_of_cluster(database) and has_nothing(database))
    if bounds.last == 0:
        if not is_of_cluster(database):
            enter_cluster(database, _beginning(is_empty))
        return
    first = await settled(engine.look(1))
    if is_empty and not isinstance(first, Absent | Trimmed):
        record = LogRecord.decode(first.octets)
        if record.before == bytes(DIGEST_SIZE):
            enter_cluster(database, Place.beginning(record.incarnation))
            return
    if isinstance(first, Absent):
        raise LogSilentError("The log does not show its first record.")
    raise ReplicationError(
        f"The log {log} goes on from other data than those in {database.path}: join its cluster by "
        "a copy of a node's data, or choose another `replica.name`."
    )


def _beginning(is_empty: bool) -> Place:
    """The place before the first record; its digest distinguishes data from other data and from
    none."""
    incarnation = secrets.token_bytes(INCARNATION_SIZE)
    if is_empty:
        return Place.beginning(incarnation)
    return Place(incarnation, 0, 0, secrets.token_bytes(DIGEST_SIZE))


async def _checked(engine: ReplicatedLog, place: Place, bounds: LogBounds, log: str) -> Entered:
    """Check that the log has our last record at its place, or has trimmed it."""
    if place.number + 1 < bounds.first:
        raise ReplicationError(
            f"The log {log} was trimmed behind record {place.number:,}, which is the last one "
            "here: join anew by a copy of a node's data."
        )
    if place.number == 0:
        return Entered(bounds, 0)
    seen = await settled(engine.look(place.number))
    if isinstance(seen, Trimmed):
        return Entered(bounds, 0)
    if isinstance(seen, Absent):
        raise LogSilentError(f"The log does not show record {place.number:,}.")
    record = LogRecord.decode(seen.octets)
    if place_of(record, seen.octets) != place:
        raise ReplicationError(
            f"Record {place.number:,} of the log {log} is another one than the one written here: "
            "the log was lost, or is another one."
        )
    return Entered(bounds, record.time)
