"""The version of a data directory's format, and the steps from an older version."""

import struct
from collections.abc import Callable, Mapping
from typing import NoReturn

from rocksdict import WriteBatch

from rpcqm.base.log import get_logger
from rpcqm.store.database import Database
from rpcqm.store.errors import StoreFormatError
from rpcqm.store.records import LOG_POSITION_KEY, LOG_WRITER_KEY, Family
from rpcqm.store.replication import Place

FORMAT = 2
"""The version that this code reads and writes."""
FORMAT_KEY = b"format"
OF_CLUSTER = 0x100
"""Added to the version of a directory in a cluster, whose log has the next writes (G667).

A version of rpcqm without support for the log would go on without it.
"""

Migration = Callable[[Database, WriteBatch], None]
"""Adds to a batch the changes from one version to the next; only reads the database."""


def _remember_together(database: Database, batch: WriteBatch) -> None:
    """From version 2 on one record may remember many messages; others are as before (G357).

    A version that reads only the others would take a message again.
    """


MIGRATIONS: dict[int, Migration] = {1: _remember_together}
"""The steps, by the version that they start from."""

_VERSION = struct.Struct("<I")
_log = get_logger("store")


def read_format(database: Database) -> int | None:
    """The version of a database; None if the database is new.

    Raises StoreFormatError if it has data but no version.
    """
    value = database.get(Family.META, FORMAT_KEY)
    if value is not None and len(value) == _VERSION.size:
        version: int = _VERSION.unpack(value)[0]
        return version
    if value is not None or any(any(database.items(family)) for family in Family):
        raise StoreFormatError(f"The database in {database.path} is not one of rpcqm.")
    return None


def bring_to_format(
    database: Database,
    target: int = FORMAT,
    migrations: Mapping[int, Migration] = MIGRATIONS,
) -> None:
    """Make a new database, or bring one up to `target`, one atomic and durable step a version.

    Raises StoreFormatError if a newer version wrote the database, or it is too old.
    """
    version = read_format(database)
    if version is None:
        _step(database, WriteBatch(raw_mode=True), target)
        return
    check_format(database, version, target)
    for old in range(version, target):
        if old not in migrations:
            raise StoreFormatError(
                f"The database in {database.path} has format {old}, which is too old for this "
                "version of rpcqm: start an older version on it first."
            )
        batch = WriteBatch(raw_mode=True)
        migrations[old](database, batch)
        _step(database, batch, old + 1)
        _log.info("database migrated", from_format=old, to_format=old + 1)


def is_of_cluster(database: Database) -> bool:
    """Whether the next writes of the database come from a replicated log."""
    return bool((read_format(database) or 0) & OF_CLUSTER)


def refuse_without_log(database: Database) -> NoReturn:
    """Raise StoreFormatError: a database of a cluster must not go on without its log."""
    raise StoreFormatError(
        f"The database in {database.path} is one of a cluster, and must not go on without the "
        "cluster's log: two queue managers would have one identity."
    )


def check_of_cluster(database: Database) -> None:
    """Raise StoreFormatError for a database that is not of a cluster, or of another version."""
    version = read_format(database) or 0
    if version != FORMAT | OF_CLUSTER:
        raise StoreFormatError(
            f"The database in {database.path} has format {version}, which the cluster's log does "
            "not go on from."
        )


def enter_cluster(database: Database, place: Place) -> None:
    """Let a database of this version, or a new one, go on from a place in a log, durably."""
    if not is_of_cluster(database):
        bring_to_format(database)
    _step(database, WriteBatch(raw_mode=True), FORMAT | OF_CLUSTER, place.encode())


def leave_cluster(database: Database) -> None:
    """Let a database of a cluster go on without the log, durably."""
    batch = WriteBatch(raw_mode=True)
    for key in (LOG_POSITION_KEY, LOG_WRITER_KEY):
        batch.delete(key, database.handles[Family.META])
    _step(database, batch, (read_format(database) or FORMAT) & ~OF_CLUSTER)


def place_of_database(database: Database) -> Place:
    """The log's place after the last write; raises ReplicationError without a record of it."""
    return Place.decode(database.get(Family.META, LOG_POSITION_KEY) or b"")


def check_format(database: Database, version: int, target: int = FORMAT) -> None:
    """Raise StoreFormatError if a newer version of rpcqm wrote the database."""
    if version > target:
        raise StoreFormatError(
            f"The database in {database.path} has format {version}, but this version of rpcqm "
            f"reads formats up to {target}: use a newer rpcqm, or another data directory."
        )


def _step(
    database: Database, batch: WriteBatch, version: int, position: bytes | None = None
) -> None:
    batch.put(FORMAT_KEY, _VERSION.pack(version), database.handles[Family.META])
    database.write(batch, sync=True, position=position)
