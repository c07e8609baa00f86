"""Lets one node's data begin a new log, after the old log was lost (G743).

What other nodes or the old log had behind it is lost with it, as after a restore: so numbers begin
anew, with the marks of a restore.
"""

from pathlib import Path

from rpcqm.base.clock import Clock
from rpcqm.store import restored
from rpcqm.store.backup import mark_as_restored
from rpcqm.store.database import DATABASE_NAME, Database
from rpcqm.store.errors import StoreError
from rpcqm.store.migration import is_of_cluster, leave_cluster, place_of_database
from rpcqm.store.replication import Place
from rpcqm.store.settings import StoreSettings


def place_to_go_on_from(directory: Path) -> Place | None:
    """The end of the log in a directory; None for one that was restored from a backup.

    Raises StoreError for a directory that is in use, or of another kind.
    """
    database = _opened(directory)
    try:
        return _place(database, directory)
    finally:
        database.close()


def adopt(directory: Path, begin_anew: restored.BeginAnew, clock: Clock) -> Place | None:
    """Let a directory begin a new log at its next start; returns `place_to_go_on_from`.

    A crash leaves the directory unchanged, or as a restored one, which can be adopted again.
    """
    database = _opened(directory)
    try:
        place = _place(database, directory)
        if place is not None:
            mark_as_restored(directory)
            leave_cluster(database)
        restored.go_on(database, directory, begin_anew, clock)
        return place
    finally:
        database.close()


def _opened(directory: Path) -> Database:
    if not (directory / DATABASE_NAME).is_dir():
        raise StoreError(f"{directory} has no data of a queue manager.")
    return Database(directory, StoreSettings())


def _place(database: Database, directory: Path) -> Place | None:
    if is_of_cluster(database):
        return place_of_database(database)
    if restored.is_pending(database, directory):
        return None
    raise StoreError(
        f"{directory} is neither of a cluster nor restored: it begins a log by its next start."
    )
